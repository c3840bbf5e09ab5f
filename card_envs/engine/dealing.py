"""Deals and determinizations in loops: random streams are keyed here, so that no game can forget it."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from card_envs.compiling._rules import instruction
from card_envs.engine.rng import GOLDEN_RATIO, advance, mix
from card_envs.game import Int8s, State, UInt64s, deal, determinize, set_deal


def deal_next(state: State) -> None:
    """Deal; if the episode is over, begin the next one under a new key."""
    if state.over:
        state.rng = mix(state.rng + GOLDEN_RATIO)
    deal(state)


def set_next_deal(state: State, pack: Int8s) -> None:
    """Deal a given pack; otherwise like `deal_next`."""
    if state.over:
        state.rng = mix(state.rng + GOLDEN_RATIO)
    set_deal(state, pack)


def draw_world(state: State, seat: int, stream: UInt64s) -> None:
    """Redraw what a seat can't know, later deals included; advance `stream` [1]."""
    state.rng = advance(stream)
    determinize(state, seat, stream)


@instruction
def copy_state(source: NDArray[Any], i: int, target: NDArray[Any], k: int) -> None:
    """Copy State i of an array to place k of another one."""
    target[k] = source[i]
