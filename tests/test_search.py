"""Searching opponents: the same worlds for all moves, nothing but what the seat knows, and stronger than `greedy`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from card_envs import load_opponent
from card_envs.__main__ import app
from card_envs.compare.pairs import play_pairs
from card_envs.engine import kernels
from card_envs.engine.compile import bind
from card_envs.engine.table import Table
from card_envs.envs.aec import CardEnv
from card_envs.game import Game
from card_envs.opponents.network import weight_shapes
from card_envs.opponents.policy import turn_of_states
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
    turn = turn_of_states(game, some(positions(game), 12))
    one, three = (SearchPolicy(game, 4, threads).act(turn, np.random.default_rng(5)) for threads in (1, 3))
    assert np.array_equal(one, three)
    assert turn.mask[np.arange(len(turn)), one].all()


@pytest.mark.parametrize("guided", [False, True])
def test_search_knows_no_more_than_its_seat(game: Game, guided: bool) -> None:
    states = some(positions(game), 12, seed=1)
    turns = [turn_of_states(game, worlds) for worlds in (states, redealt(game, states, states["seat"], 3))]
    policy = SearchPolicy(game, 4, guide=guide(game) if guided else None)
    answers = [policy.evaluate(turn, np.random.default_rng(6)) for turn in turns]
    np.testing.assert_array_equal(answers[0].means, answers[1].means)
    np.testing.assert_array_equal(answers[0].worlds, answers[1].worlds)


@pytest.mark.parametrize("guided", [False, True])
def test_means_are_those_of_playouts_in_the_worlds_drawn(game: Game, guided: bool) -> None:
    """With two legal moves both see all worlds: redone here, move by move, on single tables."""
    states = positions(game)
    turn = turn_of_states(game, states)
    state = states[int(np.flatnonzero(turn.mask.sum(axis=1, dtype=int) == 2)[0]) :][:1]
    num_worlds, rng = 5, np.random.default_rng(7)
    turn = turn_of_states(game, state)
    adviser = guide(game) if guided else None
    found = SearchPolicy(game, num_worlds, guide=adviser).evaluate(turn, np.random.default_rng(7))
    base = turn.worlds(rng, 1)[0, 0]
    stream = rng.integers(0, 1 << 64, 1, np.uint64)
    results: dict[int, list[float]] = {int(action): [] for action in np.flatnonzero(turn.mask[0])}
    for _ in range(num_worlds):
        world = Table(game, base)
        bind(kernels.redeal_tables, game)(0, 1, world.states, turn.seat, stream)
        for action, gained in results.items():
            table = world.copy()
            table.play(action)
            left = adviser.horizon if adviser else 100_000
            while not table.needs_deal and left:
                table.play(table.bot_move("greedy"))
                left -= 1
            standing = getattr(game.rules.standing, "py_func", game.rules.standing)
            value = 0.0
            if adviser and not table.needs_deal:
                value = float(adviser.value.values(observed_in_full(game, table.states, turn.seat))[0])
            gained.append(standing(table.state, int(turn.seat[0])) + value)
    for action, gained in results.items():
        assert found.worlds[0, action] == num_worlds
        assert found.means[0, action] == pytest.approx(np.mean(gained), rel=1e-4, abs=1e-3)
        error = np.std(gained, ddof=1) / np.sqrt(num_worlds)
        assert found.errors[0, action] == pytest.approx(error, rel=1e-3, abs=1e-3)


def test_moves_that_fall_behind_get_fewer_worlds(game: Game) -> None:
    turn = turn_of_states(game, positions(game))
    widest = turn_of_states(game, positions(game)[[int(turn.mask.sum(axis=1, dtype=int).argmax())]])
    num_legal = int(widest.mask.sum(dtype=int))
    policy = SearchPolicy(game, 32)
    worlds = policy.evaluate(widest, np.random.default_rng(8)).worlds[0]
    assert (worlds > 0).sum() == num_legal
    if num_legal > 3:
        assert worlds.max() > worlds[worlds > 0].min()
    assert worlds[policy.act(widest, np.random.default_rng(8))[0]] == worlds.max() <= 32


@pytest.mark.parametrize("game", [game for game in games_under_test() if game.is_solitaire], ids=lambda game: game.name)
def test_search_wins_more_than_the_player_that_it_asks(game: Game) -> None:
    result = play_pairs(game, load_opponent("search-16", game), load_opponent("greedy", game), 100, 3)
    assert result.margin_per_episode.low > 0


@pytest.mark.parametrize("name", ["search-0", "search-", "search-1e3", "search--4"])
def test_what_is_no_number_of_worlds(name: str) -> None:
    with pytest.raises(ValueError, match=r"did you mean .*search-"):
        load_opponent(f"{HIGH_CARD.name}/{name}")


def test_advice_from_a_view(game: Game, tmp_path: Path) -> None:
    env = CardEnv(game)
    env.reset(seed=11)
    while len(env.legal_moves()) < 2:
        env.step(env.parse_move(env.legal_moves()[0]))
    view = env.view(env.agent_selection)
    advices = load_opponent("search-8", game).evaluate(view)
    assert sorted(one.move for one in advices) == sorted(env.legal_moves())
    assert all(one.margin is not None and one.error is not None and one.error >= 0 for one in advices)
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


def test_search_plays_where_every_move_is_forced(game: Game) -> None:
    turn = turn_of_states(game, positions(game))
    turn = turn.at(np.flatnonzero(turn.mask.sum(axis=1, dtype=int) == 1)[:50])
    if not len(turn):
        pytest.skip("no move is ever forced")
    assert np.array_equal(SearchPolicy(game, 2).act(turn, np.random.default_rng(0)), turn.mask.argmax(axis=1))
