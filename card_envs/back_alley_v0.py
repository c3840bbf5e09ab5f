"""Back Alley for PettingZoo: `from card_envs import back_alley_v0; env = back_alley_v0.env()`."""

from functools import partial

from card_envs.envs.aec import CardEnv
from card_envs.games.back_alley import GAME

env = raw_env = partial(CardEnv, GAME)
