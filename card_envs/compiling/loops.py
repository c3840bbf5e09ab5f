"""The loops of a library, as the trace of a game records them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

from card_envs.compiling._specialize import Specialization
from card_envs.game import Game

FunctionName: TypeAlias = tuple[str, str]


class TracedLoop(NamedTuple):
    """A loop and the types of its arguments.

    Attributes:
        module, name: those of the plain function.
        package: the game's package; None for a loop without rules.
        bot, inline: arguments of `specialize`.
        functions: module and name of stubs, each with those of the function that replaces it.
        signature: the Numba types of its arguments.
    """

    module: str
    name: str
    package: str | None
    bot: str
    inline: bool
    functions: tuple[tuple[FunctionName, FunctionName], ...]
    signature: tuple[Any, ...]

    @classmethod
    def of(cls, wanted: Specialization, signature: tuple[Any, ...]) -> TracedLoop:
        """Return the loop of these arguments of `specialize`."""
        functions = tuple((function_name(stub), function_name(function)) for stub, function in wanted.functions)
        package = None if wanted.game is None else wanted.game.package
        return cls(*function_name(wanted.loop), package, wanted.bot, wanted.inline, functions, signature)

    def specialization(self) -> Specialization:
        """Return the arguments that `specialize` got."""
        game = None if self.package is None else game_of_package(self.package)
        functions = tuple((load_function(*stub), load_function(*function)) for stub, function in self.functions)
        return Specialization(load_function(self.module, self.name), game, self.bot, self.inline, functions=functions)


def function_name(function: Any) -> FunctionName:
    """Return the module and the name of a plain function."""
    return function.__module__, function.__qualname__


def load_function(module: str, name: str) -> Any:
    """Return a function by its module and name."""
    return getattr(import_module(module), name)


def type_of_argument(value: Any) -> Any:
    """Return the Numba type of an argument."""
    from numba import typeof, types

    return types.none if value is None else typeof(value)


def game_of_package(package: str) -> Game:
    """Return the game of a package. Raises ValueError if it has none, or can't be imported."""
    try:
        game = getattr(import_module(package), "GAME", None)
    except Exception as error:  # the game's code may raise anything
        raise ValueError(f"{package}: can't be imported: {type(error).__name__}: {error}") from error
    if not isinstance(game, Game):
        raise ValueError(f"{package}: expected a package with GAME, a card_envs.game.Game, got {game!r:.80}")
    return game
