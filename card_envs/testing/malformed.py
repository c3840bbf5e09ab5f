"""Malformed input derived from valid input, for tests and fuzzing."""

from __future__ import annotations

import json
import random
from typing import Any

JUNK: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    3,
    99,
    1 << 40,
    1.5,
    "",
    "x",
    "AC",
    "5",
    [],
    [[]],
    {},
    {"a": 1},
    ["AC", "AC"],
)


def mutated(value: Any, rng: random.Random) -> Any:
    """Return a copy of a JSON value with one part changed, dropped, duplicated, added or swapped."""
    value = json.loads(json.dumps(value))
    places: list[tuple[Any, Any]] = []

    def visit(inside: Any) -> None:
        for key in list(inside) if isinstance(inside, dict) else range(len(inside)):
            places.append((inside, key))
            if isinstance(inside[key], (dict, list)):
                visit(inside[key])

    visit(value)
    inside, key = rng.choice(places)
    other_inside, other_key = rng.choice(places)
    how = rng.randrange(6)
    if how == 0:
        del inside[key]
    elif how == 1:
        inside[key] = rng.choice(JUNK)
    elif how == 2 and isinstance(inside[key], int):
        inside[key] += rng.choice((-1, 1))
    elif how == 3 and isinstance(inside, list):
        inside.insert(key, inside[rng.randrange(len(inside))])
    elif how == 4 and isinstance(inside, dict):
        inside["surprise"] = rng.choice(JUNK)
    else:
        copies = json.loads(json.dumps([inside[key], other_inside[other_key]]))
        inside[key], other_inside[other_key] = copies[1], copies[0]
    return value
