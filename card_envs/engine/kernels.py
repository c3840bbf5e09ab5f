"""The loops over tables, written once for all games; `compile.py` binds them to a game's rules.

Arguments are arrays and indices, never records: from Python a record argument costs ten times an array. Loops work
on the tables first <= i < last, so that threads can share a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from card_envs.engine.rng import uniform
from card_envs.engine.value import value_of
from card_envs.game import (
    Int8s,
    Int64s,
    UInt64s,
    arrange,
    bot_move,
    deal,
    greedy,
    legal,
    observe,
    observe_all,
    plausibility,
    play,
    random_move,
    redeal_hidden,
    standing,
    tally,
    trivial,
)

# Who plays a seat in `play_on`: a caller with a policy of its own, or compiled code.
ASK, RANDOM, TRIVIAL, GREEDY = range(4)

# Search: the first count of worlds after which moves are judged, the standard errors that decide then, and the worlds
# in which a move must have had the same results as another to count as the same.
FIRST_LOOK, CLEARLY, ALIKE = 8, 3.0, 32
MOST_DRAWS = 12  # for a world that explains what the others did


def reset_tables(states: Any, keys: UInt64s, first: int, last: int) -> None:
    """Begin a new episode on each table, keyed by `keys` [B]."""
    for i in range(first, last):
        states[i].over = True
        states[i].rng = keys[i]
        deal(states[i])


def look_tables(states: Any, obs: Int8s, mask: Int8s, seat: Int8s, first: int, last: int) -> None:
    """Write observation, mask and seat to move of each table."""
    for i in range(first, last):
        state = states[i]
        seat[i] = state.seat
        observe(state, state.seat, obs[i])
        legal(state, mask[i])


def observe_all_tables(states: Any, seat: Int8s, full: Int8s, first: int, last: int) -> None:
    """Write the full state of each table, seen from the seats given."""
    for i in range(first, last):
        observe_all(states[i], seat[i], full[i])


def find_illegal(mask: Int8s, actions: Any, first: int, last: int) -> int:
    """The first table whose action its mask forbids, or -1."""
    for i in range(first, last):
        if actions[i] < 0 or actions[i] >= mask.shape[1] or mask[i, actions[i]] == 0:
            return i
    return -1


def step_tables(
    states: Any, actions: Any, obs: Int8s, mask: Int8s, seat: Int8s, rewards: Any, done: Any,
    skip_forced: bool, first: int, last: int,
) -> None:  # fmt: skip
    """Play one action on each table, deal whatever ended, and look.

    `rewards` [B, S] are summed up to the next decision. With `skip_forced`, decisions with one legal action are
    played at once, but never on from the end of an episode.
    """
    num_seats = rewards.shape[1]
    for i in range(first, last):
        state = states[i]
        play(state, actions[i])
        for s in range(num_seats):
            rewards[i, s] = state.rewards[s]
        done[i] = state.over
        while True:
            while state.needs_deal:
                deal(state)
            num_legal = legal(state, mask[i])
            if num_legal > 1 or not skip_forced or done[i]:
                break
            action = 0
            while mask[i, action] == 0:
                action += 1
            play(state, action)
            for s in range(num_seats):
                rewards[i, s] += state.rewards[s]
            done[i] = state.over
        seat[i] = state.seat
        observe(state, state.seat, obs[i])


def play_at(states: Any, tables: Any, actions: Any, payees: Int8s, paid: Any, first: int, last: int) -> None:
    """Play `actions` [n] at the tables numbered `tables` [n] and deal on; ended episodes stay as they are.

    What a table's seat `payees` [B] gets is added to `paid` [B].
    """
    for k in range(first, last):
        i = tables[k]
        state = states[i]
        play(state, actions[k])
        paid[i] += state.rewards[payees[i]]
        while state.needs_deal and not state.over:
            deal(state)


def random_actions(states: Any, streams: UInt64s, actions: Any, first: int, last: int) -> None:
    """A uniform legal action for each table; `streams` [B] move on."""
    for i in range(first, last):
        actions[i] = random_move(states[i], streams[i : i + 1])


def bot_actions(states: Any, actions: Any, first: int, last: int) -> None:
    """The move of the game's bot that this loop is bound to (`trivial`, `greedy`), for each table."""
    for i in range(first, last):
        actions[i] = bot_move(states[i])


def deal_table(states: Any, i: int) -> None:
    deal(states[i])


def arrange_table(states: Any, i: int, pack: Int8s) -> None:
    arrange(states[i], pack)


def play_table(states: Any, i: int, action: int) -> None:
    play(states[i], action)


