"""The options of games: how to declare and validate them.

They are plain dataclasses, so that a game with default options does not import pydantic, which takes longer than
playing a thousand moves; pydantic is imported when options are given.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, dataclass_transform, get_type_hints

import numpy as np

from card_envs.system.files import reason, short_repr

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Options = TypeVar("Options")


class UnknownOption(TypeError, ValueError):
    """An option that a game does not have: a TypeError, like any unknown argument, and a ValueError, like other faults.

    TorchRL's `GymEnv`, for one, tries arguments and expects Python's error and wording.
    """


_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}  # filled on first use


@dataclass_transform(frozen_default=True)
def options(declared: type[Options]) -> type[Options]:
    """Turn a game's `Options` into a frozen dataclass that forbids unknown names."""
    declared.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]
    return dataclasses.dataclass(frozen=True)(declared)


def option(default: Any, description: str, **constraints: Any) -> Any:
    """Return a field of a game's `Options`.

    Args:
        default: every option has one.
        description: meaning of the values, for people.
        constraints: further constraints on the value, as pydantic's `Field` takes them: `strict=True`.
    """
    return dataclasses.field(default=default, metadata={"description": description, **constraints})


class Constraint:
    """Constraints on a part of an option's type: `Annotated[int, Constraint(ge=1, le=13, strict=True)]`."""

    def __init__(self, **constraints: Any) -> None:
        self.constraints = constraints

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic import Field

        return handler.generate_schema(Annotated[source, Field(**self.constraints)])


class Described(NamedTuple):
    """An option with its description for people."""

    default: Any
    description: str
    type: Any


def describe_options(declared: type[Any]) -> dict[str, Described]:
    """Return all fields of a game's `Options` by name. Raises TypeError if it is not a dataclass."""
    types = get_type_hints(declared)
    return {
        field.name: Described(field.default, field.metadata.get("description", ""), types[field.name])
        for field in dataclasses.fields(declared)
    }


def validated(declared: type[Any], values: object, where: str) -> Any:
    """Return these options as a game's `Options`.

    Raises:
        UnknownOption: names the first unknown one, and lists the valid names.
        ValueError: names the fault and what is allowed.
    """
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        raise ValueError(f"{where}: options: expected a dict of names and values, got {values!r:.80}")
    if not values:
        return declared()
    from pydantic import ValidationError

    try:
        return adapter(declared).validate_python(to_python(values))
    except ValidationError as error:
        known = "; ".join(f"{name}: {field.description}" for name, field in describe_options(declared).items())
        unknown = [name for name in values if name not in describe_options(declared)]
        if unknown:
            name = unknown[0]
            value = short_repr(values[name])
            what = f"option {name:.80}={value}: got an unexpected keyword argument {short_repr(name)}"
            near = difflib.get_close_matches(name[:80], describe_options(declared), 1)
            hint = f"; did you mean {near[0]}?" if near else "."
            raise UnknownOption(f"{where}: {what}{hint} The options are {known}") from None
        problems = "; ".join(
            f"{next(iter(problem['loc']), 'name')}={short_repr(problem['input'])}: {problem['msg']}"
            for problem in error.errors()[:2]
        )
        raise ValueError(f"{where}: option {problems}. The options are {known}") from None


def to_python(value: Any) -> Any:
    """Return a value with Python's own numbers and lists instead of NumPy's, also within dicts, lists and tuples."""
    if isinstance(value, Mapping):
        return {name: to_python(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(to_python, value)) if type(value) in (list, tuple) else value
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def parse_options(options: list[str] | None) -> dict[str, Any]:
    """Return options from `name=value` pairs; values are JSON, or else text. Raises ValueError."""
    parsed: dict[str, Any] = {}
    for option in options or []:
        name, equals, value = option.partition("=")
        if not equals:
            raise ValueError(f"option {option!r}: expected name=value")
        if name in parsed:
            raise ValueError(f"option {option!r:.80}: {name} is given twice; expected each option once")
        try:
            parsed[name] = json.loads(value)
        except json.JSONDecodeError:
            parsed[name] = value
        except (ValueError, RecursionError) as error:
            raise ValueError(f"option {option:.40}…: not JSON: {reason(error)}") from None
    return parsed


def as_json(chosen: Any) -> dict[str, Any]:
    """Return options as `env(**options)` takes them, ready for JSON; those that are None are left out."""
    values: dict[str, Any] = adapter(type(chosen)).dump_python(chosen, mode="json", exclude_none=True)
    return values


def adapter(declared: type[Any]) -> TypeAdapter[Any]:
    """Return the pydantic adapter that validates a game's `Options`, serializes them and has their schema."""
    if declared not in _ADAPTERS:
        from pydantic import TypeAdapter

        _ADAPTERS[declared] = TypeAdapter(declared)
    return _ADAPTERS[declared]
