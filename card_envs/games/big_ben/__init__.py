"""Big Ben: a solitaire game with two packs. Rules: RULES.md."""

from card_envs.game import Game

GAME = Game("big_ben", "Big Ben", __name__)
