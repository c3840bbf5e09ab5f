"""RLlib's PPO in self-play on the PettingZoo environment: `python examples/rllib_ppo.py --game back_alley`.

Needs `pip install "ray[rllib]"`, which pins its own Gymnasium (2.60.0: gymnasium==1.2.2, which card_envs accepts).
RLlib wants the key "observations" and floats under it. Prints the mean return and the loss.
"""

import argparse

from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env

import card_envs
from card_envs.envs.aec import CardEnv

parser = argparse.ArgumentParser()
parser.add_argument("--game", default="back_alley", choices=list(card_envs.GAMES))
parser.add_argument("--steps", type=int, default=512, help="decisions in all")
args = parser.parse_args()
BATCH = 256

game = card_envs.get_game(args.game)
register_env("cards", lambda _: PettingZooEnv(CardEnv(game, obs_key="observations", obs_dtype="float32")))
masked = RLModuleSpec(module_class=ActionMaskingTorchRLModule)
config = (
    PPOConfig()
    .environment("cards")
    .multi_agent(policies={"shared"}, policy_mapping_fn=lambda agent, *args, **kwargs: "shared")
    .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={"shared": masked}))
    .env_runners(num_env_runners=0)
    .training(train_batch_size=BATCH, minibatch_size=64, num_epochs=2, gamma=1.0)
)
algorithm = config.build_algo()
for _ in range(max(1, args.steps // BATCH)):
    result = algorithm.train()
    loss = result["learners"]["shared"]["total_loss"]
    print(f"return {result['env_runners'].get('episode_return_mean')}, loss {float(loss):.4f}")
algorithm.stop()
