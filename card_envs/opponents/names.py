"""Opponent names: grammar, parser and construction.

    NAME   = [GAME "/"] PLAYER      such as back_alley/greedy; the game is optional if known
           | PATH                   folder of a network: begins with ".", "~" or "/", or contains "/" and is none of the
                                    above: ./mine, runs/quickstart/opponent
    PLAYER = "random"               uniform over the legal actions
           | "trivial" | "greedy"   scripted players of the game's `bot.py`
           | "search:" BUDGET {"," KEY "=" VALUE}   a search; BUDGET is N worlds, or T "ms" per move on all cores
           | PHASE "=" NAME "+" NAME   combination: the first decides in a phase of the game, the second elsewhere
           | MODULE ":" CLASS       a user's policy class or function, called with the `Game`; or a function of
                                    (decisions, rng) that is a policy itself
           | SHIPPED                a trained network of the package, or a preset of the game: "strong" and "champion"
                                    stand for one of the above

    KEY            VALUE            see `SearchPolicy`
    moves          single | turn    single actions, or macro-actions up to the next revealed card
    prior          NAME             names the baseline, prunes or ranks the candidates
    rollout        NAME             network of n-tuples or moves that plays for the mover's side, instead of greedy
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
import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

from card_envs.compiling._specialize import BOTS
from card_envs.engine.buffers import check_bool
from card_envs.game import Game
from card_envs.games import GAMES, get_game
from card_envs.opponents.networks.folder import load_network
from card_envs.opponents.networks.policies import TrainedPolicy
from card_envs.opponents.networks.torch_policy import TorchPolicy
from card_envs.opponents.phased import PhasedPolicy, phase_actions
from card_envs.opponents.policy import AdaptedPolicy, Opponent, Policy, as_policy, can_act
from card_envs.opponents.scripted import RandomPolicy, ScriptedPolicy
from card_envs.opponents.search import SearchPolicy
from card_envs.system.files import short_repr, user_path

MODELS = Path(__file__).parent / "models"
LONGEST = 4096  # characters; the longest path allowed
SEARCHES = ("search:64", "search:1024", "search:64,moves=turn")  # examples for lists of opponents
TIMED = "search:100ms"  # suggested for malformed times
SEARCH = re.compile(r"search:\d")  # the beginning of its name
BUDGET = re.compile(r"search:(?:([1-9]\d{0,6})|([1-9]\d{0,5})ms)")
POLICY_KEYS = ("prior", "rollout", "leaf")  # keys of a search whose values are names
NUMBERS = {"leaf_after": int, "leaf_playout": float, "arms": int}
KEYS = ("moves", *POLICY_KEYS, *NUMBERS)
RUNS_FOLDER = "opponent"  # the folder of a training run with its network
PHASED = re.compile(r"(\w+)=([^+]+)\+(.+)")
MOST_LOADED = 64  # opponents that `load_cached` keeps

Stamps: TypeAlias = tuple[tuple[Any, ...], ...]
Load: TypeAlias = Callable[[Path, Game | None, bool], TrainedPolicy]


def split_game(text: str) -> tuple[str | None, str]:
    """Return the game that a name begins with, or None, and the rest."""
    before, slash, after = text.partition("/")
    return (before, after) if slash and before in GAMES else (None, text)


def folder_of(text: str) -> Path | None:
    """Return the folder that a name stands for, whether there is one or not; None: it is another kind of name."""
    if len(text) > LONGEST:
        raise ValueError(f"opponent {text!r:.80}: expected at most {LONGEST} characters, got {len(text)}")
    if not text.startswith((".", "~")) and not Path(text).is_absolute():
        is_path = {"/", os.sep} & set(text)
        if not is_path or split_game(text)[0] or SEARCH.match(text) or PHASED.fullmatch(text):
            return None
    try:
        return user_path(text)
    except ValueError:  # "~name" without a home folder: reported as an unknown opponent when it is loaded
        return Path(text)


def name_of_folder(folder: Path) -> str:
    """Return the name of the opponent in a folder."""
    return str(folder) if folder_of(str(folder)) else f".{os.sep}{folder}"


def parse(text: str, game: Game, sampled: bool = True, load: Load = load_network) -> Policy:
    """Return the policy that a name stands for; its own `name` stands for an equal one.

    Args:
        text: the name.
        game: the game that it plays.
        sampled: as for `load_opponent`.
        load: called for the folder of a network.

    Raises:
        ValueError: as `load_opponent`.
    """
    if folder := folder_of(text):
        return _network(text, folder, game, sampled, load)
    owner, short = split_game(text)
    if owner not in (None, game.name):
        raise ValueError(f"opponent {text!r} plays {owner}, not {game.name}")
    if short == "random":
        return RandomPolicy().named(short)
    if short in BOTS:
        return ScriptedPolicy(short).named(short)
    if SEARCH.match(short):
        return _search(short, game, load)
    if phased := PHASED.fullmatch(short):
        actions = phase_actions(game, phased[1])
        inside, outside = (parse(part, game, sampled, load) for part in phased.groups()[1:])
        return PhasedPolicy(actions, inside, outside, phased[1])
    if ":" in short and not {"/", os.sep} & set(short):
        policy = _load_user_policy(text, short, game).named(short)
        return policy if sampled else policy.likeliest()
    if short not in opponent_names(game):
        raise _unknown(text, [f"{game.name}/{name}" for name in opponent_names(game)])
    if short in game.presets:
        return parse(game.presets[short], game, sampled, load)
    shipped = load(MODELS / game.name / short, game, sampled)
    shipped.trained_options = None  # its strength is measured, whatever it was trained on
    return shipped.named(short)


def _network(text: str, folder: Path, game: Game | None, sampled: bool, load: Load = load_network) -> TrainedPolicy:
    """Load the network in a folder, and set its `origin`."""
    if not _is_folder(folder):
        known = [game] if game else GAMES.values()
        raise _unknown(text, [f"{owner.name}/{short}" for owner in known for short in opponent_names(owner)])
    stamps = _stamps(folder)  # before it is read
    network = load(folder, game, sampled).named(name_of_folder(folder.absolute()))
    network.origin = folder.absolute(), stamps
    return network


def _stamps(folder: Path) -> Stamps:
    """Return name, identity, size and time of each file of a folder: they change when a file is written."""
    if not _is_folder(folder):
        return ()
    stats = ((file.name, file.stat()) for file in sorted(folder.iterdir()) if file.exists())  # no dangling links
    return tuple((name, stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in stats)


def _search(short: str, game: Game, load: Load) -> SearchPolicy:
    """Return the search of a name. Raises ValueError."""
    first, *rest = short.split(",")
    budget = BUDGET.fullmatch(first)
    if not budget:
        raise ValueError(
            f"opponent {short!r:.80}: expected search:N with 1 to 9999999 worlds, or search:100ms; got {first!r:.80}"
        )
    settings: dict[str, Any] = {}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals or key not in KEYS:
            raise ValueError(
                f"opponent {short!r:.80}: {part!r:.80}: expected KEY=VALUE with a key of {', '.join(KEYS)}"
            )
        if key in settings:
            raise ValueError(f"opponent {short!r:.80}: {key} is given twice")
        try:
            settings[key] = NUMBERS.get(key, str)(value)
        except ValueError:
            raise ValueError(f"opponent {short!r:.80}: {key}: expected a number, got {value!r:.80}") from None
    settings |= {key: parse(settings[key], game, False, load) for key in POLICY_KEYS if key in settings}
    worlds, milliseconds = budget.groups()
    limit: dict[str, Any] = {"worlds": int(worlds)} if worlds else {"seconds": int(milliseconds) / 1000}
    return SearchPolicy(game, **limit, **settings)


def split_names(text: str) -> list[str]:
    """Split a list of names at its commas, but not at those within a search."""
    return re.split(rf",(?!(?:{'|'.join(KEYS)})=)", text)


def phase_templates(phase: str, other: str, names: Sequence[str]) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return prefix and suffix for names that are to differ only in a phase, and for those that differ only outside it.

    Args:
        phase: a phase of the game.
        other: the player of the other part, the same for all.
        names: the names that differ.

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
    names = ["random", "trivial", "greedy", *SEARCHES, *shipped, *game.presets, *game.bot.LEVELS]
    return list(dict.fromkeys(names))


def load_opponent(name: str | Path, game: str | Game | None = None, sampled: bool = True) -> Opponent:
    """Return an opponent, given a name, a folder, or a class of yours.

    Args:
        name: `"back_alley/greedy"` (or `"greedy"` with `game`); a folder that training wrote, as a path with a
            separator (`"runs/quickstart/opponent"`, `"./mine"`) or as a `Path`; `"module:Class"`: a `Policy`,
            constructed with the `Game`; `"search:64"`: a search with 64 worlds; `"search:100ms"`: with 100 ms per move;
            `"search:64,moves=turn,prior=small"`: with other parts (see the grammar in `card_envs/opponents/names.py`);
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
    text = name if isinstance(name, str) else name_of_folder(name)
    try:
        return _load_named(text, game, check_bool(sampled, "sampled"))
    except RecursionError:
        raise ValueError(f"opponent {text!r:.80}: too deeply nested") from None


