"""What every game promises to the rest of the project: `card_envs/game.py`, on thousands of positions."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from card_envs.compare.games import GamePlan, play_games
from card_envs.compiling import specialize
from card_envs.draw import draw
from card_envs.engine.rng import table_keys
from card_envs.engine.table import Table
from card_envs.game import Game, bounds, offsets, text_index
from card_envs.opponents import load_opponent
from card_envs.opponents.networks.policies import NetworkPolicy
from card_envs.opponents.policy import Policy, decisions_at
from card_envs.options import describe_options
from card_envs.testing.malformed import JUNK, mutated
from tests.conftest import (
    bots_moves,
    differing_fields,
    mixed_batch,
    new_env,
    observed,
    observed_in_full,
    option_sets,
    positions,
    quick_opponents,
    random_moves,
    redealt,
    rules_of,
    seats_of,
    some,
    spelled_out_options,
    table_of,
    untrained,
    walk,
)

MAX_MOVES = 100_000  # no episode may be longer
few_examples = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


def in_words(game: Game, state: Any) -> str:
    return f"{game.view.options_of(state)!r}, seat {state.seat}: {game.view.view(state, int(state.seat))}"


# Options


def test_options_are_validated_and_documented(game: Game) -> None:
    assert "reward" in describe_options(game.options)
    for options in option_sets(game):
        state = game.rules.new_state(game.validated(options))
        assert state.over and state.needs_deal
        found, given_options = game.view.options_of(state), game.validated(options)
        assert found == given_options, f"options_of: {found} of a state made with {given_options}"
        assert game.view.num_deals(state) >= 1
    for name, field in describe_options(game.options).items():
        assert field.description
        with pytest.raises(ValueError, match=name):
            game.validated({name: "nonsense"})
    with pytest.raises(ValueError, match="no_such_option"):
        game.validated({"no_such_option": 1})


# What a seat may know


def test_nothing_depends_on_hidden_cards(game: Game) -> None:
    """The seat to move sees, may do and plays the same when everything it can't know is drawn again."""
    states = positions(game)
    assert len(states) > 2500
    movers = seats_of(game, states, 0)
    worlds = redealt(game, states, movers, seed=1)
    before, after = decisions_at(game, states.copy()), decisions_at(game, worlds)
    for name in ("obs", "mask", "seat"):
        one, other = getattr(before, name), getattr(after, name)
        different = np.flatnonzero((one != other).reshape(len(states), -1).any(axis=1))
        assert not len(different), f"{name} leaks: {in_words(game, states[different[0]])}"
    assert np.array_equal(bots_moves(game, states.copy()), bots_moves(game, worlds))
    keys = np.random.default_rng(3).integers(0, 1 << 64, len(states), np.uint64)
    assert np.array_equal(random_moves(game, states.copy(), keys.copy()), random_moves(game, worlds, keys.copy()))


def test_views_do_not_depend_on_hidden_cards(game: Game) -> None:
    """Every seat sees the same, as numbers and as text, when what it can't know is drawn again."""
    states = some(positions(game), 400)
    for shift in range(game.rules.NUM_SEATS):
        seats = seats_of(game, states, shift)
        worlds = redealt(game, states, seats, seed=10 + shift)
        for state, world, seat in zip(states, worlds, seats.tolist()):
            seen, pictures = game.view.view(state, seat), pictures_of(game, state, seat)
            other, others = game.view.view(world, seat), pictures_of(game, world, seat)
            changed = [key for key in seen if seen[key] != other[key]]
            assert not changed, f"determinize changes what seat {seat} sees: {', '.join(changed)}"
            assert pictures == others == pictures_of(game, world, seat, seen), "a picture shows what is not in its view"
        assert np.array_equal(observed(game, states, seats), observed(game, worlds, seats)), "observations differ"


def test_spectators_see_no_hidden_card(game: Game) -> None:
    """What all see, as data and drawn, is the same bytes when all that any seat can't know is drawn again."""
    states = some(positions(game), 200)
    for shift in range(game.rules.NUM_SEATS):
        worlds = redealt(game, states, seats_of(game, states, shift), seed=20 + shift)
        for state, world in zip(states, worlds):
            seen, other = game.public_view(state), game.public_view(world)
            assert json.dumps(seen) == json.dumps(other)
            assert draw(game, seen) == draw(game, other) and draw(game, seen, tall=True)
            assert not seen["legal"] and len(seen["names"]) == game.rules.NUM_SEATS


