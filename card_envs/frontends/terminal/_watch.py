"""Watching a game at the terminal, move by move: played by opponents, or saved."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from card_envs.engine.buffers import new_seed
from card_envs.envs._replay import verify
from card_envs.frontends.terminal._play import ask, check_seat, load_opponents
from card_envs.game import Game
from card_envs.games import get_game
from card_envs.opponents.policy import hide_seed
from card_envs.play.episode import Episode, read_episode
from card_envs.play.narration import WIDTH, Event, lines_of, result_text, told
from card_envs.play.sitting import Sitting
from card_envs.play.suits import with_suits
from card_envs.record import GameRecord
from card_envs.system.files import check_output

PROMPT = "Enter: next, b: back, a number: that move, q: quit> "


class Screen(NamedTuple):
    """Where a game is shown, and how.

    Attributes:
        console: to print to.
        delay: seconds per move; None: the person steps forwards and backwards.
        gif: file to write pictures to instead of showing the game.
    """

    console: Console
    delay: float | None = None
    gif: Path | None = None

    def check(self) -> None:
        """Check before the game that the GIF can be written afterwards."""
        if self.gif is not None:
            from card_envs.draw.raster import check_libraries

            check_libraries()
            check_output(self.gif)
            if self.gif.suffix.lower() != ".gif":
                raise ValueError(f"gif: expected a name that ends in .gif, got {self.gif}")


def watch_game(
    game: Game,
    opponents: str | list[str],
    seat: int | None,
    seed: int | None,
    options: dict[str, Any],
    record: Path | None,
    screen: Screen,
) -> None:
    """Show a game while opponents, one name for all seats or one each, play it; the record is saved however it ends.

    Without a seat, the view is that of the seat to move, so that every hand is seen in turn. Without a seed, each game
    is different.

    Raises:
        ValueError: a wrong seat, opponent, option or folder.
    """
    screen.check()
    check_output(record)
    players = load_opponents(game, opponents, game.rules.NUM_SEATS)
    check_seat(game, seat)
    rng = hide_seed(np.random.default_rng(seed))
    episode = Episode(game, game.validated(options), seed=new_seed() if seed is None else seed)
    names = [f"seat {number} ({player.name})" for number, player in enumerate(players)]
    sitting = Sitting(episode, [player.policy for player in players], rng, names)
    try:
        show(Showing(sitting, seat, sitting.advance()), screen)
    finally:
        if record is not None:
            episode.record().save(record)
            screen.console.print(lines_of(f"saved to {record}"), markup=False, highlight=False)


def watch_record(file: Path, game: Game | None, seat: int | None, screen: Screen) -> None:
    """Show a saved game, which must be of this game, if any; `seat` and `screen` are those of `watch_game`.

    Raises:
        ValueError: not a record, or of another game or version; its moves do not lead to its outcome; or a wrong seat.
    """
    screen.check()
    record = GameRecord.load(file)
    if game is not None and record.game != game.name:
        raise ValueError(f"{file}: a record of {record.game}, not of {game.name}")
    verify(record)
    game = get_game(record.game)
    check_seat(game, seat)
    names = [f"seat {number}" for number in range(game.rules.NUM_SEATS)]
    episode, actions = read_episode(record, game)
    sitting = Sitting(episode, names=names)
    play = (sitting.play(action) for action in actions)
    show(Showing(sitting, seat, play, len(actions)), screen)


class Showing(NamedTuple):
    """A game to be shown move by move, played as it is shown.

    Attributes:
        sitting: what is shown.
        seat: whose view to show; None: that of the seat to move.
        play: plays a move when it is asked for the next item.
        num_moves: after which a saved game was left; None: at the end of the episode.
    """

    sitting: Sitting
    seat: int | None
    play: Iterator[object]
    num_moves: int | None = None

    def positions(self) -> Iterator[tuple[int, list[Event], bool]]:
        """Yield (viewing seat, events, whether it is the end) before the first move and after each move."""
        sitting, shown = self.sitting, 0
        while True:
            viewer = sitting.seat or 0 if self.seat is None else self.seat
            ends = sitting.over or len(sitting.moves) == self.num_moves
            yield viewer, sitting.events[shown:], ends
            if ends:
                return
            shown = len(sitting.events)
            next(self.play)


def picture_frames(game: Showing) -> Iterator[str]:
    """Yield the positions of a game as text."""
    sitting = game.sitting
    for number, (viewer, events, ends) in enumerate(game.positions()):
        header = f"Move {number}, as {sitting.names[viewer]} sees it".ljust(WIDTH - 1, ".")
        parts = [header, told(events), sitting.game.view.picture(sitting.view(viewer))]
        if ends:
            parts.append(result_text(sitting.game, sitting.outcome(), sitting.names))
        yield "\n".join(part for part in parts if part)


def show(game: Showing, screen: Screen) -> None:
    """Show a game as text, or write it to a file as pictures, each for `delay` seconds (default: 1)."""
    console, delay, gif = screen
    if gif is None:
        browse(picture_frames(game), delay, console)
        return
    from card_envs.draw import draw
    from card_envs.draw.raster import save_gif

    with console.status("drawing") as status:

        def drawings() -> Iterator[str]:
            for number, (viewer, _, _) in enumerate(game.positions()):
                status.update(f"drawing: {number} pictures")
                yield draw(game.sitting.game, game.sitting.view(viewer))

        number = save_gif(gif, drawings(), seconds=1.0 if delay is None else delay)
    console.print(lines_of(f"{number} pictures written to {gif}"), markup=False, highlight=False)


def browse(pages: Iterator[str], delay: float | None, console: Console) -> None:
    """Show texts one by one, after `delay` seconds each or as the person steps. Ctrl-C leaves."""
    try:
        if delay is None:
            _step_through(pages, console)
            return
        for page in pages:
            console.print(with_suits(page, console), highlight=False)
            time.sleep(delay)
    except (KeyboardInterrupt, EOFError):
        console.print()


def _step_through(pages: Iterator[str], console: Console) -> None:
    seen: list[str] = []
    wanted, line = 0, "0"
    while True:
        seen += islice(pages, max(0, wanted + 1 - len(seen)))
        if line == "" and wanted == len(seen):
            return  # Enter on the last page
        at = min(wanted, len(seen) - 1)
        console.print(with_suits(seen[at], console), highlight=False)
        line = ask(PROMPT, console).lower()
        while line not in ("", "b", "q", "quit") and not line.isdecimal():
            line = ask(f"{line[:20]!r}? {PROMPT}", console).lower()
        if line in ("q", "quit"):
            return
        wanted = at + 1 if line == "" else max(at - 1, 0) if line == "b" else int(line[:9])
