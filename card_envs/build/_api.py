"""Define the C interface of a game: its rules, and its players with the memory that each needs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.build import _functions as functions
from card_envs.compiling._exported import Local, Number, Pointer, memory_of
from card_envs.compiling._specialize import Functions
from card_envs.game import GREEDY, Game
from card_envs.opponents.macros import MAX_LENGTH
from card_envs.opponents.names import load_opponent
from card_envs.opponents.networks._afterstate_network import AfterstateNetwork
from card_envs.opponents.phased import PhasedPolicy
from card_envs.opponents.search import SearchPolicy
from card_envs.opponents.search._budget import Budget
from card_envs.opponents.search._decide import SearchBatch, SearchWorkspace, new_results, new_workspace
from card_envs.opponents.search._lines import new_line_scratch
from card_envs.opponents.search._parts import NoArrays, moves_part, ranks_macros, scripted_moves
from card_envs.opponents.search._workers import limit_arms
from card_envs.reviews._judge import WORLDS

ERRORS = {
    functions.ILLEGAL: "the action is not legal",
    functions.NO_DECISION: "no decision is due: deal first",
    functions.DEAL_NOT_DUE: "no deal is due: a decision is",
    functions.NO_SEAT: "there is no such seat",
}


class Export(NamedTuple):
    """A function to export.

    Attributes:
        name: its name in the API, after the game's prefix.
        function: the loop.
        arguments: the loop's arguments, as `_exported.export_function` takes them.
        parameters: declarations of the C function's parameters.
        meaning: what it does, for the header.
        bot, functions: arguments of `specialize`.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    parameters: tuple[str, ...]
    meaning: str
    bot: str = ""
    functions: Functions = ()


class ExportedPlayer(NamedTuple):
    """An opponent as exported functions, and the memory that they work in.

    Attributes:
        exports: the function that advises, and the one that judges moves if it searches.
        first: initial contents of the memory: offsets with arrays; the rest is zero.
        size: bytes of the memory.
    """

    exports: list[Export]
    first: list[tuple[int, NDArray[Any]]]
    size: int


def exports_of_rules(game: Game) -> list[Export]:
    """Return the functions of a game's rules."""
    rules = game.rules
    state = Pointer(0, np.zeros(1, rules.STATE))
    mask = np.zeros(rules.NUM_ACTIONS, np.int8)
    of_state, number = "void *state", Number(1)
    read = "const void *state"
    key = np.zeros(1, np.uint64)
    return [
        Export(
            "begin", functions.begin_episode, (state, Pointer(1, key)), (of_state, "const uint64_t *seed"),
            "begin an episode and deal; the same seed deals the same cards everywhere",
        ),
        Export("deal", functions.deal, (state,), (of_state,), "deal; after the end of an episode the next one begins"),
        Export(
            "set_deal", functions.set_deal, (state, Pointer(1, np.zeros(rules.PACK_SIZE, np.int8))),
            (of_state, "const int8_t *pack"), "deal this pack, whose cards are not checked",
        ),
        Export("seat", functions.seat_to_move, (state,), (read,), "the seat to move, or NO_DECISION"),
        Export("over", functions.is_over, (state,), (read,), "1 after the end of the episode"),
        Export(
            "legal", functions.write_legal, (state, Pointer(1, mask)), (read, "int8_t *mask"),
            "write 1 for each legal action, else 0; returns how many are legal",
        ),
        Export(
            "play", functions.play_legal, (state, Local(mask), number), (of_state, "int32_t action"), "play an action"
        ),
        Export(
            "rewards", functions.write_rewards, (state, Pointer(1, np.zeros(rules.NUM_SEATS, np.float32))),
            (read, "float *rewards"), "write what the last action paid each seat",
        ),
        Export(
            "observe", functions.observe_seat, (state, number, Pointer(2, np.zeros(rules.OBS_SIZE, np.int8))),
            (read, "int32_t seat", "int8_t *observation"), "write what a seat may know",
        ),
        Export(
            "determinize", functions.redraw, (state, number, Pointer(2, key), Local(key)),
            (of_state, "int32_t seat", "const uint64_t *key"), "redraw all that a seat can't know",
        ),
        Export(
            "margin", functions.seat_margin, (state, number), (read, "int32_t seat"),
            "points of a seat's side over the best other side, so far",
        ),
        Export(
            "text", functions.index_of_text, (state, number, rules.NUM_ACTIONS), (read, "int32_t action"),
            "which of the texts an action has now",
        ),
    ]  # fmt: skip


def name_in_c(opponent: str) -> str:
    """Return an opponent's name as it is in the names of functions and files."""
    return re.sub(r"\W", "_", opponent, flags=re.ASCII)