def pictures_of(game: Game, state: Any, seat: int, seen: dict[str, Any] | None = None) -> list[str]:
    """The view of a state as text and drawn, right after `view` was asked; or those of another view then."""
    own = game.view.view(state, seat)
    return [game.view.picture(seen or own), draw(game, seen or own)]


def test_opponents_do_not_depend_on_hidden_cards(game: Game) -> None:
    states = some(positions(game), 64)
    worlds = redealt(game, states, seats_of(game, states, 0), seed=1)
    policies: dict[str, Policy] = {name: load_opponent(name, game).policy for name in quick_opponents(game)}
    policies["a random network"] = untrained(game, NetworkPolicy, [16], sampled=True)
    for name, policy in policies.items():
        one, other = decisions_at(game, states), decisions_at(game, worlds)
        actions = policy.act(one, np.random.default_rng(5))
        assert np.array_equal(actions, policy.act(other, np.random.default_rng(5))), name
        assert np.array_equal(policy.probabilities(one), policy.probabilities(other)), name
        assert one.mask[np.arange(len(states)), actions].all(), name


# Deals


def test_a_given_pack_deals_the_same(game: Game) -> None:
    """`dealt_pack` gives what `set_deal` needs for this deal, and for a world drawn again."""
    set_deal = rules_of(game).set_deal
    env = mixed_batch(game, 96, seed=51)
    before = env.states.copy()
    before["over"] = before["needs_deal"] = True  # so that an episode begins
    worlds = redealt(game, env.states, env.seat, seed=52)
    dealt_again = []
    for states in (env.states, worlds):
        again = before.copy()
        dealt_again.append(again)
        for i in range(len(states)):
            pack = game.view.dealt_pack(states[i])
            assert pack.shape == (game.rules.PACK_SIZE,) and pack.dtype == np.int8
            kept = pack.copy()
            set_deal(again, i, pack)
            assert np.array_equal(pack, kept)
        assert np.array_equal(again["seat"], states["seat"])
        for shift in range(game.rules.NUM_SEATS):
            seats = seats_of(game, states, shift)
            assert np.array_equal(observed(game, again, seats), observed(game, states, seats))
            assert np.array_equal(observed_in_full(game, again, seats), observed_in_full(game, states, seats))
    # No field keeps what a seat can't know: after two deals that differ in hidden cards alone, worlds are the same.
    assert differing_fields(*(redealt(game, states, env.seat, 53) for states in dealt_again)) == []


def played_deal(game: Game, options: dict[str, Any], seed: int, deals: int) -> dict[str, Any]:
    """The custom deal of an episode's first deals, played by `greedy`."""
    table = table_of(game, options, seed)
    packs = [game.view.dealt_pack(table.state)]
    while len(packs) < deals and not table.over:
        table.play(table.bot_move("greedy"))
        if table.needs_deal and not table.over:
            table.deal()
            packs.append(game.view.dealt_pack(table.state))
    deal: dict[str, Any] = game.view.deal_text(packs)
    return deal


@few_examples
@given(seed=st.integers(0, 2**64 - 1), data=st.data())
def test_deals_survive_text(game: Game, seed: int, data: st.DataObject) -> None:
    options = data.draw(st.sampled_from(option_sets(game)))
    state = game.rules.new_state(game.validated(options))
    deal = played_deal(game, options, seed, data.draw(st.integers(1, 3)))
    assert json.loads(json.dumps(deal)) == deal
    packs = game.view.parse_deal(state, deal)
    assert all(pack.dtype == np.int8 and pack.shape == (game.rules.PACK_SIZE,) for pack in packs)
    assert game.view.deal_text(packs) == deal


