"""Provenance of figures and data sets: what determines their games, with digests of the players, and the machine.

A digest tells whether a player is still the one that began a set of games.
"""

from __future__ import annotations

import hashlib
import inspect
import platform
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from card_envs.compare.games import Plan
from card_envs.compiling._digest import digest_sources, file_digests, first_used, function_digest, functions_in
from card_envs.compiling._specialize import game_sources
from card_envs.game import Game, layout_digest
from card_envs.opponents.policy import UNCHECKED, AdaptedPolicy, Opponent, Policy, PolicyLike, as_policy
from card_envs.options import to_python
from card_envs.system.processes import processor

HEX_DIGITS = 16
OWN = Path(__file__).parents[1]
INSTALLED = tuple({Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def provenance(plan: Plan) -> dict[str, Any]:
    """Return what decides the games of a plan, for JSON; the digest of a player changes with its weights and code."""
    game, players = plan.game, zip((*plan.names, "partner"), plan.load())
    return {
        "card_envs": version("card_envs"),
        "game": game.name,
        "version": game.version,
        "layout": layout_digest(game.rules),
        "options": to_python(dict(plan.options)),
        "seed": plan.seed,
        "sampled": plan.sampled,
        "digests": {name: digest_of(player, game) for name, player in players},
    }


def circumstances() -> dict[str, Any]:
    """Return what else a command's figures depend on, for JSON: the command, the code's commit, and the machine."""
    return {
        "command": shlex.join(["python", "-m", "card_envs", *sys.argv[1:]]),
        "commit": _commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba")},
        "system": platform.platform(terse=True),
        "processor": processor(),
    }


def _commit() -> str | None:
    """Return the commit of a checkout, with "-dirty" if files differ from it; None elsewhere."""
    describe = ["git", "-C", str(OWN.parent), "describe", "--always", "--dirty", "--exclude=*", "--abbrev=40"]
    with suppress(OSError):  # there is no git
        done = subprocess.run(describe, text=True, capture_output=True, check=False)
        return done.stdout.strip() if (OWN.parent / ".git").exists() and not done.returncode else None
    return None


def digest_of(policy: PolicyLike, game: Game) -> str:
    """Return a digest of what decides how a policy plays.

    That is this package's version, the game's compiled functions with their files, and all settings and weights of the
    package's own players. Of a user's class it is the arrays and tensors that it holds, its methods with their file,
    and the functions that these use with theirs, unless they belong to an installed package. Functions count as this
    process imported them, also where their file has been edited since.
    """
    digest = hashlib.sha256(f"{version('card_envs')} {digest_sources(game_sources(game))}".encode())
    for part in _parts(as_policy(policy, "policy"), {}):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:HEX_DIGITS]


def _parts(value: Any, seen: dict[int, Any]) -> Iterator[bytes]:
    """Yield what a value consists of, weights above all."""
    if isinstance(value, Opponent):
        yield from _parts(value.policy, seen)
    elif isinstance(value, AdaptedPolicy):
        if isinstance(value.own, FunctionType):
            yield from _code_of(value.own)
        yield from _parts(value.own, seen)
    elif isinstance(value, (np.ndarray, np.generic)):
        yield f"{value.dtype} {value.shape}".encode()
        yield value.tobytes()
    elif isinstance(value, (bytes, bytearray)):
        yield bytes(value)
    elif hasattr(value, "detach") and hasattr(value, "cpu"):  # a tensor
        yield from _parts(value.detach().cpu().numpy(), seen)
    elif id(value) in seen or isinstance(value, (Game, type, ModuleType)):
        return
    else:
        seen[id(value)] = value  # kept, so that no other object gets its id
        yield type(value).__qualname__.encode()
        yield from _inside(value, seen)


def _inside(value: Any, seen: dict[int, Any]) -> Iterator[bytes]:
    definition = value.definition() if isinstance(value, Policy) else None
    if definition is not None:
        for part in definition:
            yield from _parts(part, seen)
    elif callable(getattr(value, "state_dict", None)):
        yield from _parts(dict(value.state_dict()), seen)
    elif isinstance(value, Mapping):
        for key, part in sorted(value.items(), key=lambda item: repr(item[0])):  # safetensors has no order
            yield repr(key).encode()
            yield from _parts(part, seen)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _parts(part, seen)
    elif hasattr(value, "__dict__"):
        inside = {name: part for name, part in vars(value).items() if name != "given_name"}
        if callable(getattr(value, "act", None)):
            yield from _code_of(type(value))
            yield repr([part for part in inside.values() if isinstance(part, (str, range))]).encode()
        yield from _parts(inside, seen)


def _code_of(policy: type | FunctionType) -> list[bytes]:
    """Return what a class and its bases, or a function, are made of, and all that they use unless it is installed."""
    parts: list[bytes] = []
    classes: Sequence[Any] = policy.__mro__ if isinstance(policy, type) else [policy]
    waiting, seen = list(classes), set()
    while waiting:
        used = waiting.pop()
        file = _source(used)
        if file is None or used in seen or not (used in classes or not _is_installed(file)):
            continue
        seen.add(used)
        values = [*vars(used).values()] if isinstance(used, type) else [value for _, value in first_used(used)]
        parts.append(function_digest(used) if isinstance(used, FunctionType) else file_digests(file)[0])
        waiting += [code for value in values for code in _code_in(value)]
    return sorted(parts)


def _code_in(value: Any) -> Iterator[type | FunctionType]:
    """Yield the functions of a method, a property or a compiled function; of other values their type."""
    if isinstance(value, FunctionType):
        value = vars(value).get(UNCHECKED, value)  # what the user wrote, not the check around it
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    elif isinstance(value, (property, cached_property)):
        value = value.fget if isinstance(value, property) else value.func
    functions = list(functions_in(value))
    yield from functions
    if not functions:
        yield value if isinstance(value, type) else type(value)


def _source(code: Any) -> str | None:
    try:
        file = inspect.getsourcefile(code)
    except (OSError, TypeError):  # built in, or typed at a prompt
        return None
    is_ours = file is not None and Path(file).resolve().is_relative_to(OWN)  # the version of the package stands for it
    return file if file and Path(file).is_file() and not is_ours else None


def _is_installed(file: str) -> bool:
    path = Path(file).resolve()
    return any(path.is_relative_to(folder) for folder in INSTALLED)
