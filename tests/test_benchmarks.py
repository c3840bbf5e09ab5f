"""The benchmarks measure what they say; how fast anything is depends on the machine and is not asserted."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as everything
from benchmarks.c_reference import NUM_ACTIONS, OBS_SIZE, TrickGame, compiled, our_steps
from benchmarks.measuring import Row, in_turns, markdown, timed
from card_envs import BatchEnv, get_game

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

    (row,) = rows(1e-9)
    assert row.other_rate > 0 and row.own_rate > 0


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