def legal_table(states: Any, i: int, mask: Int8s) -> int:
    return legal(states[i], mask)


def observe_table(states: Any, i: int, seat: int, obs: Int8s) -> None:
    observe(states[i], seat, obs)


def observe_all_table(states: Any, i: int, seat: int, full: Int8s) -> None:
    observe_all(states[i], seat, full)


def redeal_tables(states: Any, seat: Int8s, keys: UInt64s, first: int, last: int) -> None:
    """Draw anew what `seat` [B] can't know on each table, from one key a table."""
    for i in range(first, last):
        redeal_hidden(states[i], seat[i], keys[i : i + 1])


def random_playout(states: Any, streams: UInt64s, decisions: int, first: int, last: int) -> int:
    """Play `decisions` random moves on each table, dealing on; returns how many episodes ended."""
    ended = 0
    for i in range(first, last):
        state = states[i]
        stream = streams[i : i + 1]
        for _ in range(decisions):
            play(state, random_move(state, stream))
            if state.needs_deal:
                if state.over:
                    ended += 1
                deal(state)
    return ended


def bot_playout(states: Any, decisions: int, first: int, last: int) -> int:
    """The same with the moves of the bot that this loop is bound to."""
    ended = 0
    for i in range(first, last):
        state = states[i]
        for _ in range(decisions):
            play(state, bot_move(state))
            if state.needs_deal:
                if state.over:
                    ended += 1
                deal(state)
    return ended


def play_on(
    states: Any, actions: Any, players: Int8s, kinds: Int8s, streams: UInt64s, mask: Int8s, moves: Any, rewards: Any,
    log: Any, counts: Int64s, first: int, last: int,
) -> None:  # fmt: skip
    """Play each table to the end of its episode, or to the next decision of a player that must be asked.

    Deals on within the episode, never after it: an ended table keeps its last state.

    Args:
        states: [B].
        actions: [B] the answer to the decision that the table waits for, or -1.
        players: [B, S] who sits where, as indices of `kinds`.
        kinds: [P] `ASK`, `RANDOM`, `TRIVIAL` or `GREEDY`. Who is `ASK` is not asked where one action is legal.
        streams: [B] for random moves; they move on.
        mask: [A] scratch.
        moves: [B, P] grows by the moves that each player made.
        rewards: [B, S] grows by the rewards.
        log: [B, any] the episode's moves are entered, as far as there is room.
        counts: [N, P, NUM_COUNTS] grow by the `tally` of each player's seats at the end of each deal; B / N tables
            in a row share a row.
    """
    tables_a_row = states.shape[0] // counts.shape[0]
    for i in range(first, last):
        state = states[i]
        stream = streams[i : i + 1]
        row = i // tables_a_row
        num_moves = moves[i].sum()
        action = actions[i]
        while True:
            while state.needs_deal and not state.over:
                deal(state)
            if state.over:
                break
            player = players[i, state.seat]
            if action < 0:
                kind = kinds[player]
                if kind == GREEDY:
                    action = greedy(state)
                elif kind == TRIVIAL:
                    action = trivial(state)
                elif kind == RANDOM:
                    action = random_move(state, stream)
                elif legal(state, mask) > 1:
                    break
                else:
                    action = mask.argmax()
            play(state, action)
            for s in range(rewards.shape[1]):
                rewards[i, s] += state.rewards[s]
            moves[i, player] += 1
            if num_moves < log.shape[1]:
                log[i, num_moves] = action
            num_moves += 1
            if state.needs_deal:
                for s in range(rewards.shape[1]):
                    tally(state, s, counts[row, players[i, s]])
            action = -1


def sum_counts(counts: Int64s, numerators: Any, denominators: Any, sums: Any) -> None:
    """Add up what estimates of ratios need (`compare/tallies.py`).

    Args:
        counts: [N, NUM_COUNTS].
        numerators, denominators: [R] which counts are x and y of each ratio.
        sums: [R, 5] of x, y, xx, xy, yy.
    """
    for i in range(counts.shape[0]):
        for r in range(len(sums)):
            x = counts[i, numerators[r]]
            y = counts[i, denominators[r]]
            sums[r, 0] += x
            sums[r, 1] += y
            sums[r, 2] += x * x
            sums[r, 3] += x * y
            sums[r, 4] += y * y


def finish_tables(states: Any, seats: Int8s, gained: Any, first: int, last: int) -> None:
    """Let the bot that this loop is bound to play each deal to its end: what that gains `seats` [B] in `standing`."""
    for i in range(first, last):
        state = states[i]
        before = standing(state, seats[i])
        while not state.needs_deal:
            play(state, bot_move(state))
        gained[i] = standing(state, seats[i]) - before


