"""A table in Markdown: the keys of a game's views."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from card_envs.game import Game

HEAD = "| key | value | may be left out | meaning |\n| --- | --- | --- | --- |\n"
SHOWN = 5  # values of a longer list that are shown
FOLLOWS = "; follows from the rest"


def key_table(game: Game) -> str:
    """Return a Markdown row for each key of a view; keys of nested objects follow as `players[].waste`."""
    return HEAD + "".join(_rows(game.view.SCHEMA, game.view.SCHEMA.get("$defs", {}), ""))


def _rows(schema: dict[str, Any], parts: dict[str, Any], before: str) -> Iterator[str]:
    for name, key in schema["properties"].items():
        meaning = key.get("description", parts.get(_part_name(key), {}).get("description", "")).replace("\n", " ")
        left_out = "no" if name in schema.get("required", ()) else "yes" + _default(key)
        if meaning.endswith(FOLLOWS):
            meaning, left_out = meaning.removesuffix(FOLLOWS), "yes, follows from the rest"
        yield f"| `{before}{name}` | {_type(key, parts)} | {left_out} | {meaning} |\n"
        part = parts.get(_part_name(key), {})
        if "properties" in part:
            yield from _rows(part, parts, f"{before}{name}{'[]' if _is_list(key) else ''}.")


def _default(key: dict[str, Any]) -> str:
    default = key.get("default")
    return "" if default is None or isinstance(default, dict) else f": `{json.dumps(default)}`"


def _choices(key: dict[str, Any]) -> list[dict[str, Any]]:
    return key.get("anyOf", [key])


def _is_list(key: dict[str, Any]) -> bool:
    return any(choice.get("type") == "array" for choice in _choices(key))


def _part_name(key: dict[str, Any]) -> str:
    """Return the name of the object type of a key or its list items, or ""."""
    for choice in _choices(key):
        reference = choice.get("$ref") or choice.get("items", {}).get("$ref", "")
        if reference:
            return str(reference.rpartition("/")[2])
    return ""


def _type(key: dict[str, Any], parts: dict[str, Any]) -> str:
    """Return a short description of a value's type."""
    if "anyOf" in key:
        return " or ".join(_type(choice, parts) for choice in key["anyOf"])
    if "$ref" in key:
        return "object"
    values = key.get("enum", [key["const"]] if "const" in key else None)
    if values is not None:
        shown = ", ".join(f"`{json.dumps(value)}`" for value in values[:SHOWN])
        return f"{shown}, …" if len(values) > SHOWN else shown
    kind = key.get("type", "any")
    if kind == "array":
        items = key.get("items", {})
        return f"list of {_type(items, parts)}"
    if kind == "object":
        values = key.get("additionalProperties")
        return f"object of {_type(values, parts)}" if isinstance(values, dict) else "object"
    span = (key.get("minimum"), key.get("maximum", key.get("exclusiveMaximum", 0) - 1))
    return f"{kind} {span[0]} to {span[1]}" if span[0] is not None else str(kind)
