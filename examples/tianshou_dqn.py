"""Tianshou's DQN in one seat of the Gymnasium environment: `python examples/tianshou_dqn.py --game big_ben`.

Needs `pip install tianshou` (2.0). Prints the loss of each epoch. `--help` lists what else it takes.
"""

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Dict
from gymnasium.wrappers import TransformObservation, TransformReward
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from card_envs import Game
from card_envs.opponents import actor_of


class Values(torch.nn.Module):
    """Action values of Tianshou's network, without the memory that it returns beside them."""

    def __init__(self, net: Net) -> None:
        super().__init__()
        self.net = net

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        return self.net(observation)[0]


def table(game: Game, opponents: str, **options: Any) -> gymnasium.Env:
    """Return an environment with the mask where Tianshou looks for it, and points scaled to about [-1, 1]."""
    env = gymnasium.make(game.gymnasium_id, opponents=opponents, observe="dict", **options)
    space = Dict({"obs": env.observation_space["observation"], "mask": env.observation_space["action_mask"]})
    env = TransformObservation(env, lambda seen: {"obs": seen["observation"], "mask": seen["action_mask"] > 0}, space)
    return TransformReward(env, lambda points: points / max(1.0, abs(game.rules.WORST_SCORE)))


def train(
    game: Game, tables: int = 16, seed: int = 0, opponents: str = "greedy", **options: Any
) -> Iterator[tuple[int, torch.nn.Module, str]]:
    """Learn without end. After each epoch, yield the decisions so far, what plays by its values, and a line."""
    np.random.seed(seed)  # noqa: NPY002 (Tianshou draws from it)
    torch.set_num_threads(1)  # these networks are too small for more
    torch.manual_seed(seed)
    envs = DummyVectorEnv([lambda: table(game, opponents, **options)] * tables)
    envs.seed(seed)
    net = Net(state_shape=(game.rules.OBS_SIZE,), action_shape=game.rules.NUM_ACTIONS, hidden_sizes=[128, 128])
    policy = DiscreteQLearningPolicy(model=net, action_space=envs.action_space[0], eps_training=0.1)
    algorithm = DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), n_step_return_horizon=3, target_update_freq=200)
    collector = Collector(algorithm, envs, VectorReplayBuffer(100_000, tables), exploration_noise=True)
    steps = 16 * tables
    trainer = algorithm.create_trainer(
        OffPolicyTrainerParams(
            training_collector=collector,
            epoch_num_steps=steps,
            collection_step_num_env_steps=steps,
            batch_size=128,
            update_step_num_gradient_steps_per_sample=0.05,
            test_in_training=False,
            show_progress=False,
        )
    )
    trainer.reset()
    decisions = 0
    while True:
        epoch = trainer.execute_epoch()
        decisions += steps
        player = actor_of(Values(net), outputs="values")
        yield decisions, player, f"{decisions} decisions, loss {epoch.training_stat.loss:.3g}"


if __name__ == "__main__":
    from _command import run

    run(train, steps=512)
