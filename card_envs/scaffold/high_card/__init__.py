"""High Card, the smallest game through the whole contract of `card_envs/game.py`. Rules: RULES.md."""

from card_envs.game import Game

GAME = Game("high_card", "High Card", __name__)
