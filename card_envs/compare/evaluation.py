"""Learning curves for any training loop: the learner is evaluated at regular intervals, on the same mirrored deals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Protocol

from card_envs.compare.contests import MOST_PAIRS
from card_envs.compare.games import Plan
from card_envs.compare.pairs import PairResult, play_pairs
from card_envs.engine.buffers import check_int
from card_envs.game import Game
from card_envs.opponents.names import load_policy
from card_envs.opponents.networks.folder import check_place, save_model
from card_envs.opponents.networks.onnx import check_installed, module_to_onnx
from card_envs.opponents.networks.torch_policy import TorchPolicy, evaluating
from card_envs.system.files import short_repr, user_path

if TYPE_CHECKING:
    from stable_baselines3.common.callbacks import BaseCallback

MOST_STEPS = 1 << 62
SEED = 1  # as training's own measurements on the way


class Writer(Protocol):
    """Logs scalars, such as the `SummaryWriter` of torch or tensorboardX."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> object:
        """Write a figure."""


@dataclass(repr=False)
class Evaluation:
    """Evaluates a learner at regular intervals. `evaluate_every` makes it and describes the attributes.

    Attributes:
        plan: the game, its options, the opponents, and the seed of deals and draws.
        say: gets each result as a line: `print`, or None for silence.
        history: (step, results by opponent) of each measurement, in their order. Steps fall where a loop began again.
        best: folder of the best network so far, or None.
    """

    every: int
    learner: Any
    plan: Plan
    pairs: int
    writer: Writer | None
    say: Callable[[str], object] | None = print
    history: list[tuple[int, dict[str, PairResult]]] = field(default_factory=list)
    best: Path | None = None

    def __repr__(self) -> str:
        last = "".join(f"; last at {step:,}: {results}" for step, results in self.history[-1:])
        return f"Evaluation(every {self.every:,} steps: {len(self.history)} measurements{last})"

    def __call__(self, step: int) -> dict[str, PairResult]:
        """Measure if it is due: the first time, and once `every` steps have passed since the multiple of it before.

        Args:
            step: number of steps, decisions or updates so far, whatever the loop counts. If it is smaller than the one
                before, another loop has begun, and so it is due.

        Returns:
            Results by opponent; empty if it was not due.

        Raises:
            ValueError: the step is not a number of steps; or the learner does not fit the game, or fails.
        """
        step = check_int(step, 0, MOST_STEPS, "step")
        last = self.history[-1][0] if self.history else math.inf
        return self.measure(step) if step < last or step // self.every > last // self.every else {}

    def measure(self, step: int) -> dict[str, PairResult]:
        """Measure now, such as at the end; the step that was measured last is not measured again."""
        step = check_int(step, 0, MOST_STEPS, "step")
        return self.history[-1][1] if self.history and self.history[-1][0] == step else self._measure(step)

    def _measure(self, step: int) -> dict[str, PairResult]:
        # Each time, for what it is made of may be replaced.
        game, seed, options, sampled = self.plan.game, self.plan.seed, dict(self.plan.options), self.plan.sampled
        policy = load_policy(self.learner, "learner", game, sampled)
        with evaluating(policy.module) if isinstance(policy, TorchPolicy) else nullcontext():
            results = {
                name: play_pairs(game, policy, name, self.pairs, seed, options=options, sampled=sampled)
                for name in self.plan.names
            }
        earlier = (_mean_margin(measured) for _, measured in self.history)
        if self.best and _mean_margin(results) > max(earlier, default=-math.inf):
            save_model(self.best, game, module_to_onnx(policy.module, game))  # type: ignore[attr-defined]
        self.history.append((step, results))
        for name, result in results.items():
            if self.say is not None:
                self.say(f"{step:,} steps: against {name} {result.in_words()}")
        if self.writer is not None:
            for tag, figure in figures(results).items():
                self.writer.add_scalar(tag, figure, step)
        return results

    def callback(self) -> BaseCallback:
        """Return a callback for `learn` of stable-baselines3 and sb3-contrib.

        It measures at the start, on the way and at the end; the figures go to the outputs of the model's own logger,
        and so to its TensorBoard log.

        Raises:
            ValueError: stable-baselines3 is missing; or, when training starts, another model is trained than the
                learner.
        """
        try:
            from stable_baselines3.common.base_class import BaseAlgorithm
            from stable_baselines3.common.callbacks import BaseCallback
            from stable_baselines3.common.logger import Logger
            from stable_baselines3.common.policies import BaseModel
        except ModuleNotFoundError as error:
            raise ValueError(f"callback: {error.name} is missing: pip install 'card_envs[sb3]'") from None

        class Evaluating(BaseCallback):
            def __init__(self, evaluation: Evaluation) -> None:
                super().__init__()
                self.evaluation = evaluation

            def record(self, results: dict[str, PairResult]) -> None:
                logger = Logger(None, self.logger.output_formats)  # the model's would write at its next entry's step
                for tag, figure in figures(results).items():
                    logger.record(tag, figure)
                if results:
                    logger.dump(self.num_timesteps)

            def _on_training_start(self) -> None:
                learner = self.evaluation.learner
                trained = self.model, self.model.policy
                if isinstance(learner, (BaseAlgorithm, BaseModel)) and all(learner is not each for each in trained):
                    raise ValueError("callback: expected the model that is evaluated, `learner`, got another model")
                self.record(self.evaluation._measure(self.num_timesteps))  # `learn` may have begun again at this step

            def _on_step(self) -> bool:
                self.record(self.evaluation(self.num_timesteps))
                return True

            def _on_training_end(self) -> None:
                if self.evaluation.history[-1][0] != self.num_timesteps:  # which is logged already
                    self.record(self.evaluation.measure(self.num_timesteps))

        return Evaluating(self)


