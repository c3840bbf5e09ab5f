"""Replay of game records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from card_envs._files import short_repr
from card_envs.engine._buffers import check_int
from card_envs.envs.aec import CardEnv, env_with
from card_envs.games import get_game
from card_envs.record import GameRecord


def replay(record: GameRecord, num_moves: int | None = None) -> CardEnv:
    """Return an environment in which the first `num_moves` moves of a record (default: all) have been played.

    Raises:
        ValueError: not a record, another version of the rules, or options, a deal or a move that do not fit the game.
    """
    if not isinstance(record, GameRecord):
        raise ValueError(f"record: expected a GameRecord, as GameRecord.load(path) reads it, got {short_repr(record)}")
    if num_moves is not None:
        num_moves = check_int(num_moves, 0, None, "num_moves")
    game = get_game(record.game)
    if game.version != record.version:
        raise ValueError(f"record of {game.name} version {record.version}; these are the rules of {game.version}")
    env = env_with(game, record.options)
    env.reset(seed=0, options={"deal": record.deal})
    for _ in play_moves(env, record.moves[:num_moves]):
        pass
    return env


def play_moves(env: CardEnv, moves: Iterable[str]) -> Iterator[int]:
    """Play moves in an environment, and yield each as an action before it is played.

    Raises:
        ValueError: a move that is not legal.
    """
    for number, move in enumerate(moves):
        action = env.parse_move(move)
        if move not in env.legal_moves():
            raise ValueError(f"move {number}: {move} is illegal; legal: {', '.join(env.legal_moves())}")
        yield action
        env.step(action)


def verify(record: GameRecord) -> None:
    """Replay a record and compare the outcome. Raises ValueError where they differ."""
    outcome = replay(record).outcome()
    if record.outcome.get("reason") == "illegal" and not outcome["over"]:
        outcome |= {"over": True, "reason": "illegal"}
    if outcome != record.outcome:
        raise ValueError(f"the record says {record.outcome}, its moves lead to {outcome}")
