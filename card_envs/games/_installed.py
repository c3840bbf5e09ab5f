"""Games of other packages: an entry point in the group `card_envs.games` refers to a `Game`.

    [project.entry-points."card_envs.games"]
    my_game = "my_package.my_game:GAME"

Everything that takes the name of a game accepts them; `import card_envs` registers them with PettingZoo and Gymnasium.
A faulty package never breaks the others: its game is left out with a warning, and lookups of it report the problem.
"""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

from card_envs.game import Game
from card_envs.system.files import read_file

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "card_envs.games"
NAME = re.compile(r"[a-z][a-z0-9_]*")
MAX_BYTES = 1 << 20


class InstalledGames(MutableMapping[str, Game]):
    """Games by name: those given, and those of other packages.

    The latter are loaded on first access; a package that is being imported at that moment is tried again later.
    """

    def __init__(self, *games: Game) -> None:
        self.problems: list[str] = []  # why games of other packages were left out
        self._games = {game.name: game for game in games}
        self._waiting: list[tuple[str, EntryPoint]] | None = None

    def __getitem__(self, name: str) -> Game:
        return self._all()[name]

    def __setitem__(self, name: str, game: Game) -> None:
        self._all()[name] = game

    def __delitem__(self, name: str) -> None:
        del self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, Game]:
        waiting = [*self._entry_points()] if self._waiting is None else self._waiting
        self._waiting = []  # cleared first: a package loaded here may access this, too
        for owner, point in waiting:
            if being_imported(point.value.partition(":")[0].strip()):
                self._waiting.append((owner, point))
            else:
                self._load(owner, point)
        return self._games

    def _load(self, owner: str, point: EntryPoint) -> None:
        """Add the game of an entry point; warn if it can't be loaded or its name is taken."""
        try:
            game = point.load()
            if not isinstance(game, Game):
                raise TypeError(f"expected a card_envs.game.Game, got {game!r:.80}")
            if not (isinstance(game.name, str) and NAME.fullmatch(game.name) and isinstance(game.title, str)):
                raise ValueError(f"expected a name of small letters, digits and _, and a title, got {game!r:.80}")
        except (Exception, SystemExit) as error:  # foreign code may raise anything
            problem = f"can't be loaded: {type(error).__name__}: {error}"
            self._leave_out(f"package {owner}: the game {point.name} ({point.value}) {problem}")
            return
        alike = [known for known in self._games.values() if game.name == known.name or game.title == known.title]
        if not alike:
            self._games[game.name] = game
        elif alike[0] != game:
            problem = f"is left out: {alike[0].package} has a game {alike[0].name} ({alike[0].title}) as well"
            self._leave_out(f"package {owner}: the game {game.name} ({game.title}) {problem}")

    def _leave_out(self, problem: str) -> None:
        self.problems.append(problem)
        with contextlib.suppress(UserWarning):  # if warnings are errors, the other games are loaded nevertheless
            warnings.warn(problem, stacklevel=2)

    def _entry_points(self) -> Iterator[tuple[str, EntryPoint]]:
        """Yield the entry points of the group with the package's name.

        The files are parsed here, because `importlib.metadata` takes 15 ms and fails on a single broken one.
        """
        for file in metadata_files():
            try:
                text = read_file(file, MAX_BYTES).decode(errors="replace")
            except (OSError, ValueError) as error:
                self.problems.append(f"package {file.parent.name}: its entry points can't be read: {error}")
                continue
            if GROUP not in text:
                continue
            try:
                import configparser
                from importlib.metadata import EntryPoint

                parser = configparser.ConfigParser(delimiters="=", interpolation=None, strict=False)
                parser.optionxform = str  # type: ignore[assignment]
                parser.read_string(text)
                if not parser.has_section(GROUP):
                    continue
                for name, value in parser.items(GROUP):
                    yield file.parent.name.partition("-")[0], EntryPoint(name, value, GROUP)
            except Exception as error:  # a file may contain anything
                self._leave_out(f"package {file.parent.name}: its entry points can't be read: {error}")


def metadata_files() -> Iterator[Path]:
    """Yield the entry-point files of installed packages; only packages in folders are found."""
    for folder in sys.path:
        with contextlib.suppress(OSError, ValueError, TypeError):
            yield from sorted(Path(folder).glob("*-info/entry_points.txt"))


def being_imported(module: str) -> bool:
    """Return whether a module or its package is still being executed, so that names may be missing."""
    name = module.partition(".")[0]
    return any(
        getattr(getattr(sys.modules.get(loaded), "__spec__", None), "_initializing", False) for loaded in (name, module)
    )
