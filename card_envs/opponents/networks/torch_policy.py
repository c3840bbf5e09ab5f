"""Policies from torch modules and functions, and from models of stable-baselines3, for use in the same process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.buffers import check_bool, check_choice
from card_envs.opponents.networks.policies import ILLEGAL, LogitsPolicy, Outputs, not_finite
from card_envs.opponents.policy import Decisions

if TYPE_CHECKING:
    import torch


def actor_of(trained: Any, outputs: Outputs | None = None) -> torch.nn.Module:
    """Return a torch module from observations and masks to logits or values of the actions.

    The module gets `observation` [n, D] and `action_mask` [n, A] float32, as the environments return them, unscaled,
    and returns logits or values [n, A]; those of illegal actions are ignored. It shares the weights.

    A model of stable-baselines3 brings along what `VecNormalize` does in its environment; its policy alone does not, so
    pass the model (after `load`, with its environment). Whatever else changes observations there is refused: put it
    into a module.

    Args:
        trained: a model of stable-baselines3 or sb3-contrib; any torch module that reads the observation, or
            observation and mask; or such a function of tensors. docs/guides/onnx.md has recipes for other libraries.
        outputs: "logits": moves are drawn from their softmax; "values", as a DQN learns: the largest is played. None:
            what a model of stable-baselines3 has, and logits of anything else.

    Raises:
        ValueError: it is something else, or observations are changed on the way to it.
    """
    from card_envs.opponents.networks._actors import find_actor

    if outputs is not None:
        check_choice(outputs, ("logits", "values"), "outputs")
    return find_actor(trained, outputs)


def outputs_of(actor: torch.nn.Module) -> Outputs:
    """Return the kind of outputs of a module of `actor_of`."""
    from card_envs.opponents.networks._actors import Actor, Sb3Actor

    return actor.outputs if isinstance(actor, (Actor, Sb3Actor)) else "logits"


class TorchPolicy(LogitsPolicy):
    """Plays by a torch module, or by what `actor_of` takes. It can be pickled if the module's classes can."""

    def __init__(self, module: Any, sampled: bool | None = None, outputs: Outputs | None = None) -> None:
        """Take a module, which is not copied.

        Args:
            module: what `actor_of` takes, with its weights; put it into `eval()` mode if that makes a difference.
            sampled: draw actions from the softmax of logits; False: play the likeliest, which has the largest logit or
                value; None: draw, unless the outputs are values.
            outputs: "logits" or "values": see `actor_of`.

        Raises:
            ValueError: there is no actor, or actions are to be drawn from values, which are not probabilities.
        """
        self.module = actor_of(module, outputs)
        self._name, self._outputs = type(module).__name__, outputs_of(self.module)
        if sampled is None:
            sampled = self._outputs == "logits"
        super().__init__(check_bool(sampled, "sampled"))
        if sampled and self._outputs == "values":
            raise ValueError(
                f"{self._name}: sampled=True: no moves can be drawn from values of actions: expected sampled=False, "
                'which plays the largest, or outputs="logits" if the outputs are logits'
            )

    def logits_at(self, decisions: Decisions) -> NDArray[np.float32]:
        """Return the logits or values [n, A] of all actions. Raises ValueError if the module returns something else."""
        import torch

        with torch.no_grad():
            device = device_of(self.module)
            obs, mask = (torch.from_numpy(array).to(device, torch.float32) for array in (decisions.obs, decisions.mask))
            answer = self.module(obs, mask)
        if not isinstance(answer, torch.Tensor):
            raise ValueError(f"{self._name}: expected a tensor of {self._outputs}, got {type(answer).__name__}")
        logits = answer.float().cpu().numpy()
        if logits.shape != decisions.mask.shape:
            shape = decisions.mask.shape
            raise ValueError(f"{self._name}: expected {self._outputs} of shape {shape}, got {logits.shape}")
        if not np.isfinite(logits[decisions.mask != 0]).all():
            raise not_finite(f"{self._name}: expected finite {self._outputs}", logits, decisions.mask)
        return np.where(decisions.mask != 0, logits, ILLEGAL).astype(np.float32)


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode; afterwards, each of its parts is in the mode in which it was."""
    modes = [(part, part.training) for part in module.modules()]
    try:
        module.eval()
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def device_of(module: torch.nn.Module) -> torch.device:
    """Return the device of a module's weights."""
    import torch

    return next((parameter.device for parameter in module.parameters()), torch.device("cpu"))
