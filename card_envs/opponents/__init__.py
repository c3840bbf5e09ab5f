"""Opponents behind one call, `load_opponent`: scripted, searching, trained, or the user's own."""

from card_envs.opponents._names import load_opponent, opponent_names
from card_envs.opponents.networks._torch_policy import TorchPolicy
from card_envs.opponents.pool import OpponentPool

__all__ = ["OpponentPool", "TorchPolicy", "load_opponent", "opponent_names"]
