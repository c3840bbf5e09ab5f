"""Reinforcement-learning environments for card games."""

from card_envs.games import GAMES, get_game

__all__ = ["GAMES", "get_game"]
