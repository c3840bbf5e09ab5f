"""Tianshou's DQN, one learner for each seat of the PettingZoo environment: `python examples/tianshou_dqn.py`.

Needs `pip install tianshou` (2.0). Prints the mean return of the seats and each seat's loss.
"""

import argparse

import numpy as np
from tianshou.algorithm import DQN, MultiAgentOffPolicyAlgorithm
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv, PettingZooEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

import card_envs
from card_envs.envs.aec import CardEnv

parser = argparse.ArgumentParser()
parser.add_argument("--game", default="back_alley", choices=list(card_envs.GAMES))
parser.add_argument("--steps", type=int, default=512, help="decisions in all")
args = parser.parse_args()

game = card_envs.get_game(args.game)
env = PettingZooEnv(CardEnv(game))


def learner() -> DQN:
    net = Net(state_shape=(game.rules.OBS_SIZE,), action_shape=game.rules.NUM_ACTIONS, hidden_sizes=[128])
    policy = DiscreteQLearningPolicy(model=net, action_space=env.action_space, eps_training=0.2)
    return DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), target_update_freq=100)


algorithm = MultiAgentOffPolicyAlgorithm(algorithms=[learner() for _ in env.agents], env=env)
tables = DummyVectorEnv([lambda: PettingZooEnv(CardEnv(game)) for _ in range(4)])
collector = Collector(algorithm, tables, VectorReplayBuffer(20_000, 4), exploration_noise=True)
collector.reset()
result = algorithm.run_training(
    OffPolicyTrainerParams(
        training_collector=collector,
        max_epochs=1,
        epoch_num_steps=args.steps,
        collection_step_num_env_steps=64,
        batch_size=64,
        update_step_num_gradient_steps_per_sample=0.1,
        multi_agent_return_reduction=lambda returns: np.mean(returns, axis=-1),
    )
)
print(result)
