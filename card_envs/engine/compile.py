"""Binding a loop to a game's rules, with a cache on disk that notices every edit.

Numba names cache files by the function's `__qualname__` and checks only the file that holds the loop: an edited rule
in another file would silently run as it was. So the bound loop's name carries a digest of all the sources below it.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from card_envs import cards
from card_envs import game as contract
from card_envs.engine import jit, kernels
from card_envs.game import Game


@cache
def source_digest(package_file: str) -> str:
    """Hash of the sources that a game's machine code is made of: its folder, `cards`, `game`, `engine`."""
    files = sorted(Path(package_file).parent.glob("*.py"))
    files += [Path(cards.__file__), Path(contract.__file__), *sorted(Path(__file__).parent.glob("*.py"))]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


@cache
def kernel(loop_name: str, game: Game, bot: str = "") -> Any:
    """The loop of that name in `kernels.py` for a game, compiled at its first call or loaded from the cache.

    Args:
        loop_name: a function of `kernels.py`.
        game: whose rules take the place of the stubs in `game.py`.
        bot: the function of the game's `bot.py` that takes the place of `bot_move`.
    """
    loop = getattr(kernels, loop_name)
    stem = f"{loop_name}_{game.name}_{bot}_"
    name = stem + source_digest(game.rules.__file__)
    # Of the game, only the functions of the contract: its constants may be named like those of `kernels.py`.
    rules = {rule: game.rules for rule in loop.__code__.co_names if hasattr(contract, rule)}
    for name_in_bot in rules.keys() & {"trivial", "greedy", "bot_move", "plausibility"}:
        rules[name_in_bot] = game.bot
    functions = {rule: getattr(module, bot if rule == "bot_move" else rule) for rule, module in rules.items()}
    if "greedy" in functions and not jit.INTERPRETED:  # a loop that has all players
        functions = {rule: jit.apart(function) for rule, function in functions.items()}
    return _bound(loop, {**vars(kernels), **functions}, stem, name)


@cache
def own_kernel(loop: FunctionType, game: Game) -> Any:
    """A loop that stands in the game's own folder, compiled and cached like those of `kernels.py`."""
    stem = f"{loop.__name__}_{game.name}_own_"
    return _bound(loop, loop.__globals__, stem, stem + source_digest(game.rules.__file__))


def _bound(loop: Any, names: dict[str, Any], stem: str, name: str) -> Any:
    """The loop with these globals under a name of its own."""
    bound = FunctionType(loop.__code__, names, name)
    bound.__qualname__ = name
    if jit.INTERPRETED:
        return bound
    compiled: Any = jit.loop(bound)
    _remove_outdated(Path(compiled.stats.cache_path), stem, name)
    return compiled


def _remove_outdated(folder: Path, stem: str, name: str) -> None:
    """Delete cached code of earlier sources, unless this version is cached already."""
    if any(folder.glob(f"*.{name}-*")):
        return
    for file in folder.glob(f"*.{stem}*"):
        file.unlink(missing_ok=True)
