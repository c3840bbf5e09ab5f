"""Self-play of sb3-contrib's MaskablePPO and an opponent pool: `python examples/maskable_ppo_pool.py --steps 50000`.

Needs `pip install sb3-contrib`. Every 2000 decisions, a snapshot of the policy joins the pool; with `--no-pool`, it
plays its latest snapshot only. Prints the trainer's own log, and the share of the games that the policy wins against
`random` and `greedy`, which it doesn't meet in training.
"""

import argparse

import gymnasium
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

import card_envs
from card_envs.compare.evaluation import evaluate_every
from card_envs.opponents import OpponentPool

parser = argparse.ArgumentParser()
parser.add_argument("--game", default="back_alley", choices=list(card_envs.GAMES))
parser.add_argument("--steps", type=int, default=4000, help="decisions in all")
parser.add_argument("--no-pool", action="store_true", help="play the latest snapshot only")
parser.add_argument("--draw-by", default="hard", choices=["uniform", "recent", "hard", "close"])
parser.add_argument("--test-every", type=int, default=10_000, help="decisions")
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()

torch.set_num_threads(1)  # these networks are too small for more
game = card_envs.get_game(args.game)
options = {"deals": "single"} if args.game == "back_alley" else {}
pool = OpponentPool(game, size=1 if args.no_pool else 16, draw_by=args.draw_by, seed=args.seed)


class Actor(torch.nn.Module):
    """The actor of an MlpPolicy, from observation and mask to a logit for each action."""

    def __init__(self, policy) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(policy.mlp_extractor.policy_net, policy.action_net)

    def forward(self, observation: torch.Tensor, action_mask: torch.Tensor) -> torch.Tensor:
        return self.layers(observation)


class SelfPlay(BaseCallback):
    def _on_step(self) -> bool:
        if self.num_timesteps % 2000 == 0:
            pool.add(Actor(self.model.policy))
        return True


env = {"id": game.gymnasium_id, "opponents": pool, "reward": "win", **options}
tables = DummyVecEnv([lambda: gymnasium.make(**env)] * 4)
model = MaskablePPO(
    "MlpPolicy", tables, n_steps=256, batch_size=256, gamma=1.0, seed=args.seed, verbose=1, device="cpu"
)
pool.add(Actor(model.policy))
evaluation = evaluate_every(args.test_every, model, game, ["random", "greedy"], pairs=250, options=options)
model.learn(args.steps, [SelfPlay(), evaluation.callback()])
for one in pool.figures():
    print(f"{one.name}: {one.episodes} games, {one.win_share:.2f} won by the learner, rating {one.rating:.0f}")
