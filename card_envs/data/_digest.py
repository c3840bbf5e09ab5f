"""Digests of players: whether a player is still the one that began a set of games."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from card_envs.game import Game
from card_envs.opponents.networks.policies import TrainedPolicy
from card_envs.opponents.policy import Opponent, Policy
from card_envs.opponents.search import SearchPolicy

HEX_DIGITS = 16


def digest_of(policy: Policy, game: Game) -> str:
    """Return a digest of what decides how a policy plays.

    That is this package's version, the files of the game's rules and scripted players, and all settings and weights of
    the package's own players. Of a user's class it is its file, and the arrays and tensors that it holds.
    """
    found = hashlib.sha256(version("card_envs").encode())
    for module in (game.rules, game.bot, game.planner):
        found.update(_content(getattr(module, "__file__", None)))
    for part in _parts(policy, {}):
        found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()[:HEX_DIGITS]


def _parts(value: Any, seen: dict[int, Any]) -> Iterator[bytes]:
    """Yield what a value consists of, weights above all."""
    if isinstance(value, Opponent):
        yield from _parts(value.policy, seen)
    elif isinstance(value, (np.ndarray, np.generic)):
        yield f"{value.dtype} {value.shape}".encode()
        yield value.tobytes()
    elif isinstance(value, (bytes, bytearray)):
        yield bytes(value)
    elif hasattr(value, "detach") and hasattr(value, "cpu"):  # a tensor
        yield from _parts(value.detach().cpu().numpy(), seen)
    elif id(value) in seen or isinstance(value, (Game, type)):
        return
    else:
        seen[id(value)] = value  # kept, so that no other object gets its id
        yield type(value).__qualname__.encode()
        yield from _inside(value, seen)


def _inside(value: Any, seen: dict[int, Any]) -> Iterator[bytes]:
    if isinstance(value, SearchPolicy):
        for name, setting in value.settings.items():
            if isinstance(setting, Policy):
                yield from _parts(setting, seen)
            elif name != "threads":  # the moves do not depend on them
                yield f"{name}={setting!r}".encode()
    elif isinstance(value, TrainedPolicy):
        settings = (getattr(value, name, None) for name in ("architecture", "sampled", "max_positions"))
        yield repr(tuple(settings)).encode()
        yield from _parts([value.weights, getattr(value, "model", b"")], seen)
    elif callable(getattr(value, "state_dict", None)):
        yield from _parts(dict(value.state_dict()), seen)
    elif isinstance(value, Mapping):
        for key, part in sorted(value.items(), key=lambda item: repr(item[0])):  # safetensors has no order
            yield repr(key).encode()
            yield from _parts(part, seen)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _parts(part, seen)
    elif hasattr(value, "__dict__"):
        if isinstance(value, Policy):
            yield from map(_content, dict.fromkeys(filter(None, map(_source, type(value).__mro__))))
            yield repr([one for one in vars(value).values() if isinstance(one, (str, range))]).encode()
        yield from _parts(vars(value), seen)


def _source(kind: type) -> str | None:
    try:
        return inspect.getsourcefile(kind)
    except (OSError, TypeError):  # built in, or typed at a prompt
        return None


def _content(file: str | None) -> bytes:
    return Path(file).read_bytes() if file and Path(file).is_file() else b""