def test_malformed_deals_are_value_errors(game: Game) -> None:
    rng = random.Random(61)
    refused = 0
    for options in option_sets(game):
        state = game.rules.new_state(game.validated(options))
        deal = played_deal(game, options, seed=62, deals=2)
        for given_deal in [*JUNK, *(mutated(deal, rng) for _ in range(40))]:
            try:
                packs = game.view.parse_deal(state, given_deal)
            except ValueError as error:
                refused += "deal" in str(error)
            else:
                assert game.view.parse_deal(state, game.view.deal_text(packs))
    assert refused > 20 * len(option_sets(game))


# Moves


def test_masks_and_observations_are_in_bounds(game: Game) -> None:
    states = positions(game).copy()
    decisions = decisions_at(game, states)
    assert set(np.unique(decisions.mask)) <= {0, 1}
    assert np.array_equal(decisions.seat, states["seat"])
    legal = rules_of(game).legal
    mask = np.full(game.rules.NUM_ACTIONS, 99, np.int8)
    for i in range(len(states)):
        number = legal(states, i, mask)
        assert 0 < number == mask.sum(), f"legal: {mask.sum()} actions are legal, it returns {number}"
        assert np.array_equal(mask, decisions.mask[i])
    for shift in range(game.rules.NUM_SEATS):
        seats = seats_of(game, states, shift)
        obs, full = observed(game, states, seats), observed_in_full(game, states, seats)
        for found, (low, high) in ((obs, bounds(game.rules.OBS_FIELDS)), (full, bounds(game.rules.FULL_FIELDS))):
            outside = np.flatnonzero(((found < low) | (found > high)).any(axis=0))
            names = [field.name for field in game.rules.FULL_FIELDS for _ in range(field.size)]
            wrong = [f"entry {i}, of `{names[i]}`, from {low[i]} to {high[i]}" for i in outside]
            assert not wrong, f"out of the declared bounds: {'; '.join(wrong)}"
        assert np.array_equal(full[:, : game.rules.OBS_SIZE], obs)


def test_every_observed_entry_occurs(game: Game) -> None:
    """No declared field is dead: over all positions every one takes at least two values."""
    states = positions(game)
    full = np.concatenate([observed_in_full(game, states, seats_of(game, states, s)) for s in range(2)])
    fields, starts = game.rules.FULL_FIELDS, offsets(game.rules.FULL_FIELDS)
    parts = {field.name: full[:, getattr(starts, field.name) :][:, : field.size] for field in fields}
    dead = [name for name, part in parts.items() if np.ptp(part) == 0]
    assert dead == []


def test_looking_changes_nothing(game: Game) -> None:
    states = some(positions(game), 300)
    kept = states.tobytes()
    decisions_at(game, states)
    bots_moves(game, states)
    observed(game, states, states["seat"])
    observed_in_full(game, states, states["seat"].copy())
    random_moves(game, states, np.arange(len(states), dtype=np.uint64))
    for state in states[:50]:
        game.view.picture(game.view.view(state, int(state.seat)))
        game.view.dealt_pack(state)
        game.view.outcome(state)
    assert states.tobytes() == kept


def test_every_decision_is_of_one_phase(game: Game) -> None:
    phases = game.view.PHASES
    assert sum(len(actions) for actions in phases.values()) in (0, game.rules.NUM_ACTIONS)
    if not phases:
        return
    legal = decisions_at(game, positions(game).copy()).mask != 0
    inside = np.array([legal[:, actions].any(axis=1) for actions in phases.values()])
    assert (inside.sum(axis=0) == 1).all()
    assert inside.any(axis=1).all()


def test_bots_and_random_moves_are_legal(game: Game) -> None:
    states = positions(game).copy()
    rows = np.arange(len(states))
    mask = decisions_at(game, states).mask
    for seed in range(4):
        keys = np.random.default_rng(seed).integers(0, 1 << 64, len(states), np.uint64)
        assert mask[rows, random_moves(game, states, keys)].all()
    for moves in bots_moves(game, states):
        assert mask[rows, moves].all()


