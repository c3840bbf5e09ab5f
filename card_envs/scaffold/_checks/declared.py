"""The declarations of a game's modules against the contract: functions and parameters, constants, options."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, is_dataclass
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, get_args

import numpy as np

from card_envs import game as contract
from card_envs.compiling._rules import INTERPRETED
from card_envs.game import Game, state_dtype
from card_envs.options import describe_options
from card_envs.scaffold._checks.findings import Finding, locate

PARTS: dict[str, type] = {"rules": contract.Rules, "bot": contract.Bot, "view": contract.View}
VIEW_KEYS = ("version", "game", "options", "seat", "to_move", "legal")


def functions_of(part: type) -> dict[str, FunctionType]:
    """Return the functions of a protocol, those that it inherits first."""
    names = [name for base in reversed(part.__mro__) for name in vars(base) if name[0] != "_"]
    return {name: getattr(part, name) for name in names if isinstance(getattr(part, name), FunctionType)}


def parameters_of(function: FunctionType) -> list[str]:
    """Return the parameters of a protocol's function, without `self`."""
    return [name for name in inspect.signature(function).parameters if name != "self"]


def check_declarations(game: Game) -> Iterator[Finding]:
    """Yield faults in the declarations of a game whose modules can be imported."""
    modules = {name: import_module(f"{game.package}.{name}") for name in (*PARTS, "options")}
    missing = False
    for name, part in PARTS.items():
        for finding in _check_module(modules[name], part):
            missing = missing or " is missing" in finding.text
            yield finding
    yield from _check_options(modules["options"])
    for name, demands in (("rules", _of_rules), ("view", _of_view)):
        if missing:  # the later ones build on what the earlier ones demand
            return
        for demand in demands(game):
            if not demand.met:
                missing = True
                yield _locate(modules[name], demand.name, demand.text)


def _locate(module: ModuleType, name: str, text: str) -> Finding:
    assert module.__file__ is not None
    return locate(Path(module.__file__), name, text)


# Names and parameters


def _check_module(module: ModuleType, part: type) -> Iterator[Finding]:
    known = functions_of(part)
    for name, function in known.items():
        if name in vars(part) and not hasattr(module, name):
            near = did_you_mean(name, vars(module).keys() - known.keys())
            what = f"{name}({', '.join(parameters_of(function))})"
            summary = (inspect.getdoc(function) or "").split("\n")[0].rstrip(".")
            yield _locate(module, name, f"{what} is missing: {summary}{near}")
    for name in part.__annotations__:
        if name != "__file__" and not hasattr(module, name):
            yield _locate(module, name, f"{name} is missing: {_comment(part, name)}")
    for name, function in known.items():
        if hasattr(module, name):
            yield from _check_parameters(module, name, parameters_of(function))


def _check_parameters(module: ModuleType, name: str, expected: list[str]) -> Iterator[Finding]:
    value = getattr(module, name)
    function = getattr(value, "py_func", value)
    if not callable(function):
        yield _locate(module, name, f"{name}: expected a function, got {function!r:.60}")
        return
    parameters = list(inspect.signature(function).parameters)
    if parameters != expected:
        text = f"{name}: takes ({', '.join(parameters)}); the contract: {name}({', '.join(expected)})"
        yield _locate(module, name, text)
    if module.__name__.endswith((".rules", ".bot")) and name != "new_state" and function is value and not INTERPRETED:
        yield _locate(module, name, f"{name}: expected the decorator @rule")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a suggestion for a message about an unknown name."""
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _comment(part: type, name: str) -> str:
    """Return the contract's comment on a constant."""
    match = re.search(rf"^    {name}: .*?  # (.*)$", inspect.getsource(part), re.MULTILINE)
    return match[1] if match else f"a constant of type {part.__annotations__[name]}"


# Values


class Demand(NamedTuple):
    """A condition on what a module calls `name`; `text` says what was expected and found."""

    name: str
    met: bool
    text: str


