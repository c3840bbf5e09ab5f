"""High Card. Rules: RULES.md."""

from card_envs.game import Game

GAME = Game("high_card", "High Card", __name__)
