"""Torch modules, functions and models of stable-baselines3 as modules from observations and masks to outputs."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType
from typing import Any, TypeAlias

import gymnasium
import torch
from torch import Tensor, nn

from card_envs.opponents.networks.policies import Outputs

Logits: TypeAlias = Callable[..., Tensor]

WANTED = "a torch module or function from observation (and mask) to logits or values, or a model of stable-baselines3"
NOT_WRAPPED = "pass the module inside, or a function of observation and mask that calls it"
PUT_INSIDE = "pass a module that does the same to what it reads"


class Actor(nn.Module):
    """A module or function that is called with the observation, and with the mask if it reads one.

    Attributes:
        source: the module or function.
        num_inputs: 1 or 2.
        outputs: "logits" or "values".
    """

    def __init__(self, source: Logits, num_inputs: int, outputs: Outputs) -> None:
        super().__init__()
        self.source = source
        self.num_inputs = num_inputs
        self.outputs = outputs

    def forward(self, observation: Tensor, action_mask: Tensor) -> Tensor:
        return self.source(*(observation, action_mask)[: self.num_inputs])

    def __deepcopy__(self, memo: dict[int, Any]) -> Actor:
        if not isinstance(self.source, nn.Module):
            raise ValueError("a function can't be copied with the weights that it reads: pass a torch module")
        return Actor(copy.deepcopy(self.source, memo), self.num_inputs, self.outputs)


def find_actor(trained: Any, outputs: Outputs | None = None) -> nn.Module:
    """Return the actor of a model of stable-baselines3, a module or a function. Raises ValueError if there is none."""
    origins = {kind.__module__.partition(".")[0] for kind in type(trained).__mro__}
    if "stable_baselines3" in origins:
        trained = _of_sb3(trained)
    if isinstance(trained, nn.Module):
        if not _has_forward(trained):
            raise ValueError(f"{_class(trained)} has no forward: expected {WANTED}")
        known: Outputs = trained.outputs if isinstance(trained, (Actor, Sb3Actor)) else "logits"
        if _reads_mask(trained):
            return trained if outputs in (None, known) else Actor(trained, 2, outputs or known)
        return Actor(trained, 1, outputs or known)
    if not isinstance(trained, (FunctionType, MethodType, partial)):
        raise ValueError(f"{_class(trained)}: expected {WANTED}; for other libraries, docs/guides/onnx.md has recipes")
    return Actor(trained, 2 if _reads_mask(trained) else 1, outputs or "logits")


def _class(trained: object) -> str:
    return type(trained).__name__


def _has_forward(module: nn.Module) -> bool:
    return getattr(type(module), "forward", None) is not nn.Module.forward or "forward" in vars(module)


def _reads_mask(source: Any) -> bool:
    """Return whether a module or function has a second input that is required, or called a mask. Raises ValueError."""
    parameters = [*inspect.signature(source.forward if isinstance(source, nn.Module) else source).parameters.values()]
    if parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        raise ValueError(f"{_class(source)}: it hands on what it gets, and may or may not read the mask: {NOT_WRAPPED}")
    second = parameters[1] if len(parameters) > 1 else None
    if second is None:
        return False
    return "mask" in second.name or (second.default is second.empty and second.kind is second.POSITIONAL_OR_KEYWORD)


# stable-baselines3 and sb3-contrib


class Sb3Actor(nn.Module):
    """An actor of stable-baselines3, with what its environment does to observations.

    Attributes:
        policy: the actor-critic policy, or a network of action values.
        outputs: what it returns.
        normalize: the scaling of `VecNormalize`, whose statistics it shares; None if nothing was normalized.
    """

    def __init__(self, policy: Any, normalize: Normalization | None) -> None:
        super().__init__()
        self.policy = policy
        self.outputs: Outputs = "logits" if hasattr(policy, "mlp_extractor") else "values"
        self.normalize = normalize

    def forward(self, observation: Tensor, action_mask: Tensor) -> Any:
        keys = getattr(self.policy.observation_space, "spaces", None)
        named = {"action_mask": action_mask}
        inputs: Any = {key: named.get(key, observation) for key in keys} if keys else observation
        if self.normalize is not None:
            inputs = self.normalize(inputs)
        if not hasattr(self.policy, "mlp_extractor"):
            return self.policy(inputs)
        features = self.policy.extract_features(inputs, self.policy.pi_features_extractor)
        return self.policy.action_net(self.policy.mlp_extractor.forward_actor(features))


class Normalization:
    """Scales observations by the running statistics of a `VecNormalize`."""

    def __init__(self, env: Any) -> None:
        self.statistics, self.epsilon, self.clip = env.obs_rms, env.epsilon, env.clip_obs

    def __call__(self, observation: Any) -> Any:
        if not isinstance(self.statistics, dict):
            return self._scale(observation, self.statistics)
        keys = self.statistics.keys() & observation.keys()
        return observation | {key: self._scale(observation[key], self.statistics[key]) for key in keys}

    def _scale(self, values: Tensor, statistics: Any) -> Tensor:
        mean, scale = (
            torch.as_tensor(array, dtype=torch.float32, device=values.device)
            for array in (statistics.mean, (statistics.var + self.epsilon) ** -0.5)
        )
        return ((values - mean) * scale).clamp(-self.clip, self.clip)


HARMLESS = ("VecMonitor", "VecCheckNan", "VecExtractDictObs")  # wrappers that leave the values as they are
SAME_VALUES = ("DtypeObservation",)


def _of_sb3(trained: Any) -> Sb3Actor:
    policy = getattr(trained, "policy", trained)
    if hasattr(policy, "lstm_actor"):
        raise ValueError(f"{_class(trained)}: a recurrent policy needs the whole episode; expected one without memory")
    if not hasattr(policy, "q_net") and not hasattr(policy, "mlp_extractor"):
        raise ValueError(f"{_class(trained)}: expected a model with discrete actions, such as PPO, A2C or DQN")
    env = trained.get_env() if callable(getattr(trained, "get_env", None)) else None
    return Sb3Actor(getattr(policy, "q_net", policy), _normalization(trained, env))


def _normalization(trained: object, env: Any) -> Normalization | None:
    """Return how an environment of stable-baselines3 normalizes. Raises ValueError for other changes."""
    normalization = None
    while env is not None and hasattr(env, "venv"):
        if type(env).__name__ == "VecNormalize" and normalization is None:
            normalization = Normalization(env) if env.norm_obs else None
        elif type(env).__name__ not in HARMLESS:
            raise ValueError(
                f"{_class(trained)}: {type(env).__name__} may change observations before its network reads them; "
                f"{PUT_INSIDE}, or the policy alone if it does not"
            )
        env = env.venv
    for name in (name for inner in getattr(env, "envs", [])[:1] for name in _wrappers(inner)):
        raise ValueError(
            f"{_class(trained)}: {name} may change observations before its network reads them; {PUT_INSIDE}, or the "
            "policy alone if it does not"
        )
    return normalization


def _wrappers(env: Any) -> list[str]:
    """Return the names of Gymnasium's wrappers around an environment that change observations."""
    names = []
    while isinstance(env, gymnasium.Wrapper):
        kinds = {kind.__module__ for kind in type(env).__mro__}
        changes = isinstance(env, gymnasium.ObservationWrapper) or "gymnasium.wrappers.stateful_observation" in kinds
        if changes and type(env).__name__ not in SAME_VALUES:
            names.append(type(env).__name__)
        env = env.env
    return names
