"""Opponents: by name, from folders, of the user's own; what they may see, and what is refused before it is used."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load, save

import card_envs
from card_envs.engine.batch import BatchEnv
from card_envs.envs.aec import env_with
from card_envs.game import Game, layout_digest
from card_envs.games import GAMES, get_game
from card_envs.opponents import load_opponent, opponent_names
from card_envs.opponents._levels import levels
from card_envs.opponents.about import about, comparisons, figures_of
from card_envs.opponents.names import folder_of, load_cached, name_of_folder, parse, split_names
from card_envs.opponents.networks.folder import (
    CARD_FILE,
    WEIGHTS_FILE,
    load_card,
    load_network,
    save_network,
)
from card_envs.opponents.networks.policies import (
    ARCHITECTURES,
    NetworkPolicy,
    TrainedPolicy,
    input_scale,
)
from card_envs.opponents.policy import (
    ActionValues,
    Decisions,
    Opponent,
    Policy,
    decisions_at,
    sample,
)
from card_envs.opponents.scripted import RandomPolicy
from card_envs.opponents.search import SearchPolicy
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from card_envs.system.files import write_json
from tests.conftest import observed_in_full, play_randomly, positions, quick_opponents, short_options, some

Weights = dict[str, NDArray[np.float32]]
HIDDEN = [24, 16]


KINDS = tuple(ARCHITECTURES.values())


def random_weights(game: Game, seed: int = 0, kind: type[TrainedPolicy] = NetworkPolicy) -> Weights:
    rng = np.random.default_rng(seed)
    shapes = kind.shapes(game, HIDDEN)
    return {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}


def store(folder: Path, policy: TrainedPolicy) -> None:
    golden = decisions_at(policy.game, some(positions(policy.game), 32))
    save_network(folder, policy, golden, training={"steps": 1}, strength=[])


def saved(game: Game, folder: Path, seed: int = 0, kind: type[TrainedPolicy] = NetworkPolicy) -> Path:
    store(folder, kind(game, random_weights(game, seed, kind)))
    return folder


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
MISSING = "the game is missing: load_opponent"
WRONG: dict[str, list[tuple[Any, str]]] = {  # names by the game that is given: "" for none
    "back_alley": [
        *((f"search:{wrong}", BUDGETS) for wrong in ("0", "00", "12345678", "1e3", "0ms", "1s", "1.5ms", "8-4", "x")),
        ("search:8,", "'': expected KEY=VALUE with a key of moves, prior, rollout, leaf, leaf_after, leaf_playout"),
        ("search:8,turn", "'turn': expected KEY=VALUE"),
        ("search:8,worlds=9", "'worlds=9': expected KEY=VALUE"),
        ("search:8,prior=greedy,prior=trivial", "prior is given twice"),
        ("search:8,arms=many", "arms: expected a number, got 'many'"),
        ("search:8,leaf_after=1.5", "leaf_after: expected a number, got '1.5'"),
        ("search:8,leaf_playout=", "leaf_playout: expected a number, got ''"),
        ("bidding=search:0+greedy", BUDGETS),
        ("big_ben/greedy", "opponent 'big_ben/greedy' plays big_ben, not back_alley"),
        ("bidding=big_ben/greedy+greedy", "opponent 'big_ben/greedy' plays big_ben, not back_alley"),
        ("bluffing=greedy+trivial", "no phase 'bluffing': its phases are"),
        ("bidding=gredy+trivial", "did you mean back_alley/greedy"),
        ("bidding=greedy+", "unknown opponent"),
        ("bidding=greedy", "unknown opponent"),
    ],
    "big_ben": [
        ("big_ben/search:8x,moves=turn", BUDGETS),
        ("search-64", "big_ben/search:64"),
        ("search:3,prior=nobody", "unknown opponent 'nobody', and no folder of that name; there are: big_ben/"),
        ("no.module:Mine", "opponent 'no.module:Mine': ModuleNotFoundError: No module named 'no'"),
        ("bidding=greedy+trivial", "it has none"),
        (f"{__name__}:Missing", "Missing"),
        (f"{__name__}:Speechless", "act"),
    ],
    "high_card": [
        ("os:getcwd", "TypeError"), (":", "Empty module"), (".x:Y", "no folder of that name"),
        ("antigravity\0:x", "opponent"),
        ("x" * 5000, "at most 4096"), ("a=b+" * 1000 + "b", "no phase 'a'"), ("\ud800", "unknown opponent"),
        ("search:8," + "x" * 3000, "expected KEY=VALUE"), ("search:8,arms=" + "9" * 4000, "arms: expected"),
        (f"{__name__}:Bomb", "ZeroDivisionError"), (f"{__name__}:Leaves", "SystemExit"),
        *((name, "opponent: expected a name") for name in (None, 5, ["greedy"])),
    ],
    "": [
        ("search:3,prior=greedy", "unknown opponent 'search:3,prior=greedy', and no folder of that"),
        ("bidding=greedy+trivial", f"'bidding=greedy+trivial': {MISSING}"),
        ("big_ben/value", "unknown opponent 'big_ben/value'"),
        ("big_ben/json:Mine", "opponent 'big_ben/json:Mine': AttributeError: module 'json' has"),
        ("tests.conftest:FirstLegal", "the game is missing"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("game", WRONG)
def test_wrong_names(game: str) -> None:
    for name, said in WRONG[game]:
        with pytest.raises(ValueError, match=re.escape(said)) as caught:
            load_opponent(name, game or None)
        assert len(str(caught.value)) < 1000


def test_wrong_games() -> None:
    with pytest.raises(ValueError, match="game: expected a name"):
        load_opponent("greedy", 7)  # type: ignore[arg-type]


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


# What a policy sees


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


def test_policies_are_never_handed_the_true_state(game: Game) -> None:
    """Whatever a Turn shows in public is known to the seat: hidden cards lie otherwise in its worlds."""
    states = positions(game)[:256]
    decisions = decisions_at(game, states)
    public = {name for name in dir(decisions) if not name.startswith("_")}
    assert public == {"game", "obs", "mask", "seat", "at", "copy", "check", "failure", "worlds", "bot_moves"}
    assert len(decisions) == 256
    worlds = decisions.worlds(np.random.default_rng(0), 3)
    assert worlds.shape == (256, 3) and worlds.dtype == game.rules.STATE
    seats = decisions.seat
    truth = observed_in_full(game, states, seats)
    for k in range(3):
        column = worlds[:, k].copy()
        seen = decisions_at(game, column)
        assert np.array_equal(seen.obs, decisions.obs) and np.array_equal(seen.mask, decisions.mask)
        assert (observed_in_full(game, column, seats) != truth).any(axis=1).mean() > 0.5
    again = decisions.worlds(np.random.default_rng(0), 3)
    assert np.array_equal(again["rng"], worlds["rng"])
    worlds["seat"] = 77  # a policy may do with its worlds what it likes
    assert np.array_equal(states["seat"], seats)


@pytest.mark.parametrize("shift", [-1e3, -1e30, 1e30])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_only_legal_moves_count_however_low_their_scores(architecture: str, shift: float) -> None:
    kind = ARCHITECTURES[architecture]  # type: ignore[index]
    weights = random_weights(HIGH_CARD, kind=kind)
    last = f"layer{len(HIDDEN)}.bias"
    weights[last] = np.full_like(weights[last], shift)
    decisions = decisions_at(HIGH_CARD, some(positions(HIGH_CARD), 50))
    policies: list[Policy] = [kind(HIGH_CARD, weights), kind(HIGH_CARD, weights, sampled=False)]
    with contextlib.suppress(ImportError):
        from card_envs.opponents.networks.onnx import OnnxPolicy, to_onnx

        policies += [OnnxPolicy(HIGH_CARD, to_onnx(kind(HIGH_CARD, weights)), sampled) for sampled in (False, True)]
    for policy in policies:
        shares = policy.probabilities(decisions)
        assert not shares[decisions.mask == 0].any() and np.allclose(shares.sum(axis=1), 1)
        decisions.check(policy.act(decisions, np.random.default_rng(0)), "it")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers_are_errors_that_name_the_opponent(value: float) -> None:
    weights = random_weights(HIGH_CARD)
    weights[f"layer{len(HIDDEN)}.bias"][:] = value
    decisions = decisions_at(HIGH_CARD, some(positions(HIGH_CARD), 5))
    for sampled in (False, True):
        opponent = Opponent("broken", HIGH_CARD, NetworkPolicy(HIGH_CARD, weights, sampled))
        with pytest.raises(ValueError, match="policy broken: ValueError: NetworkPolicy: expected finite scores"):
            opponent.policy.act(decisions, np.random.default_rng(0))
        with pytest.raises(ValueError, match="policy broken: ValueError: NetworkPolicy: expected finite scores"):
            opponent.policy.probabilities(decisions)


def test_samples_are_drawn_with_their_probabilities() -> None:
    rng = np.random.default_rng(3)
    probabilities = np.tile(np.array([0, 0.5, 0, 0.2, 0.3, 0], np.float32), (50_000, 1))
    counts = np.bincount(sample(probabilities, rng), minlength=6) / 50_000
    assert counts[[0, 2, 5]].tolist() == [0, 0, 0]
    assert np.abs(counts - probabilities[0]).max() < 0.012  # five standard deviations
    tiny = np.zeros((4, 3), np.float32)
    tiny[:, 1] = 1e-30
    assert sample(tiny, rng).tolist() == [1, 1, 1, 1]


# Networks


def test_a_network_is_the_formula(game: Game) -> None:
    weights = random_weights(game)
    decisions = decisions_at(game, some(positions(game), 20))
    policy = NetworkPolicy(game, weights, sampled=False)
    scale = input_scale(game.input_fields)
    x = np.hstack([decisions.obs, decisions.mask]).astype(np.float64) * scale
    assert np.abs(x).max() <= 1 + 1e-6  # float32
    for i in range(3):
        x = x @ weights[f"layer{i}.weight"].T + weights[f"layer{i}.bias"]
        x = np.maximum(x, 0) if i < 2 else x
    legal = decisions.mask != 0
    logits = policy.logits_at(decisions)
    assert np.allclose(logits[legal], x[legal], rtol=1e-4, atol=1e-4)
    exponentials = np.exp(x - x.max(axis=1, keepdims=True)) * legal
    assert np.allclose(
        policy.probabilities(decisions), exponentials / exponentials.sum(axis=1, keepdims=True), atol=1e-4
    )
    assert np.array_equal(policy.act(decisions, np.random.default_rng(0)), np.where(legal, x, -np.inf).argmax(axis=1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.mechanics
def test_networks_survive_the_disk(game: Game, kind: type[TrainedPolicy], tmp_path: Path) -> None:
    folder = saved(game, tmp_path / "mine", kind=kind)
    decisions = decisions_at(game, some(positions(game), 50, seed=1))
    opponent = load_opponent(folder)
    assert (opponent.name, opponent.game) == ("mine", game)
    half = {name: weight.astype(np.float16) for name, weight in random_weights(game, kind=kind).items()}
    assert np.allclose(opponent.probabilities(decisions), kind(game, half).probabilities(decisions), atol=1e-5)
    rng = [np.random.default_rng(2) for _ in range(2)]
    assert np.array_equal(opponent.act(decisions, rng[0]), load_opponent(str(folder), game.name).act(decisions, rng[1]))
    best = load_opponent(folder, game, sampled=False)
    assert np.array_equal(best.act(decisions, rng[0]), best.probabilities(decisions).argmax(axis=1))
    likeliest = kind(game, random_weights(game, kind=kind), sampled=False)
    store(tmp_path / "other" / "likeliest", likeliest)
    fixed = load_opponent(tmp_path / "other" / "likeliest")
    assert np.array_equal(fixed.act(decisions, rng[0]), fixed.probabilities(decisions).argmax(axis=1))
    card = load_card(folder)
    assert (card.game, card.version, card.hidden, card.training) == (game.name, game.version, HIDDEN, {"steps": 1})
    saved(game, folder, 1, kind)  # replaced in one step
    assert not np.allclose(load_opponent(folder).probabilities(decisions), opponent.probabilities(decisions))
    assert [path.name for path in tmp_path.iterdir() if path.name != "other"] == ["mine"]


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


@pytest.mark.mechanics
def test_no_advice_out_of_turn(game: Game) -> None:
    env = env_with(game, short_options(game))
    env.reset(seed=1)
    opponent = load_opponent("greedy", game)
    for agent in env.possible_agents:
        if agent != env.agent_selection:
            with pytest.raises(ValueError, match="turn"):
                opponent.advise(env.view(agent))
    with pytest.raises(ValueError, match="view"):
        opponent.advise({})
    play_randomly(env, 1)
    for agent in env.possible_agents:
        with pytest.raises(ValueError, match="view"):
            opponent.advise(env.view(agent))


# What is refused


def edit_card(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        card = json.loads((folder / CARD_FILE).read_text())
        change(card)
        (folder / CARD_FILE).write_text(json.dumps(card))

    return edit


def edit_tensors(change: Callable[[dict[str, NDArray[Any]]], object]) -> Callable[[Path], None]:
    """Other tensors, with the card's hash set right: what only the checks behind it can find."""

    def edit(folder: Path) -> None:
        tensors = dict(load((folder / WEIGHTS_FILE).read_bytes()))
        change(tensors)
        write_weights(folder, save(tensors))

    return edit