def search_tables(
    states: Any, keys: UInt64s, num_worlds: int, doubt: float, own: Any, live: Int8s, horizon: int, net: Any,
    scratch: Any, sums: Any, squares: Any, worlds: Any, chosen: Any, first: int, last: int,
) -> int:  # fmt: skip
    """Choose a move at each table by trying moves in worlds that fit what the seat to move knows.

    Every move is tried in the same worlds, drawn the more often the better they explain what the others did; the bot
    that this loop is bound to plays on, to the end of the deal or for `horizon` moves, after which a network says what
    the position is worth. The own move stands against all others: these lose their worse half in each of as many
    rounds as leave one of them (sequential halving: Karnin, Koren & Somekh 2013), whoever is clearly behind leaves
    earlier (racing: Maron & Moore 1994), and the last one is played if it is better beyond doubt. Returns how many
    moves were made in all these worlds.

    Args:
        states: [B]; they stay as they are.
        keys: [B] streams of the worlds; they move on.
        num_worlds: for the moves that stay to the end.
        doubt: standard errors by which another move must be better than the own one.
        own: [B] the moves that need no reason.
        live: [B, A] the moves to try, the own one among them; those that fell behind are taken out.
        horizon: moves after the first that are played out at most.
        net: the arrays of `value_of`.
        scratch: [2] States to work with.
        sums, squares: [B, A] get the sum of each move's results (`standing` of the mover) and of their squares.
        worlds: [B, A] gets how many worlds each move was tried in.
        chosen: [B] gets the moves.
    """
    num_actions = live.shape[1]
    weights, second, last_weights = net
    full = np.zeros(weights.shape[0] - 1, np.int8)
    layers = np.zeros((2, max(second.shape[0], second.shape[1])), np.float32)
    leads = np.zeros(num_actions)  # sums of squared leads over the own move
    moves = 0
    for i in range(first, last):
        seat = states[i].seat
        best = own[i]
        chosen[i] = best
        live[i, best] = 0
        leads[:] = 0
        rivals = 0
        for action in range(num_actions):
            rivals += live[i, action]
        rounds = 1
        while (1 << rounds) < rivals:
            rounds += 1
        done = 0
        for world in range(1, num_worlds + 1 if rivals > 0 else 0):
            for _ in range(MOST_DRAWS):
                scratch[0] = states[i]
                redeal_hidden(scratch[0], seat, keys[i : i + 1])
                likely = plausibility(scratch[0], seat)
                if likely == 1 or uniform(keys[i : i + 1]) < likely:
                    break
            own_result = 0.0
            for turn in range(num_actions + 1):
                action = turn - 1 if turn else best
                if turn and live[i, action] == 0:
                    continue
                scratch[1] = scratch[0]
                state = scratch[1]
                play(state, action)
                left = horizon
                while left > 0 and not state.needs_deal:
                    play(state, bot_move(state))
                    left -= 1
                moves += horizon - left + 1
                result = float(standing(state, seat))
                if not state.needs_deal:
                    observe_all(state, seat, full)
                    result += value_of(full, weights, second, last_weights, layers)
                if turn == 0:
                    own_result = result
                sums[i, action] += result
                squares[i, action] += result * result
                leads[action] += (result - own_result) ** 2
                worlds[i, action] += 1
            if world >= FIRST_LOOK and world & (world - 1) == 0:  # 8, 16, 32 …
                decided = False
                for action in range(num_actions):
                    if live[i, action]:
                        lead = sums[i, action] - sums[i, best]
                        clear = lead * lead >= CLEARLY * CLEARLY * (leads[action] - lead * lead / world)
                        if lead > 0:
                            decided |= clear and rivals == 1
                        elif clear and (lead < 0 or world >= ALIKE):
                            live[i, action] = 0
                            rivals -= 1
                if decided or rivals == 0:
                    break
            while done < rounds and world * rounds >= num_worlds * (done + 1):
                done += 1
                for _ in range(rivals // 2):
                    worst = -1
                    for action in range(num_actions):
                        if live[i, action] and (worst < 0 or sums[i, action] <= sums[i, worst]):
                            worst = action
                    live[i, worst] = 0
                rivals -= rivals // 2
        for action in range(num_actions):  # at most one, and like the own move it has been in all worlds
            if live[i, action]:
                lead = sums[i, action] - sums[i, best]
                if lead > 0 and lead * lead >= doubt * doubt * (leads[action] - lead * lead / worlds[i, action]):
                    chosen[i] = action
    return moves
