"""Games of other packages: an entry point in the group `card_envs.games` gives a `Game`.

    [project.entry-points."card_envs.games"]
    my_game = "my_package.my_game:GAME"

Whatever takes the name of a game takes theirs; `import card_envs` registers them with PettingZoo and Gymnasium. Nothing
that another package leaves behind stops it: what is broken is left out, with a warning, and named to who asks for it.
"""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

from card_envs.files import read_file
from card_envs.game import Game

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "card_envs.games"
NAME = re.compile(r"[a-z][a-z0-9_]*")
MAX_BYTES = 1 << 20


class Games(MutableMapping[str, Game]):
    """Games by name: those given, and those of other packages.

    The latter are loaded when somebody first looks; one whose package is being imported at that moment, when somebody
    next does.
    """

    def __init__(self, *games: Game) -> None:
        self.problems: list[str] = []  # with packages whose games are left out
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
        self._waiting = []  # a package that is loaded here may look, too
        for owner, point in waiting:
            if being_imported(point.value.partition(":")[0].strip()):
                self._waiting.append((owner, point))
            else:
                self._load(owner, point)
        return self._games

    def _load(self, owner: str, point: EntryPoint) -> None:
        """Add the game of an entry point; warn where there is none, or one of that name already."""
        try:
            game = point.load()
            if not isinstance(game, Game):
                raise TypeError(f"expected a card_envs.game.Game, got {game!r:.80}")
            if not (isinstance(game.name, str) and NAME.fullmatch(game.name) and isinstance(game.title, str)):
                raise ValueError(f"expected a name of small letters, digits and _, and a title, got {game!r:.80}")
        except (Exception, SystemExit) as error:  # whatever another package's code may raise
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
        with contextlib.suppress(UserWarning):  # where warnings are errors: no reason not to load the others
            warnings.warn(problem, stacklevel=2)

    def _entry_points(self) -> Iterator[tuple[str, EntryPoint]]:
        """Those of the group, each with the package's name.

        The files are read here: `importlib.metadata` takes 15 ms, and any one that is broken stops it.
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
            except Exception as error:  # whatever there may be in a file
                self._leave_out(f"package {file.parent.name}: its entry points can't be read: {error}")


def metadata_files() -> Iterator[Path]:
    """Yield the entry points of installed packages, as far as there are folders."""
    for folder in sys.path:
        with contextlib.suppress(OSError, ValueError, TypeError):
            yield from sorted(Path(folder).glob("*-info/entry_points.txt"))


def being_imported(module: str) -> bool:
    """Return whether a module, or the package that it is in, is being executed: it may lack what it is to define."""
    name = module.partition(".")[0]
    return any(
        getattr(getattr(sys.modules.get(loaded), "__spec__", None), "_initializing", False) for loaded in (name, module)
    )
