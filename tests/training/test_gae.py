"""Advantages along each seat's own decisions, against examples worked by hand (lambda one half)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from training.algorithms.ppo import gae_advantages


def one_table(
    seat: list[int],
    rewards: Sequence[tuple[float, ...]],
    done: list[int],
    values: list[float],
    last_values: tuple[float, ...],
    learned: list[int] | None = None,
) -> list[float]:
    """The advantages at a single table, by step."""

    def column(items: Sequence[Any], dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor(items, dtype=dtype)[:, None]

    found = gae_advantages(
        column(seat, torch.int8),
        column(learned or [1] * len(seat), torch.bool),
        column(rewards, torch.float32),
        column(done, torch.bool),
        column(values, torch.float32),
        torch.tensor([last_values], dtype=torch.float32),
        0.5,
    )
    assert found.shape == (len(seat), 1)
    advantages: list[float] = found[:, 0].tolist()
    return advantages


def test_double_move_and_rewards_while_others_move() -> None:
    # Seat 0 moves twice, then seat 1, then seat 0 ends the episode; values after it do not count.
    found = one_table([0, 0, 1, 0], [(0, 0), (2, -2), (-1, 1), (3, -3)], [0, 0, 0, 1], [1, 2, 3, 4], (100, 100))
    last = 3 - 4
    third = (1 - 3) - 3  # seat 1: its own move and what seat 0's last one cost it
    second = (2 - 1) + 4 - 2 + 0.5 * last  # seat 0: its move and seat 1's, then its next value
    first = 0 + 2 - 1 + 0.5 * second
    assert found == [first, second, third, last] == [2.25, 2.5, -5, -1]


def test_truncated_tail_goes_on_with_the_critics_value_of_each_seat() -> None:
    found = one_table([0, 1], [(1, -1), (2, -2)], [0, 0], [5, 6], (10, -10))
    assert found == [(1 + 2) + 10 - 5, -2 - 10 - 6]


def test_episode_that_ends_in_the_middle() -> None:
    # Seat 0 is paid 1 at step 2, before its first decision of the second episode: earned by nobody.
    found = one_table([0, 1, 1, 0], [(0, 0), (4, -4), (1, -1), (0, 0)], [0, 1, 0, 0], [1, 2, 3, 4], (7, -7))
    assert found == [4 - 1, -4 - 2, -1 - 7 - 3, 7 - 4]


def test_decisions_that_are_not_learned_are_passed_over() -> None:
    found = one_table([0, 0, 0], [(1,), (2,), (4,)], [0, 0, 1], [1, 99, 2], (0,), learned=[1, 0, 1])
    assert found == [(1 + 2) + 2 - 1 + 0.5 * (4 - 2), 0, 4 - 2]


def test_four_seats_in_partnerships() -> None:
    rewards = [(0, 0, 0, 0)] * 3 + [(8, -8, 8, -8), (0, 0, 0, 0)]
    found = one_table([0, 1, 2, 3, 2], rewards, [0, 0, 0, 1, 0], [1, 2, 3, 4, 5], (6, 6, 9, 6))
    assert found == [8 - 1, -8 - 2, 8 - 3, -8 - 4, 9 - 5]


def test_lambda_one_gives_returns_minus_values() -> None:
    random = torch.Generator().manual_seed(0)
    rewards = torch.randint(-3, 4, (12, 5, 1), generator=random).float()
    done = torch.zeros((12, 5), dtype=torch.bool)
    done[-1] = True
    values = torch.randn((12, 5), generator=random)
    seat, learned = torch.zeros((12, 5), dtype=torch.int8), torch.ones((12, 5), dtype=torch.bool)
    found = gae_advantages(seat, learned, rewards, done, values, torch.ones((5, 1)), 1.0)
    returns = rewards[:, :, 0].flip(0).cumsum(0).flip(0)
    torch.testing.assert_close(found, returns - values, atol=1e-4, rtol=0)


def test_tables_do_not_touch_each_other() -> None:
    random = torch.Generator().manual_seed(1)
    shape = (9, 4)
    seat = torch.randint(0, 2, shape, generator=random, dtype=torch.int8)
    learned, done = torch.rand(shape, generator=random) < 0.8, torch.rand(shape, generator=random) < 0.2
    rewards = torch.randn((*shape, 2), generator=random)
    values, last = torch.randn(shape, generator=random), torch.randn((4, 2), generator=random)
    together = gae_advantages(seat, learned, rewards, done, values, last, 0.9)
    for i in range(4):
        one = (slice(None), slice(i, i + 1))
        alone = gae_advantages(seat[one], learned[one], rewards[one], done[one], values[one], last[i : i + 1], 0.9)
        assert torch.equal(alone[:, 0], together[:, i])
