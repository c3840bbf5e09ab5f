"""Opponent names: grammar, parser and construction.

    NAME   = [GAME "/"] PLAYER      such as back_alley/greedy; the game is optional if known
           | PATH                   folder of a network: begins with ".", "~" or "/", or contains "/" and is none of the
                                    above: ./mine, runs/quickstart/opponent
    PLAYER = "random"               uniform over the legal actions
           | "trivial" | "greedy"   scripted players of the game's `bot.py`
           | "search:" BUDGET {"," KEY "=" VALUE}   a search; BUDGET is N worlds, or T "ms" per move on all cores
           | PHASE "=" NAME "+" NAME   combination: the first decides in a phase of the game, the second elsewhere
           | MODULE ":" CLASS       a user's policy class or function, called with the `Game`
           | SHIPPED                a trained network of the package, or a preset of the game: "strong" and "champion"
                                    stand for one of the above

    KEY            VALUE            see `SearchPolicy`
    moves          single | turn    single actions, or macro-actions up to the next revealed card
    prior          NAME             names the baseline, prunes or ranks the candidates
    rollout        NAME             plays for the mover's side in playouts, instead of greedy
    leaf           NAME             n-tuple network that values the position where a playout stops
    leaf_after     K                number of chance events before it stops
    leaf_playout   SHARE            weight of the playout to the end by greedy in the result, 0 to 1
    arms           K                macro-actions that a ranking prior keeps

The first matching alternative of PLAYER applies. A NAME inside a search must not contain a comma, nor a NAME before "+"
another "+". The meaning of a name never depends on existing folders: a single word is never a folder.
"""

from __future__ import annotations

import difflib
import importlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from card_envs._files import user_path
from card_envs.engine._buffers import check_bool
from card_envs.game import Game
from card_envs.games import GAMES, get_game
from card_envs.opponents.networks.folder import load_network
from card_envs.opponents.phased import PhasedPolicy, phase_actions
from card_envs.opponents.policy import Opponent, Policy
from card_envs.opponents.scripted import RandomPolicy, ScriptedPolicy
from card_envs.opponents.search import SearchPolicy

MODELS = Path(__file__).parent / "models"
LONGEST = 4096  # characters; the longest path allowed
SEARCHES = ("search:64", "search:1024", "search:64,moves=turn")  # examples for lists of opponents
TIMED = "search:100ms"  # suggested for malformed times
BUDGET = re.compile(r"search:(?:([1-9]\d{0,6})|([1-9]\d{0,5})ms)")
NAMES = ("prior", "rollout", "leaf")  # keys of a search whose values are names
NUMBERS = {"leaf_after": int, "leaf_playout": float, "arms": int}
KEYS = ("moves", *NAMES, *NUMBERS)
RUNS_FOLDER = "opponent"  # of a training run, that what it learned is in
PHASED = re.compile(r"(\w+)=([^+]+)\+(.+)")


@dataclass(frozen=True)
class Folder:
    """A network that training or `import` wrote; `~` in its path is expanded."""

    path: Path


@dataclass(frozen=True)
class Uniform:
    """`random`."""


@dataclass(frozen=True)
class Scripted:
    """`trivial` or `greedy`."""

    bot: str


@dataclass(frozen=True)
class Searching:
    """A search with a budget.

    Attributes:
        worlds, milliseconds: the budget; the other one is None.
        parts: the names of its prior, rollout and leaf, if given.
        settings: the other keys, for `SearchPolicy`.
    """

    worlds: int | None
    milliseconds: int | None
    parts: tuple[tuple[str, Name], ...] = ()
    settings: tuple[tuple[str, Any], ...] = ()

    def policy(self, game: Game) -> SearchPolicy:
        """Build the search for a game."""
        budget: dict[str, Any] = {"worlds": self.worlds}
        if self.milliseconds is not None:
            budget = {"seconds": self.milliseconds / 1000}
        parts: dict[str, Any] = {key: build(name, game, sampled=False) for key, name in self.parts}
        return SearchPolicy(game, **budget, **parts, **dict(self.settings))


