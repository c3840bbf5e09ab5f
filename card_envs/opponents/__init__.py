"""Opponents: scripted, trained, or the user's own, behind one call: `load_opponent`."""

from __future__ import annotations

import difflib
import importlib
import re
from pathlib import Path

from card_envs.game import Game
from card_envs.games import GAMES, get_game
from card_envs.opponents.folder import VALUE_FOLDER, load_network, load_value
from card_envs.opponents.phased import NAME, PhasedPolicy, phase_actions
from card_envs.opponents.policy import Opponent, Policy
from card_envs.opponents.scripted import RandomPolicy, ScriptedPolicy
from card_envs.opponents.search import Guide, SearchPolicy

SEARCHING = ("search-64", "search-1024")  # and any other number of worlds
GUIDED = re.compile(r"search:(.+)-([1-9]\d{0,6})")
MODELS = Path(__file__).parent / "models"


def opponent_names(game: Game) -> list[str]:
    """The opponents of a game that come with the package."""
    folders = [path.name for path in (MODELS / game.name).glob("*") if path.is_dir()]
    shipped = sorted(name for name in folders if name != VALUE_FOLDER)
    guided = [f"search:{name}-64" for name in ("greedy", *shipped)] if VALUE_FOLDER in folders else []
    return ["random", "trivial", "greedy", *SEARCHING, *guided, *shipped]


def load_opponent(name: str | Path, game: str | Game | None = None, sampled: bool = True) -> Opponent:
    """An opponent, from a name, a folder, or a class of yours.

    Args:
        name: `"back_alley/greedy"` (or `"greedy"` where `game` is given); a folder that training wrote;
            `"module:Class"`: a `Policy`, made by calling it with the `Game`; `"search:POLICY-N"`: a search in N worlds
            that one of these guides; or two of these as one player: `"bidding=ppo+greedy"` bids like `ppo` and does
            everything else like `greedy`.
        game: needed for short names and classes; otherwise checked.
        sampled: a trained network draws its moves from its probabilities; False: it plays the likeliest.

    Raises:
        ValueError: there is no such opponent (near names are suggested), or its files are broken or don't fit.
    """
    name = str(name)
    given = get_game(game) if isinstance(game, str) else game
    game_name, _, short = name.partition("/")
    if game_name not in GAMES:
        short = name
    elif given is not None and given.name != game_name:
        raise ValueError(f"opponent {name!r} plays {game_name}, not {given.name}")
    else:
        given = GAMES[game_name]
    guided = GUIDED.fullmatch(short)
    if guided:
        return _guided(name, guided[1], int(guided[2]), given)
    if Path(name).is_dir():
        network = load_network(Path(name), given, sampled)
        return Opponent(Path(name).name, network.game, network)
    two = NAME.fullmatch(short)
    if (two or ":" in name) and given is None:
        raise ValueError(f"opponent {name!r}: say which game it plays: load_opponent({name!r}, game=…)")
    if given is not None and two:
        actions = phase_actions(given, two[1])
        inside, outside = (load_opponent(part, given, sampled) for part in two.groups()[1:])
        return Opponent(short, given, PhasedPolicy(actions, inside, outside))
    if given is not None and ":" in name:
        return Opponent(name, given, _users_own(name, given))
    if given is None:
        raise ValueError(_unknown(name, [f"{g.name}/{n}" for g in GAMES.values() for n in opponent_names(g)]))
    worlds = re.fullmatch(r"search-([1-9]\d{0,6})", short)
    if short not in opponent_names(given) and not worlds:
        raise ValueError(_unknown(name, [f"{given.name}/{n}" for n in opponent_names(given)]))
    policy: Policy
    if short == "random":
        policy = RandomPolicy()
    elif worlds:
        policy = SearchPolicy(given, int(worlds[1]))
    elif short in ("trivial", "greedy"):
        policy = ScriptedPolicy(short)
    else:
        policy = load_network(MODELS / given.name / short, given, sampled)
    return Opponent(short, given, policy)


def _guided(name: str, policy: str, worlds: int, game: Game | None) -> Opponent:
    """A search that a policy guides, with the value network in its folder, or else the game's own."""
    proposer = load_opponent(policy, game, sampled=False)
    game = proposer.game
    places = [Path(policy) / VALUE_FOLDER, MODELS / game.name / VALUE_FOLDER]
    folder = next((place for place in places if place.is_dir()), None)
    if folder is None:
        raise ValueError(f"opponent {name!r}: no value network in {places[0]}: see python -m training.fit_value")
    return Opponent(name, game, SearchPolicy(game, worlds, guide=Guide(proposer, load_value(folder, game))))


def _users_own(name: str, game: Game) -> Policy:
    module_name, _, class_name = name.partition(":")
    try:
        made = getattr(importlib.import_module(module_name), class_name)(game)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"opponent {name!r}: {error}") from error
    if not isinstance(made, Policy):
        raise ValueError(f"opponent {name!r}: needs the methods act(turn, rng) and probabilities(turn)")
    return made


def _unknown(name: str, known: list[str]) -> str:
    by_short = {n.rpartition("/")[2]: n for n in known} | {n: n for n in known}
    near = list(dict.fromkeys(by_short[n] for n in difflib.get_close_matches(name, by_short, cutoff=0.5)))
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}"
    return f"unknown opponent {name!r}, and no folder of that name; {hint}"
