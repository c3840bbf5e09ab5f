"""Worlds: what `determinize` draws, in the middle of deals.

A world fits what a seat knows if the same moves, played from its pack, are all legal and show that seat the same.
`determinize` draws all fitting worlds alike, and real deals are the measure of that. But a seat that meets a
position does not find all fitting deals behind it alike: where the others chose among fewer moves, each move was the
likelier. Played by uniform choice, a deal X leads to the position with a likelihood of 1 / w(X), where w(X) is the
product of the numbers of moves that were legal. So `test_worlds_are_distributed_like_real_deals` takes pairs: the
real deal X, and a world Y drawn at the position that it led to. Their joint density is proportional to 1 / w(X), and
with the weight a = w(X) / (w(X) + w(Y)) it becomes 1 / (w(X) + w(Y)), which does not change when X and Y change
places (Barker 1965). So for any figure g of a world, and any figure v of what the seat sees, the variable
d = a v (g(X) - g(Y)) is symmetric around zero, and for independent tables the sum of d over the root of the sum of its
squares exceeds t with a chance below 2 exp(-t²/2), however few tables there are (Efron 1969). No two tables need the
same view, since X and Y always share one. `determinize` alone decides whether this holds.

`refine_world` must lead from X to Y as often as back if worlds come up in proportion to their plausibility p. So where
Y is what it makes of X, w(X) p(X) takes the place of w(X).

What is asked of a game: its moves are public, and nothing but the pack decides on a deal.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine.rng import table_keys
from card_envs.game import SCRATCH_STATES, Field, Game, OptionalBot, bounds, refine_world
from tests.conftest import (
    differing_fields,
    mixed_batch,
    observed,
    observed_in_full,
    option_sets,
    positions,
    redealt,
    rules_of,
    seats_of,
    some,
    walk,
)

TABLES = 4096
MOST_MOVES = 64
BOUND = 7.0  # a chance below 5e-11 for each figure; there are up to a million
DRAWS = 16_384  # of one position: what one draw in 1,600 shows is missed with a chance of e to the power -10


def test_worlds_depend_on_knowledge_alone(game: Game) -> None:
    """Two states that a seat can't distinguish give the same world from the same stream, to the last field."""
    states = positions(game)
    for shift in range(game.rules.NUM_SEATS):
        seats = seats_of(game, states, shift)
        other = redealt(game, states, seats, seed=21)
        wrong = differing_fields(redealt(game, states, seats, 22), redealt(game, other, seats, 22))
        assert not wrong, f"{', '.join(wrong)} of a world depend on more than what the seat knows and the stream"


def test_worlds_of_a_view_are_those_of_the_position(game: Game) -> None:
    """A state rebuilt from what a seat sees gives the same world from the same stream."""
    states = some(positions(game), 150, seed=23)
    for shift in range(game.rules.NUM_SEATS):
        seats = seats_of(game, states, shift)
        rebuilt = np.array([game.view.from_view(game.view.view(s, seat)) for s, seat in zip(states, seats.tolist())])
        worlds, others = (redealt(game, found, seats, 24) for found in (states, rebuilt))
        assert np.array_equal(observed_in_full(game, worlds, seats), observed_in_full(game, others, seats))


def test_events_tell_what_all_see(game: Game) -> None:
    """Worlds that look alike to a seat after a move have the same event text: it shows no card hidden from it."""
    rules, names = rules_of(game), game.view.SEAT_NAMES
    states = some(positions(game), 400, seed=25)
    for shift in range(game.rules.NUM_SEATS):
        seats = seats_of(game, states, shift)
        both = np.stack([states, redealt(game, states, seats, 26)])
        masks = np.zeros((2, len(states), game.rules.NUM_ACTIONS), np.int8)
        for world, i in np.ndindex(masks.shape[:2]):
            rules.legal(both[world], i, masks[world, i])
        for i, action in np.argwhere(masks.all(axis=0)).tolist():
            told = [game.view.event_text(state, action, names) for state in both[:, i]]
            if told[0] != told[1]:
                after = both[:, i].copy()
                for world in range(2):
                    rules.play(after, world, action)
                one, other = (game.view.view(state, seats[i]) for state in after)
                what = f"event_text tells a seat that sees the same: {told[0]!r} or {told[1]!r}"
                assert one != other, what


