"""`specialize`: compile a loop for one game, with a disk cache that notices every edit.

A loop is a plain function that calls the stubs of `card_envs/game.py` (`play`, `legal`, …), so editors and type
checkers see its calls. `specialize` rebuilds it with the game's functions in place of the stubs. Plain helper functions
are rebuilt and compiled with it in the same way. A loop may be made of parts: it calls stubs of its own (`stub`), for
which `functions` names the plain functions that they stand for.

Numba names cache files by the function's `__qualname__` and checks only the file that holds the loop, so an edited rule
in another file would go unnoticed. The name of a specialized loop therefore includes a digest of all its functions
(`_digest.py`). A process plays the rules that it imported, also if their files are edited meanwhile.
"""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from pathlib import Path
from types import CellType, FunctionType
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from card_envs import game as contract
from card_envs.compiling import _library, _rules
from card_envs.compiling._digest import (
    HEX_DIGITS,
    Sources,
    digest_sources,
    first_used,
    free_values,
    functions_in,
    is_unchanged,
)
from card_envs.game import Game

Loop = TypeVar("Loop", bound=Callable[..., Any])

BOTS = ("trivial", "greedy")
NOT_SOURCES = ("numpy", "numba")  # Numba has its own of NumPy's functions, and its version is part of the cache
Target: TypeAlias = Literal["cpu", "cuda"]
Functions: TypeAlias = tuple[tuple[Any, Any], ...]  # stubs, each with the plain function that takes its place

_stubs: set[Any] = set()
_called: set[Any] = set()


def stub(function: Loop) -> Loop:
    """Mark a function as one that `specialize` replaces by one of its `functions`."""
    _stubs.add(function)
    return function


def called(function: Loop) -> Loop:
    """Mark a helper of loops as one that is called, not inlined: a large one with several callers.

    Not one that copies a State: LLVM passes it by value, in more parameters than a function of WebAssembly may have.
    """
    _called.add(function)
    return function


def specialize(
    loop: Loop, game: Game | None = None, bot: str = "", *, inline: bool = True, target: Target = "cpu",
    functions: Functions = (),
) -> Loop:  # fmt: skip
    """Return a loop for a game's rules, compiled at its first call or loaded from the cache.

    Args:
        loop: a plain function. Stubs of `card_envs/game.py` that it calls are replaced by the game's functions. Plain
            functions that it calls are rebuilt likewise and inlined, so they may neither allocate nor raise.
        game: the game whose rules are used; None for a loop that uses none.
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
    bound: Loop = _specialized(wanted) if _watcher is None else _watcher(wanted, _specialized(wanted))
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
def _specialized(wanted: Specialization) -> Any:
    rebuilt = rebuild(wanted)
    if wanted.target == "cuda":
        return _without_outdated(_rules.threads(rebuilt.function), rebuilt.stem)
    if _rules.INTERPRETED:
        return rebuilt.function
    compiled = _Compiled(rebuilt, wanted.game.title if wanted.game else "what all games share")
    game = wanted.game.name if wanted.game else None
    built = None if _rules.checks_bounds() else _library.find_loop(rebuilt.function.__name__, game, compiled)
    return built or compiled.compiled


class Rebuilt(NamedTuple):
    """A loop with a game's functions in place of the stubs.

    Attributes:
        function: a copy of the loop; its name ends with the digest of its sources.
        stem: its name up to the digest.
        sources: the functions that it is made of.
    """

    function: FunctionType
    stem: str
    sources: Sources


def rebuild(wanted: Specialization) -> Rebuilt:
    """Copy a loop with a game's functions in place of the stubs."""
    loop, game, bot, inline, target, functions = wanted
    function, sources = _binding(game, bot, inline, target, functions).rebuild(loop)
    how = ("" if inline else "called") + ("checked" if _rules.checks_bounds() else "") + target.removeprefix("cpu")
    stem = "_".join([loop.__name__, game.name if game else "", bot, how + _hash_of(functions), ""])
    function.__name__ = function.__qualname__ = stem + digest_sources(sources)
    return Rebuilt(function, stem, sources)