def _of_rules(game: Game) -> Iterator[Demand]:
    """Yield the demands on `rules.py`; fields first, because the State depends on them."""
    rules: Any = import_module(f"{game.package}.rules")  # as it was written, without the contract's defaults
    worst = rules.WORST_SCORE
    text = f"WORST_SCORE: expected 0 or less, the worst possible reward of one deal, got {worst!r}"
    yield Demand("WORST_SCORE", -np.inf < worst <= 0, text)
    fields = list(_of_fields(rules))
    yield from fields
    if not all(demand.met for demand in fields):
        return
    yield _of_state(rules)
    sides = game.sides
    fits = len(sides) == rules.NUM_SEATS and set(sides) in ({0}, {0, 1})
    yield Demand("SIDES", fits, f"SIDES: expected one side, 0, or two for {rules.NUM_SEATS} seats, got {sides}")
    counts = game.rules.STATS
    has_update_stats = hasattr(rules, "update_stats")
    yield Demand(
        "update_stats",
        has_update_stats or not counts,
        "update_stats(state, seat, counts) is missing: STATS says what it counts",
    )
    yield Demand("update_stats", bool(counts) or not has_update_stats, "STATS is missing: what does it count?")


def _of_fields(rules: Any) -> Iterator[Demand]:
    for name in ("ACTION_FIELDS", "OBS_FIELDS", "FULL_FIELDS"):
        fields = getattr(rules, name)
        for field in fields:
            right = field.size > 0 and -128 <= field.low < field.high <= 127 and bool(field.meaning)
            yield Demand(name, right, f"{name}: expected size > 0, -128 <= low < high <= 127, a meaning; got {field}")
        names = [field.name for field in fields]
        twice = sorted({field for field in names if names.count(field) > 1})
        yield Demand(name, not twice, f"{name}: {', '.join(twice)} occurs twice")
    begins = rules.FULL_FIELDS[: len(rules.OBS_FIELDS)] == rules.OBS_FIELDS
    yield Demand("FULL_FIELDS", begins, "FULL_FIELDS: expected OBS_FIELDS first: (*OBS_FIELDS, …)")


def _of_state(rules: Any) -> Demand:
    """Return the demand that the engine's fields come first, as `state_dtype` puts them."""
    fields = getattr(rules.STATE, "fields", None) or {}
    shared: Any = state_dtype(rules.NUM_SEATS, []).fields
    wrong = [name for name in shared if name not in fields or fields[name][0] != shared[name][0]]
    fits = getattr(rules.STATE, "type", None) is np.record and not wrong
    expected = "STATE: expected state_dtype(NUM_SEATS, [fields of the game])"
    return Demand("STATE", fits, f"{expected}; {', '.join(wrong)} differ" if wrong else expected)


def _of_view(game: Game) -> Iterator[Demand]:
    view, num_seats = game.view, game.rules.NUM_SEATS
    schema = view.SCHEMA if isinstance(view.SCHEMA, dict) else {}
    absent = [key for key in VIEW_KEYS if key not in schema.get("properties", {})]
    yield Demand("SCHEMA", not absent, f"SCHEMA: expected a JSON schema with the properties {', '.join(absent)}")
    names = view.SEAT_NAMES
    yield Demand(
        "SEAT_NAMES",
        isinstance(names, tuple) and len(names) == num_seats,
        f"SEAT_NAMES: expected {num_seats} names, got {names!r}",
    )
    counts = {count.name for count in game.rules.STATS}
    for ratio in view.RATES:
        for name in (ratio.counted, ratio.per):
            yield Demand("RATES", name in counts, f"RATES: STATS has no {name!r}{did_you_mean(name, counts)}")
    odd = [name for name in view.PHASES if not re.fullmatch("[a-z][a-z_]*", name)]
    yield Demand("PHASES", not odd, f"PHASES: expected words such as draw, or turn_up, got {', '.join(map(repr, odd))}")


def _check_options(module: ModuleType) -> Iterator[Finding]:
    options: Any = getattr(module, "Options", None)
    if not (isinstance(options, type) and is_dataclass(options)):
        problem = "Options is missing: a class of options, decorated with card_envs.options.options"
        yield _locate(module, "Options", problem)
        return
    declared = describe_options(options)
    for name, field in declared.items():
        if field.default is MISSING or not field.description:
            yield _locate(module, "Options", f"option {name}: expected a default and a description")
    reward = declared.get("reward")
    if reward is None or "win" not in get_args(reward.type):
        got = "none" if reward is None else f"{reward.type}"
        problem = f'option reward: expected a Literal with "win" among its values, got {got}'
        yield _locate(module, "Options", problem)
