"""The benchmarks measure what they say; how fast anything is depends on the machine and is not asserted."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import Row, as_work, gpu, in_turns, markdown
from benchmarks.__main__ import (
    DECISIONS,
    NUM_ACTIONS,
    OBS_SIZE,
    OPEN_SPIEL,
    TrickGame,
    compile_game,
    open_spiel_moves,
    our_steps,
    turns_of,
)
from card_envs import BatchEnv, get_game
from card_envs.envs.aec import env_with
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import run_python

HANDS, PLAYED, TRICK_OF, WINNERS = slice(0, 54), slice(54, 270), slice(270, 324), slice(378, 432)
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@needs_compiler
def test_the_c_game_is_a_trick_game(tmp_path: Path) -> None:
    game = TrickGame(compile_game(tmp_path), 64, seed=3)
    ended, rows = 0, np.arange(64)
    for _ in range(600):
        bidding = game.mask[:, 54:].any(axis=1)
        assert game.mask[bidding, 54:].all() and not game.mask[bidding, :54].any()
        hands = game.obs[:, HANDS]
        assert (game.mask[~bidding, :54] <= hands[~bidding]).all() and game.mask.any(axis=1).all()
        assert (game.obs[:, WINNERS] <= hands).all()
        played = game.obs[:, PLAYED].reshape(64, 4, 54)
        assert (played.sum(axis=1) == (game.obs[:, TRICK_OF] > 0)).all()
        assert not (hands & played.any(axis=1)).any()
        full = played.sum(axis=(1, 2)) + 4 * hands.sum(axis=1)
        assert ((full > 48) & (full < 56)).all()  # nobody is more than a card ahead
        game.choose()
        assert game.mask[rows, game.actions].all()
        game.step()
        ended += int(game.done.sum())
        assert (game.rewards[game.done].sum(axis=1) == 0).all() and not game.rewards[~game.done].any()
        assert (game.rewards[game.done, 0] == game.rewards[game.done, 2]).all()
    assert ended == 64 * (600 // 56)  # 4 bids and 52 cards
    game.choose()
    game.actions[5] = NUM_ACTIONS
    before = game.obs.copy()
    with pytest.raises(ValueError, match=f"action {NUM_ACTIONS} is illegal at table 5"):
        game.step()
    assert np.array_equal(game.obs, before)
    game.choose()
    game.out_of_step()
    assert len(np.unique(game.obs[:, TRICK_OF].max(axis=1))) > 8


def test_the_c_game_writes_as_much_as_back_alley() -> None:
    rules = get_game("back_alley").rules
    assert (OBS_SIZE, NUM_ACTIONS) == (rules.OBS_SIZE, rules.NUM_ACTIONS)


def test_decisions_are_counted() -> None:
    env = BatchEnv(get_game("back_alley"), 4)
    decisions, spent = our_steps(env)()
    assert decisions == 80 and spent > 0
    assert as_work(lambda: 7)()[0] == 7


def test_what_others_play_is_counted() -> None:
    pytest.importorskip("pyspiel")
    for game in OPEN_SPIEL:
        assert open_spiel_moves(game)()[0] == DECISIONS
    assert turns_of(env_with(TINY, {}))()[0] == DECISIONS


def test_rows_hold_rates_and_ratios() -> None:
    row = in_turns("work", "other", lambda: (10, 0.5), lambda: (30, 0.5), 1e-9, rounds=3)
    assert row == Row("work", "other", 20.0, 60.0, [3.0, 3.0, 3.0])
    text = markdown([row, Row("more", "x", 1234567.0, 2e3, [1.0, 0.5, 12.5])])
    assert text.splitlines()[2:] == [
        "| work | other | 0.02 | 0.06 | **3.00** (3.00 to 3.00) |",
        "| more | x | 1,235 | 2.00 | **1.00** (0.50 to 12.5) |",
    ]


# Beside pgx on a GPU


def test_what_a_gpu_lacks_is_said_in_a_line() -> None:
    program = "import runpy, sys; sys.modules['jax'] = None; runpy.run_module('benchmarks.gpu', None, '__main__')"
    done = run_python("-c", program, status=2)
    hint = r"error: this needs jax: pip install pgx 'jax\[cuda13\]'.*\n"
    assert re.fullmatch(hint, done.stderr), done.stderr


def test_pgx_plays_on_the_cpu() -> None:
    pytest.importorskip("pgx")
    for name in gpu.PGX:
        assert gpu.pgx_steps(name, 2)() == 2 * gpu.STEPS


# Baselines


@pytest.mark.parametrize(
    ("method", "needs"),
    [("maskable_ppo", "sb3_contrib"), ("cleanrl_ppo", "torch"), ("tianshou_dqn", "tianshou"), ("ppo", "torch")],
)
def test_methods_learn(method: str, needs: str) -> None:
    for needed in ("torch", needs):
        pytest.importorskip(needed)
    from benchmarks.training import METHODS, TimeBudget, measure, options_of

    game = get_game("back_alley")
    decisions, policy = next(METHODS[method](game, options_of(game), 0, TimeBudget(0.01)))
    assert decisions > 0 and 0 <= measure(game, policy(), 4)["greedy"]["won"]["mean"] <= 1


def test_learning_curves_count_only_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from benchmarks import training as baselines

    now = [0.0]
    monkeypatch.setattr(baselines, "work_time", lambda: now[0])

    def learning() -> Iterator[tuple[int, Callable[[], Any]]]:
        for update in range(1, 100):
            now[0] += 10
            yield 20_000 * update, SimpleNamespace

    def measure(policy: Any) -> dict[str, Any]:
        now[0] += 1000
        return {"seen": policy}

    budget = baselines.TimeBudget(1.0)
    points = baselines.curve(learning(), budget, measure)
    assert [(point["decisions"], point["after"]) for point in points] == [
        (20_000, [0.1]), (40_000, [0.3, 30_000]), (100_000, [100_000]), (120_000, [1.0]),
    ]  # fmt: skip
    assert points[-1]["minutes"] == 1 and budget.seconds == 60 and not points[0]["seen"].sampled
