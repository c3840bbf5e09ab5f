"""Back Alley: four players, two partnerships, bidding and tricks. Rules: RULES.md."""

from card_envs.game import Game

GAME = Game("back_alley", "Back Alley", __name__)
