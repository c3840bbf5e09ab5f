"""`specialize`: compile a loop for one game, with a disk cache that notices every edit.

A loop is a plain function that calls the stubs of `card_envs/game.py` (`play`, `legal`, …), so editors and type
checkers see its calls. `specialize` rebuilds it with the game's functions in place of the stubs. Plain helper functions
are rebuilt and compiled with it in the same way. A loop may be made of parts: it calls stubs of its own (`stub`), for
which `functions` names the plain functions that they stand for.

Numba names cache files by the function's `__qualname__` and checks only the file that holds the loop, so an edited rule
in another file would go unnoticed. The name of a specialized loop therefore includes a digest of all its sources.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from card_envs import game as contract
from card_envs.compiling import _library, _rules
from card_envs.compiling._rules import plain_function
from card_envs.game import Game

Loop = TypeVar("Loop", bound=Callable[..., Any])

HEX_DIGITS = 16
BOTS = ("trivial", "greedy")
COMPILERS = ("_specialize.py", "_rules.py", "_numba.py", "_instructions.py")  # files of this folder
Target: TypeAlias = Literal["cpu", "cuda"]
Functions: TypeAlias = tuple[tuple[Any, Any], ...]  # stubs, each with the plain function that takes its place
Sources: TypeAlias = dict[FunctionType, list[Any]]  # the functions of a loop, each with the constants that it uses

_stubs: set[Any] = set()


def stub(function: Loop) -> Loop:
    """Mark a function as one that `specialize` replaces by one of its `functions`."""
    _stubs.add(function)
    return function


def specialize(
    loop: Loop, game: Game | None = None, bot: str = "", *, inline: bool = True, target: Target = "cpu",
    functions: Functions = (),
) -> Loop:  # fmt: skip
    """Return a loop for a game's rules, compiled at its first call or loaded from the cache.

    Args:
        loop: a plain function. Stubs of `card_envs/game.py` that it calls are replaced by the game's functions. Plain
            functions that it calls are rebuilt likewise and inlined, so they may neither allocate nor raise.
        game: whose rules; None for a loop that uses none.
        bot: function of the game's `bot.py` that replaces `bot_move`.
        inline: inline the game's functions, which is fastest; False: call them, for a loop with many calls, where
            inlining would take minutes to compile.
        target: "cpu", or "cuda" for a kernel in which thread i runs the loop for table i: `_rules.threads`.
        functions: functions marked `stub`, each with the plain function that replaces it, whose own calls are replaced
            as in the loop.

    Raises:
        TypeError: the loop needs a game, a bot or a function and got none, or a compiled helper calls a stub.
    """
    wanted = Specialization(loop, game, bot, inline, target, functions)
    bound: Loop = _bound(wanted) if _watcher is None else _watcher(wanted, _bound(wanted))
    return bound


def specialize_bot(loop: Loop, game: Game, bot: str, target: Target = "cpu") -> Loop:
    """Return `specialize` for a bot given by name. Raises ValueError for an unknown name."""
    if not isinstance(bot, str) or bot not in BOTS:
        raise ValueError(f"bot: expected {' or '.join(BOTS)}, got {bot!r:.80}")
    return specialize(loop, game, bot, target=target)


class Specialization(NamedTuple):
    """The arguments of `specialize`."""

    loop: Any
    game: Game | None = None
    bot: str = ""
    inline: bool = True
    target: Target = "cpu"
    functions: Functions = ()


_watcher: Callable[[Specialization, Any], Any] | None = None


@contextmanager
def watching_specialize(watcher: Callable[[Specialization, Any], Any]) -> Iterator[None]:
    """Have `specialize` return `watcher(its arguments, the compiled loop)` meanwhile, to record or check calls."""
    global _watcher
    _watcher = watcher
    try:
        yield
    finally:
        _watcher = None


@cache
def _bound(wanted: Specialization) -> Any:
    bound, stem = rebuilt(wanted)
    if wanted.target == "cuda":
        return _cached(_rules.threads(bound), stem)
    if _rules.INTERPRETED:
        return bound
    compiled = _Compiled(bound, stem, wanted.game.title if wanted.game else "what all games share")
    game = wanted.game.name if wanted.game else None
    built = None if _rules.checks_bounds() else _library.find(bound.__name__, game, compiled)
    return built or compiled.compiled


def rebuilt(wanted: Specialization) -> tuple[FunctionType, str]:
    """Return a copy of a loop with a game's functions in place of the stubs, and its name up to the digest."""
    loop, game, bot, inline, target, functions = wanted
    bound, sources = _binding(game, bot, inline, target, functions).rebuilt(loop)
    how = ("" if inline else "called") + ("checked" if _rules.checks_bounds() else "") + target.removeprefix("cpu")
    stem = "_".join([loop.__name__, game.name if game else "", bot, how + _hash_of(functions), ""])
    bound.__name__ = bound.__qualname__ = stem + _digest_sources(sources)
    return bound, stem


