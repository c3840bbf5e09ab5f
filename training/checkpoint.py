"""Checkpoints: everything that a run goes on from, in one file that is there whole or not at all.

Plain arrays and JSON in safetensors' format; nothing in it is executed when it is read.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

Arrays = dict[str, NDArray[Any]]
FACTS = "facts"


def write(path: Path, arrays: Arrays, facts: dict[str, Any]) -> None:
    """Replace the checkpoint in one step; the disk has the new one before the old one goes."""
    unfinished = path.with_name(path.name + ".new")
    save_file(
        {name: np.ascontiguousarray(array) for name, array in arrays.items()}, unfinished, {FACTS: json.dumps(facts)}
    )
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())
    unfinished.replace(path)


def read(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """The arrays and facts of a checkpoint.

    Raises:
        ValueError: there is none, or it is broken.
    """
    if not path.is_file():
        raise ValueError(f"{path}: there is no checkpoint to resume from")
    try:
        with safe_open(path, "np") as file:
            facts = json.loads(file.metadata()[FACTS])
            return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: no checkpoint of a training run: {error}") from None


def under(prefix: str, arrays: Arrays) -> Arrays:
    """The arrays with a prefix to their names."""
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def below(prefix: str, arrays: Arrays) -> Arrays:
    """The arrays whose names have that prefix, without it."""
    return {name.removeprefix(f"{prefix}/"): array for name, array in arrays.items() if name.startswith(f"{prefix}/")}


def of_module(module: torch.nn.Module) -> Arrays:
    """A module's weights."""
    return {name: tensor.detach().numpy() for name, tensor in module.state_dict().items()}


def into_module(module: torch.nn.Module, arrays: Arrays) -> None:
    """Set a module's weights."""
    module.load_state_dict(tensors(arrays))


def tensors(arrays: Arrays) -> dict[str, torch.Tensor]:
    """Arrays as tensors of their own memory."""
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}


def of_optimizer(optimizer: torch.optim.Optimizer) -> Arrays:
    """What an optimiser remembers of each parameter, by the parameter's number."""
    states: dict[int, dict[str, torch.Tensor]] = optimizer.state_dict()["state"]
    return {f"{i}/{name}": tensor.numpy() for i, state in states.items() for name, tensor in state.items()}


def into_optimizer(optimizer: torch.optim.Optimizer, arrays: Arrays) -> None:
    """Set what an optimiser remembers."""
    states: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors(arrays).items():
        number, _, what = name.partition("/")
        states.setdefault(int(number), {})[what] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": states})
