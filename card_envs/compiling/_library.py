"""Loops from libraries that were built ahead of time (`python -m card_envs build`), where they fit the sources.

A folder `native/TARGET` has, for each game and for the loops without rules (`engine`), a library and a manifest. The
manifest lists the loops by the name that `specialize` gives them, which ends with a digest of all their sources. So a
loop whose sources were edited is not found, and compiled as if there were no library.

Files are checked before they are used. What is damaged, or made for another processor, is left alone with a warning.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

from card_envs.system.files import error_text, read_file, reason

FOLDER = Path(__file__).parents[1] / "native"
FORMAT = 1  # of manifests and entries
SWITCH = "CARD_ENVS_NATIVE"  # 0: compile everything; a folder: look there
WITHOUT_RULES = "engine"  # the library of loops without rules
ENTRY = "entry.abi3.so"
TARGET = "target.json"  # what a target is, and the SHA-256 of its files
FILE = re.compile(r"\w[\w.-]*")  # the name of a file that a build makes
MAX_BYTES = 1 << 28  # of a file
AGAIN = "build it again: python -m card_envs build"
LETTERS = {"array": "a", "tuple": "t", "none": "n", "bool": "b"}


class Damaged(ValueError):
    """A file of a library is not what its manifest says."""


def find_loop(name: str, game: str | None, fallback: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return a loop of a library by its specialized name, or None.

    Args:
        name: the loop's name, with the digest of its sources.
        game: name of the game; None for a loop without rules.
        fallback: called instead for arguments of types that the library's loop was not made for.
    """
    target = chosen_target()
    if target is None:
        return None
    try:
        loops, entries = _library(target, game or WITHOUT_RULES)
        if name not in loops:
            return None
        bound: Callable[..., Any] = _caller(target).bind(tuple(map(entries, loops[name])), fallback)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
        _warn(f"{target / (game or WITHOUT_RULES)}: not used: {error}")
        return None
    return bound


@cache
def chosen_target() -> Path | None:
    """Return the folder built for the newest processor level that this one supports, or None."""
    place = os.environ.get(SWITCH, "")
    if place == "0":
        return None
    targets: list[tuple[int, Path]] = []
    files: list[Path] = []
    with suppress(OSError):  # such as a name that is too long
        files += (Path(place) if place else FOLDER).glob(f"*/{TARGET}")
    for file in files:
        try:
            target = read_facts(file.parent)
            if target.get("format") != FORMAT:
                raise Damaged(f"{file}: expected format {FORMAT}, got {target.get('format')!r:.80}; {AGAIN}")
            if target["machine"] == machine() and processor_has() >= set(target["needs"]):
                targets.append((len(target["needs"]), file.parent))
        except (OSError, ValueError) as error:
            _warn(f"not used: {error_text(error)}")
        except (KeyError, TypeError) as error:
            _warn(f"{file}: not used: damaged: {error!r}; {AGAIN}")
    if place and not targets:
        _warn(f"{SWITCH}: expected 0, or a folder with libraries for this machine, got {place!r:.200}; none is used")
    return max(targets)[1] if targets else None


def read_facts(target: Path) -> dict[str, Any]:
    """Return the description of a target from its folder; at `sha256`, the SHA-256 of each file that builds made.

    Raises:
        OSError: there is nothing to read.
        Damaged, ValueError: it is not what a build writes; names the file.
    """
    file = target / TARGET
    try:
        facts: dict[str, Any] = json.loads(read_file(file, MAX_BYTES))
        names = list(facts["sha256"])
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise Damaged(f"{file}: damaged: {reason(error)}; {AGAIN}") from None
    if not all(map(FILE.fullmatch, names)):
        raise Damaged(f"{file}: expected names of files beside it, got {names!r:.80}; {AGAIN}")
    return facts


def machine() -> str:
    """Return the system and processor: linux-x86_64, darwin-arm64, win32-amd64."""
    return f"{sys.platform}-{platform.machine().lower()}"


@cache
def processor_has() -> frozenset[str]:
    """Return the processor's features, as Linux names them; empty if the system does not list them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    words = next((line.partition(":")[2] for line in lines if line.startswith(("flags", "Features"))), "")
    return frozenset(words.split())


@cache
def _library(target: Path, name: str) -> tuple[dict[str, Any], Callable[[Any], Any]]:
    """Return the loops of a library by name, and a function that describes one of them to the caller module."""
    file = target / f"{name}.manifest.json"
    if not file.exists():
        return {}, lambda entry: entry
    manifest = json.loads(read_checked(file, _sums(target)[file.name]))
    dtypes = [_dtype(described) for described in manifest["dtypes"]]
    path = target / manifest["library"]
    read_checked(path, manifest["sha256"])
    library = ctypes.CDLL(str(path))

    def entry(loop: Any) -> Any:
        address = ctypes.cast(getattr(library, loop["symbol"]), ctypes.c_void_p).value
        kinds = tuple(kind for argument in loop["arguments"] for kind in _kinds(argument, dtypes))
        returns = loop["returns"]
        parts = returns[1:] if returns[0] == "tuple" else [returns]
        letters = "".join(LETTERS.get(part[0], part[0][0]) for part in parts)
        return address, len(loop["arguments"]), kinds, letters, returns[0] == "tuple"

    return manifest["loops"], entry


def _kinds(argument: list[Any], dtypes: list[Any]) -> list[tuple[str, bool, int, int, Any]]:
    """Return (letter, written or no Python number, dimensions or parts, alignment, dtype) of an argument's parts."""
    kind, *rest = argument
    if kind == "array":
        dtype = dtypes[rest[0]]
        return [("a", rest[2], rest[1], dtype.alignment, dtype)]
    if kind == "tuple":
        return [("t", False, len(rest), 1, None), *(inner for part in rest for inner in _kinds(part, dtypes))]
    if kind in LETTERS:
        return [(LETTERS[kind], False, 0, 1, np.dtype(np.bool_))]
    return [("f" if kind.startswith("float") else "i", kind not in ("int64", "float64"), 0, 1, np.dtype(kind))]


def _dtype(described: Any) -> np.dtype[Any]:
    """Return a dtype from its description in a manifest: its name, or size and fields of a record."""
    if isinstance(described, str):
        return np.dtype(described)
    itemsize, fields = described
    names, formats, shapes, offsets = zip(*fields)
    parts = [(_dtype(part), tuple(shape)) for part, shape in zip(formats, shapes)]
    layout: Any = {"names": list(names), "formats": parts, "offsets": list(offsets), "itemsize": itemsize}
    return np.dtype(layout, align=True)


@cache
def _sums(target: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a target."""
    sums: dict[str, str] = read_facts(target)["sha256"]
    return sums


def read_checked(file: Path, expected: str) -> bytes:
    """Return the contents of a file. Raises Damaged if the checksum differs."""
    content = read_file(file, MAX_BYTES)
    if hashlib.sha256(content).hexdigest() != expected:
        raise Damaged(f"{file.name}: damaged, or of another build: {AGAIN}")
    return content


@cache
def _caller(target: Path) -> Any:
    """Return the extension module that calls entries."""
    file = target / ENTRY
    read_checked(file, _sums(target)[ENTRY])
    spec = spec_from_file_location("entry", file, loader=ExtensionFileLoader("entry", str(file)))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)
