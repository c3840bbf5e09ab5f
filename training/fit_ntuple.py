"""`python -m training.fit_ntuple GAME --out FOLDER`: an n-tuple network that learns what positions are worth.

It plays deals by itself, each stretch of moves towards the position that it values most, and learns from the end
backwards (temporal differences: Sutton 1988) what each of these came to. Each weight has a rate of its own, which falls
as its errors cancel out (temporal coherence: Beal & Smith 1999; in n-tuple networks: Jaśkowski 2018). For games with a
`planner.py`, which says which weights count. Needs no torch.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from rich.progress import Progress

from card_envs.__main__ import parse_options
from card_envs.compare.pairs import play_pairs
from card_envs.engine.batch import BatchEnv
from card_envs.engine.compile import specialize
from card_envs.engine.dealing import deal_next
from card_envs.engine.rng import advance, below, uniform
from card_envs.game import (
    Game,
    Int64s,
    State,
    UInt64s,
    active_features,
    bot_move,
    expand,
    is_terminal,
    load,
    path_to,
    play,
    score_margin,
)
from card_envs.games import get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.lines import LONGEST
from card_envs.opponents.networks.folder import check_place, golden_decisions, save_network
from card_envs.opponents.networks.ntuple_policy import NTuplePolicy
from card_envs.opponents.networks.ntuples import NOWHERE, most_of, planner_of, sum_at, value_at
from training.command import command, console
from training.leads import PLAYER

MOST_POSITIONS = 512  # of a deal and a seat that are learned from
ALL = -1  # seats learn
FINAL_SEED = 2  # of the deals that report the strength
DEALS_AT_ONCE = 1000
ROOM = 512  # positions looked at where nothing more will show

Floats = NDArray[np.float32]


class Learner(NamedTuple):
    """What is learned.

    Attributes:
        weights: [W].
        sums: [W] of the errors at each.
        sizes: [W] of the same without their signs.
    """

    weights: Floats
    sums: Floats
    sizes: Floats


class Trail(NamedTuple):
    """The positions of a deal that each of S seats went to.

    Attributes:
        marks: [S, T, M] which weights count.
        numbers: [S, T] how many do.
        values: [S, T] what the position was thought to be worth.
        lengths: [S] how many there are.
    """

    features: NDArray[np.int32]
    numbers: Int64s
    values: NDArray[np.float64]
    lengths: Int64s


class Scratch(NamedTuple):
    """What one thread works with.

    Attributes:
        planning: what it plans with.
        values: [M] of positions.
        line: [LONGEST] moves.
        stream: [1] decides who plays.
    """

    planning: Any
    values: NDArray[np.float64]
    line: NDArray[np.int16]
    stream: UInt64s


def learn_deals(
    first: int, last: int, states: NDArray[Any], learner: Learner, blend: float, share: float, most: int,
    scratch: Scratch, trail: Trail, results: NDArray[np.float64],
) -> None:  # fmt: skip
    """Play and learn from deals.

    Args:
        first, last: which deals, all at the first table.
        states: [1] that table.
        learner: is changed.
        blend: how much a position learns from the end of the deal (lambda); the rest from the one after it.
        share: of the deals, in which one seat learns and `greedy` has the others; in the rest all learn.
        most: positions looked at before something shows.
        scratch: to plan with, for at least so many.
        trail: scratch.
        results: [B] gets the points of the seat that learned alone, else nan.
    """
    num_seats = trail.lengths.shape[0]
    for i in range(first, last):
        deal_next(states[0])
        alone = below(advance(scratch.stream), num_seats)
        if num_seats > 1 and uniform(scratch.stream) >= share:
            alone = ALL
        play_deal(states[0], alone, learner.weights, most, scratch, trail)
        results[i] = np.nan
        for seat in range(num_seats):
            if alone in (ALL, seat):
                result = float(score_margin(states[0], seat))
                learn_trail(seat, result, learner, blend, trail)
                if alone == seat:
                    results[i] = result
        states[0].over = states[0].needs_deal = True


def play_deal(state: State, alone: int, weights: Floats, most: int, scratch: Scratch, trail: Trail) -> None:
    """Play a deal by the network, or one seat of it, and note where it went; to the end or to where nothing changes."""
    planning, values, line = scratch.planning, scratch.values, scratch.line
    for seat in range(trail.lengths.shape[0]):
        trail.lengths[seat] = 0
    while not state.needs_deal:
        seat = state.seat
        if alone != ALL and seat != alone:
            play(state, bot_move(state))
            continue
        load(state, seat, planning)
        known = expand(planning, most, LONGEST - 1)
        for k in range(known):
            values[k] = value_at(k, weights, planning)
        best = most_of(values, known)
        if values[best] == NOWHERE:
            best = known - 1
            values[best] = sum_at(best, weights, planning)
        number = path_to(planning, best, line)
        if number == 0:  # no way on was found that brings more
            return
        if not is_terminal(planning, best):
            note_position(seat, values[best], active_features(planning, best), planning.features, trail)
        for step in range(number):
            play(state, line[step])


def note_position(seat: int, value: float, number: int, features: Int64s, trail: Trail) -> None:
    """Append a position that a seat goes to, while there is room."""
    t = trail.lengths[seat]
    if t < trail.numbers.shape[1]:
        for j in range(number):
            trail.features[seat, t, j] = features[j]
        trail.numbers[seat, t], trail.values[seat, t] = number, value
        trail.lengths[seat] = t + 1


def learn_trail(seat: int, result: float, learner: Learner, blend: float, trail: Trail) -> None:
    """Learn from a seat's result, from the end of the deal backwards."""
    goal = result
    for t in range(trail.lengths[seat] - 1, -1, -1):
        number = trail.numbers[seat, t]
        value = 0.0
        for j in range(number):
            value += learner.weights[trail.features[seat, t, j]]
        error = np.float32(goal - value)
        for j in range(number):
            w = trail.features[seat, t, j]
            rate = abs(learner.sums[w]) / learner.sizes[w] if learner.sizes[w] > 0 else np.float32(1)
            learner.weights[w] += error * rate / np.float32(number)
            learner.sums[w] += error
            learner.sizes[w] += abs(error)
        goal = (1 - blend) * trail.values[seat, t] + blend * goal


