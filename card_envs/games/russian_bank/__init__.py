"""Russian Bank (Crapette): two players, competitive solitaire. Rules: RULES.md."""

from card_envs.game import Game

GAME = Game("russian_bank", "Russian Bank", __name__)
