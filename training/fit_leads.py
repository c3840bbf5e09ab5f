"""`python -m training.fit_leads GAME --out FOLDER`: a network that says what each move gains over `greedy`'s.

Every legal move of a position is tried, `greedy` playing on, and the network that sees what moves change learns by how
much each beats `greedy`'s own. It then leaves that move where another promises more by a margin. The hidden cards are
those of the deal as it was played, so what others did is believed as far as it deserves, without a model of it.
Positions are drawn as fast as the network learns from them, so each is used once and there is nothing to overfit.

Kinds of decisions whose results differ in spread (bids and cards) count alike: each in its own standard deviation.
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
from card_envs.compare.pairs import play_pairs
from card_envs.game import Game, Int64s
from card_envs.games import GAMES, get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.names import MODELS
from card_envs.opponents.networks.afterstates import Afterstates, afterstates
from card_envs.opponents.networks.folder import NUM_GOLDEN_ROWS, VALUE_FOLDER, check_place, load_value, save_network
from card_envs.opponents.networks.policies import (
    AfterstatePolicy,
    LookaheadPolicy,
    Weights,
    hidden_sizes,
    input_fields,
    input_scale,
)
from card_envs.opponents.policy import Policy, decisions_at, name_of
from card_envs.opponents.searching import TO_THE_END, Ending
from card_envs.opponents.value import checked_net
from training.command import command, console
from training.leads import PLAYER, kinds_of, leads_led, leads_loss, leads_over, spreads_of_best
from training.positions import TEST_SEED, Tables

if TYPE_CHECKING:
    from training.network import AfterstateActor, Inputs

TABLES = 4096
MINIBATCH = 512
TEST_BATCHES, LED_TEST_BATCHES = 32, 4
CHOICE_SEED, FINAL_SEED = 3, 2  # deals that choose the margin, and those that report the strength
KEPT = 32  # batches of labels that may be learned from again
MARGINS = (0.0, 0.02, 0.04, 0.1, 0.2)  # of the network's unit
BOLD = 0.02  # the margin, in that unit, by which it leaves the own move on the way to a position


class Labels(NamedTuple):
    """Positions, and what their moves gain over `greedy`'s.

    Attributes:
        inputs: what the network reads of them; what is not zero in it is found once.
        own: [B] what `greedy` plays.
        leads: [R] points by which each move of `after` beats that.
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


class Source(NamedTuple):
    """How positions come about, and how their moves are judged.

    Attributes:
        options: of the game.
        noise: share of random moves on the way to a position.
        stride: decisions between two positions of a table, on the mean.
        follow: share of the tables at which the leader, else the network as it is, plays on; at the others `greedy`.
        ending: how `greedy` plays the moves out.
        worlds: in which each move is tried: the deal as it was played and drawn ones.
        leader: who plays the moves out, in the deal as it was played; None: `greedy`.
    """

    options: dict[str, Any]
    noise: float
    stride: int
    follow: float
    ending: Ending
    worlds: int
    leader: Policy | None = None


