"""RLlib's PPO in self-play on the PettingZoo environment: `python examples/rllib_ppo.py --game back_alley`.

Needs `pip install "ray[rllib]"`, which pins its own Gymnasium (2.60.0: gymnasium==1.2.2, which card_envs accepts).
RLlib wants the key "observations" and floats under it. Prints the mean return and the loss.
`--help` lists what else it takes.
"""

from collections.abc import Iterator
from typing import Any

import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env

from card_envs import Game
from card_envs.envs.aec import CardEnv

BATCH = 256


class Actor(torch.nn.Module):
    """Logits of RLlib's module, from observation and mask."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, observation: torch.Tensor, action_mask: torch.Tensor) -> torch.Tensor:
        seen = {"observations": observation, "action_mask": action_mask}
        return self.module.forward_inference({"obs": seen})["action_dist_inputs"]


def train(game: Game, seed: int = 0, **options: Any) -> Iterator[tuple[int, Any, str]]:
    """Learn without end. After each update, yield the decisions so far, the actor, and a line about it."""
    torch.set_num_threads(1)  # these networks are too small for more
    keys = {"obs_key": "observations", "obs_dtype": "float32"}
    register_env("cards", lambda _: PettingZooEnv(CardEnv(game, **keys, **options)))
    masked = RLModuleSpec(module_class=ActionMaskingTorchRLModule)
    config = (
        PPOConfig()
        .environment("cards")
        .multi_agent(policies={"shared"}, policy_mapping_fn=lambda agent, *args, **kwargs: "shared")
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={"shared": masked}))
        .env_runners(num_env_runners=0)
        .training(train_batch_size=BATCH, minibatch_size=64, num_epochs=2, gamma=1.0)
        .debugging(seed=seed)
    )
    algorithm = config.build_algo()
    decisions = 0
    try:
        while True:
            result = algorithm.train()
            decisions += BATCH
            loss = float(result["learners"]["shared"]["total_loss"])
            line = f"return {result['env_runners'].get('episode_return_mean')}, loss {loss:.4f}"
            yield decisions, Actor(algorithm.get_module("shared")), line
    finally:
        algorithm.stop()


if __name__ == "__main__":
    from _command import run

    run(train, steps=512, self_play=True)
