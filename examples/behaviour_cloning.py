"""Clone a player from generated games and measure the copy: `python examples/behaviour_cloning.py games`.

First: `python -m card_envs generate back_alley --players strong --games 20000 -o deals=single --out games`. Needs torch
and pyarrow. With `--onnx model.onnx` (extra `onnx`), the copy is saved as a model that `card_envs import` takes.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow.parquet
import torch
from torch import nn

import card_envs
from card_envs.compare.pairs import play_pairs
from card_envs.data import as_int8
from card_envs.opponents import TorchPolicy, load_opponent
from card_envs.opponents.networks.onnx import module_to_onnx

parser = argparse.ArgumentParser()
parser.add_argument("games", type=Path, help="a folder that `generate` wrote")
parser.add_argument("--game", default="back_alley", choices=list(card_envs.GAMES))
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--pairs", type=int, default=200, help="mirrored pairs against greedy at the end")
parser.add_argument("--onnx", type=Path, help="write the network to this file")
args = parser.parse_args()
BATCH = 1024

torch.set_num_threads(1)  # these networks are too small for more
torch.manual_seed(0)
game = card_envs.get_game(args.game)
rows = pyarrow.parquet.read_table(args.games / "data")
obs, mask = (torch.tensor(as_int8(rows[name])) for name in ("obs", "mask"))
action = torch.from_numpy(rows["action"].to_numpy().astype(np.int64))


class Network(nn.Module):
    """Maps observation and mask to a logit for each action."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(obs.shape[1], 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, mask.shape[1])
        )

    def forward(self, observation: torch.Tensor, action_mask: torch.Tensor) -> torch.Tensor:
        return self.layers(observation)


network = Network()
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
chosen = mask.sum(dim=1) > 1  # forced moves teach nothing
learned, held_out = chosen.nonzero().squeeze(1).tensor_split([int(0.95 * chosen.sum())])


def loss_at(numbers: torch.Tensor) -> torch.Tensor:
    legal = mask[numbers].float()
    logits = network(obs[numbers].float(), legal).masked_fill(legal == 0, -torch.inf)
    return nn.functional.cross_entropy(logits, action[numbers])


for epoch in range(args.epochs):
    for numbers in learned[torch.randperm(len(learned))].split(BATCH):
        loss = loss_at(numbers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(f"epoch {epoch + 1}: loss {loss_at(held_out).item():.3f} on {len(held_out):,} decisions held out")
policy, greedy = TorchPolicy(network, sampled=False), load_opponent("greedy", game)
print("against greedy:", play_pairs(game, policy, greedy, args.pairs, seed=1).in_words())
if args.onnx:
    args.onnx.write_bytes(module_to_onnx(network, game))
