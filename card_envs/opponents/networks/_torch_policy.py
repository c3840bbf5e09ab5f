"""Policies from torch modules, for use in the same Python process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from card_envs.opponents.networks.policies import ILLEGAL, LogitsPolicy
from card_envs.opponents.policy import Decisions

if TYPE_CHECKING:
    import torch


class TorchPolicy(LogitsPolicy):
    """Plays by a module that maps observations and masks to logits.

    The module gets `observation` [n, D] and `action_mask` [n, A] float32, as the environments return them, unscaled,
    and returns logits [n, A]; those of illegal actions are ignored.
    """

    def __init__(self, module: torch.nn.Module, sampled: bool = True) -> None:
        """Take a module, which is not copied.

        Args:
            module: with its weights; put it into `eval()` mode if that makes a difference.
            sampled: draw actions from the probabilities; False: play the likeliest.
        """
        super().__init__(sampled)
        self.module = module

    def logits_at(self, decisions: Decisions) -> NDArray[np.float32]:
        """See `LogitsPolicy.logits_at`. Raises ValueError if the module returns something else."""
        import torch

        with torch.no_grad():
            device = device_of(self.module)
            obs, mask = (torch.from_numpy(array).to(device, torch.float32) for array in (decisions.obs, decisions.mask))
            logits = self.module(obs, mask).float().cpu().numpy()
        if logits.shape != decisions.mask.shape or not np.isfinite(logits[decisions.mask != 0]).all():
            raise ValueError(f"{type(self.module).__name__}: expected finite logits of shape {decisions.mask.shape}")
        return np.where(decisions.mask != 0, logits, ILLEGAL).astype(np.float32)


def device_of(module: torch.nn.Module) -> torch.device:
    """Return the device of a module's weights."""
    import torch

    return next((parameter.device for parameter in module.parameters()), torch.device("cpu"))