def test_random_moves_are_uniform(game: Game) -> None:
    """Chi-square for 40 positions with a choice; Wilson and Hilferty (1931) turn it into a normal deviate."""
    draws = 20_000
    states = positions(game).copy()
    mask = decisions_at(game, states).mask
    chosen = np.random.default_rng(71).permutation(np.flatnonzero(mask.sum(axis=1) > 1))[:40]
    keys = np.random.default_rng(72).integers(0, 1 << 64, draws, np.uint64)
    for i in chosen:
        moves = random_moves(game, np.repeat(states[i : i + 1], draws), keys)
        counts = np.bincount(moves, minlength=game.rules.NUM_ACTIONS)
        assert not counts[mask[i] == 0].any()
        freedom = int(mask[i].sum()) - 1
        expected = draws / (freedom + 1)
        square = ((counts[mask[i] == 1] - expected) ** 2 / expected).sum()
        deviate = ((square / freedom) ** (1 / 3) - 1 + 2 / (9 * freedom)) / np.sqrt(2 / (9 * freedom))
        assert deviate < 4.5, in_words(game, states[i])


def test_streams_move_on(game: Game) -> None:
    """Two draws from one stream are two draws."""
    states = positions(game).copy()
    states = states[decisions_at(game, states).mask.sum(axis=1) > 1]
    keys = np.random.default_rng(73).integers(0, 1 << 64, len(states), np.uint64)
    first, second = (random_moves(game, states, keys) for _ in range(2))
    assert (first != second).mean() > 0.2


def test_every_episode_ends(game: Game) -> None:
    env = mixed_batch(game, 96, seed=81)
    ended = np.zeros(env.num_tables, np.int64)
    for moves, _ in enumerate(walk(env, MAX_MOVES, seed=82)):
        ended += env.done
        if ended.all() and moves > 0:
            break
    assert ended.all(), f"{(ended == 0).sum()} tables had no end within {MAX_MOVES} moves"


@pytest.mark.parametrize("player", ["random", "trivial", "greedy"])
def test_rewards_are_what_the_sides_scored(game: Game, player: str) -> None:
    rules = game.rules
    sides = np.array(game.sides)
    for number, options in enumerate(option_sets(game)[:8]):
        wins = game.validated(options).reward == "win"
        worst = -1.0 if wins else rules.WORST_SCORE
        table = table_of(game, options, seed=91, number=number)
        stream = np.array([number], np.uint64)
        action = np.zeros(1, np.int32)
        totals, of_deal = np.zeros(rules.NUM_SEATS), np.zeros(rules.NUM_SEATS)
        while not table.over:
            if table.needs_deal:
                table.deal()
                of_deal[:] = 0
            if player == "random":
                action = random_moves(game, table.states, stream)
            else:
                action[0] = table.bot_move(player)
            table.play(int(action[0]))
            rewards = np.array(table.rewards)
            totals += rewards
            of_deal += rewards
            assert of_deal.min() >= worst, f"rewards of a deal: {of_deal}, where the worst is {worst}"
            if sides.max() == 1:
                assert rewards[sides == 0].tolist() == [rewards[0]] * int((sides == 0).sum())
                assert rewards[sides == 1].tolist() == [-rewards[0]] * int((sides == 1).sum())
            if wins and not table.over:
                assert not rewards.any()
        reason, scores = game.view.outcome(table.state)
        assert reason and len(scores) == rules.NUM_SEATS
        assert not table.legal().any()
        if sides.max() == 0:
            continue
        margin = scores[int(np.argmax(sides == 0))] - scores[int(np.argmax(sides == 1))]
        assert [rules.score_margin(table.state, seat) for seat in range(rules.NUM_SEATS)] == [
            -margin if side else margin for side in sides
        ]
        assert all(scores[seat] == scores[int(np.argmax(sides == sides[seat]))] for seat in range(rules.NUM_SEATS))
        assert totals[0] == (np.sign(margin) if wins else margin)


def test_outcomes_of_many_are_those_of_each(game: Game) -> None:
    trivial = load_opponent("trivial", game)
    plans = [GamePlan(game, [trivial], 95, tuple(options.items())) for options in spelled_out_options(game)]
    ended = [play_games(plan, np.arange(24)).states for plan in plans]
    states = np.concatenate([some(positions(game), 200), *ended])
    reasons, scores = game.outcomes(states)
    assert [(reason, points) for reason, points in zip(reasons.tolist(), scores.tolist())] == [
        game.view.outcome(state) for state in states
    ]
    assert "" in reasons and len(set(reasons.tolist())) > 1