class Learning:
    """A network that plays by itself.

    Attributes:
        learner: what it has learned.
        deals: that it has played.
    """

    def __init__(self, game: Game, seed: int, blend: float, most: int, options: dict[str, Any], share: float) -> None:
        planner = planner_of(game)
        self.game = game
        self.blend, self.share = blend, share
        self.most = most
        self.env = BatchEnv(game, 1, seed, options=options)
        self.learner = Learner(*np.zeros((3, planner.NUM_WEIGHTS), np.float32))
        self.learner.weights[0] = 1
        self.deals = 0
        room = max(most, ROOM)
        planning = planner.new_scratch(room)
        stream = np.array([seed], np.uint64)
        self.scratch = Scratch(planning, np.zeros(room), np.zeros(LONGEST, np.int16), stream)
        shape = game.rules.NUM_SEATS, MOST_POSITIONS
        features, lengths = np.zeros((*shape, len(planning.features)), np.int32), np.zeros(shape[0], np.int64)
        self.trail = Trail(features, np.zeros(shape, np.int64), np.zeros(shape), lengths)

    def go_on(self, deals: int) -> NDArray[np.float64]:
        """Play so many deals; returns the points of each, of the one seat that learned, or nan where all did."""
        results = np.zeros(deals)
        specialize(learn_deals, self.game, PLAYER)(
            0, deals, self.env.states, self.learner, self.blend, self.share, self.most, self.scratch, self.trail,
            results,
        )  # fmt: skip
        self.deals += deals
        return results

    def policy(self) -> NTuplePolicy:
        """The network as it is now."""
        return NTuplePolicy(self.game, {"weights": self.learner.weights.copy()}, sampled=False)


def main(
    game_name: Annotated[str, typer.Argument(metavar="GAME", help="one that has a planner.py")],
    out: Annotated[Path, typer.Option(help="an opponent's folder; OUT.jsonl gets the curve")],
    minutes: Annotated[float, typer.Option(min=0.0, help="of learning, in processor time")] = 10.0,
    blend: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="lambda: 0 learns from the next position, 1 from the deal's end")
    ] = 0.5,
    most: Annotated[int, typer.Option(min=1, help="positions looked at between two looks at hidden cards")] = 64,
    greedy_share: Annotated[
        float, typer.Option(min=0.0, max=1.0, help=f"of the deals: one seat learns, {PLAYER} has the others")
    ] = 0.5,
    pairs: Annotated[int, typer.Option(min=2, help=f"of deals, with {PLAYER} on the same ones, that report")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="of deals")] = 0,
    option: Annotated[list[str], typer.Option(help="of the game: name=value")] = [],  # noqa: B006
) -> None:
    """Learn by self-play and save the network; Ctrl-C saves nothing."""
    game = get_game(game_name)
    check_place(out)
    options = parse_options(option)
    learning = Learning(game, seed, blend, most, options, greedy_share)
    with console.status("compiling"):
        learning.go_on(1)
    learn(learning, minutes, out.with_name(f"{out.name}.jsonl"))
    policy = learning.policy()
    result = play_pairs(game, policy, load_opponent(PLAYER, game), pairs, FINAL_SEED, options=options)
    strength = [{"against": PLAYER, "seed": FINAL_SEED, "options": options, **result.as_dict()}]
    figures = {"algorithm": "td", "deals": learning.deals, "minutes": minutes, "seed": seed}
    figures |= {"blend": blend, "most": most, "greedy_share": greedy_share}
    save_network(out, policy, golden_decisions(game, options), training=figures, strength=strength)
    console.print(f"{learning.deals:,} deals; {result.in_words()} against {PLAYER}: {out}", highlight=False)


def learn(learning: Learning, minutes: float, log: Path) -> None:
    """Go on for some minutes, and write a line on each twentieth of them."""
    start = time.process_time()
    spent, logged = 0.0, 0.0
    results: list[NDArray[np.float64]] = []
    with Progress(console=console, transient=True) as progress, log.open("w", encoding="utf-8") as file:
        task = progress.add_task("", total=1.0)
        while spent < 1:
            found = learning.go_on(DEALS_AT_ONCE)
            results.append(found[~np.isnan(found)])
            spent = (time.process_time() - start) / max(60 * minutes, 1e-9)
            progress.update(task, completed=spent, description=f"{learning.deals:,} deals")
            if spent >= logged + 0.05:
                logged = spent
                line = {"deals": learning.deals, "spent": round(spent, 4)}
                measured = np.concatenate(results)
                if len(measured):
                    line["points"] = round(float(measured.mean()), 2)
                file.write(json.dumps(line) + "\n")
                file.flush()
                results.clear()


app = command(main)

if __name__ == "__main__":
    app()
