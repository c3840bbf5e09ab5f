"""Big Ben for PettingZoo: `from card_envs import big_ben_v0; env = big_ben_v0.env()`."""

from functools import partial

from card_envs.envs.aec import CardEnv
from card_envs.games.big_ben import GAME

env = raw_env = partial(CardEnv, GAME)
