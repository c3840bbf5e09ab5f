"""The format of observations: alone or in a dict with the mask, its key and its dtype."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from gymnasium import spaces

from card_envs.engine.buffers import check_choice
from card_envs.game import Game, Int8s, bounds

Observation: TypeAlias = Any  # [..., D], or a dict of it and the mask: the argument `observe` decides
Observe = Literal["dict", "flat"]
ObsDtype = Literal["int8", "float32"]
OBS_KEY = "observation"


class ObservationFormat:
    """The arguments `observe`, `obs_key` and `obs_dtype` of an environment."""

    def __init__(
        self, game: Game, observe: Observe = "dict", obs_key: str = OBS_KEY, obs_dtype: ObsDtype = "int8"
    ) -> None:
        """Take the arguments. Raises ValueError for an unknown layout or dtype, or a key that is not possible."""
        check_choice(observe, ("dict", "flat"), "observe")
        if not isinstance(obs_key, str) or obs_key == "action_mask":
            raise ValueError(f'obs_key: expected a name other than "action_mask", got {obs_key!r:.80}')
        check_choice(obs_dtype, ("int8", "float32"), "obs_dtype")
        if observe == "flat" and obs_key != OBS_KEY:
            raise ValueError(f'obs_key: expected none with observe="flat", which has no dict, got {obs_key!r:.80}')
        self.game = game
        self.key = obs_key if observe == "dict" else None
        self.dtype = np.dtype(obs_dtype)

    def space(self) -> spaces.Dict | spaces.Box:
        """Return a new space of what a seat sees."""
        rules = self.game.rules
        low, high = (bound.astype(self.dtype) for bound in bounds(rules.OBS_FIELDS))
        box = spaces.Box(low, high, dtype=low.dtype.type)
        if self.key is None:
            return box
        return spaces.Dict({self.key: box, "action_mask": spaces.Box(0, 1, (rules.NUM_ACTIONS,), np.int8)})

    def lay_out(self, obs: Int8s, mask: Int8s) -> Observation:
        """Return observations [..., D], which the caller gives away, and a copy of the masks [..., A]."""
        if self.dtype != np.int8:
            obs = obs.astype(self.dtype)
        return obs if self.key is None else {self.key: obs, "action_mask": mask.copy()}