def test_worlds_hold_the_same_cards_and_play_on(game: Game) -> None:
    states = positions(game)
    worlds = redealt(game, states, seats_of(game, states, 0), seed=31)
    for state, world in zip(some(states, 500), some(worlds, 500)):
        before, after = game.view.dealt_pack(state), game.view.dealt_pack(world)
        assert sorted(before) == sorted(after), f"the pack of a world holds other cards: {after.tolist()}"
    env = mixed_batch(game, len(worlds), seed=0)
    env.states[:] = worlds
    env.observe()
    low, high = bounds(game.rules.FULL_FIELDS)
    full = np.zeros((len(worlds), game.rules.FULL_SIZE), np.int8)
    for _ in walk(env, 60, seed=32):
        env.observe_all(full)
        assert (full >= low).all() and (full <= high).all()


def test_fresh_worlds_are_distributed_like_deals(game: Game) -> None:
    """After the deal every mean over worlds is that over deals: |z| < 6 for each entry of the full state."""
    num_tables = 20_000
    env = mixed_batch(game, num_tables, seed=41, options=({},))
    worlds = redealt(game, env.states, env.seat, seed=42)
    full = observed_in_full(game, env.states, env.seat), observed_in_full(game, worlds, env.seat)
    difference = full[0].astype(np.int16) - full[1]
    spread = difference.std(axis=0) / np.sqrt(num_tables)
    deviates = np.abs(difference.mean(axis=0)) / np.maximum(spread, 1e-9)
    worst = int(deviates.argmax())
    assert deviates[worst] < 6, f"{entries(game)[worst]} has another mean in worlds than in deals"


# In the middle of a deal


class MidDeal(NamedTuple):
    """Tables in the middle of their first deal, played by uniform choice: [n] of each.

    Attributes:
        before: States with the deal still to come.
        states: States at a decision.
        actions: what was played, a list of moves for each table.
        log_ways: logarithms of the products of the numbers of legal moves.
        seats: of somebody, at each table, who looks on.
    """

    before: NDArray[Any]
    states: NDArray[Any]
    actions: list[list[int]]
    log_ways: NDArray[np.float64]
    seats: NDArray[np.int8]

    def at(self, tables: NDArray[np.int64]) -> MidDeal:
        return MidDeal(
            self.before[tables],
            self.states[tables],
            [self.actions[i] for i in tables],
            self.log_ways[tables],
            self.seats[tables],
        )


