"""The loops of `BatchEnv` and `Table`, written once for all games; `specialize` compiles them for a game's rules.

Arguments are arrays and indices, never records: passing a record from Python costs ten times as much as passing an
array. Loops work on the tables first <= i < last, so that threads can share a batch. A loop with a single other user is
defined beside that user.
"""

from __future__ import annotations

from typing import Any

from card_envs.engine.dealing import deal_next, draw_world, set_next_deal
from card_envs.engine.legality import find_illegal, pack_mask
from card_envs.game import Int8s, UInt64s, bot_move, legal, observe, observe_all, play, random_move

PAID, DEAL_DUE = 64, 128  # flags in the result of `turn_table`


def reset_tables(first: int, last: int, states: Any, keys: UInt64s) -> None:
    """Begin a new episode at each table, keyed by `keys` [B]."""
    for i in range(first, last):
        states[i].over = True
        states[i].rng = keys[i]
        deal_next(states[i])


def observe_tables(first: int, last: int, states: Any, obs: Int8s, mask: Int8s, seat: Int8s) -> None:
    """Write the observation, mask and seat to move of each table."""
    for i in range(first, last):
        state = states[i]
        seat[i] = state.seat
        legal(state, mask[i])
        observe(state, state.seat, obs[i])


def write_legal_bits(first: int, last: int, mask: Int8s, legal_bits: UInt64s) -> None:
    """Pack the mask of each table, as `step_tables` does."""
    for i in range(first, last):
        pack_mask(mask[i], legal_bits[i])


def observe_all_tables(first: int, last: int, states: Any, seat: Int8s, full: Int8s) -> None:
    """Write the full state of each table, relative to the given seats."""
    for i in range(first, last):
        observe_all(states[i], seat[i], full[i])


def step_tables(
    first: int, last: int, states: Any, actions: Any, obs: Int8s, mask: Int8s, legal_bits: UInt64s, seat: Int8s,
    rewards: Any, done: Any, skip_forced: bool,
) -> int:  # fmt: skip
    """Play one action at each table, deal if needed, and observe; nothing if any action is illegal.

    `rewards` [B, S] are summed up to the next decision. With `skip_forced`, decisions with a single legal action are
    played at once, but never beyond the end of an episode.

    Returns the first table with an illegal action, or -1.
    """
    illegal = find_illegal(first, last, legal_bits, mask.shape[1], actions)
    if illegal >= 0:
        return illegal
    for i in range(first, last):
        step_table(i, states, actions, obs[i], mask[i], legal_bits, seat, rewards, done, skip_forced)
    return -1


def step_table(
    i: int, states: Any, actions: Any, obs: Int8s, mask: Int8s, legal_bits: UInt64s, seat: Int8s, rewards: Any,
    done: Any, skip_forced: bool,
) -> None:  # fmt: skip
    """Do `step_tables` at table i, whose observation and mask go to `obs` [D] and `mask` [A]; the action is legal."""
    state = states[i]
    play(state, actions[i])
    for s in range(len(state.rewards)):
        rewards[i, s] = state.rewards[s]
    done[i] = state.over
    while True:
        while state.needs_deal:
            deal_next(state)
        num_legal = legal(state, mask)
        if num_legal > 1 or not skip_forced or done[i]:
            break
        action = 0
        while mask[action] == 0:
            action += 1
        play(state, action)
        for s in range(len(state.rewards)):
            rewards[i, s] += state.rewards[s]
        done[i] = state.over
    seat[i] = state.seat
    observe(state, state.seat, obs)
    pack_mask(mask, legal_bits[i])  # last: right after `legal`, the bytes of the mask would still be in flight