def test_deals_do_not_depend_on_earlier_play(game: Game) -> None:
    """A table in the middle of an episode and a new one with the same key and options get the same next episode."""
    played = some(positions(game), 500, seed=95)
    fresh = np.array([game.rules.new_state(game.view.options_of(state)) for state in played], game.rules.STATE)
    for states in (played, fresh):
        states["over"] = states["needs_deal"] = True
        states["rng"] = table_keys(95, np.arange(len(states)))
        for i in range(len(states)):
            rules_of(game).deal(states, i)
    assert np.array_equal(played["seat"], fresh["seat"])
    for shift in range(game.rules.NUM_SEATS):
        seats = seats_of(game, fresh, shift)
        assert np.array_equal(observed_in_full(game, played, seats), observed_in_full(game, fresh, seats))


# Text


def test_moves_survive_text(game: Game) -> None:
    states = some(positions(game), 1500)
    mask = decisions_at(game, states).mask
    for state, legal in zip(states, mask):
        actions = np.flatnonzero(legal).tolist()
        texts = [game.view.move_text(state, action) for action in actions]
        assert len(set(texts)) == len(texts), f"move_text: legal actions {actions} are {texts}"
        assert [game.view.parse_move(state, text) for text in texts] == actions


def test_moves_have_words(game: Game) -> None:
    """Each its own, in one line."""
    words = {text: game.view.move_words(text) for text in game.move_texts}
    assert len({*words.values()}) == len(words), "move_words: two texts have the same words"
    assert all(said and said.splitlines() == [said.strip()] for said in words.values()), words


def test_questions_fit_the_moves(game: Game) -> None:
    """It offers no illegal move, and says where no card can be played; notes are about legal moves."""
    named = {text for text in game.move_texts if len(text) > 2 and text.islower()}  # "turn", "deal": no cards
    for state in some(positions(game), 1500):
        seat = int(state["seat"])
        view = game.view.view(state, seat)
        legal, question, notes = set(view["legal"]), game.question(view), game.move_notes(view)
        assert question and question.splitlines() == [question.strip()]
        assert set(notes) <= legal and all(note and note.splitlines() == [note.strip()] for note in notes.values())
        words = {*question.replace("our turn", "").replace(":", "").replace(",", "").replace(".", "").split()}
        assert words & named <= legal, f"{question} {legal}"
        if "card" in words:
            assert ("No card can be" in question) == (legal <= named), f"{question} {legal}"
        for other in {*range(game.rules.NUM_SEATS)} - {seat}:
            view = game.view.view(state, other)
            assert game.question(view) == "" and game.move_notes(view) == {}


@pytest.mark.parametrize("text", [None, 5, b"x", ["turn"], {}])
def test_moves_that_are_no_text(game: Game, text: Any) -> None:
    with pytest.raises(ValueError, match="move: expected a text"):
        new_env(game).parse_move(text)
    with pytest.raises(ValueError, match="move"):
        game.view.parse_move(positions(game)[0], text)


def write_text_indices(first: int, last: int, states: NDArray[Any], found: NDArray[np.int64]) -> None:
    for i in range(first, last):
        for action in range(found.shape[1]):
            found[i, action] = text_index(states[i], action)


def test_compiled_code_knows_the_texts(game: Game) -> None:
    states = some(positions(game), 1500)
    found = np.zeros((len(states), game.rules.NUM_ACTIONS), np.int64)
    specialize(write_text_indices, game)(0, len(states), states, found)
    for state, indices, legal in zip(states, found, decisions_at(game, states).mask):
        for action in np.flatnonzero(legal).tolist():
            assert game.move_texts[indices[action]] == game.view.move_text(state, action)


@few_examples
@given(text=st.text("ACDHKSTW0123456789FROBabcdefghijklmnopqrstuvwxyz- \0é♥", max_size=8), at=st.integers(0, 2000))
def test_other_texts_are_value_errors(game: Game, text: str, at: int) -> None:
    state = positions(game)[at]
    try:
        action = game.view.parse_move(state, text)
    except ValueError:
        return
    assert 0 <= action < game.rules.NUM_ACTIONS