def _hash_of(functions: Functions) -> str:
    """Return a hash of which function replaces which: different parts have different names, and so cache files."""
    names = [f"{function.__module__}.{function.__qualname__}" for pair in functions for function in pair]
    return hashlib.sha256(" ".join(names).encode()).hexdigest()[:8] if names else ""


class _Compiled:
    """A loop that is compiled once it is called."""

    def __init__(self, bound: FunctionType, stem: str, label: str = "a loop") -> None:
        self.bound = bound
        self.stem = stem
        self.label = label

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)

    @cached_property
    def compiled(self) -> Any:
        return _cached(_rules.loop(self.bound, self.label), self.stem)


def _cached(compiled: Any, stem: str) -> Any:
    """Return a compiled loop; delete what the cache has of it from other sources."""
    if not _rules.INTERPRETED and compiled.stats.cache_path is not None:
        _remove_outdated(Path(compiled.stats.cache_path), stem, compiled.__name__)
    return compiled


@cache
def _binding(game: Game | None, bot: str, inline: bool, target: Target, functions: Functions) -> _Binding:
    return _Binding(game, bot, inline, functions)


class _Binding:
    """The replacements of stubs. Specialized loops share them, so that Numba types their helpers only once."""

    def __init__(self, game: Game | None, bot: str, inline: bool, functions: Functions) -> None:
        self.game = game
        self.bot = bot
        self.inline = inline
        self.functions = dict(functions)
        self._replaced: dict[FunctionType, tuple[Any, Sources]] = {}

    def rebuilt(self, function: FunctionType) -> tuple[FunctionType, Sources]:
        """Return a copy of a loop or helper with all its globals replaced, and the functions that it is made of."""
        names = dict(function.__globals__)
        free = dict(zip(function.__code__.co_freevars, map(CellType, _free_values(function))))
        sources: Sources = {function: []}
        for name, value in used_by(function):
            if isinstance(value, FunctionType) and "." not in name:
                replacement, used = self._replacement(value, function)
                sources |= used
                if name in free:
                    free[name] = CellType(replacement)
                else:
                    names[name] = replacement
            else:
                _note(name, value, sources, function)
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__, tuple(free.values()))
        copy.__kwdefaults__ = function.__kwdefaults__
        return copy, sources

    def _replacement(self, helper: FunctionType, user: FunctionType) -> tuple[Any, Sources]:
        """Return the replacement of a plain function, and the functions that it is made of."""
        helper = self.functions.get(helper, helper)
        if helper in _stubs:
            raise TypeError(f"{user.__name__} calls {helper.__name__}: specialize it with a function for it")
        if helper not in self._replaced:
            if helper in contract.MODULE_OF:
                own = self._own(helper, user)
                sources: Sources = {}
                _note(helper.__name__, own, sources, user)
                self._replaced[helper] = own if self.inline or _rules.INTERPRETED else _rules.noinline(own), sources
            else:
                copy, sources = self.rebuilt(helper)
                self._replaced[helper] = _rules.rule(copy), sources
        return self._replaced[helper]

    def _own(self, stub: FunctionType, user: FunctionType) -> Any:
        """Return the game's function for a stub, or the default if the game has none."""
        if self.game is None:
            raise TypeError(f"{user.__name__} calls {stub.__name__}: specialize it for a game")
        name = stub.__name__
        if stub is contract.bot_move:
            if not self.bot:
                raise TypeError(f"{user.__name__} calls bot_move: specialize it for a bot")
            name = self.bot
        module: Any = getattr(self.game, contract.MODULE_OF[stub])
        if module is None:
            raise TypeError(f"{user.__name__} calls {name}: {self.game.name} has no {contract.MODULE_OF[stub]}.py")
        if not hasattr(module, name):
            raise TypeError(f"{module.__file__}: {self.game.name} has no function {name}")
        own: Any = getattr(module, name)
        is_default = own is getattr(stub, "__wrapped__", None)
        return _rules.rule(own) if is_default else own


