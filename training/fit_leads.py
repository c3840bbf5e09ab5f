"""`python -m training.fit_leads GAME --out FOLDER`: a network that says what each move gains over `greedy`'s.

Every legal move of a position is tried in the same few worlds, `greedy` playing on, and the network that sees what
moves change learns by how much each beats `greedy`'s own. It then leaves that move where another promises more by a
margin. Positions are drawn as fast as it learns from them, so each is used once and there is nothing to overfit.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from rich.progress import Progress

from card_envs.__main__ import parse_options
from card_envs.compare.pairs import PairResult, play_pairs
from card_envs.engine import kernels
from card_envs.engine.batch import BatchEnv
from card_envs.engine.compile import bind
from card_envs.engine.rng import table_keys
from card_envs.game import Game, Int8s, Int64s, UInt64s
from card_envs.games import GAMES, get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.afterstates import Afterstates, afterstates
from card_envs.opponents.folder import NUM_GOLDEN_ROWS, check_place, save_network
from card_envs.opponents.network import AfterstatePolicy, input_fields, input_scale
from card_envs.opponents.policy import turn_of_states
from card_envs.opponents.search import TO_THE_END
from card_envs.opponents.searching import Scratch, Trials, draw_likely_world, try_moves
from card_envs.opponents.value import NO_NET, Net
from training.command import command, console

if TYPE_CHECKING:
    from training.network import AfterstateNetwork, Inputs

PLAYER = "greedy"
NOISE = 0.1  # share of random moves on the way to a position
TABLES = 4096
MINIBATCH = 512
TEST_BATCHES, TEST_WORLDS = 2, 64
TEST_SEED = 1 << 40  # its deals are not those that are learned from
CHOICE_SEED, FINAL_SEED = 3, 2  # deals that choose the margin, and those that report the strength
KEPT = 32  # batches of labels that may be learned from again
MARGINS = (0.0, 0.01, 0.02, 0.05, 0.1)  # of the network's unit


def label_tables(
    first: int, last: int, states: NDArray[Any], keys: UInt64s, own: Int64s, live: Int8s, worlds: int, net: Net,
    scratch: Scratch, trials: Trials,
) -> None:  # fmt: skip
    """Try all moves of each table in the same worlds; `live` [B, A] holds the legal moves without the own one."""
    for i in range(first, last):
        found = Trials(trials.sums[i], trials.squares[i], trials.worlds[i])
        for _ in range(worlds):
            draw_likely_world(states[i], keys[i : i + 1], scratch.states)
            try_moves(own[i], live[i], TO_THE_END, net, scratch, found)


class Labels(NamedTuple):
    """Positions, and what their moves gain over `greedy`'s.

    Attributes:
        inputs: what the network reads of them; what is not zero in it is found once.
        own: [B] what `greedy` plays.
        leads: [N, R] points by which each move of `after` beats that, in N samples of worlds.
    """

    inputs: Inputs
    own: Int64s
    leads: NDArray[np.float32]

    @property
    def after(self) -> Afterstates:
        """What their moves change."""
        assert self.inputs.after is not None
        return self.inputs.after

    def best(self, values: NDArray[np.float32]) -> Int64s:
        """[B] the moves, as numbers of `after`, that these values [R] put first; the own one counts 0."""
        decision = self.after.decision()
        others = np.where(self.after.action == self.own[decision], 0, values)
        order = np.lexsort((others, decision))
        return order[self.after.first[1:] - 1]


class Positions:
    """Tables of a careless `greedy`, at any stage of their deals."""

    def __init__(self, game: Game, seed: int, options: dict[str, Any], stride: int) -> None:
        self.game = game
        self.stride = stride
        self.env = BatchEnv(game, TABLES, seed, options=options, skip_forced=True)
        self.rng = np.random.default_rng(seed)
        self.streams = table_keys(seed, np.arange(TABLES))
        self.keys = table_keys(seed + 1, np.arange(TABLES))
        for table, moves in enumerate(self.rng.integers(0, 1000, TABLES)):  # at different stages from the start
            bind(kernels.bot_playout, game, PLAYER)(table, table + 1, self.env.states, moves)
        self.env.look()
        self._play_on()

    def _play_on(self) -> None:
        env = self.env
        own, random = np.zeros((2, TABLES), np.int64)
        env.bot_actions(PLAYER, own)
        env.random_actions(self.streams, random)
        env.step(np.where(self.rng.random(TABLES) < NOISE, random, own))

    def draw(self, worlds: int, samples: int = 1) -> Labels:
        """Play on for a while, and try the moves of every table in that many worlds, so many times."""
        from training.network import Inputs, Rows

        for _ in range(int(self.rng.integers(1, 2 * self.stride))):
            self._play_on()
        env, game = self.env, self.game
        own = np.zeros(TABLES, np.int64)
        env.bot_actions(PLAYER, own)
        after = afterstates(game, env.states, np.arange(TABLES), own)
        seen = Rows(np.hstack([env.obs, env.mask]), input_scale(input_fields(game.rules)))
        labels = Labels(Inputs(seen, after), own, np.zeros((samples, len(after.action)), np.float32))
        decision = after.decision()
        for leads in labels.leads:
            sums = tried(game, env.states, self.keys, own, env.mask, worlds).sums
            leads[:] = (sums[decision, after.action] - sums[decision, own[decision]]) / worlds
        return labels


def tried(game: Game, states: NDArray[Any], keys: UInt64s, own: Int64s, mask: Int8s, worlds: int) -> Trials:
    """What became of all legal moves; `keys` [B] move on."""
    live = mask.copy()
    live[np.arange(len(own)), own] = 0
    trials = Trials(np.zeros(mask.shape), np.zeros(mask.shape), np.zeros(mask.shape, np.int64))
    full, layers = np.zeros(len(NO_NET.first) - 1, np.int8), np.zeros((2, 2), np.float32)
    scratch = Scratch(np.zeros(2, states.dtype), full, layers, np.zeros(mask.shape[1]))
    bind(label_tables, game, PLAYER)(0, len(own), states, keys, own, live, worlds, NO_NET, scratch, trials)
    return trials


def main(
    game_name: Annotated[str, typer.Argument(metavar="GAME", help=f"one of {', '.join(GAMES)}")],
    out: Annotated[Path, typer.Option(help="the opponent's folder; a log is written beside it")],
    minutes: Annotated[float, typer.Option(min=0.0, help="of processor time for drawing and fitting")] = 5.0,
    worlds: Annotated[int, typer.Option(min=1, help="in which the moves of a position are tried")] = 4,
    stride: Annotated[int, typer.Option(min=1, help="mean number of decisions between two positions of a table")] = 8,
    reuse: Annotated[int, typer.Option(min=1, help="mean number of times that each position is learned from")] = 1,
    hidden: Annotated[tuple[int, int], typer.Option(help="sizes of the two hidden layers")] = (64, 64),
    clip: Annotated[
        float,
        typer.Option(min=0.1, help="clip leads at this many standard deviations of the best rival's"),
    ] = 8.0,
    lr: Annotated[float, typer.Option(min=0.0, help="learning rate at the start; it falls to 0")] = 2e-3,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="of the game: name=value in JSON, or text")
    ] = None,
    pairs: Annotated[int, typer.Option(min=2, help="mirrored pairs that choose the margin, and that report")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="of deals and weights")] = 0,
) -> None:
    """Fit a network to the leads of moves, choose its margin, measure it and save it as an opponent."""
    game = get_game(game_name)
    options = parse_options(option)
    game.validated(options)
    check_place(out)
    with console.status("compiling and dealing"):
        import torch

        from training.network import HEAD_GAIN, AfterstateNetwork

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        network = AfterstateNetwork(game, list(hidden), 0.0, HEAD_GAIN["policy"])
        positions = Positions(game, seed, options, stride)
        test = Positions(game, TEST_SEED + seed, options, stride)
        tests = [test.draw(TEST_WORLDS, samples=2) for _ in range(TEST_BATCHES)]
    fitting = Fitting(network, positions, tests, lr, clip)
    drawn = fitting.fit(minutes, worlds, reuse, out.with_name(f"{out.name}.jsonl"))
    policy = AfterstatePolicy(game, in_points(network, fitting.scale), sampled=False)
    margin, choice = choose_margin(policy, fitting.scale, pairs, options)
    policy = AfterstatePolicy(game, {**policy.weights, "own": np.array([margin], np.float32)}, sampled=False)
    rival = load_opponent(PLAYER, game)
    result = play_pairs(game, policy, rival, pairs, FINAL_SEED, options=options)
    figures = {
        "algorithm": "leads",
        "positions": drawn,
        "worlds": worlds,
        "stride": stride,
        "reuse": reuse,
        "clip": clip,
        "noise": NOISE,
        "minutes": minutes,
        "seed": seed,
        "margin": margin,
        "choice": choice,
        **fitting.judge(),
    }
    strength = [{"against": PLAYER, "seed": FINAL_SEED, "options": options, **result.as_dict()}]
    save_network(
        out, policy, turn_of_states(game, positions.env.states[:NUM_GOLDEN_ROWS]), training=figures, strength=strength
    )
    console.print(f"{drawn:,} positions; {_against(result)} against {PLAYER}: {out}", highlight=False)


class Fitting:
    """A network and what it learns from."""

    def __init__(
        self, network: AfterstateNetwork, positions: Positions, tests: list[Labels], lr: float, clip: float
    ) -> None:
        self.network = network
        self.positions = positions
        self.tests = tests
        self.lr = lr
        # Leads beyond it count as such. Where results have long tails, as bids have, a low limit bends their means.
        self.scale = clip * float(np.concatenate([best_rivals_lead(labels) for labels in tests]).std())

    def fit(self, minutes: float, worlds: int, reuse: int, log: Path) -> int:
        """Learn for some minutes of processor time; returns how many positions that took."""
        import torch

        optimizer = torch.optim.Adam(self.network.parameters(), lr=self.lr, fused=True)
        rng = np.random.default_rng(0)
        start = time.process_time()
        kept: list[Labels] = []
        drawn, spent, logged = 0, 0.0, 0.0
        with Progress(console=console, transient=True) as progress, log.open("w") as file:
            task = progress.add_task("", total=1.0)
            while spent < 1:
                kept = [*kept[-KEPT + 1 :], self.positions.draw(worlds)]
                drawn += TABLES
                for group in optimizer.param_groups:
                    group["lr"] = self.lr * (1 - spent)
                for labels in [kept[-1], *(kept[rng.integers(len(kept))] for _ in range(reuse - 1))]:
                    for rows in np.array_split(rng.permutation(TABLES), TABLES // MINIBATCH):
                        loss = self.loss(labels, rows)
                        optimizer.zero_grad(set_to_none=True)
                        loss.backward()  # type: ignore[no-untyped-call]
                        optimizer.step()
                spent = (time.process_time() - start) / max(60 * minutes, 1e-9)
                progress.update(task, completed=spent, description=f"{drawn / 1e6:.1f} M positions")
                if spent >= logged + 0.02:
                    logged = spent
                    file.write(json.dumps({"positions": drawn, "spent": round(spent, 4), **self.judge()}) + "\n")
                    file.flush()
        return drawn

    def loss(self, labels: Labels, rows: Int64s) -> Any:
        """The mean squared error of the leads of some positions, in the network's unit; own moves have none."""
        import torch

        from training.network import moves_of

        moves, decision = moves_of(labels.after.first, rows)
        found = self.leads(labels, rows, moves, decision)
        wanted = torch.from_numpy(np.clip(labels.leads[0, moves] / self.scale, -1, 1))
        others = labels.after.action[moves] != labels.own[rows][decision]
        return ((found - wanted) ** 2).sum() / max(int(others.sum()), 1)

    def leads(self, labels: Labels, rows: Int64s, moves: Int64s, decision: Int64s) -> Any:
        """[R] what the network thinks of the moves of some positions, as `moves_of` numbers them."""
        import torch

        logits = self.network.logits(labels.inputs, rows)
        own = torch.from_numpy(labels.own[rows])
        lead = logits - logits.gather(1, own[:, None])
        return lead[torch.from_numpy(decision), torch.from_numpy(labels.after.action[moves])]

    def _answers(self, labels: Labels) -> NDArray[np.float32]:
        import torch

        from training.network import moves_of

        parts = np.array_split(np.arange(TABLES), TABLES // MINIBATCH)
        with torch.no_grad():
            return np.concatenate(
                [self.leads(labels, rows, *moves_of(labels.after.first, rows)).numpy() for rows in parts]
            )

    def judge(self) -> dict[str, float]:
        """On positions of deals of their own, in points a decision.

        Returns:
            `explained`: the share of the variance of leads that is not chance; `gain`: what playing the best answers
            brings; `search`: what the best moves of TEST_WORLDS worlds bring, in other worlds.
        """
        errors, variance, gains, searched = [], [], [], []
        for labels in self.tests:
            found = self._answers(labels) * self.scale
            one, other = np.clip(labels.leads, -self.scale, self.scale)
            errors.append((found - one) * (found - other))  # chance errors of the two are independent
            variance.append(one * other)
            gains.append(labels.leads.mean(axis=0)[labels.best(found)])
            searched.append(labels.leads[1][labels.best(labels.leads[0])])
        sums = [float(np.concatenate(parts).sum()) for parts in (errors, variance)]
        return {
            "explained": round(1 - sums[0] / sums[1], 4),
            "gain": round(float(np.concatenate(gains).mean()), 4),
            "search": round(float(np.concatenate(searched).mean()), 4),
        }


def best_rivals_lead(labels: Labels) -> NDArray[np.float32]:
    """[B] the lead of the best move besides the own one, in each position."""
    others = np.where(labels.after.action == labels.own[labels.after.decision()], -np.inf, labels.leads.mean(axis=0))
    best: NDArray[np.float32] = np.maximum.reduceat(others, labels.after.first[:-1])
    return best


def in_points(network: AfterstateNetwork, scale: float) -> dict[str, NDArray[np.float32]]:
    """The weights of a network whose outputs are in points."""
    weights = network.weights()
    last = f"layer{len(network.rest)}"
    return {**weights, **{name: scale * weights[name] for name in (f"{last}.weight", f"{last}.bias")}}


def choose_margin(policy: AfterstatePolicy, scale: float, pairs: int, options: dict[str, Any]) -> tuple[float, Any]:
    """The margin that did best in pairs of their own, and what each did."""
    game = policy.game
    results = {}
    for factor in MARGINS:
        margin = round(factor * scale, 3)
        bold = AfterstatePolicy(game, {**policy.weights, "own": np.array([margin], np.float32)}, sampled=False)
        rival = load_opponent(PLAYER, game)
        results[margin] = play_pairs(game, bold, rival, pairs, CHOICE_SEED, options=options)
        console.print(f"margin {margin:g}: {_against(results[margin])} against {PLAYER}", highlight=False)
    best = max(results, key=lambda margin: results[margin].margin_per_episode.mean)
    return best, [{"margin": margin, **result.as_dict()} for margin, result in results.items()]


def _against(result: PairResult) -> str:
    share, margin = result.win_share, result.margin_per_episode
    return (
        f"{share.mean:.3f} ({share.low:.3f} to {share.high:.3f}) of the wins, "
        f"{margin.mean:+.3g} ({margin.low:+.3g} to {margin.high:+.3g}) points"
    )


app = command(main)

if __name__ == "__main__":
    app()
