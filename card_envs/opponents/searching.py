"""The loop of search: draw worlds, play every line out in each, drop what falls behind, choose.

A line is a move, or several that a seat makes one after the other; then a scripted player goes on. The own line stands
against all others. Whenever the number of worlds has doubled, so many of them are left that each doubling costs the
same, one after the worlds of the budget (sequential halving: Karnin, Koren & Somekh 2013). Whoever would not be chosen
even with luck leaves earlier (racing: Maron & Moore 1994), and the last one, which gets more worlds while it is in
doubt, is played if it is better beyond doubt. All lines are tried in the same worlds, and compared by their leads over
the own one there.

A search goes by stages, between which lines are judged. World number w of a table has a stream of its own, and results
are whole multiples of a 64th of a point, so that their sums are exact: whoever shares the worlds of a stage among
threads, in whatever way, gets the same search.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.dealing import draw_world
from card_envs.engine.rng import derive, uniform
from card_envs.game import (
    SCRATCH_STATES,
    Game,
    Int8s,
    Int64s,
    State,
    UInt64s,
    bot_move,
    likelihood,
    load,
    observe_all,
    play,
    refine_world,
    reveals,
    score_margin,
)
from card_envs.opponents.lines import LONGEST, NO_MOVE, Line, Lines
from card_envs.opponents.networks.afterstates import MOST_AHEAD, SETTLED_BY_ALL, follow
from card_envs.opponents.networks.ntuples import NO_WEIGHTS, most_of, planning_scratch, value_all, way_to, worth_at
from card_envs.opponents.value import NO_NET, Net, value_of

FIRST_LOOK = 8  # worlds after which lines are judged
MOST_DRAWS = 12  # for a world that explains what the others did
ALL_MOVES = 1 << 40  # no deal has as many
FRACTION = 64.0  # of a point: what a network says is rounded to it

Floats = NDArray[np.float64]
Weights = NDArray[np.float32]


class Budget(NamedTuple):
    """How much a search does.

    Attributes:
        worlds: after which one rival of the own line is left.
        most: worlds for that one, while it is in doubt.
        doubt: standard errors by which another line must be better than the own one.
        luck: standard deviations that a mean lead is given to move by to the end.
        steps: steps of a Markov chain that make a world explain better what the others did.
    """

    worlds: int
    most: int
    doubt: float
    luck: float
    steps: int


class Ending(NamedTuple):
    """How a line is played out.

    Attributes:
        horizon: moves that are played at most, or for an n-tuple network looks at hidden cards, of which the last is
            not taken; then the network says what the position is worth.
        net: of positions at the horizon.
        weights: [W] of an n-tuple network that is asked in place of `net`; [0] where there is none.
        share: of a result that comes from playing on to the end all the same, after the n-tuple network was asked.
    """

    horizon: int
    net: Net = NO_NET
    weights: Weights = NO_WEIGHTS
    share: float = 0.0


class Trials(NamedTuple):
    """What became of the lines: of each table [B, C] or of one [C].

    Attributes:
        sums: of the results (`score_margin` of the mover).
        squares: of these, summed.
        leads: of the results over those of the own line in the same worlds, summed.
        lead_squares: of these, summed.
        worlds: in which the line was tried.
    """

    sums: Floats
    squares: Floats
    leads: Floats
    lead_squares: Floats
    worlds: Int64s


class Race(NamedTuple):
    """How far the searches of B tables have come.

    Attributes:
        worlds: [B] that were tried.
        rivals: [B] lines besides the own one that are left; 0 where nothing is left to find out.
    """

    worlds: Int64s
    rivals: Int64s


class Tables(NamedTuple):
    """What is searched.

    Attributes:
        states: [B].
        keys: [B] of the streams of the worlds.
        lines: [B, C, L] moves; NO_MOVE where a line has ended.
        own: [B] the lines that need no reason.
        live: [B, C] their rivals that are left.
        race: how far it has come.
    """

    states: NDArray[Any]
    keys: UInt64s
    lines: Lines
    own: Int64s
    live: Int8s
    race: Race


class Scratch(NamedTuple):
    """What one thread works with.

    Attributes:
        states: [ROOM] the world, what a line makes of it, and room to improve the world in.
        stream: [1] of the world.
        full: [D] a full state, padded to a multiple of 8.
        layers: [2, widest] of the value network.
        planning: what the n-tuple network is asked with.
        line: [LONGEST] its moves.
    """

    states: NDArray[Any]
    stream: UInt64s
    full: Int8s
    layers: NDArray[np.float32]
    planning: Any
    line: Line


TO_THE_END = Ending(ALL_MOVES)


def no_trials(shape: tuple[int, ...]) -> Trials:
    """Before anything is tried."""
    sums, squares, leads, lead_squares = np.zeros((4, *shape))
    return Trials(sums, squares, leads, lead_squares, np.zeros(shape, np.int64))


def new_scratch(game: Game, net: Net, most: int = 1) -> Scratch:
    """For one thread; an n-tuple network that plays looks at so many positions."""
    planning, line = planning_scratch(game, most), np.zeros(LONGEST, np.int16)
    full, layers = np.zeros(len(net.first) - 1, np.int8), np.zeros((2, max(net.second.shape)), np.float32)
    return Scratch(np.zeros(SCRATCH_STATES, game.rules.STATE), np.zeros(1, np.uint64), full, layers, planning, line)


def enter_race(own: Int64s, live: Int8s) -> Race:
    """At the start.

    Args:
        own: [B] the lines that need no reason.
        live: [B, C] the lines to try; the own one is taken out: it is tried everywhere, and never dropped.
    """
    live[np.arange(len(own)), own] = 0
    rivals = live.sum(axis=1, dtype=np.int64)
    return Race(np.zeros_like(rivals), rivals)


def stage_end(i: int, budget: Budget, race: Race) -> int:
    """The number of worlds after which the lines of a table are judged next."""
    tried = race.worlds[i]
    if race.rivals[i] == 0:
        return tried
    end = FIRST_LOOK
    while end <= tried:  # 8, 16, 32 …
        end *= 2
    return max(tried, min(end, budget.worlds if tried < budget.worlds else budget.most))


def try_stage(
    first: int, last: int, parts: int, states: NDArray[Any], keys: UInt64s, lines: Lines, own: Int64s, live: Int8s,
    race: Race, budget: Budget, ending: Ending, values: Floats | None, scratch: Scratch, trials: Trials,
) -> int:  # fmt: skip
    """Try the lines of tables in the worlds of the stage at hand, from what the seat to move knows.

    Args:
        first, last: which items; `parts` items in a row share the worlds of a table.
        parts: see there.
        states: [B]; they stay as they are.
        keys: [B] of the streams of the worlds.
        lines: [B, C, L] moves.
        own: [B] the lines that need no reason.
        live: [B, C] their rivals.
        race: how far the tables have come.
        budget: how much is done.
        ending: how lines are played out.
        values: [M] scratch for an n-tuple network that plays for its seat until it is asked, looking at so many
            positions; None: `greedy` plays for it. (What is None is not compiled for that.)
        scratch: to work with.
        trials: [B * parts, C] grow.

    Returns:
        how many moves were made in all worlds.
    """
    moves = 0
    for item in range(first, last):
        i, part = item // parts, item % parts
        begin = race.worlds[i]
        number = stage_end(i, budget, race) - begin
        found = Trials(
            trials.sums[item], trials.squares[item], trials.leads[item], trials.lead_squares[item], trials.worlds[item]
        )
        for world in range(begin + number * part // parts, begin + number * (part + 1) // parts):
            scratch.stream[0] = derive(keys[i], world)
            draw_likely_world(states[i], budget.steps, scratch.stream, scratch.states)
            moves += try_lines(lines[i], own[i], live[i], ending, values, scratch, found)
    return moves


def judge_stage(first: int, last: int, live: Int8s, budget: Budget, race: Race, trials: Trials) -> int:
    """Drop what falls behind after a stage; returns how many tables have more to find out."""
    unsettled = 0
    for i in range(first, last):
        tried = stage_end(i, budget, race)
        if tried > race.worlds[i]:
            race.worlds[i] = tried
            leads, squares = trials.leads[i], trials.lead_squares[i]
            if tried >= FIRST_LOOK and tried & (tried - 1) == 0:
                race.rivals[i] = drop_clear_cases(tried, live[i], budget, race.rivals[i], leads, squares)
            room = max(budget.worlds // tried, 1)
            if race.rivals[i] > room:
                drop_worst(live[i], race.rivals[i] - room, leads)
                race.rivals[i] = room
        unsettled += race.rivals[i] > 0 and tried < budget.most
    return unsettled


def draw_likely_world(state: State, steps: int, stream: UInt64s, states: NDArray[Any]) -> None:
    """A world into states[0]: one drawn in proportion to how well it explains what the others did.

    The first that is accepted with that probability, which is exact; where none is, one of all that were drawn, in
    proportion (sampling, importance resampling: Rubin 1987), and so many steps of a Markov chain from there. The other
    states are room to work in.
    """
    total = 0.0
    for _ in range(MOST_DRAWS):
        states[1] = state
        draw_world(states[1], state.seat, stream)
        likely = likelihood(states[1], state.seat)
        total += likely
        accepted = likely == 1 or uniform(stream) < likely
        if accepted or uniform(stream) * total < likely:
            states[0] = states[1]
        if accepted:
            return
    refine_world(states, states[0].seat, steps, stream)


def result_of(state: State, seat: int, ending: Ending, values: Floats | None, scratch: Scratch) -> tuple[int, float]:
    """Play on in the world at hand; returns how many moves that took, and the result."""
    moves = 0
    if ending.weights.shape[0] == 0:
        moves = play_on(state, ending.horizon)
        result = float(score_margin(state, seat))
        if not state.needs_deal:
            observe_all(state, seat, scratch.full)
            result += value_of(scratch.full, ending.net, scratch.layers)
    else:
        if values is not None:
            moves = follow_network(state, seat, ending, values, scratch)
        elif not state.needs_deal:
            moves = follow(state, bot_move(state), seat, SETTLED_BY_ALL, ending.horizon - 1, MOST_AHEAD)
        result = float(score_margin(state, seat))
        if not state.needs_deal:
            load(state, seat, scratch.planning)
            result = worth_at(0, ending.weights, scratch.planning)
            if ending.share > 0:
                moves += play_on(state, ALL_MOVES)
                result += ending.share * (float(score_margin(state, seat)) - result)
    return moves, np.rint(FRACTION * result) / FRACTION


def follow_network(state: State, seat: int, ending: Ending, values: Floats, scratch: Scratch) -> int:
    """As `follow`, but the n-tuple network plays for the seat, a stretch at a time."""
    line = scratch.line
    moves = shown = 0
    while moves < MOST_AHEAD and not state.needs_deal:
        if state.seat == seat:
            known = value_all(state, ending.weights, scratch.planning, values, line)
            number = way_to(most_of(values, known), state, scratch.planning, line)
        else:
            line[0] = bot_move(state)
            number = 1
        for step in range(number):
            shown += reveals(state, line[step])
            if shown == ending.horizon:
                return moves
            play(state, line[step])
            moves += 1
    return moves


def play_on(state: State, most: int) -> int:
    """Play by the scripted player to the end, or so many moves; returns how many they were."""
    moves = 0
    while moves < most and not state.needs_deal:
        play(state, bot_move(state))
        moves += 1
    return moves


def try_lines(
    lines: Lines, own: int, live: Int8s, ending: Ending, values: Floats | None, scratch: Scratch, trials: Trials
) -> int:
    """Play the own line and its rivals out in the world at hand; returns how many moves that took."""
    seat = scratch.states[0].seat
    own_result = 0.0
    moves = 0
    for turn in range(live.shape[0] + 1):
        line = turn - 1 if turn else own
        if turn and live[line] == 0:
            continue
        scratch.states[1] = scratch.states[0]
        state = scratch.states[1]
        for step in range(lines.shape[1]):
            if lines[line, step] == NO_MOVE:
                break
            play(state, lines[line, step])
            moves += 1
        played, result = result_of(state, seat, ending, values, scratch)
        moves += played
        if turn == 0:
            own_result = result
        lead = result - own_result
        trials.sums[line] += result
        trials.squares[line] += result * result
        trials.leads[line] += lead
        trials.lead_squares[line] += lead * lead
        trials.worlds[line] += 1
    return moves


def drop_clear_cases(tried: int, live: Int8s, budget: Budget, rivals: int, leads: Floats, squares: Floats) -> int:
    """Take out whoever would not be chosen at the end even with luck; returns the rivals left.

    Returns 0 as well where the last one, which stays among the live then, would be chosen even with bad luck.
    """
    decided = False
    left = rivals
    for line in range(live.shape[0]):
        if live[line]:
            lead = leads[line] / tried
            variance = max(squares[line] / tried - lead * lead, 0.0)
            still = budget.luck * np.sqrt(
                variance * (1 / tried - 1 / budget.most)
            )  # how far the mean may move to the end
            wanted = budget.doubt * np.sqrt(variance / budget.most)
            if lead + still <= wanted:  # such as who has done like the own line everywhere
                live[line] = 0
                left -= 1
            elif lead - still >= wanted:
                decided = rivals == 1
    return 0 if decided else left


def drop_worst(live: Int8s, number: int, leads: Floats) -> None:
    """Take out, of the live lines [C], as many as `number` with the lowest `leads` [C]; of equal ones the last."""
    for _ in range(number):
        worst = -1
        for line in range(live.shape[0]):
            if live[line] and (worst < 0 or leads[line] <= leads[worst]):
                worst = line
        live[worst] = 0


def choose_lines(own: Int64s, live: Int8s, doubt: float, trials: Trials) -> Int64s:
    """[B] the best rival that is left, if it is better beyond doubt; else the own line."""
    leads = np.where(live != 0, trials.leads, -np.inf)
    best = leads.argmax(axis=1)
    rows = np.arange(len(own))
    lead, squares, worlds = leads[rows, best], trials.lead_squares[rows, best], trials.worlds[rows, best]
    with np.errstate(invalid="ignore"):
        better = (lead > 0) & (lead * lead >= doubt * doubt * (squares - lead * lead / np.maximum(worlds, 1)))
    return np.where(better, best, own)
