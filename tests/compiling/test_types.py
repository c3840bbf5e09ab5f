"""What type checkers see of loops: `make check` reads this file, in which they must complain where it is written."""

# mypy: warn-unused-ignores

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from card_envs.compiling import specialize
from card_envs.engine import kernels
from card_envs.scaffold.high_card import GAME


def test_editors_see_what_a_bound_loop_is() -> None:
    """`specialize` gives the loop's own type, from `BatchEnv.step` down to `play`."""
    play = specialize(kernels.play_table, GAME)
    states: Any = np.zeros(1, GAME.rules.STATE)
    with pytest.raises(TypeError):
        play(states, 0)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        play(states, 0, 1, 2)  # type: ignore[call-arg]


def asked(states: Any) -> None:
    """For type checkers alone: the parameters have their names and types, and there is no result."""
    play = specialize(kernels.play_table, GAME)
    play(states=states, i=0, action=0)
    play(states, "0", 0)  # type: ignore[arg-type]
    played: int = play(states, 0, 0)  # type: ignore[assignment]
    print(played)
