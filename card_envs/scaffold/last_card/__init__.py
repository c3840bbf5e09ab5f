"""Last Card. Rules: RULES.md."""

from card_envs.game import Game

GAME = Game("last_card", "Last Card", __name__)