@dataclass(frozen=True)
class Phased:
    """One player in a phase of the game, another elsewhere."""

    phase: str
    inside: Name
    outside: Name


@dataclass(frozen=True)
class UsersOwn:
    """A class of the user."""

    module: str
    class_name: str


@dataclass(frozen=True)
class Shipped:
    """A network shipped with the package or a preset; unknown words are parsed as this, too."""

    name: str


Stamps: TypeAlias = tuple[tuple[Any, ...], ...]
Player: TypeAlias = Folder | Uniform | Scripted | Searching | Phased | UsersOwn | Shipped


@dataclass(frozen=True)
class Name:
    """A parsed name.

    Attributes:
        text: as written.
        game: the part before the slash, or None.
        short: the part after it.
        player: its meaning.
    """

    text: str
    game: str | None
    short: str
    player: Player

    def players(self) -> Iterator[Player]:
        """Yield the player and the players that it is composed of."""
        yield self.player
        if isinstance(self.player, Phased):
            yield from self.player.inside.players()
            yield from self.player.outside.players()
        elif isinstance(self.player, Searching):
            for _, name in self.player.parts:
                yield from name.players()


def parse(text: str) -> Name:
    """Parse a name.

    Every text up to a maximum length is a name; whether there is such an opponent is found out when it is built.
    """
    if len(text) > LONGEST:
        raise ValueError(f"opponent {text!r:.80}: expected at most {LONGEST} characters, got {len(text)}")
    if text.startswith((".", "~")) or Path(text).is_absolute():
        return Name(text, None, text, _folder(text))
    before, slash, after = text.partition("/")
    if slash and before in GAMES:
        return Name(text, before, after, _player(after) or Shipped(after))
    is_path = slash or os.sep in text
    return Name(text, None, text, _player(text) or (_folder(text) if is_path else Shipped(text)))


def _folder(text: str) -> Folder:
    try:
        return Folder(user_path(text))
    except ValueError:  # "~name" without a home folder: reported as an unknown opponent when built
        return Folder(Path(text))


def name_of_folder(folder: Path) -> str:
    """Return the name of the opponent in a folder."""
    return str(folder) if isinstance(parse(str(folder)).player, Folder) else f".{os.sep}{folder}"


def _player(short: str) -> Player | None:
    """Parse a PLAYER; return None for any other text, such as the name of a shipped one."""
    if short == "random":
        return Uniform()
    if short in ("trivial", "greedy"):
        return Scripted(short)
    if re.match(r"search:\d", short):
        return _search(short)
    if phased := PHASED.fullmatch(short):
        return Phased(phased[1], parse(phased[2]), parse(phased[3]))
    if ":" in short and not {"/", os.sep} & set(short):
        module, _, class_name = short.partition(":")
        return UsersOwn(module, class_name)
    return None


def _search(short: str) -> Searching:
    """Parse a search. Raises ValueError."""
    first, *rest = short.split(",")
    budget = BUDGET.fullmatch(first)
    if not budget:
        raise ValueError(
            f"opponent {short!r:.80}: expected search:N with 1 to 9999999 worlds, or search:100ms; got {first!r:.80}"
        )
    parts: list[tuple[str, Name]] = []
    settings: list[tuple[str, Any]] = []
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals or key not in KEYS:
            raise ValueError(
                f"opponent {short!r:.80}: {part!r:.80}: expected KEY=VALUE with a key of {', '.join(KEYS)}"
            )
        if key in (known for known, _ in [*parts, *settings]):
            raise ValueError(f"opponent {short!r:.80}: {key} is given twice")
        if key in NAMES:
            parts.append((key, parse(value)))
            continue
        try:
            settings.append((key, NUMBERS.get(key, str)(value)))
        except ValueError:
            raise ValueError(f"opponent {short!r:.80}: {key}: expected a number, got {value!r:.80}") from None
    worlds, milliseconds = budget.groups()
    return Searching(
        int(worlds) if worlds else None, int(milliseconds) if milliseconds else None, tuple(parts), tuple(settings)
    )


