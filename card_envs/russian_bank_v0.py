"""Russian Bank for PettingZoo: `from card_envs import russian_bank_v0; env = russian_bank_v0.env()`."""

from functools import partial

from card_envs.envs.aec import CardEnv
from card_envs.games.russian_bank import GAME

env = raw_env = partial(CardEnv, GAME)
