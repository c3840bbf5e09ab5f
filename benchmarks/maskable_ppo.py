"""`python -m benchmarks.maskable_ppo`: decisions learned by sb3-contrib's MaskablePPO beside our trainer.

Extras `sb3` and `train`. Networks of two layers of 256, one pass over what was played, one core. MaskablePPO plays one
seat of the Gymnasium environment against `trivial`; our trainer plays all seats against itself. Beside it, too: the
products of the same matrices, and nothing else. Their ratio is the share of the time that the rest leaves to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import DummyVecEnv

from benchmarks.measuring import Row, Work, command, in_turns, timed
from card_envs import get_game
from training.config import Config
from training.networks import has_bf16
from training.run import Run

HIDDEN = [256, 256]
ENVIRONMENTS, STEPS = 16, 64  # of MaskablePPO: an iteration is their product
MINIBATCH, OUR_MINIBATCH = 512, 2048


def their_iterations(gymnasium_id: str) -> Work:
    tables = DummyVecEnv([lambda: gymnasium.make(gymnasium_id, opponents="trivial", deals="single")] * ENVIRONMENTS)
    model = MaskablePPO(
        "MlpPolicy", tables, n_steps=STEPS, batch_size=MINIBATCH, n_epochs=1, gamma=1.0, seed=0, device="cpu",
        policy_kwargs={"net_arch": HIDDEN},
    )  # fmt: skip

    def iterate() -> int:
        before = model.num_timesteps
        model.learn(ENVIRONMENTS * STEPS, reset_num_timesteps=False)
        return int(model.num_timesteps - before)

    return timed(iterate)


def our_iterations(name: str) -> Work:
    sizes: dict[str, Any] = {"hidden": HIDDEN, "num_envs": 512, "minibatch_size": OUR_MINIBATCH}
    run = Run(Config(game=name, options={"deals": "single"}, minutes=600, **sizes))

    def iterate() -> int:
        before = run.decisions
        run.iterate()
        return run.decisions - before

    return timed(iterate)


def products(num_actions: int) -> Work:
    """The products of an iteration's matrices: actor and critic forwards while playing, and both ways while learning.

    The first layers are none: they add up the rows of what is set.
    """
    kind = torch.bfloat16 if has_bf16(torch.device("cpu")) else torch.float32
    inner, outer = torch.randn(HIDDEN[0], HIDDEN[1]).to(kind), torch.randn(HIDDEN[1], num_actions).to(kind)
    value, x = torch.randn(HIDDEN[1], 1).to(kind), torch.randn(OUR_MINIBATCH, HIDDEN[0]).to(kind)

    def iterate() -> int:
        for last in (outer, value):
            (x @ inner) @ last  # playing
            hidden = x @ inner
            found = hidden @ last
            hidden.T @ found  # gradients of the weights, and of what is before them
            below = found @ last.T
            x.T @ below
            below @ inner.T
        return len(x)

    return timed(iterate)


def rows(seconds: float) -> Iterator[Row]:
    """Playing and learning on one core."""
    torch.set_num_threads(1)
    game = get_game("back_alley")
    theirs, ours = their_iterations(game.gymnasium_id), our_iterations(game.name)
    what = f"training, {game.title}, 2x256, one epoch"
    yield in_turns(what, "sb3-contrib's MaskablePPO", theirs, ours, seconds)
    yield in_turns(what, "the products of its matrices alone", products(game.rules.NUM_ACTIONS), ours, seconds)


if __name__ == "__main__":
    command(rows, 20.0)
