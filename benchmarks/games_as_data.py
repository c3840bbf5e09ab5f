"""`python -m benchmarks.games_as_data`: rows of `generate` beside the loop that one would write oneself.

Extra `data`. The loop plays the PettingZoo environment, asks the opponent at each decision and keeps a row, as
arrays or as text. Neither writes to the disk, but the rows of `generate` become the bytes of a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.measuring import Row, Work, command, in_turns, timed
from card_envs import get_game, load_opponent
from card_envs.data import Plan
from card_envs.data._writing import json_lines, parquet
from card_envs.envs.aec import CardEnv
from card_envs.game import Game

PLAYER = "small"
TEXT_GAMES = 16  # at once; as arrays, as many as `generate` plays at once
OPTIONS: dict[str, dict[str, Any]] = {"back_alley": {"deals": "single"}, "russian_bank": {}, "big_ben": {}}


def loop(game: Game, as_text: bool) -> Work:
    """One episode at a time, each decision as a dict."""
    env = CardEnv(game, render_mode="ansi", **OPTIONS[game.name])
    opponent, rng = load_opponent(PLAYER, game), np.random.default_rng(0)

    def episode() -> int:
        env.reset()
        rows = []
        while env.agents:
            observation, reward, over, _, _ = env.last()
            if over:
                env.step(None)
                continue
            action = opponent.move(env, rng)
            row: dict[str, Any] = {"agent": env.agent_selection, "reward": float(reward), "action": action}
            if as_text:
                row |= {"text": env.render(), "legal": env.legal_moves(), "move": env.move_text(action)}
                row["line"] = json.dumps(row)
            else:
                row |= {key: np.array(value) for key, value in observation.items()}
            rows.append(row)
            env.step(action)
        return len(rows)

    return timed(episode)


def generated(game: Game, as_text: bool) -> Work:
    """Part after part of a plan, as one process writes it."""
    plan = Plan(game, (PLAYER,), 1 << 20, options=tuple(OPTIONS[game.name].items()))
    parts = iter(plan.parts())

    def part() -> int:
        rows = plan.play(next(parts)[: TEXT_GAMES if as_text else None])
        json_lines(plan, rows) if as_text else parquet(plan, rows, {})
        return len(rows.seat)

    return timed(part)


def rows(seconds: float) -> Iterator[Row]:
    """Games of `small` against itself on one core."""
    for name in OPTIONS:
        game = get_game(name)
        for form, as_text in (("Parquet", False), ("JSON lines with text", True)):
            theirs, ours = loop(game, as_text), generated(game, as_text)
            yield in_turns(f"`generate`, {game.title}, {form}", "a loop of one's own", theirs, ours, seconds)


if __name__ == "__main__":
    command(rows)
