"""PPO in one file, in the style of CleanRL, on the vector environment: `python examples/cleanrl_ppo.py --game big_ben`.

Needs torch. Prints the mean return of the episodes that ended, and the loss. `--help` lists what else it takes.
"""

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import nn

from card_envs import Game

ROLLOUT, EPOCHS, MINIBATCHES, GAMMA, LAMBDA, CLIP = 32, 2, 4, 1.0, 0.95, 0.2


def train(
    game: Game, tables: int = 64, seed: int = 0, opponents: str = "greedy", **options: Any
) -> Iterator[tuple[int, nn.Module, str]]:
    """Learn without end. After each update, yield the decisions so far, the actor, and a line about it."""
    torch.set_num_threads(1)  # these networks are too small for more
    torch.manual_seed(seed)
    envs = gymnasium.make_vec(
        game.gymnasium_id, tables, "vector_entry_point", opponents=opponents, **options
    )  # same-step autoreset
    obs_size, num_actions = envs.single_observation_space.shape[0], envs.single_action_space.n
    scale = 1 / max(1.0, abs(game.rules.WORST_SCORE))  # points to about [-1, 1]

    def layers(outputs: int) -> nn.Sequential:
        return nn.Sequential(nn.Linear(obs_size, 128), nn.ReLU(), nn.Linear(128, outputs))

    actor, critic = layers(num_actions), layers(1)
    parameters = [*actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3, eps=1e-5)

    def policy(obs: torch.Tensor, mask: torch.Tensor) -> torch.distributions.Categorical:
        return torch.distributions.Categorical(logits=actor(obs).masked_fill(mask == 0, -torch.inf))

    obs, info = envs.reset(seed=seed)
    returns, ended, update = np.zeros(tables), [], 0
    while True:
        update += 1
        rows = []
        for _ in range(ROLLOUT):
            seen, mask = torch.from_numpy(obs).float(), torch.from_numpy(info["action_mask"])
            with torch.no_grad():
                moves = policy(seen, mask)
                action = moves.sample()
                value = critic(seen).squeeze(1)
            obs, reward, over, _, info = envs.step(action.numpy())
            rows.append(
                (seen, mask, action, moves.log_prob(action), value, torch.tensor(reward * scale), torch.tensor(over))
            )
            returns += reward
            ended += returns[over].tolist()
            returns[over] = 0
        seen, mask, action, old, value, reward, over = (torch.stack(column) for column in zip(*rows))
        with torch.no_grad():
            after, advantage, later = critic(torch.from_numpy(obs).float()).squeeze(1), torch.zeros_like(value), 0.0
            for t in reversed(range(ROLLOUT)):
                going_on = GAMMA * ~over[t]
                later = reward[t] + going_on * after - value[t] + going_on * LAMBDA * later
                advantage[t], after = later, value[t]
        target = (advantage + value).flatten()
        batch = [x.flatten(0, 1) for x in (seen, mask, action, old, advantage)]
        for _ in range(EPOCHS):
            for rows_here in torch.randperm(len(target)).chunk(MINIBATCHES):
                b_seen, b_mask, b_action, b_old, b_advantage = (x[rows_here] for x in batch)
                moves = policy(b_seen, b_mask)
                ratio = (moves.log_prob(b_action) - b_old).exp()
                gain = (b_advantage - b_advantage.mean()) / (b_advantage.std() + 1e-8)
                policy_loss = -torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
                value_loss = (critic(b_seen).squeeze(1) - target[rows_here]).square().mean()
                loss = policy_loss + 0.5 * value_loss - 0.01 * moves.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(parameters, 0.5)
                optimizer.step()
        mean = f"return {np.mean(ended[-500:]):+.2f}" if ended else "no return yet"
        line = f"update {update}: {mean}, {len(ended)} episodes, loss {loss.item():.4f}"
        yield update * ROLLOUT * tables, actor, line


if __name__ == "__main__":
    from _command import run

    run(train, steps=16384)
