"""Searching opponents: the same worlds for all moves, nothing but what the seat knows, and stronger than `greedy`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from card_envs import load_opponent
from card_envs.__main__ import app
from card_envs.compare.pairs import play_pairs
from card_envs.engine import kernels
from card_envs.engine.compile import specialize
from card_envs.engine.rng import GOLDEN_RATIO, hash_each
from card_envs.engine.table import Table
from card_envs.envs.aec import CardEnv
from card_envs.game import Game
from card_envs.opponents import search, searching
from card_envs.opponents.networks.policies import weight_shapes
from card_envs.opponents.policy import Decisions, decisions_at
from card_envs.opponents.rollouts import played_out
from card_envs.opponents.scripted import ScriptedPolicy
from card_envs.opponents.search import Guide, SearchPolicy
from card_envs.opponents.value import ValueNetwork
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import games_under_test, observed_in_full, positions, redealt, some


def guide(game: Game) -> Guide:
    """`greedy`, and a value network of no sense that is asked after two moves."""
    rng = np.random.default_rng(4)
    shapes = weight_shapes([game.rules.FULL_SIZE, 12, 5, 1])
    weights = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    return Guide(ScriptedPolicy("greedy"), ValueNetwork(game, weights), horizon=2)


def test_moves_are_legal_and_the_same_for_any_number_of_threads(game: Game) -> None:
    decisions = decisions_at(game, some(positions(game), 12))
    one, three = (SearchPolicy(game, 4, threads).act(decisions, np.random.default_rng(5)) for threads in (1, 3))
    assert np.array_equal(one, three)
    assert decisions.mask[np.arange(len(decisions)), one].all()


@pytest.mark.parametrize("guided", [False, True])
def test_threads_that_share_the_worlds_of_a_decision_change_no_bit(
    game: Game, guided: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "WORTH_SHARING", 0.0)
    states = positions(game)
    several = np.flatnonzero(decisions_at(game, states).mask.sum(axis=1, dtype=int) > 2)[[0, -1]]
    decisions = decisions_at(game, states[several])
    found = [
        SearchPolicy(game, 50, threads, guide(game) if guided else None).search(decisions, np.random.default_rng(5))
        for threads in (1, 2, 5)
    ]
    for other in found[1:]:
        assert other.moves == found[0].moves and np.array_equal(other.chosen, found[0].chosen)
        for one, same in zip(found[0].trials, other.trials):
            np.testing.assert_array_equal(one, same)


def test_dropped_moves_are_compared_in_the_worlds_in_which_they_were_tried(game: Game) -> None:
    """A lead is the same whether the own move went on to more worlds or not."""
    decisions = decisions_at(game, some(positions(game), 40, seed=2))
    policies = [SearchPolicy(game, worlds, 1) for worlds in (8, 64)]
    policies[1].steps = policies[0].steps  # the longer one would draw better worlds
    few, many = (policy.evaluate(decisions, np.random.default_rng(9)) for policy in policies)
    same = (few.worlds == many.worlds) & (few.worlds > 0)
    np.testing.assert_array_equal(few.leads[same], many.leads[same])
    own = np.eye(decisions.mask.shape[1], dtype=bool)[decisions.bot_moves("greedy")]
    assert (many.leads[own & (many.worlds > 0)] == 0).all()
    tried = many.worlds > 0
    expected = np.repeat(many.means[own][:, None], own.shape[1], axis=1) + many.leads
    np.testing.assert_allclose(many.means[tried], expected[tried])


def test_a_search_within_a_time(game: Game) -> None:
    """With time enough it is the search in all worlds; with next to none, one in the worlds of the first look."""
    decisions = decisions_at(game, some(positions(game), 6, seed=4))
    whole = SearchPolicy(game, 32, 1).search(decisions, np.random.default_rng(1))
    patient = SearchPolicy(game, 32, 1, seconds=1e6).search(decisions, np.random.default_rng(1))
    assert patient.moves == whole.moves and np.array_equal(patient.chosen, whole.chosen)
    hasty = SearchPolicy(game, seconds=1e-9).search(decisions, np.random.default_rng(1))
    assert hasty.trials.worlds.max() <= searching.FIRST_LOOK
    assert decisions.mask[np.arange(len(decisions)), hasty.chosen].all()
    longer = load_opponent("search:5ms", game).policy
    assert isinstance(longer, SearchPolicy) and longer.seconds == 0.005
    assert decisions.mask[np.arange(len(decisions)), longer.act(decisions, np.random.default_rng(1))].all()


@pytest.mark.parametrize("guided", [False, True])
def test_search_knows_no_more_than_its_seat(game: Game, guided: bool) -> None:
    states = some(positions(game), 12, seed=1)
    turns = [decisions_at(game, worlds) for worlds in (states, redealt(game, states, states["seat"], 3))]
    policy = SearchPolicy(game, 4, guide=guide(game) if guided else None)
    answers = [policy.evaluate(decisions, np.random.default_rng(6)) for decisions in turns]
    np.testing.assert_array_equal(answers[0].means, answers[1].means)
    np.testing.assert_array_equal(answers[0].worlds, answers[1].worlds)


@pytest.mark.parametrize("guided", [False, True])
def test_means_are_those_of_playouts_in_the_worlds_drawn(game: Game, guided: bool) -> None:
    """With two legal moves both see all worlds before the first look: redone here, move by move, on single tables."""
    states = positions(game)
    decisions = decisions_at(game, states)
    state = states[int(np.flatnonzero(decisions.mask.sum(axis=1, dtype=int) == 2)[0]) :][:1]
    num_worlds, rng = search.LONGER, np.random.default_rng(7)
    decisions = decisions_at(game, state)
    adviser = guide(game) if guided else None
    found = SearchPolicy(game, 1, guide=adviser).evaluate(decisions, np.random.default_rng(7))
    base = decisions.worlds(rng, 1)[0, 0]
    key = rng.integers(0, 1 << 64, 1, np.uint64)
    results: dict[int, list[float]] = {int(action): [] for action in np.flatnonzero(decisions.mask[0])}
    for number in range(num_worlds):
        world = Table(game, base)
        stream = hash_each(key + np.full(1, number + 1, np.uint64) * GOLDEN_RATIO)
        specialize(kernels.determinize_tables, game)(0, 1, world.states, decisions.seat, stream)
        for action, gained in results.items():
            table = world.copy()
            table.play(action)
            left = adviser.horizon if adviser else 100_000
            while not table.needs_deal and left:
                table.play(table.bot_move("greedy"))
                left -= 1
            score_margin = getattr(game.rules.score_margin, "py_func", game.rules.score_margin)
            value = 0.0
            if adviser and adviser.value and not table.needs_deal:
                value = float(adviser.value.values(observed_in_full(game, table.states, decisions.seat))[0])
            gained.append(score_margin(table.state, int(decisions.seat[0])) + value)
    own = int(decisions.bot_moves("greedy")[0])
    for action, gained in results.items():
        leads = np.subtract(gained, results[own])
        assert found.worlds[0, action] == num_worlds
        for found_means, found_errors, values in (
            (found.means, found.errors, gained),
            (found.leads, found.lead_errors, leads),
        ):
            assert found_means[0, action] == pytest.approx(np.mean(values), rel=1e-4, abs=0.02)
            error = np.std(values, ddof=1) / np.sqrt(num_worlds)
            assert found_errors[0, action] == pytest.approx(error, rel=1e-3, abs=0.02)


def test_moves_that_fall_behind_get_fewer_worlds(game: Game) -> None:
    decisions = decisions_at(game, positions(game))
    widest = decisions_at(game, positions(game)[[int(decisions.mask.sum(axis=1, dtype=int).argmax())]])
    num_legal = int(widest.mask.sum(dtype=int))
    policy = SearchPolicy(game, 32)
    worlds = policy.evaluate(widest, np.random.default_rng(8)).worlds[0]
    assert (worlds > 0).sum() == num_legal
    if num_legal > 3:
        assert worlds.max() > worlds[worlds > 0].min()
    assert worlds[policy.act(widest, np.random.default_rng(8))[0]] == worlds.max() <= 32 * search.LONGER


@pytest.mark.parametrize("game", [game for game in games_under_test() if game.is_solitaire], ids=lambda game: game.name)
def test_search_wins_more_than_the_player_that_it_asks(game: Game) -> None:
    result = play_pairs(game, load_opponent("search-16", game), load_opponent("greedy", game), 100, 3)
    assert result.margin_per_episode.low > 0


@pytest.mark.parametrize("name", ["search-0", "search-", "search-1e3", "search--4", "search:0ms", "search:1s"])
def test_what_is_no_number_of_worlds(name: str) -> None:
    with pytest.raises(ValueError, match=r"did you mean .*search[-:]"):
        load_opponent(f"{HIGH_CARD.name}/{name}")


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf"), "1", None])
def test_what_is_no_time(seconds: Any) -> None:
    with pytest.raises(ValueError, match="seconds"):
        SearchPolicy(HIGH_CARD, seconds=seconds)


def test_advice_from_a_view(game: Game, tmp_path: Path) -> None:
    env = CardEnv(game)
    env.reset(seed=11)
    while len(env.legal_moves()) < 2:
        env.step(env.parse_move(env.legal_moves()[0]))
    view = env.view(env.agent_selection)
    advices = load_opponent("search-8", game).evaluate(view)
    assert sorted(one.move for one in advices) == sorted(env.legal_moves())
    assert all(one.margin is not None and one.error is not None and one.error >= 0 for one in advices)
    assert all(one.lead is not None and one.lead_error is not None and one.lead_error >= 0 for one in advices)
    assert [one.probability for one in advices] == [1.0] + [0.0] * (len(advices) - 1)
    position = tmp_path / "position.json"
    position.write_text(json.dumps(view))
    out = tmp_path / "advice.json"
    command = ["advise", game.name, str(position), "--opponent", "search-8", "--json", str(out)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert json.loads(out.read_text())["moves"] == [one._asdict() for one in advices]
    greedy = CliRunner().invoke(app, [*command[:3], "--opponent", "greedy"])
    assert greedy.exit_code == 0 and "probability" in greedy.output


def test_rollouts_of_the_scripted_player_are_its_search(game: Game) -> None:
    decisions = decisions_at(game, some(positions(game), 20, seed=3))
    search = SearchPolicy(game, 10)
    own = search.search(decisions, np.random.default_rng(1))
    played = SearchPolicy(game, 10, guide=Guide(ScriptedPolicy("greedy"), plays_on=True))
    played.steps = search.steps  # it would draw better worlds
    found = played.search(decisions, np.random.default_rng(1))
    assert found.moves == own.moves and np.array_equal(found.chosen, own.chosen)
    for one, same in zip(own.trials, found.trials):
        np.testing.assert_array_equal(one, same)


def test_who_plays_on_is_asked_about_choices_of_its_own_side(game: Game) -> None:
    asked: list[tuple[int, int]] = []  # seats, and how many moves they had

    class Noting(ScriptedPolicy):
        def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
            asked.extend(zip(decisions.seat.tolist(), decisions.mask.sum(axis=1, dtype=int).tolist()))
            return super().act(decisions, rng)

    states = some(positions(game), 20, seed=3)
    for i, side in enumerate(game.sides[seat] for seat in states["seat"]):
        decisions = decisions_at(game, states[i : i + 1])
        played_out(game, states[i : i + 1], decisions.mask, Noting("greedy"), np.random.default_rng(0))
        assert all(game.sides[seat] == side and moves > 1 for seat, moves in asked)
        asked.clear()


def test_rollouts_of_who_plays_by_chance_repeat(game: Game) -> None:
    decisions = decisions_at(game, some(positions(game), 6, seed=4))
    policy = load_opponent("rollout:random-3", game).policy
    one, same = (policy.act(decisions, np.random.default_rng(2)) for _ in range(2))
    assert np.array_equal(one, same)
    assert decisions.mask[np.arange(len(decisions)), one].all()


def test_who_plays_on_asks_no_value_network(game: Game) -> None:
    with pytest.raises(ValueError, match="no value network"):
        Guide(ScriptedPolicy("greedy"), guide(game).value, plays_on=True)


def test_search_plays_where_every_move_is_forced(game: Game) -> None:
    decisions = decisions_at(game, positions(game))
    decisions = decisions.at(np.flatnonzero(decisions.mask.sum(axis=1, dtype=int) == 1)[:50])
    if not len(decisions):
        pytest.skip("no move is ever forced")
    assert np.array_equal(SearchPolicy(game, 2).act(decisions, np.random.default_rng(0)), decisions.mask.argmax(axis=1))
