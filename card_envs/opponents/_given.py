"""Policies from what users pass: a name, a policy of any kind, a torch module, or a model of stable-baselines3."""

from __future__ import annotations

import sys
from typing import Any

from card_envs.engine.buffers import check_bool
from card_envs.game import Game
from card_envs.opponents.names import load_cached
from card_envs.opponents.networks.torch_policy import TorchPolicy
from card_envs.opponents.policy import Policy, as_policy, can_act
from card_envs.system.files import short_repr

WANTED = "expected a Policy, or another object with act, or what TorchPolicy takes"


def to_policy(given: Any, game: Game, where: str, sampled: bool = True) -> Policy:
    """Return what was given as a policy.

    Args:
        given: a name for `load_opponent`; what `as_policy` takes; or what `TorchPolicy` takes, which is not copied.
        game: that it must play.
        where: it was given, for messages.
        sampled: False: a network plays its likeliest moves; True: it draws them, unless it was made to play those.

    Raises:
        ValueError: it is something else, or it plays another game.
    """
    policy = _loaded_or_adapted(given, game, where)
    return policy if check_bool(sampled, "sampled") else policy.likeliest()


def _loaded_or_adapted(given: Any, game: Game, where: str) -> Policy:
    if isinstance(given, str):
        return load_cached(given, game).policy
    is_module = "torch" in sys.modules and isinstance(given, sys.modules["torch"].nn.Module)
    if can_act(given) and not is_module:
        return as_policy(given, where, game)
    why = ""
    if "torch" in sys.modules:
        try:
            return TorchPolicy(given)
        except ValueError as error:
            why = f": {error}"
    if not can_act(given):
        raise ValueError(f"{where}: {WANTED}, got {short_repr(given)}{why}")
    return as_policy(given, where, game)