def _hash_of(functions: Functions) -> str:
    """Return a hash of which function replaces which: different parts have different names, and so cache files."""
    names = [f"{function.__module__}.{function.__qualname__}" for pair in functions for function in pair]
    return hashlib.sha256(" ".join(names).encode()).hexdigest()[:8] if names else ""


class _Compiled:
    """A loop that is compiled once it is called."""

    def __init__(self, rebuilt: Rebuilt, label: str) -> None:
        self.rebuilt = rebuilt
        self.label = label

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)

    @cached_property
    def compiled(self) -> Any:
        function, stem, sources = self.rebuilt
        return _without_outdated(_rules.loop(function, self.label, lambda: is_unchanged(sources)), stem)


def _without_outdated(compiled: Any, stem: str) -> Any:
    """Return a compiled loop; delete what the cache has of it from other sources."""
    if not _rules.INTERPRETED and compiled.stats.cache_path is not None:
        module = Path(compiled.py_func.__code__.co_filename).stem
        _remove_outdated(Path(compiled.stats.cache_path), f"{module}.{stem}", f"{module}.{compiled.__name__}")
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
        for replaced in self.functions:
            if replaced not in _stubs:
                raise TypeError(
                    f"functions: {replaced.__name__} is not a stub; mark what is to be replaced with `stub`"
                )

    def rebuild(self, function: FunctionType) -> tuple[FunctionType, Sources]:
        """Return a copy of a loop or helper with all its globals replaced, and the functions that it is made of."""
        names = dict(function.__globals__)
        free = dict(zip(function.__code__.co_freevars, map(CellType, free_values(function))))
        sources: Sources = {function: None}
        for name, value in first_used(function):
            if isinstance(value, FunctionType) and "." not in name:
                replacement, used = self._replacement(value, function)
                sources |= used
                if name in free:
                    free[name] = CellType(replacement)
                else:
                    names[name] = replacement
            else:
                _add_sources(name, value, sources, function)
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
                function = self._game_function(helper, user)
                sources: Sources = {}
                _add_sources(helper.__name__, function, sources, user)
                inline = self.inline or _rules.INTERPRETED
                self._replaced[helper] = function if inline else _rules.noinline(function), sources
            else:
                copy, sources = self.rebuild(helper)
                self._replaced[helper] = (_rules.noinline if helper in _called else _rules.rule)(copy), sources
        return self._replaced[helper]

    def _game_function(self, stub: FunctionType, user: FunctionType) -> Any:
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
        function: Any = getattr(module, name)
        is_default = function is getattr(stub, "__wrapped__", None)
        return _rules.rule(function) if is_default else function


def _add_sources(name: str, value: Any, sources: Sources, user: FunctionType) -> None:
    """Add the functions that compiled code runs through a value, and all that these use, to the sources of a loop."""
    for function in functions_in(value):
        if function in contract.MODULE_OF or function in _stubs:
            how = "loops call stubs by name alone" if "." in name else "helpers of loops are plain functions"
            raise TypeError(f"{user.__name__} calls the stub {name}: {how}")
        if function not in sources and str(function.__module__).partition(".")[0] not in NOT_SOURCES:
            sources[function] = None
            for used, part in first_used(function):
                _add_sources(used, part, sources, function)


def game_sources(game: Game) -> Sources:
    """Return all compiled functions of a game's rules, scripted players and planner, and those that they use."""
    sources: Sources = {}
    for stub, module in contract.MODULE_OF.items():
        for name in BOTS if stub is contract.bot_move else (stub.__name__,):
            function = getattr(getattr(game, module), name, None)
            if function is not None:
                _add_sources(name, function, sources, function)
    return sources


def _remove_outdated(folder: Path, stem: str, name: str) -> None:
    """Delete cached code of earlier sources, unless this version is cached already."""
    if any(folder.glob(f"{glob.escape(name)}-*")):
        return
    for file in folder.glob(f"{glob.escape(stem)}{'[0-9a-f]' * HEX_DIGITS}-*"):
        with suppress(OSError):
            file.unlink(missing_ok=True)
