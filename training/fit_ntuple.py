"""`python -m training.fit_ntuple GAME --out FOLDER`: an n-tuple network that learns what positions are worth.

It plays deals by itself, each stretch of moves towards the position that it values most, and learns from the end
backwards (temporal differences: Sutton 1988) what each of these came to. Each weight has a rate of its own, which falls
as its errors cancel out (temporal coherence: Beal & Smith 1999; in n-tuple networks: Jaśkowski 2018). For games for one
with a `planner.py`, which says which weights count. Needs no torch.
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
from card_envs.engine.compile import bind
from card_envs.engine.dealing import deal_next
from card_envs.game import Game, Int64s, State, enter, is_final, mark, points, reach, show
from card_envs.games import get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.folder import check_place, golden_turn, save_network
from card_envs.opponents.lines import LONGEST
from card_envs.opponents.ntuple_policy import NTuplePolicy
from card_envs.opponents.ntuples import NOWHERE, most_of, planner_of, sum_at, value_at
from training.command import command, console
from training.leads import PLAYER

MOST_LOOKS = 256  # at hidden cards in a deal
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
    """The positions of a deal before something showed.

    Attributes:
        marks: [T, M] which weights count.
        numbers: [T] how many do.
        values: [T] what the position was thought to be worth.
    """

    marks: NDArray[np.int32]
    numbers: Int64s
    values: NDArray[np.float64]


def learn_deals(
    first: int, last: int, states: NDArray[Any], learner: Learner, blend: float, most: int, scratch: Any,
    values: NDArray[np.float64], trail: Trail, results: NDArray[np.float64],
) -> None:  # fmt: skip
    """Play and learn from deals.

    Args:
        first, last: which deals, all at the first table.
        states: [1] that table.
        learner: is changed.
        blend: how much a position learns from the end of the deal (lambda); the rest from the one after it.
        most: positions looked at before something shows.
        scratch: to plan with, for at least so many.
        values: [M] scratch.
        trail: scratch.
        results: [B] gets the points of each deal.
    """
    for i in range(first, last):
        deal_next(states[0])
        length, results[i] = play_deal(states[0], learner.weights, most, scratch, values, trail)
        states[0].over = states[0].needs_deal = True
        learn_trail(length, results[i], learner, blend, trail)


def play_deal(
    state: State, weights: Floats, most: int, scratch: Any, values: NDArray[np.float64], trail: Trail
) -> tuple[int, float]:
    """Play a deal by the network; returns how many positions the trail has, and the points at its end."""
    enter(state, scratch)
    length = 0
    while True:
        known = reach(scratch, most, LONGEST - 1)
        for k in range(known):
            values[k] = value_at(k, weights, scratch)
        best = most_of(values, known)
        if is_final(scratch, best):
            if values[best] == points(scratch, 0):  # no way on was found that brings more
                return length, values[best]
            show(scratch, best)
            continue
        if length == trail.numbers.shape[0]:
            return length, points(scratch, best)
        if values[best] == NOWHERE:
            best = known - 1
            values[best] = sum_at(best, weights, scratch)
        number = mark(scratch, best)
        for j in range(number):
            trail.marks[length, j] = scratch.marks[j]
        trail.numbers[length] = number
        trail.values[length] = values[best]
        length += 1
        show(scratch, best)


def learn_trail(length: int, result: float, learner: Learner, blend: float, trail: Trail) -> None:
    """Learn from the end of a deal backwards."""
    goal = result
    for t in range(length - 1, -1, -1):
        number = trail.numbers[t]
        value = 0.0
        for j in range(number):
            value += learner.weights[trail.marks[t, j]]
        error = np.float32(goal - value)
        for j in range(number):
            w = trail.marks[t, j]
            rate = abs(learner.sums[w]) / learner.sizes[w] if learner.sizes[w] > 0 else np.float32(1)
            learner.weights[w] += error * rate / np.float32(number)
            learner.sums[w] += error
            learner.sizes[w] += abs(error)
        goal = (1 - blend) * trail.values[t] + blend * goal


class Learning:
    """A network that plays by itself.

    Attributes:
        learner: what it has learned.
        deals: that it has played.
    """

    def __init__(self, game: Game, seed: int, blend: float, most: int, options: dict[str, Any]) -> None:
        planner = planner_of(game)
        self.game = game
        self.blend = blend
        self.most = most
        self.env = BatchEnv(game, 1, seed, options=options)
        self.learner = Learner(*np.zeros((3, planner.NUM_WEIGHTS), np.float32))
        self.learner.weights[0] = 1
        self.deals = 0
        room = max(most, ROOM)
        self.scratch, self.values = planner.new_scratch(room), np.zeros(room)
        marks = np.zeros((MOST_LOOKS, len(self.scratch.marks)), np.int32)
        self.trail = Trail(marks, np.zeros(MOST_LOOKS, np.int64), np.zeros(MOST_LOOKS))

    def go_on(self, deals: int) -> NDArray[np.float64]:
        """Play so many deals; returns the points of each."""
        results = np.zeros(deals)
        bind(learn_deals, self.game)(
            0, deals, self.env.states, self.learner, self.blend, self.most, self.scratch, self.values, self.trail,
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
    pairs: Annotated[int, typer.Option(min=2, help=f"of deals, with {PLAYER} on the same ones, that report")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="of deals")] = 0,
    option: Annotated[list[str], typer.Option(help="of the game: name=value")] = [],  # noqa: B006
) -> None:
    """Learn by self-play and save the network; Ctrl-C saves nothing."""
    game = get_game(game_name)
    check_place(out)
    options = parse_options(option)
    learning = Learning(game, seed, blend, most, options)
    with console.status("compiling"):
        learning.go_on(1)
    learn(learning, minutes, out.with_name(f"{out.name}.jsonl"))
    policy = learning.policy()
    result = play_pairs(game, policy, load_opponent(PLAYER, game), pairs, FINAL_SEED, options=options)
    strength = [{"against": PLAYER, "seed": FINAL_SEED, "options": options, **result.as_dict()}]
    figures = {"algorithm": "td", "deals": learning.deals, "minutes": minutes, "seed": seed}
    figures |= {"blend": blend, "most": most}
    save_network(out, policy, golden_turn(game, options), training=figures, strength=strength)
    more = 100 * result.margin_per_episode.mean
    console.print(f"{learning.deals:,} deals; {more:+.1f} deals in 100 more than {PLAYER}: {out}", highlight=False)


def learn(learning: Learning, minutes: float, log: Path) -> None:
    """Go on for some minutes, and write a line on each twentieth of them."""
    start = time.process_time()
    spent, logged = 0.0, 0.0
    results: list[NDArray[np.float64]] = []
    with Progress(console=console, transient=True) as progress, log.open("w") as file:
        task = progress.add_task("", total=1.0)
        while spent < 1:
            results.append(learning.go_on(DEALS_AT_ONCE))
            mean = results[-1].mean()
            spent = (time.process_time() - start) / max(60 * minutes, 1e-9)
            progress.update(task, completed=spent, description=f"{learning.deals:,} deals, {mean:.1f} points")
            if spent >= logged + 0.05:
                logged = spent
                line = {"deals": learning.deals, "spent": round(spent, 4)}
                line["points"] = round(float(np.concatenate(results).mean()), 2)
                file.write(json.dumps(line) + "\n")
                file.flush()
                results.clear()


app = command(main)

if __name__ == "__main__":
    app()
