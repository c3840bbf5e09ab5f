"""The games in OpenSpiel, and players of either side on the other."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest

from card_envs.compare.contests import Contest, play_contest
from card_envs.game import Game
from card_envs.opponents import load_opponent
from card_envs.opponents.policy import decisions_at
from card_envs.play.episode import Episode
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import positions, short_options, some

pytest.importorskip("pyspiel", reason="the extra `open-spiel` is not installed")
import pyspiel
from open_spiel.python import policy
from open_spiel.python.algorithms import cfr, exploitability, ismcts, mcts

from card_envs.envs import spiel


def loaded(game: Game, **options: Any) -> Any:
    if spiel.PREFIX + game.name not in pyspiel.registered_names():
        spiel.register(game)
    return pyspiel.load_game(spiel.PREFIX + game.name, {"options": json.dumps({**short_options(game), **options})})


def is_mcts(game: Any, simulations: int) -> Any:
    rollouts = mcts.RandomRolloutEvaluator(1, np.random.RandomState(0))
    return ismcts.ISMCTSBot(game, rollouts, 2.0, simulations, random_state=np.random.RandomState(1))


class FewSimulations(spiel.BotPolicy):
    """IS-MCTS with next to no time."""

    def __init__(self, game: Game) -> None:
        loaded(game)
        super().__init__(game, lambda one: is_mcts(one, 2), **{**short_options(game), "reward": "win"})


def test_an_episode_is_the_tables(game: Game) -> None:
    """Legal actions, whose turn it is, what is seen and paid: the same as on our table, to the end."""
    rng = np.random.default_rng(1)
    state = loaded(game, reward="win").new_initial_state()
    assert state.is_chance_node() and not state.is_terminal()
    paid = np.zeros(game.rules.NUM_SEATS)
    while not state.is_terminal():
        if state.is_chance_node():
            state.apply_action(0)
            continue
        table, player = state.table, state.current_player()
        assert player == table.seat
        legal = state.legal_actions()
        assert legal == np.flatnonzero(table.legal()).tolist()
        assert np.array_equal(state.information_state_tensor(player), table.observe(player))
        texts = [state.information_state_string(seat) for seat in range(game.rules.NUM_SEATS)]
        assert texts[player] == state.observation_string(player)
        assert len({text.split()[0] for text in texts}) == len(texts)  # else tables would mix players who see the same
        action = int(rng.choice(legal))
        assert state.action_to_string(action) == game.view.move_text(table.state, action)
        state.apply_action(action)
        paid += state.table.rewards
    assert state.returns() == paid.tolist()
    assert all(-1 <= one <= 1 for one in state.returns())
    if not game.is_solitaire:
        assert sum(state.returns()) == 0


def listed(game: Game, number: int) -> tuple[Any, list[dict[str, Any]]]:
    chosen = game.validated(short_options(game))
    deals = [Episode(game, chosen, seed=seed).record().deal for seed in range(number)]
    loaded(game)
    settings = {"options": json.dumps(short_options(game)), "deals": json.dumps(deals)}
    return pyspiel.load_game(spiel.PREFIX + game.name, settings), deals


@pytest.mark.mechanics
def test_listed_deals_are_explicit_chance_outcomes(game: Game) -> None:
    few, deals = listed(game, 3)
    assert few.get_type().chance_mode == pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC
    assert few.new_initial_state().chance_outcomes() == [(deal, 1 / 3) for deal in range(3)]
    rng = np.random.default_rng(2)
    for number, deal in enumerate(deals):
        state = few.new_initial_state()
        state.apply_action(number)
        view = game.view
        assert view.deal_text([view.dealt_pack(state.table.state)]) == deal
        for _ in range(3):
            assert json.loads(state.to_json()) == view.view(state.table.state, state.table.seat)
            world = state.resample_from_infostate(state.current_player())
            assert world.history()[0] in range(3) and world.history()[1:] == state.history()[1:]
            assert world.information_state_string() == state.information_state_string()
            state.apply_action(int(rng.choice(state.legal_actions())))
            if state.is_terminal() or state.is_chance_node():
                break
        restored = few.deserialize_state(state.serialize())
        assert str(restored) == str(state) == str(pickle.loads(pickle.dumps(state)))


@pytest.mark.mechanics
def test_wrong_parameters_are_named(game: Game) -> None:
    _, deals = listed(game, 1)
    nested = "[" * 100_000
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"deals": "7"}, "a JSON list"),
        ({"deals": json.dumps([*deals, {"x": 1}])}, r"deals\[1\]: deal"),
        ({"seed": -1}, "seed: expected a whole number from 0, got -1"),
    ]
    for text in ("{", '{"x": 1', nested, nested.replace("[", '{"x":'), "%", "\x00"):
        wrong += [({name: text}, f"^{name}: not JSON: ") for name in ("options", "deals")]
    for parameters, said in wrong:
        with pytest.raises(ValueError, match=said) as error:
            pyspiel.load_game(spiel.PREFIX + game.name, {"options": json.dumps(short_options(game)), **parameters})
        assert len(str(error.value)) < 300


@pytest.mark.mechanics
def test_the_text_of_a_game_loads_it_again(game: Game) -> None:
    """With several options and with deals; and so do games that OpenSpiel makes of others."""
    few, _ = listed(game, 2)
    options = {**short_options(game), "reward": "win"}
    name = spiel.PREFIX + game.name
    for made in (
        few,
        loaded(game, reward="win"),
        pyspiel.load_game(name, {"options": spiel._escaped(json.dumps(options)), "seed": 7}),
        pyspiel.load_game(name),
    ):
        for again in (pyspiel.load_game(str(made)), pickle.loads(pickle.dumps(made))):
            assert str(again) == str(made) and again.get_parameters() == made.get_parameters()
            assert again.options == made.options and len(again.deals) == len(made.deals)
        states = [one.new_initial_state() for one in (made, pyspiel.load_game(str(made)))]
        for state in states:
            state.apply_action(state.legal_actions()[-1])
        assert str(states[0]) == str(states[1]) or not made.deals
        noisy = pyspiel.load_game(f"add_noise(epsilon=0.0,seed=1,game={made})")
        assert noisy.num_distinct_actions() == game.rules.NUM_ACTIONS


def test_regret_minimization_lowers_exploitability() -> None:
    """Of High Card with three possible deals, where a best response is exact."""
    few, _ = listed(HIGH_CARD, 3)
    solver = cfr.CFRSolver(few)
    before = exploitability.nash_conv(few, policy.UniformRandomPolicy(few))
    for _ in range(5):
        solver.evaluate_and_update_policy()
    after = exploitability.nash_conv(few, solver.average_policy())
    assert 0 <= after < before / 2


@pytest.mark.mechanics
def test_copies_go_their_own_way_and_know_no_deal_to_come(game: Game) -> None:
    made = loaded(game)
    one = made.new_initial_state()
    sent = [pickle.loads(pickle.dumps(state)) for state in (one, one, made.new_initial_state())]
    cloned = [one.clone() for _ in range(4)]

    def dealt(state: Any) -> bytes:
        state.apply_action(0)
        return game.view.dealt_pack(state.table.state).tobytes()

    assert len({dealt(state) for state in cloned}) == 4 and one.is_chance_node()
    deals = [dealt(state) for state in (one, *sent)]
    assert len(set(deals)) == 2 and deals[0] != deals[1]


@pytest.mark.mechanics
def test_states_go_through_text_and_pickle(game: Game) -> None:
    made = loaded(game, reward="win")
    state = made.new_initial_state()
    for _ in range(4):
        for other in (
            made.deserialize_state(state.serialize()),
            pickle.loads(pickle.dumps(state)),
            copy.deepcopy(state),
            copy.copy(state),
        ):
            assert other.history() == state.history() and str(other) == str(state)
            if not state.is_chance_node():
                assert other.information_state_tensor(0) == state.information_state_tensor(0)
        state.apply_action(state.legal_actions()[0])
    with pytest.raises(NotImplementedError, match="pickle the game or the state"):
        made.serialize()


def test_hidden_cards_are_drawn_anew(game: Game) -> None:
    state = loaded(game).new_initial_state()
    state.apply_action(0)
    player = state.current_player()
    worlds = [state.resample_from_infostate(player) for _ in range(5)]
    assert {world.information_state_string(player) for world in worlds} == {state.information_state_string(player)}
    assert len({world.table.observe_all(player).tobytes() for world in worlds}) > 1


@pytest.mark.mechanics
def test_their_bots_play_here_and_ours_there(game: Game) -> None:
    there = loaded(game, reward="win")
    state = there.new_initial_state()
    state.apply_action(0)
    greedy = load_opponent("greedy", game)
    world = np.array([state.table.state], game.rules.STATE)
    ours = greedy.act(decisions_at(game, world), np.random.default_rng(0))
    bot = spiel.OpponentBot(greedy)
    assert bot.step(state) == pickle.loads(pickle.dumps(bot)).step(state) == copy.copy(bot).step(state) == ours[0]
    assert is_mcts(there, 3).step(state) in state.legal_actions()
    policy = FewSimulations(game)
    decisions = decisions_at(game, some(positions(game), 3, seed=301))
    chosen = decisions.check(policy.act(decisions, np.random.default_rng(2)), "IS-MCTS")
    assert np.array_equal(policy.probabilities(decisions).argmax(axis=1).shape, chosen.shape)


def mcts_bot(game: pyspiel.Game) -> pyspiel.Bot:
    random = np.random.RandomState(1)
    return mcts.MCTSBot(game, 2.0, 3, mcts.RandomRolloutEvaluator(1, random), random_state=random)


@pytest.mark.mechanics
@pytest.mark.parametrize("copied", [lambda player: pickle.loads(pickle.dumps(player)), copy.deepcopy])
def test_policies_with_bots_can_be_copied(copied: Any, game: Game) -> None:
    """The bots can't: spawned workers and pools get others that play as they do."""
    decisions = decisions_at(game, some(positions(game), 2, seed=302))
    for player in (spiel.BotPolicy(game, mcts_bot, **short_options(game)), FewSimulations(game)):
        twin = copied(player)
        assert type(twin) is type(player) and twin.bot is not player.bot and twin.spiel.options == player.spiel.options
        own, other = (one.act(decisions, np.random.default_rng(5)) for one in (player, twin))
        assert np.array_equal(own, other)


def test_they_can_be_compared() -> None:

    contest = Contest(TINY, ("greedy", f"{__name__}:FewSimulations"), 0, tuple(short_options(TINY).items()))
    assert len([*play_contest(contest, 2)]) == 1