def _load_named(text: str, game: Game | None, sampled: bool) -> Opponent:
    """Return the opponent of a name: `load_opponent` after its checks."""
    if folder := folder_of(text):
        network = _network(text, folder, game, sampled)
        folder = folder.absolute()
        short = folder.parent.name if folder.name == RUNS_FOLDER else folder.name  # runs/mine/opponent is "mine"
        return Opponent(short or folder.name, network.game, network)
    owner, short = split_game(text)
    if game is None:
        parts = re.findall(r"=(\w+)/", text) if SEARCH.match(short) else []
        game = next((GAMES[part] for part in (owner, *parts) if part in GAMES), None)
    if game is None:
        if PHASED.fullmatch(text) or (":" in text and not SEARCH.match(text)):
            raise ValueError(f"opponent {text!r}: the game is missing: load_opponent({text!r}, game=…)")
        raise _unknown(text, [f"{known.name}/{short}" for known in GAMES.values() for short in opponent_names(known)])
    return Opponent(short, game, parse(text, game, sampled))


_loaded: dict[tuple[str, Game, bool, str], Opponent] = {}
_loading = Lock()  # of `_loaded`, not of the loading itself


def load_cached(name: str, game: Game, sampled: bool = True) -> Opponent:
    """Return `load_opponent`, loaded once as long as the files of its networks are what they were.

    Users' classes are constructed each time: they may keep state.
    """
    folder = folder_of(name)
    place = "" if folder or not {".", "/", os.sep} & set(name) else str(Path.cwd())  # of relative paths within a name
    key = str(folder.absolute() if folder else name), game, sampled, place
    with _loading:
        opponent = _loaded.pop(key, None)
    if opponent is None or not all(map(_is_unchanged, opponent.policy.parts())):
        opponent = load_opponent(name, game, sampled)
    if all(map(_is_ours, opponent.policy.parts())):
        with _loading:
            _loaded[key] = opponent
            if len(_loaded) > MOST_LOADED:
                del _loaded[next(iter(_loaded))]  # the one that was asked for longest ago
    return opponent