@cache
def mid_deal(game: Game, number: int = TABLES) -> MidDeal:
    """Up to that many tables under all options, after 1 to MOST_MOVES moves: as many as were drawn before the deal.

    How long a deal lasts may depend on hidden cards, so tables whose deal ends too early are left out, not cut short.
    """
    sets = option_sets(game)
    before = np.zeros(number, game.rules.STATE)
    for i in range(number):
        before[i] = game.rules.new_state(game.validated(sets[i % len(sets)]))
    before["rng"] = table_keys(131, np.arange(number))
    states = before.copy()
    rng = np.random.default_rng(132)
    lengths = (MOST_MOVES ** rng.random(number)).astype(int)
    rules = rules_of(game)
    mask = np.empty(game.rules.NUM_ACTIONS, np.int8)
    actions: list[list[int]] = [[] for _ in range(number)]
    log_ways = np.zeros(number)
    for i, length in enumerate(lengths.tolist()):
        rules.deal(states, i)
        for choice in rng.random(length).tolist():
            ways = rules.legal(states, i, mask)
            if ways == 0:
                break
            actions[i].append(int(np.flatnonzero(mask)[int(choice * ways)]))
            log_ways[i] += np.log(ways)
            rules.play(states, i, actions[i][-1])
    seats = (np.arange(number) // len(sets) % game.rules.NUM_SEATS).astype(np.int8)
    kept = np.flatnonzero(~states["needs_deal"])
    if not len(kept):
        pytest.skip("every deal is over after a move")
    return MidDeal(before, states, actions, log_ways, seats).at(kept)


def packs_of(game: Game, states: NDArray[Any]) -> list[NDArray[np.int8]]:
    return [game.view.dealt_pack(state) for state in states]


def replay(game: Game, tables: MidDeal, packs: list[NDArray[np.int8]]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Play the same moves from other packs.

    Returns:
        States [n], and the logarithms of the products of the numbers of legal moves [n]: infinite where a move was
        illegal.
    """
    states = tables.before.copy()
    rules = rules_of(game)
    mask = np.empty(game.rules.NUM_ACTIONS, np.int8)
    log_ways = np.zeros(len(states))
    for i, (pack, actions) in enumerate(zip(packs, tables.actions)):
        rules.set_deal(states, i, pack)
        for action in actions:
            ways = rules.legal(states, i, mask)
            if mask[action] == 0:
                log_ways[i] = np.inf
                break
            log_ways[i] += np.log(ways)
            rules.play(states, i, action)
    return states, log_ways


@cache
def entries(game: Game) -> list[str]:
    """The entries of the full state by the names of their fields: `hand[3]`."""
    return [f"`{field.name}[{k}]`" for field in game.rules.FULL_FIELDS for k in range(field.size)]


def skip_without_secrets(game: Game) -> None:
    if game.rules.FULL_SIZE == game.rules.OBS_SIZE:
        pytest.skip("every seat sees everything")


def hidden(game: Game, states: NDArray[Any], seats: NDArray[np.int8]) -> NDArray[np.int8]:
    """[n, H] the part of the full state that the seat does not see."""
    return observed_in_full(game, states, seats)[:, game.rules.OBS_SIZE :]


def refine_worlds(first: int, last: int, worlds: Any, seats: Any, stream: Any, steps: int, room: Any) -> None:
    for i in range(first, last):
        room[0] = worlds[i]
        refine_world(room, seats[i], steps, stream)
        worlds[i] = room[0]


def moves_of(game: Game, table: MidDeal) -> list[str]:
    states, texts = table.before.copy(), []
    rules_of(game).set_deal(states, 0, game.view.dealt_pack(table.states[0]))
    for action in table.actions[0]:
        texts.append(game.view.move_text(states[0], action))
        rules_of(game).play(states, 0, action)
    return texts


def illegal_move(game: Game, table: MidDeal, world: NDArray[Any]) -> str:
    """The first move played at a table that is illegal from the pack of a world, with its number."""
    for number, text in enumerate(moves_of(game, table), 1):
        part = table._replace(actions=[table.actions[0][:number]])
        if np.isinf(replay(game, part, packs_of(game, world))[1][0]):
            return f"move {number}, {text},"
    raise AssertionError("all are legal")


def swap(game: Game, pack: NDArray[np.int8], other: NDArray[np.int8]) -> str:
    """The two cards, if any, that have changed places in the other pack, as a custom deal has them."""
    texts = next(np.ravel(value) for value in game.view.deal_text([pack]).values() if isinstance(value, list))
    changed = np.flatnonzero(pack != other)
    return (
        " and ".join(f"{texts[k]} (card {k} of the pack)" for k in changed) + " swapped" if len(changed) else "no swap"
    )


def world_of(game: Game, tables: MidDeal, seed: int, steps: int) -> NDArray[Any]:
    """A world of each table: drawn again, or that many steps of the Markov chain away from the real one."""
    if steps == 0:
        return redealt(game, tables.states, tables.seats, seed)
    worlds, room = tables.states.copy(), np.zeros(SCRATCH_STATES, game.rules.STATE)
    stream = np.array([seed], np.uint64)
    specialize(refine_worlds, game)(0, len(worlds), worlds, tables.seats, stream, steps, room)
    changed = (hidden(game, worlds, tables.seats) != hidden(game, tables.states, tables.seats)).any(axis=1)
    assert changed.mean() > 0.5 if game.bot.refine_world is not OptionalBot.refine_world else not changed.any()
    return worlds


def log_likelihood(game: Game, states: NDArray[Any], seats: NDArray[np.int8]) -> NDArray[np.float64]:
    likelihood = game.bot.likelihood
    return np.log([likelihood(state, seat) for state, seat in zip(states, seats)])


@pytest.mark.parametrize("steps", [0, 30])
def test_every_world_explains_the_moves_played(game: Game, steps: int) -> None:
    """From a world's pack the same moves are legal, and lead to that world."""
    tables = mid_deal(game)
    worlds = world_of(game, tables, 133, steps)
    again, log_ways = replay(game, tables, packs_of(game, worlds))
    for i in np.flatnonzero(np.isinf(log_ways)):
        move = illegal_move(game, tables.at(np.array([i])), worlds[i : i + 1])
        pytest.fail(f"{move} is illegal when the moves are played again from the pack of a world that was drawn later")
    columns = np.hstack([observed(game, again, tables.seats), hidden(game, again, tables.seats)])
    expected = np.hstack([observed(game, tables.states, tables.seats), hidden(game, worlds, tables.seats)])
    wrong = np.flatnonzero((columns != expected).any(axis=0))
    assert not len(wrong), f"{entries(game)[wrong[0]]} differs when the moves are played again from a world's pack"


class Block(NamedTuple):
    """Columns of a field: all, a half or a quarter of them."""

    name: str
    columns: slice


def blocks_of(fields: tuple[Field, ...]) -> list[Block]:
    """The blocks of more than one column of fields that stand one behind the other."""
    found, end = [], 0
    for field in fields:
        begin, end = end, end + field.size
        for share in (1, 2, 4):
            edges = np.linspace(begin, end, share + 1).astype(int).tolist()
            for first, last in pairwise(edges):
                if last - first > 1:
                    found.append(Block(f"`{field.name}[{first - begin}:{last - begin}]`", slice(first, last)))
    return found


def width(block: Block) -> int:
    return int(block.columns.stop - block.columns.start)


def each_value(columns: NDArray[np.float32], names: list[str]) -> tuple[NDArray[np.float32], list[str]]:
    """[n, more] columns of more than two values as one column of 0 and 1 for each: depths, places. With their names."""
    parts, values_of = [], []
    for column, name in zip(columns.T, names):
        values = np.unique(column)
        for value in values[1:] if len(values) > 2 else []:
            parts.append(column == value)
            values_of.append(f"{name} = {value:g}")
    return np.array(parts, np.float32).reshape(len(parts), len(columns)).T, values_of


def largest_deviate(sums: NDArray[Any], squares: NDArray[Any]) -> tuple[float, tuple[int, ...]]:
    """The largest sum over the root of its sum of squares, and where it is."""
    deviates = np.abs(sums) / np.sqrt(np.maximum(squares, 1e-9))
    place = np.unravel_index(int(deviates.argmax()), deviates.shape)
    return float(deviates[place]), tuple(int(index) for index in place)


@pytest.mark.parametrize(
    ("steps", "number"), [(0, TABLES), (30, TABLES), pytest.param(0, 8 * TABLES, marks=pytest.mark.slow)]
)
def test_worlds_are_distributed_like_real_deals(game: Game, steps: int, number: int) -> None:
    """Every place of a hidden card, together with everything that the seat sees, and every two places together.

    So are sums of these over blocks of as many columns. What is a little wrong for every card alike adds up there, such
    as how often one of two identical cards is in a hand when the other was played: 32,768 tables show a factor of two.
    """
    skip_without_secrets(game)
    tables = mid_deal(game, number)
    worlds = world_of(game, tables, 134, steps)
    log_ratio = replay(game, tables, packs_of(game, worlds))[1] - tables.log_ways
    if steps:
        after, before = (log_likelihood(game, states, tables.seats) for states in (worlds, tables.states))
        log_ratio += after - before
    weight = (1 / (1 + np.exp(log_ratio))).astype(np.float32)
    real, drawn = (hidden(game, states, tables.seats).astype(np.float32) for states in (tables.states, worlds))
    seen = observed(game, tables.states, tables.seats).astype(np.float32)
    varying = np.flatnonzero(np.ptp(seen, axis=0))
    seen = np.column_stack([np.ones(len(seen)), seen[:, varying]])
    names = entries(game)
    seen_names, names = ["anything", *(names[k] for k in varying)], names[game.rules.OBS_SIZE :]
    difference = weight[:, None] * (real - drawn)
    largest, (one, other) = largest_deviate(difference.T @ seen, (difference**2).T @ seen**2)
    assert largest < BOUND, f"{names[one]} is drawn too often or too rarely, given {seen_names[other]}"

    rules = game.rules
    everything = observed(game, tables.states, tables.seats).astype(np.float32)
    for block in blocks_of(rules.FULL_FIELDS[len(rules.OBS_FIELDS) :]):
        part = difference[:, block.columns]
        beside = [other for other in blocks_of(rules.OBS_FIELDS) if width(other) == width(block)]
        sums = np.array([part.sum(axis=1), *((part * everything[:, other.columns]).sum(axis=1) for other in beside)])
        largest, (one,) = largest_deviate(sums.sum(axis=1), (sums**2).sum(axis=1))
        given = ["anything", *(other.name for other in beside)][one]
        assert largest < BOUND, f"{block.name} together is drawn too often or too rarely, given {given}"

    both, values = each_value(np.concatenate([real, drawn]), names)
    difference = weight[:, None] * (both[: len(real)] - both[len(real) :])
    if difference.size:
        largest, (one,) = largest_deviate(difference.sum(axis=0), (difference**2).sum(axis=0))
        assert largest < BOUND, f"{values[one]} is drawn too often or too rarely"

    def pairs(one: Any, other: Any, power: int) -> Any:
        return (one * weight[:, None] ** power).T @ other

    sums = pairs(real, real, 1) - pairs(drawn, drawn, 1)
    squares = pairs(real**2, real**2, 2) - 2 * pairs(real * drawn, real * drawn, 2) + pairs(drawn**2, drawn**2, 2)
    largest, (one, other) = largest_deviate(sums, squares)
    assert largest < BOUND, f"{names[one]} and {names[other]} are drawn together too often or too rarely"


def is_pack(game: Game, state: Any, pack: NDArray[np.int8]) -> bool:
    """Whether a custom deal may have this pack."""
    try:
        (again,) = game.view.parse_deal(state, game.view.deal_text([pack]))
    except (ValueError, LookupError):
        return False
    return np.array_equal(again, pack)


def found_worlds(
    game: Game, table: MidDeal, number: int, rng: np.random.Generator
) -> tuple[NDArray[np.int8], list[NDArray[np.int8]]]:
    """Return what is hidden [n, H] in worlds that fit a position, not drawn but found, and their packs.

    They are the real deal, and its packs with two entries swapped that leave the moves legal and the view the same;
    up to `number` pairs of entries are tried.
    """
    pack = game.view.dealt_pack(table.states[0])
    first, second = np.triu_indices(len(pack), 1)
    packs = [pack]
    for i in rng.permutation(np.flatnonzero(pack[first] != pack[second]))[:number]:
        other = pack.copy()
        other[[first[i], second[i]]] = pack[[second[i], first[i]]]
        if is_pack(game, table.before[0], other):
            packs.append(other)
    tables = table.at(np.zeros(len(packs), np.int64))
    states, log_ways = replay(game, tables, packs)
    seen = observed(game, states, tables.seats)
    fits = np.isfinite(log_ways) & (seen == observed(game, table.states, table.seats)).all(axis=1)
    assert fits[0], "the moves played do not lead to the same view when they are played again"
    return hidden(game, states[fits], tables.seats[fits]), [packs[i] for i in np.flatnonzero(fits)]


def drawn_worlds(game: Game, table: MidDeal, number: int, seed: int) -> NDArray[np.int8]:
    """[number, H] what is hidden in worlds drawn at a position."""
    seats = table.seats.repeat(number)
    return hidden(game, redealt(game, table.states.repeat(number), seats, seed), seats)


def test_every_unseen_card_reaches_every_place(game: Game) -> None:
    """Where a swap of two cards leaves a world that fits, draws have both cards in these places."""
    skip_without_secrets(game)
    tables = mid_deal(game)
    rng = np.random.default_rng(135)
    swaps = 0
    for number, i in enumerate(rng.permutation(len(tables.states))):
        if number >= 8 and swaps > 100:  # of few cards there are few swaps at a table
            break
        table = tables.at(np.array([i]))
        found, packs = found_worlds(game, table, 10_000, rng)
        drawn = drawn_worlds(game, table, DRAWS, int(i))
        swaps += len(found) - 1
        columns = np.arange(found.shape[1])
        reached = np.zeros((len(columns), 128), np.bool_)
        reached[columns, drawn] = True
        for world, column in np.argwhere(~reached[columns, found]):
            name = entries(game)[game.rules.OBS_SIZE + column]
            pytest.fail(
                f"{name} is never {found[world, column]}, as it is with {swap(game, packs[0], packs[world])}: "
                f"seat {table.seats[0]} can't tell, after {' '.join(moves_of(game, table))}"
            )
    assert swaps > 100


def test_worlds_differ_with_the_stream(game: Game) -> None:
    """Wherever more than one world fits; of two worlds, 16 draws show but one in 30,000 positions."""
    skip_without_secrets(game)
    tables = mid_deal(game)
    rng = np.random.default_rng(136)
    differ = 0
    for i in rng.choice(len(tables.states), 200, False):
        table = tables.at(np.array([i]))
        drawn = drawn_worlds(game, table, 16, int(i))
        if (drawn == drawn[0]).all():
            found, packs = found_worlds(game, table, 300, rng)
            for world in np.flatnonzero((found != drawn[0]).any(axis=1)):
                pytest.fail(
                    f"always the same world, but {swap(game, packs[0], packs[world])} would be another: "
                    f"seat {table.seats[0]} can't tell, after {' '.join(moves_of(game, table))}"
                )
        else:
            differ += 1
    assert differ > 100