def observe_rows(
    first: int, last: int, states: Any, rows: Int8s, obs_size: int, num_actions: int, legal_bits: UInt64s, seat: Int8s
) -> None:
    """Write the observation and the mask of each table side by side into `rows` [B, W], its legal bits and seat."""
    for i in range(first, last):
        state, mask = states[i], rows[i, obs_size : obs_size + num_actions]
        seat[i] = state.seat
        legal(state, mask)
        observe(state, state.seat, rows[i, :obs_size])
        pack_mask(mask, legal_bits[i])


def step_rows(
    first: int, last: int, states: Any, actions: Any, rows: Int8s, obs_size: int, num_actions: int,
    legal_bits: UInt64s, seat: Int8s, rewards: Any, done: Any, skip_forced: bool,
) -> int:  # fmt: skip
    """Do `step_tables`, with the observation and the mask side by side in `rows` [B, W]: see `observe_rows`."""
    illegal = find_illegal(first, last, legal_bits, num_actions, actions)
    if illegal >= 0:
        return illegal
    for i in range(first, last):
        obs, mask = rows[i, :obs_size], rows[i, obs_size : obs_size + num_actions]
        step_table(i, states, actions, obs, mask, legal_bits, seat, rewards, done, skip_forced)
    return -1


def random_moves(first: int, last: int, states: Any, streams: UInt64s, actions: Any) -> None:
    """Write the action that `random_move` draws at each table; advance `streams` [B]."""
    for i in range(first, last):
        actions[i] = random_move(states[i], streams[i : i + 1])


def bot_actions(first: int, last: int, states: Any, actions: Any) -> None:
    """Write the action of the bot that this loop is specialized for (`trivial`, `greedy`) at each table."""
    for i in range(first, last):
        actions[i] = bot_move(states[i])


def deal_table(states: Any, i: int) -> None:
    deal_next(states[i])


def set_deal_table(states: Any, i: int, pack: Int8s) -> None:
    set_next_deal(states[i], pack)


def play_table(states: Any, i: int, action: int) -> None:
    play(states[i], action)


def legal_table(states: Any, i: int, mask: Int8s) -> int:
    return legal(states[i], mask)


def observe_table(states: Any, i: int, seat: int, obs: Int8s) -> None:
    observe(states[i], seat, obs)


def observe_all_table(states: Any, i: int, seat: int, full: Int8s) -> None:
    observe_all(states[i], seat, full)


def turn_table(states: Any, i: int, action: int, mask: Int8s, obs: Int8s) -> int:
    """Play an action; if a decision is due then, write the mask and observation of the seat to move.

    Returns that seat, plus PAID if any reward is not 0, plus DEAL_DUE if a deal is next; nothing is written then.
    """
    state = states[i]
    play(state, action)
    result = int(state.seat)
    for s in range(len(state.rewards)):
        if state.rewards[s] != 0:
            result |= PAID
    if state.needs_deal:
        return result | DEAL_DUE
    legal(state, mask)
    observe(state, state.seat, obs)
    return result


def determinize_tables(first: int, last: int, states: Any, seat: Int8s, keys: UInt64s) -> None:
    """Redraw what `seat` [B] can't know at each table, with one key [B] per table."""
    for i in range(first, last):
        draw_world(states[i], seat[i], keys[i : i + 1])


def random_playout(first: int, last: int, states: Any, streams: UInt64s, decisions: int) -> int:
    """Play `decisions` random moves at each table, dealing as needed; return how many episodes ended."""
    ended = 0
    for i in range(first, last):
        state = states[i]
        stream = streams[i : i + 1]
        for _ in range(decisions):
            play(state, random_move(state, stream))
            if state.needs_deal:
                if state.over:
                    ended += 1
                deal_next(state)
    return ended


def bot_playout(first: int, last: int, states: Any, decisions: int) -> int:
    """Play `decisions` moves of the bot at each table; return how many episodes ended."""
    ended = 0
    for i in range(first, last):
        state = states[i]
        for _ in range(decisions):
            play(state, bot_move(state))
            if state.needs_deal:
                if state.over:
                    ended += 1
                deal_next(state)
    return ended