def split_names(text: str) -> list[str]:
    """Split a list of names at its commas, but not at those within a search."""
    return re.split(rf",(?!(?:{'|'.join(KEYS)})=)", text)


def frames(phase: str, other: str, names: Sequence[str]) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return text to put before and after names so that they differ only in a phase, or only outside it.

    Args:
        phase: of a game.
        other: the player of the other part, the same for all.
        names: the names to be framed.

    Raises:
        ValueError: a name already combines two players, so it can't be a part itself.
    """
    for name in names:
        if "+" in name:
            raise ValueError(f"{name}: a player that combines two can't be split by phase")
    return (f"{phase}=", f"+{other}"), (f"{phase}={other}+", "")


def opponent_names(game: Game) -> list[str]:
    """Return the names of the opponents of a game that ship with the package."""
    shipped = sorted(path.name for path in (MODELS / game.name).glob("*") if path.is_dir())
    return ["random", "trivial", "greedy", *SEARCHES, *shipped, *game.presets]


def load_opponent(name: str | Path, game: str | Game | None = None, sampled: bool = True) -> Opponent:
    """Return an opponent, given a name, a folder, or a class of yours.

    Args:
        name: `"back_alley/greedy"` (or `"greedy"` with `game`); a folder that training wrote, as a path with a
            separator (`"runs/quickstart/opponent"`, `"./mine"`) or as a `Path`; `"module:Class"`: a `Policy`,
            constructed with the `Game`; `"search:64"`: a search with 64 worlds; `"search:100ms"`: with 100 ms per move;
            `"search:64,moves=turn,prior=small"`: with other parts (see the grammar in `card_envs/opponents/_names.py`);
            or two combined: `"bidding=ppo+greedy"` bids like `ppo` and plays like `greedy` otherwise.
        game: required for short names and classes; otherwise checked.
        sampled: trained networks sample their actions from their probabilities, unless they were made to play the
            likeliest one; False: they play the likeliest.

    Raises:
        ValueError: unknown opponent (similar names are suggested), or its files are damaged or do not fit.
    """
    if not isinstance(name, (str, Path)):
        raise ValueError(f"opponent: expected a name or a folder, got {name!r:.80}")
    if not isinstance(game, Game | None):
        game = get_game(game)
    try:
        text = name if isinstance(name, str) else name_of_folder(name)
        return build(parse(text), game, check_bool(sampled, "sampled"))
    except RecursionError:
        raise ValueError(f"opponent {str(name)!r:.80}: too deeply nested") from None


def load_cached(name: str, game: Game, sampled: bool = True) -> Opponent:
    """Return `load_opponent`, loaded once as long as the files of its networks are what they were.

    Users' classes are constructed each time: they may keep state.
    """
    players = list(parse(name).players())
    if any(isinstance(player, UsersOwn) for player in players):
        return load_opponent(name, game, sampled)
    return _load_once(name, game, sampled, tuple(_stamps(one.path) for one in players if isinstance(one, Folder)))


@lru_cache(64)
def _load_once(name: str, game: Game, sampled: bool, stamps: tuple[Stamps, ...]) -> Opponent:
    return load_opponent(name, game, sampled)


def _stamps(folder: Path) -> Stamps:
    """Return what changes when a file of a folder is written: its name, identity, size and time."""
    if not _is_folder(folder):
        return ()
    found = ((file.name, file.stat()) for file in sorted(folder.iterdir()) if file.exists())  # no dangling links
    return tuple((name, of.st_dev, of.st_ino, of.st_size, of.st_mtime_ns) for name, of in found)


def build(name: Name, game: Game | None = None, sampled: bool = True) -> Opponent:
    """Return the opponent of a parsed name; arguments and errors as for `load_opponent`."""
    if name.game is not None:
        if game is not None and game.name != name.game:
            raise ValueError(f"opponent {name.text!r} plays {name.game}, not {game.name}")
        game = GAMES[name.game]
    player = name.player
    if isinstance(player, Folder):
        if not _is_folder(player.path):
            known = [game] if game else GAMES.values()
            raise _unknown(name.text, [f"{one.name}/{short}" for one in known for short in opponent_names(one)])
        network = load_network(player.path, game, sampled)
        folder = player.path.absolute()
        short = folder.parent.name if folder.name == RUNS_FOLDER else folder.name  # runs/mine/opponent is "mine"
        return Opponent(short or folder.name, network.game, network)
    if game is None and isinstance(player, Searching):
        game = next((GAMES[part.game] for _, part in player.parts if part.game), None)
    if game is None:
        if isinstance(player, Phased | UsersOwn):
            raise ValueError(f"opponent {name.text!r}: the game is missing: load_opponent({name.text!r}, game=…)")
        raise _unknown(name.text, [f"{one.name}/{short}" for one in GAMES.values() for short in opponent_names(one)])
    return Opponent(name.short, game, _policy(name, player, game, sampled))


def _policy(name: Name, player: Player, game: Game, sampled: bool) -> Policy:
    """Return the policy of a player for a game."""
    match player:
        case Uniform():
            return RandomPolicy()
        case Scripted(bot):
            return ScriptedPolicy(bot)
        case Searching():
            return player.policy(game)
        case Phased(phase, inside, outside):
            actions = phase_actions(game, phase)
            return PhasedPolicy(actions, *(build(part, game, sampled) for part in (inside, outside)))
        case UsersOwn(module, class_name):
            return _users_own(name.text, module, class_name, game)
        case _:
            if name.short not in opponent_names(game):
                raise _unknown(name.text, [f"{game.name}/{short}" for short in opponent_names(game)])
            if name.short in game.presets:
                return build(parse(game.presets[name.short]), game, sampled).policy
            shipped = load_network(MODELS / game.name / name.short, game, sampled)
            shipped.trained_options = None  # its strength is measured, whatever it was trained on
            return shipped


def _users_own(text: str, module: str, class_name: str, game: Game) -> Policy:
    try:
        kind = getattr(importlib.import_module(module), class_name)
    except (Exception, SystemExit) as error:  # user code may raise anything
        if module == "search" and isinstance(error, ModuleNotFoundError):
            raise ValueError(f"opponent {text!r:.80}: expected search:N with 1 to 9999999 worlds, or {TIMED}") from None
        raise ValueError(f"opponent {text!r:.80}: {type(error).__name__}: {error}") from error
    if not callable(kind):
        raise ValueError(f"opponent {text!r:.80}: expected a class or a function of the game, got {kind!r:.80}")
    try:
        made = kind(game)
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"opponent {text!r:.80}: {class_name}({game.name}): {type(error).__name__}: {error}"
        ) from error
    if not isinstance(made, Policy):
        raise ValueError(f"opponent {text!r:.80}: needs the methods act(decisions, rng) and probabilities(decisions)")
    return made


def _unknown(text: str, known: list[str]) -> ValueError:
    meant = {name: [name] for name in [*known, TIMED]}
    for name in known:  # the players of this short name in all games
        meant.setdefault(name.partition("/")[2], []).append(name)
    close = [text] if text in meant else difflib.get_close_matches(text[:200], meant, cutoff=0.5)
    near = list(dict.fromkeys(name for one in close for name in meant[one]))
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}"
    if _is_folder(Path(text)):
        return ValueError(f"unknown opponent {text!r:.200}; for the folder of that name write .{os.sep}{text}; {hint}")
    return ValueError(f"unknown opponent {text!r:.200}, and no folder of that name; {hint}")


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # such as a name too long for the file system
        return False
