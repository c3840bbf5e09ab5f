"""One thread of torch, as in training (more of them wait for each other on a busy machine); what a run learned."""

import torch

from card_envs import load_opponent
from card_envs.compare.pairs import play_pairs
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from training.moves import HostRecorder
from training.networks import CPU
from training.rollout import Backend, GumbelSampler
from training.run import Run
from training.tables import HostTables

torch.set_num_threads(1)
TENSORS = Backend(CPU, HostTables, True, GumbelSampler, HostRecorder)  # as on a GPU, but for the tables


def check_high_card(run: Run) -> None:
    """The tiny game is learned: better than its scripted player, which takes 0.32 points from random play."""
    policy = run.algorithm.stored_policy()
    policy.sampled = False
    against = {
        rival: play_pairs(HIGH_CARD, policy, load_opponent(rival, HIGH_CARD), 2000).margin_per_episode
        for rival in ("random", "greedy")
    }
    assert against["random"].low > 0.32
    assert against["greedy"].low > 0.05
