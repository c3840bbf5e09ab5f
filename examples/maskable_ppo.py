"""sb3-contrib's MaskablePPO, which finds the masks by itself: `python examples/maskable_ppo.py --game russian_bank`.

Needs `pip install sb3-contrib`. Prints the trainer's own log (`ep_rew_mean`, `loss`). With `--onnx model.onnx` (extra
`onnx`) the policy is saved as a model that `python -m card_envs import` makes an opponent of.
"""

import argparse
from pathlib import Path

import gymnasium
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import DummyVecEnv

import card_envs
from card_envs.opponents.networks.onnx import module_to_onnx

parser = argparse.ArgumentParser()
parser.add_argument("--game", default="back_alley", choices=list(card_envs.GAMES))
parser.add_argument("--steps", type=int, default=1024, help="decisions in all")
parser.add_argument("--onnx", type=Path, help="write the trained policy to this file")
args = parser.parse_args()

game = card_envs.get_game(args.game)
tables = DummyVecEnv([lambda: gymnasium.make(game.gymnasium_id, opponents="greedy")] * 4)
model = MaskablePPO("MlpPolicy", tables, n_steps=32, batch_size=64, gamma=1.0, seed=0, verbose=1, device="cpu")
model.learn(args.steps)

env = gymnasium.make(game.gymnasium_id, opponents="greedy")
obs, info = env.reset(seed=1)
over, total = False, 0.0
while not over:
    action, _ = model.predict(obs, action_masks=env.unwrapped.action_masks(), deterministic=True)
    obs, reward, over, _, info = env.step(action)
    total += reward
print(f"an episode with the likeliest moves: return {total:+.2f}")
if args.onnx:
    args.onnx.write_bytes(module_to_onnx(model, game))
