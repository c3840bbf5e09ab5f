"""Opponents: scripted, trained, or the user's own, behind one call: `load_opponent`."""

from card_envs.opponents.names import load_opponent, opponent_names

__all__ = ["load_opponent", "opponent_names"]