class Positions:
    """Tables of a careless player, at any stage of their deals."""

    def __init__(self, game: Game, seed: int, source: Source, network: AfterstateActor) -> None:
        self.game = game
        self.source = source
        self.network = network
        self.tables = Tables(game, TABLES, seed, source.noise, source.options, skip_forced=True)

    def _seen(self, number: int) -> tuple[Inputs, Int64s]:
        """What the network reads of the first tables, and [B] what `greedy` plays."""
        from training.network import Inputs, Rows

        env, own = self.tables.env, self.tables.own()
        seen = Rows(np.hstack([env.obs[:number], env.mask[:number]]), input_scale(input_fields(self.game.rules)))
        return Inputs(seen, afterstates(self.game, env.states, np.arange(number), own, self.network.lookahead)), own

    def _play_on(self) -> None:
        followed, leader = round(self.source.follow * TABLES), self.source.leader
        if leader is not None:
            own = self.tables.own()
            own[:followed] = leader.act(decisions_at(self.game, self.tables.env.states[:followed]), self.tables.rng)
            self.tables.play_on(own)
            return
        inputs, own = self._seen(followed)
        if followed:
            labels = Labels(inputs, own[:followed], np.zeros(0, np.float32))
            own[:followed] = labels.after.action[labels.best(answers(self.network, labels) - BOLD)]
        self.tables.play_on(own)

    def draw(self) -> Labels:
        """Play on for a while, and try the moves of every table."""
        for _ in range(int(self.tables.rng.integers(1, 2 * self.source.stride))):
            self._play_on()
        inputs, own = self._seen(TABLES)
        env, source = self.tables.env, self.source
        seed = int(self.tables.rng.integers(1 << 62)) if source.worlds > 1 else 0
        labels = Labels(inputs, own, np.zeros(0, np.float32))
        shown = labels.after.shown(env.mask.shape[1])
        if source.leader is not None:
            leads = leads_led(self.game, env.states, own, shown, source.leader, self.tables.rng)
        else:
            leads = leads_over(self.game, env.states, own, shown, source.ending, source.worlds, seed)
        return labels._replace(leads=leads[labels.after.decision(), labels.after.action])


