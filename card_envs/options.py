"""The options of games: how one declares them, and how those that somebody gives are checked.

They are plain dataclasses, so that a game with its defaults needs no pydantic, which takes longer to import than a
thousand moves to play; it comes with the first options that are given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, dataclass_transform, get_type_hints

from card_envs.files import short_repr

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Options = TypeVar("Options")
_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}  # made when first used


@dataclass_transform(frozen_default=True)
def options(declared: type[Options]) -> type[Options]:
    """Make a frozen dataclass of a game's `Options`, which takes no others."""
    declared.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]
    return dataclasses.dataclass(frozen=True)(declared)


def option(default: Any, description: str, **constraints: Any) -> Any:
    """Return a field of a game's `Options`.

    Args:
        default: every option has one.
        description: what the values mean, for people.
        constraints: besides its type, as pydantic's `Field` has them: `strict=True`.
    """
    return dataclasses.field(default=default, metadata={"description": description, **constraints})


class Constraint:
    """The same for a part of an option's type: `Annotated[int, Constraint(ge=1, le=13, strict=True)]`."""

    def __init__(self, **constraints: Any) -> None:
        self.constraints = constraints

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic import Field

        return handler.generate_schema(Annotated[source, Field(**self.constraints)])


class Described(NamedTuple):
    """An option as people are told of it."""

    default: Any
    description: str
    type: Any


def described(declared: type[Any]) -> dict[str, Described]:
    """Return all fields of a game's `Options` by name. Raises TypeError where that is no dataclass."""
    types = get_type_hints(declared)
    return {
        field.name: Described(field.default, field.metadata.get("description", ""), types[field.name])
        for field in dataclasses.fields(declared)
    }


def validated(declared: type[Any], given: object, where: str) -> Any:
    """Return the options given as a game's `Options`. Raises ValueError that says what is wrong and what there is."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ValueError(f"{where}: options: expected a dict of names and values, got {given!r:.80}")
    if not given:
        return declared()
    from pydantic import ValidationError

    try:
        return adapter(declared).validate_python(dict(given))
    except ValidationError as error:
        problems = "; ".join(  # half a character in a name has no place
            f"{next(iter(problem['loc']), 'name')}={short_repr(problem['input'])}: {problem['msg']}"
            for problem in error.errors()[:2]
        )
        known = "; ".join(f"{name}: {field.description}" for name, field in described(declared).items())
        raise ValueError(f"{where}: option {problems}. The options are {known}") from None


def as_json(chosen: Any) -> dict[str, Any]:
    """Options as `env(**options)` takes them, ready for JSON; those that are None are left out."""
    found: dict[str, Any] = adapter(type(chosen)).dump_python(chosen, mode="json", exclude_none=True)
    return found


def adapter(declared: type[Any]) -> TypeAdapter[Any]:
    """What checks a game's `Options`, writes them as JSON, and has their schema."""
    if declared not in _ADAPTERS:
        from pydantic import TypeAdapter

        _ADAPTERS[declared] = TypeAdapter(declared)
    return _ADAPTERS[declared]
