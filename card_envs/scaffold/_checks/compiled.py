"""Each rule and bot compiled by itself, so that Numba's errors can be located.

A mark beside Numba's cache records that all rules of a game have passed, until one of them changes.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core import ir, types
from numba.core.errors import NumbaError
from numba.np.numpy_support import from_dtype

from card_envs.compiling import specialize
from card_envs.compiling._rules import INTERPRETED, Rule
from card_envs.game import (
    Game,
    deal,
    determinize,
    greedy,
    legal,
    likelihood,
    observe,
    observe_all,
    play,
    random_move,
    refine_world,
    reveals,
    score_margin,
    set_deal,
    trivial,
    update_stats,
)
from card_envs.scaffold._checks.declared import PARTS, functions_of, parameters_of
from card_envs.scaffold._checks.sources import Finding, Sources

ARGUMENTS: dict[str, Any] = {  # types that loops pass, by the parameter's name in the contract
    "pack": types.int8[::1],
    "mask": types.int8[::1],
    "obs": types.int8[::1],
    "action": types.int64,
    "seat": types.int64,
    "steps": types.int64,
    "stream": types.uint64[::1],
    "counts": types.int64[::1],
}
RETURNED: dict[str, Any] = {"int": (types.Integer, types.Boolean), "float": (types.Number, types.Boolean)}
COMPARISONS = {operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge}


def all_rules() -> None:
    """Name all functions; never called. The name that `specialize` gives it changes with any of a game's rules."""
    for _ in (
        deal, set_deal, legal, play, random_move, observe, observe_all, determinize, score_margin, update_stats,
        trivial, greedy, likelihood, refine_world, reveals,
    ):  # fmt: skip
        pass


def mark_of(game: Game) -> Path:
    """Return the file that exists if all rules have passed. `specialize` removes those of earlier rules."""
    loop: Any = specialize(all_rules, game)
    return Path(loop.stats.cache_path) / f"check.{loop.__name__}-{numba.__version__}"


def check_compiled(game: Game, sources: Sources) -> Iterator[Finding]:
    """Yield what keeps rules from compiling, and where sets become signed or floating-point numbers."""
    if INTERPRETED:
        return
    mark = mark_of(game)
    if mark.exists():
        return
    found: dict[Finding, None] = {}  # ordered and unique: a fault of a helper occurs in all its callers
    for name in ("rules", "bot"):
        for part in PARTS[name]:
            for function, declared in functions_of(part).items():
                own = getattr(getattr(game, name), function, None)
                if isinstance(own, Rule):
                    for finding in _compile(own, parameters_of(declared), game, sources):
                        found[finding] = None
    for name in ("rules", "bot"):
        for own in vars(getattr(game, name)).values():
            if isinstance(own, Rule) and sources.owns(own.py_func.__code__.co_filename):
                for overload in own.compiled.overloads.values():
                    found.update(dict.fromkeys(_mixed(overload.type_annotation, sources)))
    if found:
        yield from found
    else:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


def _compile(own: Any, parameters: list[str], game: Game, sources: Sources) -> Iterator[Finding]:
    state = from_dtype(game.rules.STATE)
    arguments = {"state": state, "states": types.Array(state, 1, "C"), **ARGUMENTS}
    code = own.py_func.__code__
    file = Path(code.co_filename)
    try:
        own.compiled.compile(tuple(arguments[name] for name in parameters))
    except Exception as error:  # Numba does not wrap its internal errors
        yield _translated(error, file, code.co_firstlineno + 1, sources)
        return
    returns = own.py_func.__annotations__.get("return")
    for signature in own.compiled.nopython_signatures:
        if not isinstance(signature.return_type, RETURNED.get(returns, object)):
            got = "nothing on some path" if "Optional" in str(signature.return_type) else signature.return_type
            yield sources.place(file, code.co_firstlineno + 1, f"expected to return {returns}, got {got}")


def _translated(error: Exception, file: Path, line: int, sources: Sources) -> Finding:
    """Return the innermost place in the game's code that a Numba error names, with the error in one line."""
    if isinstance(error, KeyError):  # an unknown field of a State; Numba gives no place
        for source in sources.files.values():
            for number in source.lines_with(error.args[0]):
                return sources.place(source.file, number, f"State has no field {error.args[0]!r}")
    text = re.sub(r"Record\(.*?[,;] ?\d+[,;] ?True\)", "State", str(error))
    for path, number in re.findall(r" at (\S.*?\.py) \((\d+)\)", text):
        if sources.owns(path):
            file, line = Path(path), int(number)
            break
    if not isinstance(error, NumbaError):
        return sources.place(file, line, f"Numba fails: {type(error).__name__}: {text}")
    return sources.place(file, line, _in_a_line(text))


def _in_a_line(text: str) -> str:
    if "NRT required" in text or "Only accept returning of array passed" in text:
        return "this allocates memory: rules have no lists, texts or new arrays"
    patterns = (r"(Cannot unify .*)", r"due to \"(.*)\"", r"(NameError: .*)", r">>> (.*)", r"(Unknown attribute .*)")
    for pattern in patterns:
        found = re.search(pattern, text)
        if found:
            said = found[1].strip()
            return f"Numba has no {said}" if pattern.startswith(">>>") else said
    lines = [line.strip() for line in text.splitlines()]
    said = [line for line in lines if line and not line.startswith(("Failed in", "During: Pass", "^", "File"))]
    return "Numba: " + " / ".join(said[-3:])


def _mixed(annotation: Any, sources: Sources) -> Iterator[Finding]:
    """Yield places where a uint64 meets a signed number: the result is signed or floating-point, no longer a set."""
    for block in annotation.blocks.values():
        for statement in block.body:
            value = getattr(statement, "value", None)
            meeting: list[Any] = []
            if isinstance(value, ir.Expr) and value.op in ("binop", "inplace_binop"):
                meeting = [value.lhs, value.rhs] if value.fn not in COMPARISONS else []
            elif isinstance(value, ir.Expr) and value.op == "phi":
                meeting = [part for part in value.incoming_values if isinstance(part, ir.Var)]
            met = [annotation.typemap.get(variable.name) for variable in meeting]
            signed = [getattr(kind, "literal_type", kind) for kind in met if getattr(kind, "signed", False)]
            if types.uint64 in met and signed:
                result = annotation.typemap.get(statement.target.name)
                text = f"a uint64 meets an {signed[0]} and becomes {result}: convert one, by np.uint64() or int()"
                yield sources.place(Path(statement.loc.filename), statement.loc.line, text)
