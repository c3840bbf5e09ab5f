"""The benchmarks measure what they say; how fast anything is depends on the machine and is not asserted."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import __main__ as everything
from benchmarks import gpu
from benchmarks.c_reference import NUM_ACTIONS, OBS_SIZE, TrickGame, compiled, our_steps
from benchmarks.measuring import Row, in_turns, markdown, timed
from card_envs import BatchEnv, get_game, load_opponent
from card_envs.compare.pairs import play_pairs
from card_envs.scaffold.high_card import GAME as TINY

HANDS, PLAYED, TRICK_OF, WINNERS = slice(0, 54), slice(54, 270), slice(270, 324), slice(378, 432)
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@needs_compiler
def test_the_c_game_is_a_trick_game(tmp_path: Path) -> None:
    game = TrickGame(compiled(tmp_path), 64, seed=3)
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
    assert timed(lambda: 7)()[0] == 7


@pytest.mark.parametrize("name", ["open_spiel_games", "pettingzoo_classic"])
def test_what_others_play_is_counted(name: str) -> None:
    if name == "open_spiel_games":
        pytest.importorskip("pyspiel")
        from benchmarks.open_spiel_games import DECISIONS, PAIRS, their_moves

        for game in PAIRS:
            assert their_moves(game)()[0] == DECISIONS
    else:
        pytest.importorskip("rlcard")
        from benchmarks.pettingzoo_classic import TURNS, rows

        found = list(rows(1e-9))
        assert len(found) == 4 and all(row.other_rate > 0 for row in found) and TURNS > 0


def test_rows_of_data_are_counted() -> None:
    pytest.importorskip("pyarrow", reason="the extra `data` is not installed")
    from benchmarks.games_as_data import generated, loop

    game = get_game("back_alley")
    for as_text in (False, True):
        assert generated(game, as_text)()[0] > 16 * 8 and loop(game, as_text)()[0] >= 8


@pytest.mark.slow
def test_training_is_counted() -> None:
    pytest.importorskip("sb3_contrib")
    from benchmarks.maskable_ppo import rows

    found = list(rows(1e-9))
    assert len(found) == 2 and all(row.other_rate > 0 and row.own_rate > 0 for row in found)


def test_rows_hold_rates_and_ratios() -> None:
    row = in_turns("work", "other", lambda: (10, 0.5), lambda: (30, 0.5), 1e-9, rounds=3)
    assert row == Row("work", "other", 20.0, 60.0, [3.0, 3.0, 3.0])
    text = markdown([row, Row("more", "x", 1234567.0, 2e3, [1.0, 0.5, 12.5])])
    assert text.splitlines()[2:] == [
        "| work | other | 0.02 | 0.06 | **3.00** (3.00 to 3.00) |",
        "| more | x | 1,235 | 2.00 | **1.00** (0.50 to 12.5) |",
    ]


def test_the_table_goes_between_the_marks() -> None:
    page = everything.PAGE.read_text()
    once = everything.rewritten(page, "A table.\n", "page")
    assert everything.rewritten(once, "A table.\n", "page") == once and "A table." in once
    with pytest.raises(ValueError, match="page: expected the lines <!-- benchmarks --> and, after it"):
        everything.rewritten("nothing", "A table.\n", "page")


# Beside pgx on a GPU


def test_each_takes_its_turn_on_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With kernels that are not launched, and pgx's environments that do nothing; one finds no memory."""
    from card_envs.engine import _ptx as ptx
    from card_envs.engine import gpu as engine

    def steps(name: str, tables: int) -> Callable[[], int]:
        if name == "full":
            raise RuntimeError("RESOURCE_EXHAUSTED")

        def work() -> int:
            turns.append(name)
            return 7

        return work

    turns: list[str] = []
    monkeypatch.setattr(engine, "GpuBatchEnv", lambda *arguments, device: ptx.Recorder(*arguments))
    monkeypatch.setattr(gpu, "GAMES", {TINY.name: TINY})
    monkeypatch.setattr(gpu, "PGX", ("full", "one", "other"))
    monkeypatch.setattr(gpu, "pgx_steps", steps)
    found = gpu.measured(4, "cuda", 1e-9)
    assert list(found) == [TINY.name, "pgx one", "pgx other"] and min(found.values()) > 0
    assert turns == ["one", "other", *["one", "other"] * (1 + gpu.ROUNDS)]
    assert "full, 4 tables: left out: RESOURCE_EXHAUSTED" in capsys.readouterr().err


def test_figures_of_a_card_replace_its_own(tmp_path: Path) -> None:
    path = tmp_path / "gpu.json"
    for card, made in (("A", "first"), ("B", "first"), ("A", "second")):
        gpu.stored(path, {"card": card, "made": made, "rates": {}})
    assert [(one["card"], one["made"]) for one in json.loads(path.read_text())] == [("B", "first"), ("A", "second")]


