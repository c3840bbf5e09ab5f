"""PPO in self-play with TorchRL's wrapper and masked distribution: `python examples/torchrl_ppo.py --game back_alley`.

Needs `pip install torchrl`. Every seat sees its table at any time, so that advantages run over all moves of the game
while only the seat to move is trained on its move. Prints the mean reward of a move and the loss.
`--help` lists what else it takes.
"""

from collections.abc import Iterator
from typing import Any

import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.envs import PettingZooWrapper
from torchrl.modules import MaskedCategorical
from torchrl.objectives.value.functional import generalized_advantage_estimate

from card_envs import Game
from card_envs.envs.aec import CardEnv

ROLLOUT, EPOCHS, GAMMA, LAMBDA, CLIP = 256, 4, 1.0, 0.95, 0.2


def train(game: Game, seed: int = 0, **options: Any) -> Iterator[tuple[int, nn.Module, str]]:
    """Learn without end. After each update, yield the moves so far, the actor, and a line about it."""
    torch.set_num_threads(1)  # these networks are too small for more
    torch.manual_seed(seed)
    raw = CardEnv(game, **options)
    groups = {"seats": list(raw.possible_agents)}
    env = PettingZooWrapper(raw, use_mask=True, group_map=groups, categorical_actions=True, seed=seed)
    scale = 1 / max(1.0, abs(game.rules.WORST_SCORE))  # points to about [-1, 1]

    def layers(outputs: int) -> nn.Sequential:
        return nn.Sequential(nn.Linear(game.rules.OBS_SIZE, 128), nn.ReLU(), nn.Linear(128, outputs))

    actor, critic = layers(game.rules.NUM_ACTIONS), layers(1)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3)

    def policy(obs: torch.Tensor, legal: torch.Tensor) -> MaskedCategorical:
        # A seat that is not to move has no legal action; what is chosen for it is not played.
        return MaskedCategorical(logits=actor(obs.float()), mask=legal.bool() | ~legal.bool().any(-1, keepdim=True))

    player = TensorDictModule(
        lambda obs, legal: policy(obs, legal).sample(),
        in_keys=[("seats", "observation", "observation"), ("seats", "action_mask")],
        out_keys=[("seats", "action")],
    )
    update = 0
    while True:
        update += 1
        with torch.no_grad():
            steps = env.rollout(ROLLOUT, player, break_when_any_done=False)  # [T, S, ...]
            seats, after = steps["seats"], steps["next", "seats"]
            obs, legal, action = seats["observation", "observation"], seats["action_mask"], seats["action"]
            value, next_value = critic(obs.float()), critic(after["observation", "observation"].float())
            old = policy(obs, legal).log_prob(action)
            columns = (value, next_value, after["reward"] * scale, after["done"], after["done"])
            columns = (x.transpose(0, 1) for x in columns)  # TorchRL wants time after the seats
            advantage, target = generalized_advantage_estimate(GAMMA, LAMBDA, *columns)
            advantage, target = (x.transpose(0, 1).squeeze(-1) for x in (advantage, target))
        played = seats["mask"]
        gain = (advantage - advantage[played].mean()) / (advantage[played].std() + 1e-8)
        for _ in range(EPOCHS):
            moves = policy(obs, legal)
            ratio = (moves.log_prob(action) - old).exp()
            policy_loss = -torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain)[played].mean()
            value_loss = (critic(obs.float()).squeeze(-1) - target).square().mean()
            loss = policy_loss + 0.5 * value_loss - 0.01 * moves.entropy()[played].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        reward = after["reward"][played].mean().item()
        yield update * ROLLOUT, actor, f"update {update}: reward {reward:+.3f} a move, loss {loss.item():.4f}"


if __name__ == "__main__":
    from _command import run

    run(train, steps=1024, self_play=True)
