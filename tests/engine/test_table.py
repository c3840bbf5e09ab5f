"""`Table`: what it refuses, and its copies."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from card_envs.engine.batch import BatchEnv
from card_envs.engine.table import Table
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import BOTS, NUMBERS, assert_fixed, assert_refused, buffers_but, field_bytes, table_of

OTHER = next(game for game in GAMES.values() if game.is_solitaire)


def test_wrong_arguments_are_refused() -> None:
    rules = TINY.rules
    packs = [one for one in buffers_but((rules.PACK_SIZE,), np.int8) if not is_locked(one)]
    seats = [rules.NUM_SEATS, *NUMBERS]
    calls = {
        "play": zip([rules.NUM_ACTIONS, *NUMBERS]), "set_deal": zip(packs), "observe": zip(seats),
        "observe_all": zip(seats), "determinize": [*((seat, 0) for seat in seats), *((0, key) for key in NUMBERS)],
        "bot_move": zip(BOTS), "seed": [*zip(NUMBERS), *((1, number) for number in NUMBERS)],
    }  # fmt: skip
    table = table_of(TINY, {}, 1)
    assert_refused(table, calls, {"copy", "deal", "legal", "over", "seat", "needs_deal", "rewards"})
    assert_fixed(table)


def is_locked(array: object) -> bool:
    return isinstance(array, np.ndarray) and not array.flags.writeable


def test_states_of_another_kind() -> None:
    states = BatchEnv(TINY, 8, 3).states
    for wrong in (BatchEnv(OTHER, 8).states[0], states, None):
        with pytest.raises(ValueError, match="state: expected one State of high_card"):
            Table(TINY, wrong)  # type: ignore[arg-type]
    for game in (OTHER.name, None):
        with pytest.raises(ValueError, match="game: expected a Game"):
            Table(game, states[0])  # type: ignore[arg-type]
    states["seat"][5] = TINY.rules.NUM_SEATS
    with pytest.raises(ValueError, match=f"got {TINY.rules.NUM_SEATS}"):
        Table(TINY, states[5])


@pytest.mark.mechanics
def test_tables_are_copied_and_pickled(game: Game) -> None:
    table = table_of(game, {}, 1)
    twins = table.copy(), pickle.loads(pickle.dumps(table))
    action = int(np.flatnonzero(table.legal())[0])
    before = field_bytes(table.states)
    for twin in twins:
        twin.play(action)
        assert field_bytes(table.states) == before
    table.play(action)
    assert [field_bytes(twin.states) for twin in twins] == [field_bytes(table.states)] * 2
