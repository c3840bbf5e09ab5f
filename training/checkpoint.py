"""Checkpoints: everything that a run resumes from, in one file that is written completely or not at all.

Plain arrays and JSON in safetensors' format; nothing in it is executed when it is read. A digest over every byte is
part of it, so that a modified or truncated file is refused. The checkpoint before the last one is kept.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load, save

from card_envs.system.files import error_text, read_file, replace_file

Arrays = dict[str, NDArray[Any]]
Memory = tuple[Arrays, dict[str, Any]]  # what something resumes from: arrays, and facts for JSON
FACTS, DIGEST = "facts", "sha256"
UNSEALED = b"0" * 64
SEAL = re.compile(rb'"sha256":"([0-9a-f]{64})"')
MAX_BYTES = 1 << 36
MAX_COUNT = 1 << 62


class CheckpointFacts(BaseModel):
    """The facts of a checkpoint, beside its arrays.

    Attributes:
        decisions, seconds: numbers learned from and spent so far.
        settings: the run's settings that may not change.
        num_envs: number of each process; 0 for an algorithm without them.
        algorithm: what the algorithm remembers beside arrays.
        ranks: the same for each process.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    decisions: int = Field(ge=0, le=MAX_COUNT)
    seconds: float = Field(ge=0, le=MAX_COUNT)
    settings: dict[str, Any]
    num_envs: int = Field(ge=0, le=MAX_COUNT)
    algorithm: dict[str, Any]
    ranks: list[dict[str, Any]] = Field(min_length=1)


def previous(path: Path) -> Path:
    """Return the place of the checkpoint before the one at `path`."""
    return path.with_stem(f"{path.stem}.previous")


def write(path: Path, arrays: Arrays, facts: dict[str, Any]) -> None:
    """Replace the checkpoint in one step; the one that was there is kept as `previous(path)`.

    Raises:
        OSError: it can't be written; what was there is still there.
    """
    replace_file(path, pack(arrays, facts), keep=previous(path))


def pack(arrays: Arrays, facts: dict[str, Any]) -> bytes:
    """Return the file's content; its digest is taken with zeros in the digest's place."""
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    data = save(contiguous, {FACTS: json.dumps(facts), DIGEST: UNSEALED.decode()})
    start = data.index(b'"sha256":"' + UNSEALED) + len(b'"sha256":"')
    digest = hashlib.sha256(data).hexdigest().encode()
    return data[:start] + digest + data[start + len(digest) :]


def _is_sealed(data: bytes) -> bool:
    """Return whether the digest is there, and right."""
    seals = list(SEAL.finditer(_header(data)))
    if len(seals) != 1:
        return False
    start, end = (8 + place for place in seals[0].span(1))
    digest = hashlib.sha256(data[:start] + UNSEALED)
    digest.update(memoryview(data)[end:])
    return digest.hexdigest().encode() == data[start:end]


def _header(data: bytes) -> bytes:
    """Return the JSON that a file in safetensors' format begins with."""
    return data[8 : 8 + int.from_bytes(data[:8], "little")]


def read_checkpoint(path: Path) -> Memory:
    """Return the arrays and facts of a checkpoint.

    Raises:
        ValueError: there is none, or it was modified; names the one before, where that is good.
    """
    try:
        return _read(path)
    except FileNotFoundError:
        problem = f"{path}: there is no checkpoint to resume from"
        if not previous(path).exists():
            raise ValueError(problem) from None
    except (OSError, ValueError) as error:
        problem = error_text(error)
    raise ValueError(f"{problem}; {way_out(path)}") from None


def way_out(path: Path) -> str:
    """Return a hint how to go on from a broken checkpoint, for the end of a message."""
    earlier = previous(path)
    try:
        decisions = _read(earlier)[1]["decisions"]
    except (OSError, ValueError):
        return "there is no good one before it: start again without --resume"
    return f"the one before it is good, after {decisions:,} decisions: `mv {earlier} {path}`, then --resume goes on"


def _read(path: Path) -> Memory:
    data = read_file(path, MAX_BYTES)
    if not _is_sealed(data):
        raise ValueError(f"{path}: not a checkpoint: checksum mismatch: truncated or modified")
    try:
        facts = CheckpointFacts.model_validate_json(json.loads(_header(data))["__metadata__"][FACTS])
        return load(data), facts.model_dump()
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        problem = str(error)
    raise ValueError(f"{path}: not a checkpoint of a run: {problem}")


# Checks of arrays


def with_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays with a prefix to their names."""
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays whose names have that prefix, without it."""
    return {name.removeprefix(f"{prefix}/"): array for name, array in arrays.items() if name.startswith(f"{prefix}/")}


def check_arrays(arrays: Arrays, like: Mapping[str, NDArray[Any]], what: str) -> Arrays:
    """Return the arrays. Raises ValueError unless they are like others, and finite."""
    if set(arrays) != set(like):
        raise ValueError(
            f"{what}: expected arrays {', '.join(sorted(like))}; got {', '.join(sorted(arrays)) or 'none'}"
        )
    for name, array in arrays.items():
        expected = like[name]
        if (array.shape, array.dtype) != (expected.shape, expected.dtype):
            wanted, got = (f"{this.dtype} of shape {this.shape}" for this in (expected, array))
            raise ValueError(f"{what}/{name}: expected {wanted}, got {got}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{what}/{name}: expected finite numbers")
    return arrays


def restore_stream(rng: np.random.Generator, facts: dict[str, Any], name: str) -> None:
    """Set a random stream to the state of that name. Raises ValueError if the entry is not a random state."""
    try:
        rng.bit_generator.state = facts[name]
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        kind = type(rng.bit_generator).__name__
        raise ValueError(f"ranks: {name}: expected the state of a random stream ({kind})") from None


def module_arrays(module: torch.nn.Module) -> Arrays:
    """Return a module's weights."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in module.state_dict().items()}


def restore_module(module: torch.nn.Module, arrays: Arrays, what: str) -> None:
    """Set a module's weights. Raises ValueError where they don't fit, naming them as `what`."""
    module.load_state_dict(tensors(check_arrays(arrays, module_arrays(module), what)))


def tensors(arrays: Arrays) -> dict[str, torch.Tensor]:
    """Return copies of arrays as tensors."""
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}


def optimizer_arrays(optimizer: torch.optim.Optimizer) -> Arrays:
    """Return an optimizer's state of each parameter, by the parameter's number."""
    states: dict[int, dict[str, torch.Tensor]] = optimizer.state_dict()["state"]
    return {f"{i}/{name}": tensor.cpu().numpy() for i, state in states.items() for name, tensor in state.items()}


def restore_optimizer(optimizer: torch.optim.Adam, arrays: Arrays) -> None:
    """Set Adam's means and squares of the gradients, of parameters that had any. Raises ValueError."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    like: Arrays = {}
    for i, parameter in enumerate(parameters):
        if f"{i}/step" in arrays:
            weights = parameter.detach().cpu().numpy()
            like |= {f"{i}/step": np.zeros((), np.float32), f"{i}/exp_avg": weights, f"{i}/exp_avg_sq": weights}
    check_arrays(arrays, like, "optimizer")
    states: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors(arrays).items():
        number, _, what = name.partition("/")
        states.setdefault(int(number), {})[what] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": states})