def _note(name: str, value: Any, sources: Sources, user: FunctionType) -> None:
    """Add a constant that a function uses, or a compiled function with everything it uses, to the sources of a loop."""
    function = plain_function(value)
    if not isinstance(function, FunctionType):
        sources.setdefault(user, []).append(value)
    elif function in contract.MODULE_OF or function in _stubs:
        how = "loops call stubs by name alone" if "." in name else "helpers of loops are plain functions"
        raise TypeError(f"{user.__name__} calls the stub {name}: {how}")
    elif (
        function not in sources and str(function.__module__).partition(".")[0] != "numpy"
    ):  # Numba has its own of these
        sources[function] = []
        for used, value in used_by(function):
            _note(used, value, sources, function)


def used_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the globals, free variables and default values of a function by name; of modules, "module.attribute".

    Too many rather than too few: any name in its code may be an attribute of any module in it.
    """
    names = dict.fromkeys(_names(function.__code__))
    found = [(name, function.__globals__[name]) for name in names if name in function.__globals__]
    found += zip(function.__code__.co_freevars, _free_values(function))
    found += [("default", value) for value in function.__defaults__ or ()]
    found += (function.__kwdefaults__ or {}).items()
    modules: set[ModuleType] = set()
    for name, value in found:  # which grows meanwhile
        if not isinstance(value, ModuleType):
            yield name, value
        elif value not in modules:
            modules.add(value)
            found += [(f"{name}.{part}", getattr(value, part)) for part in names if hasattr(value, part)]


def _free_values(function: FunctionType) -> Iterator[Any]:
    """Yield the values of a function's free variables; None for one without a value yet."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            yield None


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that a function may look up in its globals, attribute names included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def game_digest(game: Game) -> str:
    """Return a hash of all compiled functions of a game's rules, scripted players and planner, and of what they use."""
    sources: Sources = {}
    for stub, module in contract.MODULE_OF.items():
        for name in BOTS if stub is contract.bot_move else (stub.__name__,):
            function = getattr(getattr(game, module), name, None)
            if function is not None:
                _note(name, function, sources, function)
    return _digest_sources(sources)


def _digest_sources(sources: Sources) -> str:
    """Return a hash of the source files of the functions and of the values of the constants."""
    files = {function.__code__.co_filename for function in sources}
    files |= {str(Path(__file__).with_name(name)) for name in COMPILERS}
    values = [_constant_bytes(constant) for constants in sources.values() for constant in constants]
    digest = hashlib.sha256(b"\0".join(values))
    for content in sorted(map(_file_digest, files)):
        digest.update(content)
    return digest.hexdigest()[:HEX_DIGITS]


def _constant_bytes(part: Any) -> bytes:
    if isinstance(part, np.ndarray):
        return f"{part.dtype}{part.shape}".encode() + part.tobytes()
    if isinstance(part, tuple):  # its `repr` would abbreviate a large array
        return _constant_bytes(type(part)) + str(len(part)).encode() + b"\0".join(map(_constant_bytes, part))
    if isinstance(part, Enum):
        return _constant_bytes(type(part)) + part.name.encode()
    if isinstance(part, (int, float, complex, str, bytes, np.generic, np.dtype)):
        return f"{type(part).__name__}{part!r}".encode()
    if isinstance(part, type):
        fields = [getattr(part, name, "") for name in ("__name__", "_fields", "_field_defaults")]
        return repr([*fields, [(one.name, one.value) for one in part] if issubclass(part, Enum) else ()]).encode()
    return b""  # compiled code has no other kind of constant


@cache
def _file_digest(file: str) -> bytes:
    return hashlib.sha256(Path(file).read_bytes()).digest()


def _remove_outdated(folder: Path, stem: str, name: str) -> None:
    """Delete cached code of earlier sources, unless this version is cached already."""
    if any(folder.glob(f"*.{name}-*")):
        return
    for file in folder.glob(f"*.{stem}{'[0-9a-f]' * HEX_DIGITS}-*"):
        with suppress(OSError):
            file.unlink(missing_ok=True)
