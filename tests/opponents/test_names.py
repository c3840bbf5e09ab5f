"""Opponents by name: from folders, of the user's own, made of two; levels, and what a name that is none says."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import card_envs
from card_envs.engine.batch import BatchEnv
from card_envs.game import Game
from card_envs.games import GAMES, get_game
from card_envs.opponents import load_opponent, opponent_names
from card_envs.opponents._levels import levels
from card_envs.opponents.about import about, comparisons, figures_of
from card_envs.opponents.names import folder_of, load_cached, name_of_folder, parse, phase_templates, split_names
from card_envs.opponents.networks.folder import (
    load_network,
)
from card_envs.opponents.networks.policies import (
    TrainedPolicy,
)
from card_envs.opponents.policy import (
    Opponent,
    Policy,
    decisions_at,
)
from card_envs.opponents.scripted import RandomPolicy
from card_envs.opponents.search import SearchPolicy
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import positions, quick_opponents, some
from tests.opponents.networks.test_folder import saved

# Names


def test_what_a_name_stands_for_is_what_is_loaded(game: Game) -> None:
    for name in opponent_names(game):
        kind, _, _ = figures_of(name, game)
        assert kind and about(load_opponent(name, game)).startswith(kind)


def test_what_bounds_a_search_is_said() -> None:
    """Its time, if it has one: no number that stands for no bound."""
    for seconds, what in ((1, "1000 ms"), (0.002, "2 ms")):
        search = SearchPolicy(HIGH_CARD, seconds=seconds)
        assert about(Opponent("its", HIGH_CARD, search)) == f"searches for {what}"
        assert f"seconds={seconds}" in repr(search) and "worlds" not in repr(search)
    assert about(Opponent("its", HIGH_CARD, SearchPolicy(HIGH_CARD, 64))) == "searches 64 possible worlds"


def test_levels_for_people(game: Game) -> None:
    """No player is there twice; a game whose strength was measured says of each level how strong it is."""
    found = levels(game, opponent_names(game))
    assert [level.name for level in found] == ["easy", "medium", "hard", "expert"][: len(found)] and len(found) >= 3
    players = [game.presets.get(level.player, level.player) for level in found]
    assert len({*players}) == len(found) and {level.player for level in found} <= {*opponent_names(game)}
    if not comparisons(game):
        assert not any(level.strength for level in found)
    elif game.is_solitaire:
        assert all(re.fullmatch(r"wins \d+ of 100 games", level.strength) for level in found)
    else:
        before = [f"beats {level.name} in" for level in found]
        assert not found[0].strength
        assert all(level.strength.startswith(words) for words, level in zip(before, found[1:]))


def test_a_level_is_said_as_it_was_measured() -> None:
    """By the largest comparison of the two, whichever of them it names first; other options do not count."""

    def compared(first: str, second: str, share: float, pairs: int, **options: Any) -> dict[str, Any]:
        pairing = {"first": first, "second": second, "win_share": {"mean": share}}
        return {"options": options, "pairs": pairs, "pairings": [pairing], "policies": []}

    made = [
        compared("greedy", "trivial", 0.5, 100),
        compared("greedy", "trivial", 0.9, 200),
        compared("greedy", "trivial", 0.6, 900, deals="single"),
        compared("greedy", "small", 0.25, 50),
    ]
    found = levels(HIGH_CARD, ("small", "greedy", "random", "trivial", "strong"), made)
    assert [tuple(level) for level in found] == [
        ("easy", "trivial", ""),
        ("medium", "greedy", "beats easy in 90 of 100 games"),
        ("hard", "small", "beats medium in 75 of 100 games"),
        ("expert", "strong", ""),
    ]


def test_every_named_opponent_plays(game: Game) -> None:
    assert {"random", "trivial", "greedy"} <= set(opponent_names(game))
    decisions = decisions_at(game, some(positions(game), 100))
    rows = np.arange(100)
    for short in quick_opponents(game):
        for name, given in ((f"{game.name}/{short}", None), (short, game), (short, game.name)):
            opponent = load_opponent(name, given)
            assert isinstance(opponent, Opponent) and isinstance(opponent.policy, Policy)
            assert (opponent.name, opponent.game) == (short, game)
        actions = opponent.act(decisions, np.random.default_rng(1))
        assert actions.shape == (100,) and actions.dtype == np.int64 and decisions.mask[rows, actions].all()
        assert np.array_equal(actions, opponent.act(decisions, np.random.default_rng(1)))
        probabilities = opponent.probabilities(decisions)
        assert probabilities.shape == decisions.mask.shape and probabilities.dtype == np.float32
        assert not probabilities[decisions.mask == 0].any() and np.allclose(probabilities.sum(axis=1), 1, atol=1e-5)
        assert (probabilities[rows, actions] > 0).all()
    assert card_envs.load_opponent is load_opponent


@pytest.mark.mechanics
def test_near_names_are_suggested(game: Game) -> None:
    for name, given in ((f"{game.name}/gredy", None), ("gredy", game), ("Greedy", game)):
        with pytest.raises(ValueError, match=f"unknown opponent.*did you mean.*{game.name}/greedy"):
            load_opponent(name, given)
    with pytest.raises(ValueError, match=f"there are: .*{game.name}/random"):
        load_opponent("xyzzy", game)
    with pytest.raises(ValueError, match="unknown opponent"):
        load_opponent("no_such_game/greedy", game)
    for name in ("greedy", "search:64", "random"):  # of which game?
        with pytest.raises(ValueError, match="unknown opponent") as error:
            load_opponent(name)
        assert all(f"{one}/{name}" in str(error.value) for one in GAMES)
    with pytest.raises(ValueError, match=f"did you mean {game.name}"):
        load_opponent("greedy", game.name + "x")
    other = next(name for name in GAMES if name != game.name)
    with pytest.raises(ValueError, match=f"plays {other}, not {game.name}"):
        load_opponent(f"{other}/greedy", game)


PARSED = {
    "back_alley": [
        "random", "greedy", "trivial", "small", "ppo", "search:8", "search:9999999", "search:20ms,rollout=greedy",
        "search:64,prior=bidding=small+greedy", "search:3,prior=search:8", "bidding=search:8+greedy",
        "bidding=greedy+search:8,prior=greedy", "bidding=greedy+play=trivial+small", "strong",
        f"{__name__}:Legal", f"play={__name__}:Legal+ppo",
    ],
    "big_ben": [
        "search:100ms", "search:64,moves=turn", "ntuple", "champion", "small",
        "search:8,moves=turn,prior=greedy,rollout=ntuple,leaf=ntuple,leaf_after=8,leaf_playout=0.25,arms=16",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("game", "text"), [(get_game(game), text) for game in PARSED for text in PARSED[game]])
def test_a_name_stands_for_a_policy_that_names_its_equal(game: Game, text: str) -> None:
    policy = parse(text, game)
    assert content(parse(policy.name, game)) == content(policy)
    assert policy.name == game.presets.get(text, text) or text in ("small", "champion", "strong")
    assert content(parse(f"{game.name}/{text}", game)) == content(policy)
    assert load_opponent(f"{game.name}/{text}").name == text == load_opponent(text, game).policy.name


FOLDERS = {
    "./ppo": Path("ppo"),
    ".": Path(),
    "../a=b+c": Path("../a=b+c"),
    "/search:3,prior=x": Path("/search:3,prior=x"),
    "~/mine": Path.home() / "mine",
    "~nobody-at-all/mine": Path("~nobody-at-all/mine"),
    "runs/quickstart/opponent": Path("runs/quickstart/opponent"),
    "runs/my.module:Mine": Path("runs/my.module:Mine"),
    "whist/greedy": Path("whist/greedy"),
}
OTHERS = [
    "random", "big_ben/trivial", "search:8,prior=runs/mine", "bidding=./ppo+~/mine", "my.module:Mine", "ppo", "big_ben",
    "big_ben/my.module:Mine", "big_ben/runs/mine", "bidding=greedy+", "=greedy+trivial",
]  # fmt: skip


def test_a_path_is_a_folder_whether_there_is_one_or_not() -> None:
    assert {text: folder_of(text) for text in [*FOLDERS, *OTHERS]} == FOLDERS | dict.fromkeys(OTHERS)


class Legal(RandomPolicy):
    """A user's own."""

    def __init__(self, game: Game) -> None:
        self.game = game


