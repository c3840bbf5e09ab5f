"""Replay of game records."""

from __future__ import annotations

from card_envs.engine.buffers import check_int
from card_envs.envs.aec import CardEnv, env_with
from card_envs.game import Game
from card_envs.games import get_game
from card_envs.play.episode import read_episode
from card_envs.record import GameRecord
from card_envs.system.files import short_repr


def replay(record: GameRecord, num_moves: int | None = None) -> CardEnv:
    """Return an environment in which the first `num_moves` moves of a record (default: all) have been played.

    Raises:
        ValueError: not a record, another version of the rules, or options, a deal or a move that do not fit the game.
    """
    game = game_of(record)
    if num_moves is not None:
        num_moves = check_int(num_moves, 0, None, "num_moves")
    _, actions = read_episode(record, game, num_moves, seed=0)
    env = env_with(game, record.options)
    env.reset(seed=0, options={"deal": record.deal})
    for action in actions:
        env.step(action)
    return env


def game_of(record: GameRecord) -> Game:
    """Return the game of a record. Raises ValueError if it is not a record, or the game is unknown."""
    if not isinstance(record, GameRecord):
        raise ValueError(f"record: expected a GameRecord, as GameRecord.load(path) reads it, got {short_repr(record)}")
    return get_game(record.game)


def verify(record: GameRecord) -> None:
    """Replay a record and compare the outcome. Raises ValueError where they differ."""
    outcome = replay(record).outcome()
    if record.outcome.get("reason") == "illegal" and not outcome["over"]:
        outcome |= {"over": True, "reason": "illegal"}
    if outcome != record.outcome:
        raise ValueError(f"the record says {record.outcome}, its moves lead to {outcome}")