def test_views_are_json_and_lead_back_to_the_position(game: Game) -> None:
    view = game.view
    jsonschema.Draft202012Validator.check_schema(view.SCHEMA)
    validator = jsonschema.Draft202012Validator(view.SCHEMA)
    assert not validator.is_valid({})
    for number, state in enumerate(some(positions(game), 250, seed=101)):
        for seat in {int(state.seat), number % game.rules.NUM_SEATS}:
            seen = view.view(state, seat)
            assert json.loads(json.dumps(seen)) == seen
            validator.validate(seen)
            assert seen.keys() == view.SCHEMA["properties"].keys() and (seen["game"], seen["seat"]) == (game.name, seat)
            again = view.from_view(seen)
            assert view.view(again, seat) == seen
            assert view.options_of(again) == view.options_of(state)
            one, other = Table(game, state), Table(game, again)
            assert np.array_equal(one.observe(seat), other.observe(seat))
            assert (one.seat, one.over, one.needs_deal) == (other.seat, other.over, other.needs_deal)
            if seat == one.seat:
                assert np.array_equal(one.legal(), other.legal())
                legal = [view.move_text(state, action) for action in np.flatnonzero(one.legal()).tolist()]
                assert (seen["to_move"], seen["legal"]) == (seat, legal)
            else:
                assert seen["to_move"] == one.seat and seen["legal"] == []


def test_positions_from_views_play_on(game: Game) -> None:
    states = some(positions(game), 200, seed=103)
    again = np.array(
        [game.view.from_view(game.view.view(state, int(state.seat))) for state in states], game.rules.STATE
    )
    assert np.array_equal(bots_moves(game, states), bots_moves(game, again))
    env = mixed_batch(game, len(again), seed=0)
    env.states[:] = again
    env.observe()
    assert len(list(walk(env, 60, seed=104))) == 60


def test_pictures_fit_the_terminal(game: Game) -> None:
    for state in some(positions(game), 300, seed=102):
        for seat in range(game.rules.NUM_SEATS):
            lines = game.view.picture(game.view.view(state, seat)).splitlines()
            assert max(map(len, lines)) <= 80
            assert len(lines) <= 40


def test_malformed_views_are_value_errors(game: Game) -> None:
    """A view with something wrong in it is refused in words, or it was not wrong: then it still makes a position."""
    rng = random.Random(111)
    refused = unclear = 0
    states = some(positions(game), 250, seed=112)
    for state in states:
        seat = rng.randrange(game.rules.NUM_SEATS)
        seen = game.view.view(state, seat)
        for _ in range(8):
            changed = mutated(seen, rng)
            if rng.random() < 0.2:
                changed = mutated(changed, rng)
            try:
                again = game.view.from_view(changed)
            except ValueError as error:
                refused += 1
                unclear += not str(error).startswith("view")
            except Exception as error:
                error.add_note(json.dumps(changed))
                raise
            else:
                assert not again.needs_deal and "seat" in changed
                assert game.view.from_view(game.view.view(again, changed["seat"])) is not None
    assert refused > 4 * len(states)
    assert unclear == 0, "from_view: a message does not begin with 'view'"


def test_what_is_no_view_is_a_value_error(game: Game) -> None:
    for junk in JUNK:
        with pytest.raises(ValueError, match="view"):
            game.view.from_view(junk)


def test_finished_games_are_no_decision(game: Game) -> None:
    options = spelled_out_options(game)[0]
    table = table_of(game, options, seed=121)
    while not table.over:
        if table.needs_deal:
            table.deal()
        table.play(table.bot_move("greedy"))
    for seat in range(game.rules.NUM_SEATS):
        seen = game.view.view(table.state, seat)
        jsonschema.validate(seen, game.view.SCHEMA)
        assert seen["to_move"] is None and seen["legal"] == []
        assert max(map(len, game.view.picture(seen).splitlines())) <= 80
        with pytest.raises(ValueError, match="view"):
            game.view.from_view(seen)
