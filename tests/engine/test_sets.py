"""Sets of cards as bits: their type, their members, and how they are written into rows."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from card_envs.compiling import _instructions, rule
from card_envs.compiling._rules import INTERPRETED
from card_envs.engine import sets


@pytest.mark.parametrize("card_type", [np.int8, np.int32, np.int64, np.uint64])
def test_sets_stay_unsigned(card_type: Any) -> None:
    for helper in (sets.bit, sets.below_card, sets.above_card):
        helper(card_type(63))
        for compiled in helper.compiled.overloads.values():  # type: ignore[attr-defined]
            assert compiled.signature.return_type == numba.uint64
    assert sets.bit(card_type(63)) == 1 << 63
    assert sets.below_card(card_type(63)) == (1 << 63) - 1
    assert sets.above_card(card_type(62)) == 1 << 63
    assert sets.above_card(card_type(63)) == 0
    assert sets.below_card(card_type(0)) == 0


def test_sets_are_what_they_say() -> None:
    from card_envs.compiling._rules import loop

    @loop
    def ask(cards: Any, found: Any) -> None:
        found[0] = sets.count(cards)
        found[1] = sets.lowest(cards)
        found[2] = sets.highest(cards)
        for index in range(found[0]):
            found[3 + index] = sets.nth(cards, index)

    for value in (1, 1 << 63, (1 << 64) - 1, 0b1011, 0x8000_0001_0000_0100):
        found = np.zeros(3 + 64, np.int64)
        ask(np.uint64(value), found)
        members = [card for card in range(64) if value >> card & 1]
        assert found[: 3 + len(members)].tolist() == [len(members), members[0], members[-1], *members]


SET = 0xF0F1_8000_2000_1A65


LENGTHS = 1, 3, 7, 14, 33, 52, 64


def writer(length: int) -> Any:
    """A loop that spreads a set and copies entries, `length` of each, in every row."""
    source = f"""
def write(rows, start, cards, entries):
    for i in range(len(rows)):
        spread(rows[i], start, cards, {length})
        copy(rows[i], start + {length}, entries, {length})
"""
    names: dict[str, Any] = {"spread": sets.spread, "copy": sets.copy}
    exec(source, names)
    return rule(names["write"])


@pytest.mark.parametrize("x86", [True, False])
@pytest.mark.parametrize("length", LENGTHS)
def test_spreading_writes_just_so_many_entries(length: int, x86: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At both ends of a row, in rows that lie in one piece or do not, and not a byte beside them."""
    monkeypatch.setattr(_instructions, "X86", x86)
    write = writer(length)
    entries = np.arange(1, 65, dtype=np.int8)
    expected = [SET >> card & 1 for card in range(length)] + entries[:length].tolist()
    for start in (0, 1, 5):
        size = start + 2 * length
        in_one_piece = np.full((3, size), 7, np.int8)
        guarded = np.full((3, size + 64), 7, np.int8)
        columns = np.full((size + 64, 3), 7, np.int8)
        every_other = np.full((3, 2 * size + 64), 7, np.int8)
        cases = (
            (in_one_piece, in_one_piece), (guarded[:, :size], guarded), (columns.T[:, :size], columns),
            (every_other[:, : 2 * size : 2], every_other),
        )  # fmt: skip
        for rows, whole in cases:
            write(rows, start, np.uint64(SET), entries)
            assert (rows[:, start:] == expected).all() and (rows[:, :start] == 7).all()
            rows[:] = 7
            assert (whole == 7).all()  # nothing else was written


def test_spreading_takes_a_constant_length() -> None:
    if INTERPRETED:
        pytest.skip("nothing is compiled")

    @numba.njit
    def write(row: Any, length: int) -> None:
        sets.spread(row, 0, sets.ONE, length)

    with pytest.raises(numba.core.errors.TypingError, match="length: expected a constant"):
        write(np.zeros(64, np.int8), 3)