def load_policy(player: Any, where: str, game: Game, sampled: bool = True) -> Policy:
    """Return the policy that something stands for: the way in for all that users pass.

    Args:
        player: a name for `load_opponent`, loaded once as long as its files stay as they are; what `as_policy` takes;
            or what `TorchPolicy` takes, which is not copied.
        where: it was passed, for messages.
        game: that it must play.
        sampled: False: networks play their likeliest moves; True: they draw them, unless they were made to play those.

    Raises:
        ValueError: it is something else, or it plays another game.
    """
    if isinstance(player, str):
        return load_cached(player, game, check_bool(sampled, "sampled")).policy
    torch, problem = sys.modules.get("torch"), ""
    if torch is not None and (not can_act(player) or isinstance(player, torch.nn.Module)):
        try:
            player = TorchPolicy(player)
        except ValueError as error:
            problem = f": {error}"
    if not can_act(player):
        raise ValueError(
            f"{where}: expected a Policy, or another object with act, or what TorchPolicy takes, got "
            f"{short_repr(player)}{problem}"
        )
    policy = as_policy(player, where, game)
    return policy if check_bool(sampled, "sampled") else policy.likeliest()


def _is_ours(part: Policy) -> bool:
    """Return whether a policy's class is this package's."""
    return type(part).__module__.startswith("card_envs.") and not isinstance(part, AdaptedPolicy)


def _is_unchanged(part: Policy) -> bool:
    """Return whether the files that a policy was loaded from are what they were."""
    return part.origin is None or _stamps(part.origin[0]) == part.origin[1]


def _load_user_policy(text: str, short: str, game: Game) -> Policy:
    """Return the policy of a user's class or function. Raises ValueError."""
    module, _, class_name = short.partition(":")
    try:
        kind = getattr(importlib.import_module(module), class_name)
    except (Exception, SystemExit) as error:  # user code may raise anything
        if module == "search" and isinstance(error, ModuleNotFoundError):
            raise ValueError(f"opponent {text!r:.80}: expected search:N with 1 to 9999999 worlds, or {TIMED}") from None
        raise ValueError(f"opponent {text!r:.80}: {type(error).__name__}: {error}") from error
    if not callable(kind):
        raise ValueError(f"opponent {text!r:.80}: expected a class or a function of the game, got {kind!r:.80}")
    if inspect.isfunction(kind) and _accepts(kind, 2) and not _accepts(kind, 1):
        return as_policy(kind, class_name)  # of decisions and rng
    try:
        policy = kind(game)
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"opponent {text!r:.80}: {class_name}({game.name}): {type(error).__name__}: {error}"
        ) from error
    try:
        return as_policy(policy, class_name)
    except ValueError:
        raise ValueError(f"opponent {text!r:.80}: needs the method act(decisions, rng)") from None


def _accepts(function: Callable[..., Any], number: int) -> bool:
    """Return whether a function can be called with that many arguments."""
    try:
        inspect.signature(function).bind(*[None] * number)
    except TypeError:
        return False
    return True


def _unknown(text: str, known: list[str]) -> ValueError:
    meant = {name: [name] for name in [*known, TIMED]}
    for name in known:  # the players of this short name in all games
        meant.setdefault(name.partition("/")[2], []).append(name)
    close = [text] if text in meant else difflib.get_close_matches(text[:200], meant, cutoff=0.5)
    near = list(dict.fromkeys(name for match in close for name in meant[match]))
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}"
    if _is_folder(Path(text)):
        return ValueError(f"unknown opponent {text!r:.200}; for the folder of that name write .{os.sep}{text}; {hint}")
    return ValueError(f"unknown opponent {text!r:.200}, and no folder of that name; {hint}")


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # such as a name too long for the file system
        return False
