"""Games of other packages: an entry point in the group `card_envs.games` gives a `Game`.

    [project.entry-points."card_envs.games"]
    my_game = "my_package.my_game:GAME"

Whatever takes the name of a game takes theirs; `import card_envs` registers them with PettingZoo and Gymnasium.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

from card_envs.game import Game

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "card_envs.games"


class Games(MutableMapping[str, Game]):
    """Games by name: those given, and those of other packages.

    The latter are loaded when somebody first looks; one whose package is being imported at that moment, when somebody
    next does.
    """

    def __init__(self, *games: Game) -> None:
        self._games = {game.name: game for game in games}
        self._waiting: list[EntryPoint] | None = None

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
        waiting = [*entry_points()] if self._waiting is None else self._waiting
        self._waiting = []  # a package that is loaded here may look, too
        for point in waiting:
            if being_imported(point.module):
                self._waiting.append(point)
            else:
                self._load(point)
        return self._games

    def _load(self, point: EntryPoint) -> None:
        """Add the game of an entry point; warn where there is none, or one of that name already."""
        owner = point.dist.name if point.dist else point.module
        try:
            game = point.load()
            if not isinstance(game, Game):
                raise TypeError(f"expected a card_envs.game.Game, got {game!r:.80}")
        except Exception as error:  # whatever another package's code may raise
            problem = f"can't be loaded: {type(error).__name__}: {error}"
            warnings.warn(f"package {owner}: the game {point.name} ({point.value}) {problem}", stacklevel=2)
            return
        alike = [known for known in self._games.values() if game.name == known.name or game.title == known.title]
        if not alike:
            self._games[game.name] = game
        elif alike[0] != game:
            problem = f"is left out: {alike[0].package} has a game {alike[0].name} ({alike[0].title}) as well"
            warnings.warn(f"package {owner}: the game {game.name} ({game.title}) {problem}", stacklevel=2)


def entry_points() -> Iterator[EntryPoint]:
    """Those of the group. Where no file names it, that is seen without `importlib.metadata`, which takes 15 ms."""
    files = (file for folder in sys.path for file in Path(folder).glob("*-info/entry_points.txt"))
    if any(GROUP in file.read_text(encoding="utf-8", errors="replace") for file in files):
        import importlib.metadata

        yield from importlib.metadata.entry_points(group=GROUP)


def being_imported(module: str) -> bool:
    """Whether a module, or the package that it is in, is being executed: it may lack what it is to define."""
    name = module.partition(".")[0]
    return any(
        getattr(getattr(sys.modules.get(loaded), "__spec__", None), "_initializing", False) for loaded in (name, module)
    )
