"""Opponents behind one call, `load_opponent`: scripted, searching, trained, or the user's own."""

from card_envs.opponents.names import load_opponent, opponent_names
from card_envs.opponents.networks.torch_policy import TorchPolicy, actor_of
from card_envs.opponents.pool import OpponentPool

__all__ = ["OpponentPool", "TorchPolicy", "actor_of", "load_opponent", "opponent_names"]
