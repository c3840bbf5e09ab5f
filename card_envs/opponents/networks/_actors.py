"""Actors of other libraries as torch modules from observations and masks to logits."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

Logits: TypeAlias = Callable[[Any, Tensor, Tensor], Any]


class Actor(nn.Module):
    """A module of another library, called in its own way."""

    def __init__(self, module: nn.Module, logits: Logits) -> None:
        super().__init__()
        self.module = module
        self.logits = logits

    def forward(self, observation: Tensor, action_mask: Tensor) -> Tensor:
        logits = self.logits(self.module, observation, action_mask)
        found: Tensor = logits[0] if isinstance(logits, tuple) else logits  # the rest is memory
        return found


def find_actor(trained: Any) -> nn.Module:
    """See `actor_of`."""
    origins = {kind.__module__.partition(".")[0] for kind in type(trained).__mro__}
    found = next((find for library, find in LIBRARIES.items() if library in origins), _of_torch)(trained)
    if not isinstance(found, nn.Module):
        raise ValueError(f"{_name(trained)}: expected a torch module, or an algorithm or agent that has an actor")
    return found


def _name(trained: object) -> str:
    return type(trained).__name__


def _only(modules: Any, where: str) -> Any:
    """Return the only one of named modules. Raises ValueError if there are several."""
    if len(modules) != 1:
        raise ValueError(f"{where} has {len(modules)} actors: pass one of them: {', '.join(map(str, modules))}")
    return next(iter(modules.values()))


def _seen(space: object, observation: Tensor, action_mask: Tensor) -> Any:
    """Return observation and mask in the layout of a space."""
    keys = getattr(space, "spaces", None)
    return {key: action_mask if key == "action_mask" else observation for key in keys} if keys else observation


# stable-baselines3 and sb3-contrib


def _of_sb3(trained: Any) -> nn.Module | None:
    policy = getattr(trained, "policy", trained)
    if hasattr(policy, "q_net"):
        return Actor(policy.q_net, _sb3_values)
    return Actor(policy, _sb3_logits) if hasattr(policy, "mlp_extractor") else None


def _sb3_values(network: Any, observation: Tensor, action_mask: Tensor) -> Any:
    return network(_seen(network.observation_space, observation, action_mask))


def _sb3_logits(policy: Any, observation: Tensor, action_mask: Tensor) -> Any:
    seen = _seen(policy.observation_space, observation, action_mask)
    features = policy.extract_features(seen, policy.pi_features_extractor)
    return policy.action_net(policy.mlp_extractor.forward_actor(features))


# Tianshou


def _of_tianshou(trained: Any) -> nn.Module | None:
    policy = getattr(trained, "policy", trained)
    if hasattr(policy, "policies"):
        policy = _only(policy.policies, _name(trained))
    network = policy
    gives_probabilities = getattr(policy, "softmax_output", False) or getattr(policy, "softmax", False)
    if hasattr(policy, "action_space"):
        network = getattr(policy, "actor", None) or getattr(policy, "model", None)
        some = torch.tensor([[0.9, 0.1]])
        gives_probabilities = hasattr(policy, "dist_fn") and torch.allclose(policy.dist_fn(some).probs, some)
    return network and Actor(network, _tianshou_probabilities if gives_probabilities else _tianshou_logits)


def _tianshou_logits(network: Any, observation: Tensor, action_mask: Tensor) -> Any:
    return network(observation)[0]


def _tianshou_probabilities(network: Any, observation: Tensor, action_mask: Tensor) -> Any:
    return network(observation)[0].clamp_min(torch.finfo(torch.float32).tiny).log()


# AgileRL


def _of_agilerl(trained: Any) -> nn.Module | None:
    if hasattr(trained, "actors"):
        trained = _only(trained.actors, _name(trained))
    actor = getattr(trained, "actor", trained)
    is_sampling = hasattr(getattr(actor, "head_net", None), "wrapped")
    return Actor(actor, _agilerl_logits) if is_sampling else _of_torch(actor)


def _agilerl_logits(actor: Any, observation: Tensor, action_mask: Tensor) -> Any:
    return actor.head_net.wrapped(actor.extract_features(observation))


# RLlib


def _of_rllib(trained: Any) -> nn.Module | None:
    module = trained.env_runner.module if hasattr(trained, "env_runner") else trained
    if hasattr(module, "keys"):
        module = _only(dict(module.items()), _name(trained))
    return Actor(module, _rllib_logits) if hasattr(module, "forward_inference") else None


def _rllib_logits(module: Any, observation: Tensor, action_mask: Tensor) -> Any:
    seen = _seen(module.observation_space, observation, action_mask)
    return module.forward_inference({"obs": seen})["action_dist_inputs"]


# TorchRL


def _of_tensordict(trained: Any) -> nn.Module:
    return Actor(trained, _tensordict_logits)


def _tensordict_logits(module: Any, observation: Tensor, action_mask: Tensor) -> Any:
    """Call the modules on plain tensors; a key's last part says what is read."""
    values = {"observation": observation, "action_mask": action_mask}

    def last(key: Any) -> str:
        return key if isinstance(key, str) else key[-1]

    def call(one: Any) -> None:
        inner = getattr(one, "module", None)
        if isinstance(inner, nn.ModuleList):
            for part in inner:
                call(part)
        elif inner is not None:  # the others pick or draw an action
            found = inner(*(values[last(key)] for key in one.in_keys))
            values.update(zip(map(last, one.out_keys), found if isinstance(found, tuple) else (found,)))

    call(module)
    return next((values[name] for name in ("logits", "action_value") if name in values), [*values.values()][-1])


# Plain modules, and CleanRL's agents


def _of_torch(trained: Any) -> nn.Module | None:
    if not isinstance(trained, nn.Module):
        return _of_torch(trained.actor) if isinstance(getattr(trained, "actor", None), nn.Module) else None
    if type(trained).forward is nn.Module.forward:
        return Actor(trained, _cleanrl_logits) if hasattr(trained, "actor") else None
    parameters = [*inspect.signature(trained.forward).parameters.values()]
    second = parameters[1] if len(parameters) > 1 else None
    is_required = second is not None and second.default is second.empty and second.kind is second.POSITIONAL_OR_KEYWORD
    reads_mask = is_required or (second is not None and "mask" in second.name)
    return trained if reads_mask else Actor(trained, _observation_alone)


def _observation_alone(module: Any, observation: Tensor, action_mask: Tensor) -> Any:
    return module(observation)


def _cleanrl_logits(agent: Any, observation: Tensor, action_mask: Tensor) -> Any:
    return agent.actor(agent.network(observation) if hasattr(agent, "network") else observation)


LIBRARIES: dict[str, Callable[[Any], nn.Module | None]] = {
    "stable_baselines3": _of_sb3,
    "tianshou": _of_tianshou,
    "agilerl": _of_agilerl,
    "ray": _of_rllib,
    "tensordict": _of_tensordict,
}