def test_pgx_plays_on_the_cpu() -> None:
    pytest.importorskip("pgx")
    for name in gpu.PGX:
        assert gpu.pgx_steps(name, 2)() == 2 * gpu.STEPS


def test_our_steps_are_counted_on_the_cpu() -> None:
    assert gpu.our_steps(TINY, 8, "cpu")() == 8


# Baselines


def chosen(strategy: list[Any], number: int, worth: Any) -> Any:
    return strategy[number]


def test_the_tiny_game_is_solved() -> None:
    from benchmarks.tiny_game import tree

    game = tree()
    assert [level.legal.shape[1] for level in game.levels] == [3, 3, 2, 2] and len(game.levels[0].seat) == 18_480
    strategies = {name: game.strategy(load_opponent(name, TINY).policy) for name in ("random", "trivial", "greedy")}
    for name, other in (("greedy", "trivial"), ("greedy", "random")):
        choose = partial(chosen, strategies[name])
        value = [game.values(strategies[other], seat, choose) for seat in range(2)]
        played = play_pairs(TINY, load_opponent(name, TINY), load_opponent(other, TINY), 4000).margin_per_episode
        assert played.low < sum(value) / 2 < played.high
    exploited = {name: game.exploitability(strategy) for name, strategy in strategies.items()}
    assert exploited["trivial"] > exploited["random"] > exploited["greedy"] > 0.2
    near, nearer = (game.optimum(iterations) for iterations in (3, 12))
    assert 0 <= game.exploitability(nearer) < game.exploitability(near) / 3 < 0.02
    again = game.strategy(game.player(nearer))
    assert all(np.allclose(one, other, atol=1e-6) for one, other in zip(again, nearer))


LEARNERS = (
    ("maskable_ppo", "sb3_contrib"), ("cleanrl_ppo", "torch"), ("tianshou_dqn", "tianshou"), ("ppo", "torch"),
    ("advantages", "torch"), ("mccfr", "open_spiel"), ("nfsp", "tree"),
)  # fmt: skip


@pytest.mark.parametrize(("method", "needs"), LEARNERS)
def test_every_method_learns_the_tiny_game(method: str, needs: str) -> None:
    for needed in ("torch", needs):
        pytest.importorskip(needed)
    from benchmarks.baselines import METHODS, Budget, measured

    decisions, policy = next(METHODS[method](TINY, {}, 0, Budget(0.01)))
    found = measured(TINY, policy(), {}, 4)
    assert decisions > 0 and found["exploitability"] > 0 and 0 <= found["greedy"]["won"]["mean"] <= 1
    assert {one for one, _ in LEARNERS} | {"td"} == set(METHODS)


def test_learning_curves_count_only_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from benchmarks import baselines

    now = [0.0]
    monkeypatch.setattr(baselines, "work_time", lambda: now[0])

    def learning() -> Iterator[tuple[int, Callable[[], Any]]]:
        for update in range(1, 100):
            now[0] += 10
            yield 20_000 * update, lambda: load_opponent("random", TINY)

    def measure(policy: Any) -> dict[str, Any]:
        now[0] += 1000
        return {"seen": policy}

    budget = baselines.Budget(1.0)
    points = baselines.curve(learning(), budget, measure)
    assert [(point["decisions"], point["after"]) for point in points] == [
        (20_000, [0.1]), (40_000, [0.3, 30_000]), (100_000, [100_000]), (120_000, [1.0]),
    ]  # fmt: skip
    assert points[-1]["minutes"] == 1 and budget.seconds == 60 and "seen" in points[0]


@pytest.mark.processes
def test_baselines_go_on_where_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    from benchmarks import baselines

    path = tmp_path / "found.json"
    words = ["--games", TINY.name, "--methods", "ppo", "--minutes", "0.002", "--seeds", "1", "--file", str(path)]

    def run(*more: str) -> str:
        monkeypatch.setattr(sys, "argv", ["baselines", *words, *more])
        baselines.main()
        return capsys.readouterr().out

    assert "1/1 high_card ppo 0: " in run("--pairs", "20")
    found = json.loads(path.read_text())["games"][TINY.name]
    assert set(found["known"]) == {"random", "greedy", "optimum"} and set(found["methods"]) == {"ppo"}
    assert found["methods"]["ppo"]["0"]["points"][-1]["after"][-1] == 1.0
    assert run("--pairs", "20") == ""
    with pytest.raises(SystemExit):
        run("--pairs", "30")
    assert "high_card was made with pairs = 20, not 30: give that, or another --file" in capsys.readouterr().err
