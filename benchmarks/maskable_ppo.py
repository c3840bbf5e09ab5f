"""`python -m benchmarks.maskable_ppo`: decisions learned by sb3-contrib's MaskablePPO beside our trainer.

Extras `sb3` and `train`. Networks of two layers of 256, one pass over what was played, one core. MaskablePPO plays one
seat of the Gymnasium environment against `trivial`; our trainer plays all seats against itself.
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
from training.run import Run

HIDDEN = [256, 256]
ENVIRONMENTS, STEPS = 16, 64  # of MaskablePPO: an iteration is their product
MINIBATCH = 512


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
    sizes: dict[str, Any] = {"hidden": HIDDEN, "num_envs": 512, "minibatch_size": 2048}
    run = Run(Config(game=name, options={"deals": "single"}, minutes=600, **sizes))

    def iterate() -> int:
        before = run.decisions
        run.iterate()
        return run.decisions - before

    return timed(iterate)


def rows(seconds: float) -> Iterator[Row]:
    """Playing and learning on one core."""
    torch.set_num_threads(1)
    game = get_game("back_alley")
    theirs, ours = their_iterations(game.gymnasium_id), our_iterations(game.name)
    yield in_turns(f"training, {game.title}, 2x256, one epoch", "sb3-contrib's MaskablePPO", theirs, ours, seconds)


if __name__ == "__main__":
    command(rows, 20.0)
