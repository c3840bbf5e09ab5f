"""sb3-contrib's MaskablePPO, which finds the masks by itself: `python examples/maskable_ppo.py --game russian_bank`.

Needs `pip install sb3-contrib`. Prints the trainer's own log (`ep_rew_mean`, `loss`). `--help` lists
what else it takes.
"""

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import gymnasium
import torch
from gymnasium.wrappers import TransformReward
from sb3_contrib import MaskablePPO
from stable_baselines3.common.logger import HumanOutputFormat, Logger
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from card_envs import Game


def train(
    game: Game, tables: int = 4, seed: int = 0, opponents: str = "greedy", settings: dict[str, Any] | None = None,
    **options: Any,
) -> Iterator[tuple[int, MaskablePPO]]:  # fmt: skip
    """Learn without end. After each iteration, yield the decisions so far and the model.

    Args:
        game: the game.
        tables: played at once.
        seed: of weights, deals and draws.
        opponents: in the other seats.
        settings: of MaskablePPO, over those here.
        options: of the game.
    """
    torch.set_num_threads(1)  # these networks are too small for more

    def table() -> gymnasium.Env:
        env = gymnasium.make(game.gymnasium_id, opponents=opponents, **options)
        return TransformReward(env, lambda points: points / max(1.0, abs(game.rules.WORST_SCORE)))  # about [-1, 1]

    own = {"n_steps": 32, "batch_size": 64, "gamma": 1.0, "seed": seed, "device": "cpu"}
    model = MaskablePPO("MlpPolicy", VecMonitor(DummyVecEnv([table] * tables)), **own | (settings or {}))
    model.set_logger(Logger(None, [HumanOutputFormat(sys.stdout)] if model.verbose else []))  # one for all iterations
    while True:
        model.learn(tables * model.n_steps, reset_num_timesteps=False)
        yield model.num_timesteps, model


if __name__ == "__main__":
    from _command import run

    run(partial(train, settings={"verbose": 1}), steps=1024)