def figures(results: Mapping[str, PairResult]) -> dict[str, float]:
    """Return the figures of results by opponent, under the names that training's log has for them."""
    by_tag: dict[str, float] = {}
    for name, result in results.items():
        share = result.win_share
        of_name = f"strength/win_share_{name}"
        by_tag |= {of_name: share.mean, f"{of_name}_low": share.low, f"{of_name}_high": share.high}
        by_tag[f"strength/margin_{name}"] = result.margin_per_deal.mean
    return by_tag


def _mean_margin(results: Mapping[str, PairResult]) -> float:
    """Return the mean over the opponents of the margin per deal."""
    return fmean(result.margin_per_deal.mean for result in results.values())


def evaluate_every(
    steps: int,
    learner: Any,
    game: Game,
    against: Sequence[str] = ("greedy",),
    *,
    pairs: int = 100,
    seed: int = SEED,
    options: dict[str, Any] | None = None,
    sampled: bool = True,
    writer: Writer | None = None,
    best: str | Path | None = None,
) -> Evaluation:
    """Return an evaluator of a learner, to be called with the number of steps so far.

    All measurements play the same deals, so that a curve shows the learner and not the cards. Report the final
    strength from other deals (another seed), since this curve may have chosen when to stop.

    Args:
        steps: between evaluations.
        learner: a torch module, a model of stable-baselines3, or whatever else `play_pairs` takes. It is read when it
            is measured: torch modules in `eval()` mode, and afterwards in the mode in which they were.
        game: the game.
        against: names of opponents. Each takes `pairs` pairs.
        pairs: of mirrored episodes against each.
        seed: of the deals and draws.
        options: of the game, such as `{"deals": "single"}`.
        sampled: networks draw their moves; False: they play the likeliest. See `play_pairs`.
        writer: gets each figure; None: nobody.
        best: gets the learner's network whenever its mean margin per deal is the highest so far: a folder that is a
            name in all commands. Needs the extra `onnx`; the learner is a torch module or a model. Its best figure was
            lucky, too: report others.

    Raises:
        ValueError: an argument is invalid, or there is no such opponent.
    """
    if isinstance(against, str) or not against:
        raise ValueError(f"against: expected a list of names of opponents, got {against!r}")
    plan = Plan(game, tuple(against), seed, tuple((options or {}).items()), sampled)
    plan.check()
    plan.load()
    every, pairs = check_int(steps, 1, MOST_STEPS, "steps"), check_int(pairs, 1, MOST_PAIRS, "pairs")
    folder = None if best is None else user_path(best)
    if folder is not None:
        check_installed()
        check_place(folder)
        if not isinstance(load_policy(learner, "learner", game, sampled), TorchPolicy):
            raise ValueError(f"best: expected a learner that is a torch module or a model, got {short_repr(learner)}")
    return Evaluation(every, learner, plan, pairs, writer, best=folder)