def player_of(game: Game, name: str) -> ExportedPlayer:
    """Return an opponent as a function.

    Raises:
        ValueError: unknown name, or a kind of player that can't be exported.
    """
    rules = game.rules
    policy = load_opponent(name, game).policy
    inside: Any = scripted_moves, NoArrays()
    phase = 0, 0
    if isinstance(policy, PhasedPolicy):
        phase, inside = (policy.actions.start, policy.actions.stop), _moves(game, policy.inside, name)
        policy = policy.outside
    bot = policy.bot_name or GREEDY
    if phase != (0, 0) and bot != GREEDY:
        raise ValueError(f"{name}: can't be exported: {bot} with another policy in a phase")
    search = policy if isinstance(policy, SearchPolicy) else None
    bound, player = _export_search(game, search, name) if search else _export_answer(game, policy, name)
    worlds, stream, mask = np.zeros(1, rules.STATE), np.zeros(1, np.uint64), np.zeros(rules.NUM_ACTIONS, np.int8)
    judging = _new_judging(game, search, name, player) if search else NoArrays()
    adviser = functions.Adviser(worlds, stream, mask, phase, inside[1], player, judging)
    bound = (functions.phase_moves, inside[0]), *bound
    arrays, content, size = memory_of((_share_networks(adviser, []),), 1)
    state, values = Pointer(0, np.zeros(1, rules.STATE)), np.zeros((len(functions.ROWS), rules.NUM_ACTIONS))
    macros = np.zeros((1, MAX_LENGTH), np.int16)
    of_all = "const void *state", "void *memory"
    advise = Export(
        f"advise_{name_in_c(name)}", functions.advise,
        (state, Pointer(2, np.zeros(2, np.uint64)), Pointer(3, macros), Pointer(4, values), *arrays),
        (*of_all, "const uint64_t *keys", "int16_t *actions", "double *values"),
        "write the actions to play now, up to 32, and the values of all; returns how many actions", bot, bound,
    )  # fmt: skip
    judge = Export(
        f"judge_{name_in_c(name)}", functions.judge_action,
        (state, Pointer(2, np.zeros(1, np.uint64)), Number(3), Pointer(4, np.zeros(2)), *arrays),
        (*of_all, "const uint64_t *key", "int32_t action", "double *cost"),
        "write the cost of an action and its standard error; returns the action that the judge would play", bot, bound,
    )  # fmt: skip
    return ExportedPlayer([advise, judge] if search else [advise], content, size)


def _moves(game: Game, policy: Any, name: str) -> tuple[Any, Any]:
    """Return a function that plays like a policy, and its arrays. Raises ValueError."""
    function, arrays = moves_part(policy)
    if function is scripted_moves and not policy.bot_name:
        raise ValueError(f"{name}: can't be exported: {type(policy).__name__}")
    return function, arrays


def _export_answer(game: Game, policy: Any, name: str) -> tuple[Functions, Any]:
    """Return the functions of a player that does not search, and its arrays. Raises ValueError."""
    function, player = _moves(game, policy, name)
    return ((functions.answer, functions.answer_moves), (functions.player_moves, function)), player


def _export_search(game: Game, policy: SearchPolicy, name: str) -> tuple[Functions, Any]:
    """Return the functions of a search for one decision, and its arrays. Raises ValueError."""
    ranks, budget = ranks_macros(policy), policy.budget(None)
    if policy.seconds is not None or (policy.prior is not None and not ranks):
        raise ValueError(f"{name}: can't be exported: it keeps to a time, or asks a policy in Python")
    move, baseline = (scripted_moves, NoArrays()) if ranks else moves_part(policy.rollout)
    parts, workspace = new_workspace(policy, budget)
    bound = (functions.answer, functions.answer_search), (functions.player_moves, move), *parts
    return bound, _new_searcher(game, budget, workspace, 0, baseline)


def _new_searcher(
    game: Game, budget: Budget, workspace: SearchWorkspace, lines: int, baseline: Any
) -> functions.Searcher:
    """Return the workspace of a search for one decision with that many given lines."""
    length, num_actions = workspace.arms.macros.shape[1], game.rules.NUM_ACTIONS
    states, tried = np.zeros(1, game.rules.STATE), np.zeros((1, num_actions), np.int8)
    given_lines = np.zeros((1, lines, length), np.int16)
    batch = SearchBatch(states, np.zeros(1, np.uint64), np.zeros(1, np.int64), tried, given_lines)
    return functions.Searcher(batch, budget, workspace, new_results(1, length, num_actions), baseline)


def _new_judging(game: Game, policy: SearchPolicy, name: str, searcher: functions.Searcher) -> functions.Judging:
    """Return the workspace of a search's judge, besides that of the search."""
    is_turn = policy.moves == "turn"
    turns = searcher if is_turn else _export_search(game, replace(policy, moves="turn"), name)[1]
    budget = turns.budget.of_lines(2, WORLDS)
    pricing = _new_searcher(game, budget, limit_arms(turns.workspace, budget.candidates), 2, NoArrays())
    values = np.zeros((len(functions.ROWS), game.rules.NUM_ACTIONS))
    return functions.Judging(new_line_scratch(game), pricing.batch.lines, values, turns, pricing, is_turn)


def _share_networks(value: Any, known: list[AfterstateNetwork]) -> Any:
    """Return arguments in which equal networks are the same object."""
    if isinstance(value, AfterstateNetwork):
        for network in known:
            if all(map(np.array_equal, network, value)):
                return network
        known.append(value)
    elif isinstance(value, tuple):
        parts = [_share_networks(part, known) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
