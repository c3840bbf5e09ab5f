"""A game as data, for programs in other languages: sizes, layouts, texts of moves, options, presets."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from card_envs.game import Field, Game, offsets
from card_envs.options import adapter, describe_options
from card_envs.views import in_words


def describe_game(game: Game) -> dict[str, Any]:
    """Return what a program needs to know about a game besides its functions, ready for JSON."""
    rules = game.rules
    return {
        "name": game.name,
        "title": game.title,
        "version": game.version,
        "seats": rules.NUM_SEATS,
        "seat_names": list(game.view.SEAT_NAMES),
        "sides": list(game.sides),
        "actions": rules.NUM_ACTIONS,
        "pack": rules.PACK_SIZE,
        "state": record_layout(rules.STATE),
        "observation": {"size": rules.OBS_SIZE, "fields": describe_fields(rules.OBS_FIELDS)},
        "phases": {name: [actions.start, actions.stop] for name, actions in game.view.PHASES.items()},
        "texts": list(game.move_texts),
        "options": adapter(game.options).json_schema(),
        **in_words(game),
    }


def record_layout(dtype: np.dtype[Any]) -> dict[str, Any]:
    """Return the size in bytes and the fields of a record: type, offset in bytes, shape."""
    layout = {}
    for name, (kind, offset, *_) in (dtype.fields or {}).items():
        layout[name] = {"type": kind.base.name, "offset": offset, "shape": list(kind.shape)}
    return {"size": dtype.itemsize, "fields": layout}


def describe_fields(declared: tuple[Field, ...]) -> list[dict[str, Any]]:
    """Return the fields of an observation: offset, size, bounds, meaning."""
    start: Any = offsets(declared)
    return [
        {
            "name": field.name,
            "offset": int(getattr(start, field.name)),
            "size": field.size,
            "low": field.low,
            "high": field.high,
            "meaning": field.meaning,
        }
        for field in declared
    ]


def choices_of(declared: type[Any]) -> dict[str, list[Any]]:
    """Return the values of each of a game's `Options` that can be listed: texts, numbers and None, and booleans."""

    def list_values(kind: Any) -> list[Any]:
        if kind is bool:
            return [False, True]
        if kind is NoneType:
            return [None]
        if get_origin(kind) is Literal:
            return list(get_args(kind))
        parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else ()
        return [value for part in parts for value in list_values(part)]

    return {name: list_values(option.type) for name, option in describe_options(declared).items()}