def write_weights(folder: Path, data: bytes) -> None:
    (folder / WEIGHTS_FILE).write_bytes(data)
    edit_card(lambda card: card.update(weights_sha256=hashlib.sha256(data).hexdigest()))(folder)


def retype(folder: Path, dtype: str) -> None:
    """Declare the first golden logits' tensor as of another type of two bytes."""
    data = (folder / WEIGHTS_FILE).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    found = header["golden.logits"]
    found |= {"dtype": dtype, "shape": [(found["data_offsets"][1] - found["data_offsets"][0]) // 2]}
    text = json.dumps(header).encode()
    write_weights(folder, len(text).to_bytes(8, "little") + text + data[8 + size :])


def flip(folder: Path) -> None:
    data = bytearray((folder / WEIGHTS_FILE).read_bytes())
    data[-10] ^= 1
    (folder / WEIGHTS_FILE).write_bytes(bytes(data))


def spoil(name: str, value: float) -> Callable[[dict[str, NDArray[Any]]], object]:
    def change(tensors: dict[str, NDArray[Any]]) -> None:
        tensors[name] = tensors[name].copy()
        tensors[name].flat[0] = value

    return change


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no card": (lambda folder: (folder / CARD_FILE).unlink(), CARD_FILE),
    "half a card": (lambda folder: os.truncate(folder / CARD_FILE, 99), CARD_FILE),
    "unknown game": (edit_card(lambda card: card.update(game="no_such_game")), "no_such_game"),
    "other version": (edit_card(lambda card: card.update(version=99)), "99"),
    "not a number": (edit_tensors(spoil("layer0.weight", np.nan)), WEIGHTS_FILE),
    "unknown key": (edit_card(lambda card: card.update(surprise=1)), "surprise"),
    "unknown architecture": (edit_card(lambda card: card.update(architecture="lstm")), "architecture"),
    "other layers": (edit_card(lambda card: card.update(hidden=[24, 17])), WEIGHTS_FILE),
    "other layout": (edit_card(lambda card: card.update(layout="0" * 16)), "layout"),
    "tampered": (flip, WEIGHTS_FILE),
    "truncated with its hash": (
        lambda folder: write_weights(folder, (folder / WEIGHTS_FILE).read_bytes()[:-100]), WEIGHTS_FILE,
    ),
    "extra tensor": (edit_tensors(lambda tensors: tensors.update(extra=np.zeros(3, np.float16))), "extra"),
    "missing tensor": (edit_tensors(lambda tensors: tensors.pop("layer1.bias")), "layer1.bias"),
    "other shape": (
        edit_tensors(lambda tensors: tensors.update({"layer1.bias": np.zeros(17, np.float16)})), "layer1.bias",
    ),
    "no golden rows": (edit_tensors(lambda tensors: tensors.pop("golden.logits")), "golden"),
    "golden logits of no number": (edit_tensors(spoil("golden.logits", np.nan)), "golden"),
    "another network": (
        edit_tensors(lambda tensors: tensors.update({"layer2.bias": tensors["layer2.bias"] + np.float16(1)})), "golden",
    ),
    "bfloat16": (lambda folder: retype(folder, "BF16"), WEIGHTS_FILE),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_opponents_are_refused(fault: str, tmp_path: Path) -> None:
    game, folder = HIGH_CARD, saved(HIGH_CARD, tmp_path / "broken")
    load_network(folder, game)
    spoil_it, named = FAULTS[fault]
    spoil_it(folder)
    for load_it in (load_network, load_opponent):
        with pytest.raises(ValueError, match=named) as error:
            load_it(folder, game)
        assert str(folder) in str(error.value) or fault == "unknown game"


@pytest.mark.parametrize("name", [CARD_FILE, WEIGHTS_FILE])
def test_oversized_files_are_not_read(name: str, tmp_path: Path) -> None:
    game = HIGH_CARD
    folder = saved(game, tmp_path / "large")
    os.truncate(folder / name, 1 << 40)
    with pytest.raises(ValueError, match=rf"{folder / name}.*bytes"):
        load_network(folder, game)


def test_opponents_of_another_game_are_refused(tmp_path: Path) -> None:
    one, other = list(GAMES.values())[:2]
    folder = saved(one, tmp_path / "mine")
    with pytest.raises(ValueError, match=f"{folder}.*{one.name}, not {other.name}"):
        load_opponent(folder, other)
    assert layout_digest(one.rules) != layout_digest(other.rules)


def test_saving_refuses_what_loading_would(tmp_path: Path) -> None:
    """Weights beyond float16 or not finite: better found when they are written."""
    for value in (np.nan, 1e6):
        weights = random_weights(HIGH_CARD)
        weights["layer0.weight"][0, 0] = value
        with pytest.raises(ValueError, match="finite"), np.errstate(over="ignore", invalid="ignore"):
            store(tmp_path / "mine", NetworkPolicy(HIGH_CARD, weights))
    assert not (tmp_path / "mine").exists()


def test_presets_are_what_they_stand_for(game: Game) -> None:
    for preset, name in game.presets.items():
        assert preset in opponent_names(game)
        found, expected = load_opponent(f"{game.name}/{preset}"), load_opponent(name, game)
        assert (found.name, type(found.policy)) == (preset, type(expected.policy))
    decisions = decisions_at(game, some(positions(game), 6, seed=2))
    moves = [
        load_opponent(name, game).act(decisions, np.random.default_rng(3))
        for name in ("strong", game.presets["strong"])
    ]
    np.testing.assert_array_equal(moves[0], moves[1])


def taken_back(game: Game, name: str, games: int = 30) -> float:
    """The share of moves in games against itself that undo the mover's own move before: `H5-H1` after `H1-H5`."""
    env, rng, opponent = BatchEnv(game, games, seed=1), np.random.default_rng(0), load_opponent(name, game)
    last: list[Any] = [None] * games
    under_way = np.ones(games, bool)
    moves = undone = 0
    while under_way.any():
        actions = opponent.actions(env, rng)
        for i in np.flatnonzero(under_way):
            ends = game.view.move_text(env.states[i], int(actions[i])).split("-")
            undone += len(ends) == 2 and last[i] == (int(env.seat[i]), ends[::-1])
            last[i] = int(env.seat[i]), ends
        moves += under_way.sum()
        env.step(actions)
        under_way &= env.done == 0
    return undone / moves


def test_networks_do_not_take_back_their_moves(game: Game) -> None:
    for name in {*quick_opponents(game)} - {"random", "trivial"}:
        assert taken_back(game, name) < 1 / 200, name


def test_lists_of_names_are_split_between_them() -> None:
    search = "search:8,moves=turn,prior=bidding=ppo+greedy,leaf_playout=0.5"
    assert split_names(f"greedy,{search},./mine") == ["greedy", search, "./mine"]
    assert split_names("greedy") == ["greedy"]
    assert split_names("greedy,") == ["greedy", ""]


@pytest.mark.mechanics
def test_where_nothing_is_tried_nothing_is_estimated(game: Game, tmp_path: Path) -> None:
    """As where a search has one candidate; and JSON has no numbers that are none."""

    class Untried(Policy):
        def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
            return np.argmax(decisions.mask, axis=1)

        def evaluate(self, decisions: Decisions, rng: np.random.Generator) -> ActionValues:
            nothing = np.full(decisions.mask.shape, np.nan)
            worlds = np.zeros(nothing.shape, np.int64)
            return ActionValues(nothing, nothing, worlds, np.argmax(decisions.mask, axis=1))

    state = positions(game)[decisions_at(game, positions(game)).mask.sum(axis=1, dtype=int).argmax()]
    view = game.view.view(state, int(state["seat"]))
    found = Opponent("untried", game, Untried()).rank_moves(view)
    assert [one.probability for one in found] == [1.0] + [0.0] * (len(found) - 1)
    assert {one.move for one in found} == set(view["legal"]) and all(one.margin is None for one in found)
    assert Opponent("untried", game, Untried()).advise(view)[0] == (found[0].move, 1.0)
    write_json(tmp_path / "figures.json", {"a": [float("nan"), (float("inf"), 1.5)]})
    assert json.loads((tmp_path / "figures.json").read_text()) == {"a": [None, [None, 1.5]]}


def test_what_a_user_adds_to_an_opponent_stays(tmp_path: Path) -> None:
    """A note, a folder, and a model that was exported beside the weights; and the folder's access rights."""
    folder = saved(HIGH_CARD, tmp_path / "opponent")
    names = ("notes.txt", "model.onnx", "value/weights.safetensors")
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    folder.chmod(0o755)
    (folder / WEIGHTS_FILE).write_bytes(b"broken")  # ours, and replaced
    for _ in range(2):
        saved(HIGH_CARD, folder)
        assert all((folder / name).read_text() == name for name in names) and folder.stat().st_mode & 0o777 == 0o755
    assert load_opponent(folder).game == HIGH_CARD
    with pytest.raises(ValueError, match="contains other files"):
        saved(HIGH_CARD, tmp_path)
