"""Russian Bank (Crapette): two players, a competitive patience. Rules: RULES.md."""

from card_envs.game import Game

GAME = Game("russian_bank", "Russian Bank", __name__)
