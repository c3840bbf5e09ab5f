"""Answers do not depend on what a program has set for itself: NumPy's and Torch's modes, warnings, global seeds."""

from __future__ import annotations

import contextlib
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from card_envs.compare.pairs import play_pairs
from card_envs.engine.batch import BatchEnv
from card_envs.envs.aec import CardEnv
from card_envs.opponents import TorchPolicy, load_opponent
from card_envs.opponents.networks.folder import save_network
from card_envs.opponents.networks.policies import NetworkPolicy
from card_envs.opponents.policy import decisions_at
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import positions, some, untrained


@contextlib.contextmanager
def hostile() -> Iterator[None]:
    """Modes of NumPy and Torch that programs set, and warnings as errors."""
    with contextlib.ExitStack() as undo:
        undo.enter_context(np.errstate(all="raise"))
        undo.enter_context(np.printoptions(precision=1, threshold=1, sign="+"))
        undo.enter_context(warnings.catch_warnings())
        warnings.simplefilter("error")
        with contextlib.suppress(ImportError):
            import torch

            undo.callback(torch.set_default_dtype, torch.get_default_dtype())
            undo.callback(torch.set_default_device, None)
            undo.callback(torch.set_grad_enabled, torch.is_grad_enabled())
            torch.set_default_dtype(torch.float64)
            torch.set_default_device("meta")
            torch.set_grad_enabled(False)
        yield


def answers(folder: Path, module: Any) -> list[Any]:
    """What players, environments and comparisons answer."""
    decisions = decisions_at(TINY, some(positions(TINY), 16))
    env = CardEnv(TINY, render_mode="ansi")
    env.reset(seed=5)
    view = env.view(env.agent_selection)
    found: list[Any] = [env.render(), view, repr(env.record())]
    save_network(folder, untrained(TINY, NetworkPolicy, [8]), decisions, training={}, strength=[])
    for name in ("greedy", "random", "search:4,moves=turn", str(folder)):
        player = load_opponent(name, TINY)
        found += [player.act(decisions, np.random.default_rng(0)).tolist(), repr(player.rank_moves(view))]
    if module is not None:
        found.append(TorchPolicy(module).probabilities(decisions).tolist())
    batch = BatchEnv(TINY, 8, seed=1)
    batch.step(batch.mask.argmax(axis=1))
    figures = play_pairs(TINY, "greedy", "random", 10, 3).as_dict()
    return [*found, batch.obs.tolist(), [str(value) for key, value in figures.items() if "micro" not in key]]


def test_answers_do_not_depend_on_what_a_program_has_set(tmp_path: Path) -> None:
    module: Any = None
    with contextlib.suppress(ImportError):
        import torch

        module = torch.nn.Linear(TINY.rules.OBS_SIZE, TINY.rules.NUM_ACTIONS)
    seeds: Any = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index] # noqa: NPY002
    calm = answers(tmp_path / "calm", module)
    assert seeds == (random.getstate(), np.random.get_state()[1].tolist())  # type: ignore[index] # noqa: NPY002
    with hostile():
        found = answers(tmp_path / "hostile", module)
    assert found == calm