class Speechless:
    """No policy: it has no methods."""

    def __init__(self, game: Game) -> None:
        self.game = game


class Bomb:
    def __init__(self, game: Game) -> None:
        raise ZeroDivisionError("boom")


class Leaves:
    def __init__(self, game: Game) -> None:
        raise SystemExit(0)


BUDGETS = "expected search:N with 1 to 9999999 worlds, or search:100ms"
WRONG: dict[str, list[tuple[Any, str]]] = {  # names by the game that is given: "" for none
    "back_alley": [
        *((f"search:{wrong}", BUDGETS) for wrong in ("0", "00", "12345678", "1e3", "0ms", "1s", "1.5ms", "8-4", "x")),
        ("search:8,", "'': expected KEY=VALUE with a key of moves, prior, rollout, leaf, leaf_after, leaf_playout"),
        *((f"search:8,{wrong}", f"'{wrong}': expected KEY=VALUE") for wrong in ("turn", "worlds=9")),
        ("search:8,prior=greedy,prior=trivial", "prior is given twice"),
        ("search:8,arms=many", "arms: expected a number, got 'many'"), ("bidding=search:0+greedy", BUDGETS),
        *((name, "plays big_ben, not") for name in ("big_ben/greedy", "bidding=big_ben/greedy+ppo")),
        ("bluffing=greedy+trivial", "no phase 'bluffing': its phases are"),
        ("bidding=gredy+trivial", "did you mean back_alley/greedy"), ("bidding=greedy", "unknown opponent"),
    ],
    "big_ben": [
        ("big_ben/search:8x,moves=turn", BUDGETS), ("search-64", "big_ben/search:64"),
        ("search:3,prior=nobody", "unknown opponent 'nobody', and no folder of that name; there are: big_ben/"),
        ("no.module:Mine", "opponent 'no.module:Mine': ModuleNotFoundError: No module named 'no'"),
        ("bidding=greedy+trivial", "it has none"),
        (f"{__name__}:Missing", "Missing"), (f"{__name__}:Speechless", "act"),
    ],
    "high_card": [
        ("os:getcwd", "TypeError"), (":", "Empty module"), (".x:Y", "no folder of that name"), ("a\0:x", "opponent"),
        ("x" * 5000, "at most 4096"), ("a=b+" * 1000 + "b", "no phase 'a'"), ("\ud800", "unknown opponent"),
        ("search:8," + "x" * 3000, "expected KEY=VALUE"), ("search:8,arms=" + "9" * 4000, "arms: expected"),
        (f"{__name__}:Bomb", "ZeroDivisionError"), (f"{__name__}:Leaves", "SystemExit"),
        *((name, "opponent: expected a name") for name in (None, 5, ["greedy"])),
    ],
    "": [
        ("search:3,prior=greedy", "unknown opponent 'search:3,prior=greedy', and no folder of that"),
        ("bidding=greedy+trivial", "'bidding=greedy+trivial': the game is missing: load_opponent"),
        ("big_ben/json:Mine", "opponent 'big_ben/json:Mine': AttributeError: module 'json' has"),
        ("tests.conftest:FirstLegal", "the game is missing"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("game", WRONG)
def test_wrong_names(game: str) -> None:
    with pytest.raises(ValueError, match="game: expected a name"):
        load_opponent("greedy", 7)  # type: ignore[arg-type]
    for name, said in WRONG[game]:
        with pytest.raises(ValueError, match=re.escape(said)) as caught:
            load_opponent(name, game or None)
        assert len(str(caught.value)) < 1000


def test_opponents_are_kept_until_their_files_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those with a class of the user's, which may keep state."""
    names = {"./mine": str(tmp_path / "mine")}
    names |= {"part": f"search:2,prior={names['./mine']}", "own": f"{__name__}:Legal"}
    saved(HIGH_CARD, tmp_path / "mine")
    one, same = ({key: load_cached(name, HIGH_CARD) for key, name in names.items()} for _ in range(2))
    assert {key for key in names if one[key] is same[key]} == {"./mine", "part"}
    monkeypatch.chdir(tmp_path)
    assert load_cached("./mine", HIGH_CARD) is one["./mine"]
    saved(HIGH_CARD, tmp_path / "mine", seed=1)
    assert not [key for key, name in names.items() if one[key] is load_cached(name, HIGH_CARD)]
    shutil.rmtree(tmp_path / "mine")
    with pytest.raises(ValueError, match="unknown opponent"):
        load_cached(names["part"], HIGH_CARD)


@pytest.mark.mechanics
def test_names_do_not_depend_on_the_working_directory(
    game: Game, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever folders are there, a registered name is the registered opponent, also as a part of others."""
    phased = [f"{phase}={name}+{name}" for phase in game.view.PHASES for name in opponent_names(game)]
    names = [*opponent_names(game), *phased, *(f"search:4,{part}=greedy" for part in ("prior", "rollout"))]
    names += [f"{game.name}/{name}" for name in names]
    before = {name: content(load_opponent(name, game)) for name in names}
    parts = {text for name in names for text in re.split(r"[=+:,]", name) if text}
    source = saved(game, tmp_path / "other" / "mine")
    for text in sorted({*names, *parts}):
        shutil.copytree(source, tmp_path / text, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for name in names:
        assert content(load_opponent(name, game)) == before[name], name


def content(value: Any) -> Any:
    """Return the parts of an object, to be compared with those of another."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Game):
        return value.name
    if isinstance(value, dict):
        return sorted((name, content(part)) for name, part in value.items())
    if isinstance(value, (tuple, list)):
        return [content(part) for part in value]
    return (type(value).__name__, content(vars(value))) if hasattr(value, "__dict__") else value


def test_a_folder_is_given_as_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    game = HIGH_CARD
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    weights = load_network(saved(game, tmp_path / "small", seed=7), game).weights
    saved(game, tmp_path / "high_card" / "small", seed=7)
    for path in (
        "./small", "~/small", str(tmp_path / "small"), "../" + tmp_path.name + "/small", "./high_card/small",
        Path("small"), Path("~/small"), Path("high_card/small"),
    ):  # fmt: skip
        policy = load_opponent(path, game).policy
        assert isinstance(policy, TrainedPolicy) and load_opponent(path, game).name == "small"
        assert np.array_equal(policy.weights["layer0.bias"], weights["layer0.bias"])
        text = path if isinstance(path, str) else name_of_folder(path)
        search = load_opponent(f"search:3,prior={text}", game).policy
        assert isinstance(search, SearchPolicy)
        assert content(search.prior) == content(parse(text, game, sampled=False))
        named = parse(f"search:3,prior={text}", game)
        with monkeypatch.context() as elsewhere:  # its name has the whole path
            elsewhere.chdir("/")
            assert content(parse(named.name, game)) == content(named)
    for text in ("mine", "high_card/mine", "runs"):
        saved(game, tmp_path / text)
        with pytest.raises(ValueError, match=f"unknown opponent '{text}'; for the folder of that name write ./{text}"):
            load_opponent(text, game)
    with pytest.raises(ValueError, match=r"unknown opponent '\./nowhere', and no folder of that name"):
        load_opponent("./nowhere", game)


WITH_PHASES = [(game, phase) for game in GAMES.values() for phase in game.view.PHASES]


@pytest.mark.parametrize(("game", "phase"), WITH_PHASES, ids=lambda value: getattr(value, "name", value))
def test_a_player_made_of_two(game: Game, phase: str) -> None:
    states = some(positions(game), 200)
    decisions = decisions_at(game, states.copy())
    greedy, trivial = load_opponent("greedy", game), load_opponent("trivial", game)
    both = load_opponent(f"{game.name}/{phase}=greedy+trivial")
    assert both.game is game
    rng = np.random.default_rng(0)
    inside = (decisions.mask[:, game.view.PHASES[phase]] != 0).any(axis=1)
    assert 0 < inside.sum() < len(states)
    expected = np.where(inside, greedy.act(decisions, rng), trivial.act(decisions, rng))
    assert not np.array_equal(expected, greedy.act(decisions, rng))
    assert np.array_equal(both.act(decisions, rng), expected)
    assert np.array_equal(both.probabilities(decisions).argmax(axis=1), expected)
    search = load_opponent(f"{phase}=search:4+tests.conftest:FirstLegal", game)
    chosen = search.act(decisions, rng)
    assert (decisions.mask[np.arange(len(states)), chosen] == 1).all()
    assert np.array_equal(chosen[~inside], (decisions.mask != 0).argmax(axis=1)[~inside])
    one = decisions.at(np.flatnonzero(inside)[:1])
    assert len(one) == 1 and np.array_equal(one.worlds(rng, 2)["seat"], [[one.seat[0]] * 2])


@pytest.mark.mechanics
def test_advice(game: Game, tmp_path: Path) -> None:
    """The legal moves with their probabilities, best first, from what one seat sees."""
    opponents = [load_opponent(name, game) for name in quick_opponents(game)]
    opponents.append(load_opponent(saved(game, tmp_path / "mine")))
    for state in some(positions(game), 60, seed=2):
        seen = json.loads(json.dumps(game.view.view(state, int(state.seat))))
        for opponent in opponents:
            advice = opponent.advise(seen)
            texts, values = zip(*advice)
            assert sorted(texts) == sorted(seen["legal"])
            assert list(values) == sorted(values, reverse=True)
            assert sum(values) == pytest.approx(1, abs=1e-4)
            if opponent.name in ("trivial", "greedy"):
                decisions = decisions_at(game, np.array([state], game.rules.STATE))
                move = int(opponent.act(decisions, np.random.default_rng(0))[0])
                assert advice[0] == (game.view.move_text(state, move), 1.0)


def test_presets_are_what_they_stand_for(game: Game) -> None:
    for preset, name in game.presets.items():
        assert preset in opponent_names(game)
        assert load_opponent(f"{game.name}/{preset}").name == preset
        assert content(parse(preset, game)) == content(parse(name, game))


@pytest.mark.slow
@pytest.mark.parametrize("game", [get_game("big_ben"), get_game("russian_bank")], ids=lambda game: game.name)
def test_shipped_players_do_not_take_back_their_moves(game: Game) -> None:
    """Not the mover's own move before: `H5-H1` after `H1-H5`, in ten games against themselves."""
    for name in {*quick_opponents(game), *game.presets} - {"random", "trivial"}:
        env, rng, opponent = BatchEnv(game, 10, seed=1), np.random.default_rng(0), load_opponent(name, game)
        last: list[Any] = [None] * 10
        under_way, moves, undone = np.ones(10, bool), 0, 0
        while under_way.any():
            actions = opponent.actions(env, rng)
            for i in np.flatnonzero(under_way):
                ends = game.view.move_text(env.states[i], int(actions[i])).split("-")
                undone += len(ends) == 2 and last[i] == (int(env.seat[i]), ends[::-1])
                last[i] = int(env.seat[i]), ends
            moves += under_way.sum()
            env.step(actions)
            under_way &= env.done == 0
        assert undone / moves < 1 / 200, name


def test_only_one_player_is_split_by_phase() -> None:
    assert phase_templates("bidding", "greedy", ["ppo"]) == (("bidding=", "+greedy"), ("bidding=greedy+", ""))
    with pytest.raises(ValueError, match=r"bidding=ppo\+greedy: a player that combines two can't be split by phase"):
        phase_templates("bidding", "greedy", ["ppo", "bidding=ppo+greedy"])


def test_lists_of_names_are_split_between_them() -> None:
    search = "search:8,moves=turn,prior=bidding=ppo+greedy,leaf_playout=0.5"
    assert split_names(f"greedy,{search},./mine") == ["greedy", search, "./mine"]
    assert split_names("greedy") == ["greedy"]
    assert split_names("greedy,") == ["greedy", ""]