def answers(network: AfterstateActor, labels: Labels) -> NDArray[np.float32]:
    """[R] what the network thinks of the moves, in its unit."""
    import torch

    from training.network import moves_of

    number = len(labels.own)
    parts = np.array_split(np.arange(number), -(-number // MINIBATCH))
    with torch.no_grad():
        found = [leads_of(network, labels, rows, *moves_of(labels.after.first, rows)).numpy() for rows in parts]
    return np.concatenate(found)


def leads_of(network: AfterstateActor, labels: Labels, rows: Int64s, moves: Int64s, decision: Int64s) -> Any:
    """[R] what the network thinks of the moves of some positions, as `moves_of` numbers them."""
    import torch

    logits = network.logits(labels.inputs, rows)
    own = torch.from_numpy(labels.own[rows])
    lead = logits - logits.gather(1, own[:, None])
    return lead[torch.from_numpy(decision), torch.from_numpy(labels.after.action[moves])]


def main(
    game_name: Annotated[str, typer.Argument(metavar="GAME", help=f"one of {', '.join(GAMES)}")],
    out: Annotated[Path, typer.Option(help="the opponent's folder; a log is written beside it")],
    minutes: Annotated[float, typer.Option(min=0.0, help="of processor time for drawing and fitting")] = 5.0,
    stride: Annotated[int, typer.Option(min=1, help="mean number of decisions between two positions of a table")] = 8,
    follow: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="share of tables where the network plays on, not greedy")
    ] = 0.0,
    noise: Annotated[float, typer.Option(min=0.0, max=1.0, help="share of random moves on the way")] = 0.03,
    horizon: Annotated[
        int | None, typer.Option(min=0, help="moves played out before the value network is asked; else all")
    ] = None,
    worlds: Annotated[
        int,
        typer.Option(
            min=1,
            help="in which each move is tried: the deal as it was played and drawn ones, which mislead where play "
            "tells of hidden cards",
        ),
    ] = 1,
    led: Annotated[
        str | None,
        typer.Option(help="an opponent that plays moves out instead of greedy, in the deal as it was played; slow"),
    ] = None,
    reuse: Annotated[int, typer.Option(min=1, help="mean number of times that each position is learned from")] = 1,
    hidden: Annotated[tuple[int, int], typer.Option(help="sizes of the two hidden layers")] = (64, 64),
    lookahead: Annotated[
        bool, typer.Option("--lookahead", help="show moves by where `greedy` would lead from them: see LookaheadPolicy")
    ] = False,
    start: Annotated[
        str | None,
        typer.Option(help="an opponent that such a fit left, to go on from; it gives the kind and the layers"),
    ] = None,
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
    begun = None if start is None else _begun(start, game)
    ending = TO_THE_END
    if horizon is not None:
        net = checked_net(game, load_value(MODELS / game.name / VALUE_FOLDER, game).net)
        ending = Ending(horizon, net)
    leader = None if led is None else load_opponent(led, game, sampled=False)
    if leader is not None and (worlds > 1 or horizon is not None):
        raise ValueError(f"--led {led}: moves are played out to the end, in one world: no --worlds, no --horizon")
    source = Source(options, noise, stride, follow, ending, worlds, leader)
    with console.status("compiling and dealing"):
        import torch

        from training.network import HEAD_GAIN, AfterstateActor

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        sizes = list(hidden) if begun is None else hidden_sizes(begun.weights)
        kind = (LookaheadPolicy if lookahead else AfterstatePolicy) if begun is None else type(begun)
        network = AfterstateActor(game, sizes, 0.0, HEAD_GAIN["policy"], kind.lookahead)
        # One move other than those of who plays the deal.
        plain = source._replace(noise=0.0, follow=0.0 if leader is None else 1.0)
        test = Positions(game, TEST_SEED + seed, plain, network)
        tests = [test.draw() for _ in range(TEST_BATCHES if leader is None else LED_TEST_BATCHES)]
        fitting = Fitting(network, Positions(game, seed, source, network), tests, lr, clip)
        if begun is not None:
            network.set_weights(scaled(begun.weights, 1 / fitting.unit) | {"own": np.zeros(1)})
    drawn = fitting.fit(minutes, reuse, out.with_name(f"{out.name}.jsonl"))
    policy = kind(game, scaled(network.weights(), fitting.unit), sampled=False)
    margin, choice = choose_margin(policy, fitting.unit, pairs, options)
    policy = kind(game, {**policy.weights, "own": np.array([margin], np.float32)}, sampled=False)
    rival = load_opponent(PLAYER, game)
    result = play_pairs(game, policy, rival, pairs, FINAL_SEED, options=options)
    figures = {
        "algorithm": "leads",
        "positions": drawn,
        "stride": stride,
        "follow": follow,
        "horizon": horizon,
        "worlds": worlds,
        "led": led,
        "reuse": reuse,
        "clip": clip,
        "noise": noise,
        "minutes": minutes,
        "lr": lr,
        "start": start,
        "seed": seed,
        "margin": margin,
        "choice": choice,
        **fitting.judge(),
    }
    strength = [{"against": PLAYER, "seed": FINAL_SEED, "options": options, **result.as_dict()}]
    golden = decisions_at(game, test.tables.env.states[:NUM_GOLDEN_ROWS])
    save_network(out, policy, golden, training=figures, strength=strength)
    console.print(f"{drawn:,} positions; {result.in_words()} against {PLAYER}: {out}", highlight=False)


def _begun(start: str, game: Game) -> AfterstatePolicy:
    policy = load_opponent(start, game).policy
    if not isinstance(policy, AfterstatePolicy):
        raise ValueError(f"--start {start}: expected a network that reads what moves change, got {name_of(policy)}")
    return policy


class Fitting:
    """A network and what it learns from.

    Attributes:
        network: gives leads in `unit`.
        unit: points; the standard deviation of the best rival's lead, in the kind of decision where it is smallest.
        spread: [P] that standard deviation of each kind of decision, in units.
    """

    def __init__(
        self, network: AfterstateActor, positions: Positions, tests: list[Labels], lr: float, clip: float
    ) -> None:
        self.network = network
        self.positions = positions
        self.tests = tests
        self.lr = lr
        self.clip = clip
        self.kinds = kinds_of(positions.game)
        best = np.concatenate([best_rivals_lead(labels) for labels in tests])
        spreads = spreads_of_best(best, np.concatenate([labels.own for labels in tests]), self.kinds)
        self.unit = float(spreads.min())
        self.spread = spreads / np.float32(self.unit)

    def fit(self, minutes: float, reuse: int, log: Path) -> int:
        """Learn for some minutes of processor time; returns how many positions that took."""
        import torch

        optimizer = torch.optim.Adam(self.network.parameters(), lr=self.lr, fused=True)
        rng = np.random.default_rng(0)
        start = time.process_time()
        kept: list[Labels] = []
        drawn, spent, logged = 0, 0.0, 0.0
        with Progress(console=console, transient=True) as progress, log.open("w", encoding="utf-8") as file:
            task = progress.add_task("", total=1.0)
            while spent < 1:
                kept = [*kept[-KEPT + 1 :], self.positions.draw()]
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
        """The mean squared error of some positions' leads, weighted, in their kind's spread; own moves have none."""
        import torch

        from training.network import moves_of

        moves, decision = moves_of(labels.after.first, rows)
        spread = self.spread[self.kinds[labels.own[rows]]][decision]
        found = leads_of(self.network, labels, rows, moves, decision)
        # Leads beyond it count as such. Where results have long tails, as bids have, a low limit bends their means.
        wanted = np.clip(labels.leads[moves] / (self.unit * spread), -self.clip, self.clip)
        others = labels.after.action[moves] != labels.own[rows][decision]
        found = found / torch.from_numpy(spread)
        found = found.where(torch.from_numpy(others), torch.from_numpy(wanted))
        return leads_loss(found, torch.from_numpy(wanted)) / max(int(others.sum()), 1)

    def judge(self) -> dict[str, Any]:
        """On positions of deals of their own, in points a decision, by kind of decision.

        Returns:
            `error`: mean squared, of leads, as a share of what it would be without the network; most of it is chance.
            `gain`: what playing the best answers brings. `left`: the share of decisions where that is not the own move.
        """
        kinds: dict[str, list[NDArray[np.floating]]] = {}
        for labels in self.tests:
            found = answers(self.network, labels) * self.unit
            chosen = labels.best(found)
            one = np.add.reduceat((found - labels.leads) ** 2, labels.after.first[:-1])
            other = np.add.reduceat(labels.leads**2, labels.after.first[:-1])
            figures = np.stack([one, other, labels.leads[chosen], labels.after.action[chosen] != labels.own])
            for number, name in enumerate(self.positions.game.phases or ["all"]):
                kinds.setdefault(name, []).append(figures[:, self.kinds[labels.own] == number])
        found_out: dict[str, Any] = {}
        for name, parts in kinds.items():
            error, variance, gain, left = np.concatenate(parts, axis=1).mean(axis=1)
            found_out[name] = {
                "error": round(float(error / variance), 4),
                "gain": round(float(gain), 4),
                "left": round(float(left), 4),
            }
        return found_out


def best_rivals_lead(labels: Labels) -> NDArray[np.float32]:
    """[B] the lead of the best move besides the own one, in each position; -inf where there is none."""
    others = np.where(labels.after.action == labels.own[labels.after.decision()], -np.inf, labels.leads)
    best: NDArray[np.float32] = np.maximum.reduceat(others, labels.after.first[:-1])
    return best


def scaled(weights: Weights, factor: float) -> dict[str, NDArray[np.floating]]:
    """The weights of a network whose outputs are so many times as large."""
    last = f"layer{len(hidden_sizes(weights))}"
    return {**weights, **{name: factor * weights[name] for name in (f"{last}.weight", f"{last}.bias")}}


def choose_margin(policy: AfterstatePolicy, unit: float, pairs: int, options: dict[str, Any]) -> tuple[float, Any]:
    """The margin that did best in pairs of their own, and what each did."""
    game = policy.game
    results = {}
    for factor in MARGINS:
        margin = round(factor * unit, 3)
        bold = type(policy)(game, {**policy.weights, "own": np.array([margin], np.float32)}, sampled=False)
        rival = load_opponent(PLAYER, game)
        results[margin] = play_pairs(game, bold, rival, pairs, CHOICE_SEED, options=options)
        console.print(f"margin {margin:g}: {results[margin].in_words()} against {PLAYER}", highlight=False)
    best = max(results, key=lambda margin: results[margin].margin_per_episode.mean)
    return best, [{"margin": margin, **result.as_dict()} for margin, result in results.items()]


app = command(main)

if __name__ == "__main__":
    app()
