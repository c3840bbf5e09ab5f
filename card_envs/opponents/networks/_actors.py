"""Actors of other libraries as torch modules from observations and masks to logits."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

Logits: TypeAlias = Callable[[Any, Tensor, Tensor], Any]

PUT_INSIDE = "pass a module that does the same to what it reads"


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
    """Return the actor inside what another library trained. Raises ValueError if there is none."""
    trained = unwrapped(trained)
    origins = {kind.__module__.partition(".")[0] for kind in type(trained).__mro__}
    if getattr(trained, "obs_rms", None) is not None and not _has_forward(trained):  # such as AgileRL's RSNorm
        raise ValueError(f"{_class(trained)}: it normalizes observations before its actor reads them; {PUT_INSIDE}")
    found = next((find for library, find in LIBRARIES.items() if library in origins), _of_torch)(trained)
    if not isinstance(found, nn.Module):
        raise ValueError(f"{_class(trained)}: expected a torch module, or an algorithm or agent that has an actor")
    return found


def unwrapped(trained: Any) -> Any:
    """Return the module inside what torch wraps around one, with the same weights; anything else as it is.

    These are modules from `torch.compile`, replicas over devices or processes, averages of weights, and exported
    programs. What is compiled is not used then: batches have many sizes.
    """
    while True:
        inner = trained
        if type(trained).__name__ == "OptimizedModule":
            inner = getattr(trained, "_orig_mod", trained)
        elif type(trained).__name__ == "ExportedProgram":
            inner = trained.module()
        elif isinstance(trained, (nn.DataParallel, nn.parallel.DistributedDataParallel, AveragedModel)):
            inner = trained.module
        if inner is trained:
            return trained
        trained = inner


def scripted(actor: nn.Module) -> tuple[torch.jit.ScriptModule, int] | None:
    """Return the TorchScript module that an actor is, and how many inputs it reads; None if it is no such module."""
    alone = isinstance(actor, Actor) and actor.logits is _observation_alone
    inner = actor.module if alone else actor
    return (inner, 1 if alone else 2) if isinstance(inner, torch.jit.ScriptModule) else None


def _class(trained: object) -> str:
    return type(trained).__name__


def _only_actor(modules: Any, where: str) -> Any:
    """Return the only one of named modules. Raises ValueError if there are several."""
    if len(modules) != 1:
        raise ValueError(f"{where} has {len(modules)} actors: pass one of them: {', '.join(map(str, modules))}")
    return next(iter(modules.values()))


def _seen(space: object, observation: Tensor, action_mask: Tensor) -> Any:
    """Return observation and mask in the layout of a space."""
    keys = getattr(space, "spaces", None)
    return {key: action_mask if key == "action_mask" else observation for key in keys} if keys else observation


# stable-baselines3 and sb3-contrib


class Sb3Actor(nn.Module):
    """An actor of stable-baselines3, with what its environment does to observations.

    Attributes:
        policy: or a network of action values.
        normalize: as `VecNormalize` did, by the statistics that it shares; None if nothing was normalized.
    """

    def __init__(self, policy: Any, normalize: Normalization | None) -> None:
        super().__init__()
        self.policy = policy
        self.normalize = normalize

    def forward(self, observation: Tensor, action_mask: Tensor) -> Any:
        seen = _seen(self.policy.observation_space, observation, action_mask)
        if self.normalize is not None:
            seen = self.normalize(seen)
        if not hasattr(self.policy, "mlp_extractor"):
            return self.policy(seen)
        features = self.policy.extract_features(seen, self.policy.pi_features_extractor)
        return self.policy.action_net(self.policy.mlp_extractor.forward_actor(features))


class Normalization:
    """Scales observations by the running statistics of a `VecNormalize`."""

    def __init__(self, env: Any) -> None:
        self.statistics, self.epsilon, self.clip = env.obs_rms, env.epsilon, env.clip_obs

    def __call__(self, seen: Any) -> Any:
        if not isinstance(self.statistics, dict):
            return self._scaled(seen, self.statistics)
        return seen | {key: self._scaled(seen[key], found) for key, found in self.statistics.items() if key in seen}

    def _scaled(self, values: Tensor, found: Any) -> Tensor:
        mean, scale = (
            torch.as_tensor(array, dtype=torch.float32, device=values.device)
            for array in (found.mean, (found.var + self.epsilon) ** -0.5)
        )
        return ((values - mean) * scale).clamp(-self.clip, self.clip)


HARMLESS = ("VecMonitor", "VecCheckNan", "VecExtractDictObs")  # wrappers that leave the values as they are
SAME_VALUES = ("DtypeObservation",)


def _of_sb3(trained: Any) -> nn.Module | None:
    policy = getattr(trained, "policy", trained)
    if hasattr(policy, "lstm_actor"):
        raise ValueError(f"{_class(trained)}: a recurrent policy needs the whole episode; expected one without memory")
    if not hasattr(policy, "q_net") and not hasattr(policy, "mlp_extractor"):
        return None
    env = trained.get_env() if callable(getattr(trained, "get_env", None)) else None
    return Sb3Actor(getattr(policy, "q_net", policy), _normalization(trained, env))


def _normalization(trained: object, env: Any) -> Normalization | None:
    """Return how an environment of stable-baselines3 normalizes. Raises ValueError for other changes."""
    found = None
    while env is not None and hasattr(env, "venv"):
        if type(env).__name__ == "VecNormalize" and found is None:
            found = Normalization(env) if env.norm_obs else None
        elif type(env).__name__ not in HARMLESS:
            raise ValueError(
                f"{_class(trained)}: {type(env).__name__} may change observations before its network reads them; "
                f"{PUT_INSIDE}, or the policy alone if it does not"
            )
        env = env.venv
    for wrapper in map(_wrappers, getattr(env, "envs", [])[:1]):
        for one in wrapper:
            raise ValueError(
                f"{_class(trained)}: {one} may change observations before its network reads them; {PUT_INSIDE}, or the "
                "policy alone if it does not"
            )
    return found


def _wrappers(env: Any) -> list[str]:
    """Return the names of Gymnasium's wrappers around an environment that change observations."""
    found = []
    while isinstance(env, gymnasium.Wrapper):
        kinds = {kind.__module__ for kind in type(env).__mro__}
        changes = isinstance(env, gymnasium.ObservationWrapper) or "gymnasium.wrappers.stateful_observation" in kinds
        if changes and type(env).__name__ not in SAME_VALUES:
            found.append(type(env).__name__)
        env = env.env
    return found


# Tianshou


def _of_tianshou(trained: Any) -> nn.Module | None:
    policy = getattr(trained, "policy", trained)
    if hasattr(policy, "policies"):
        policy = _only_actor(policy.policies, _class(trained))
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
        trained = _only_actor(trained.actors, _class(trained))
    actor = getattr(trained, "actor", trained)
    is_sampling = hasattr(getattr(actor, "head_net", None), "wrapped")
    return Actor(actor, _agilerl_logits) if is_sampling else _of_torch(actor)


def _agilerl_logits(actor: Any, observation: Tensor, action_mask: Tensor) -> Any:
    return actor.head_net.wrapped(actor.extract_features(observation))


# RLlib

# Those that RLlib adds by itself: they bring observations into batches and leave the values as they are.
CONNECTORS = (
    "AddObservationsFromEpisodesToBatch", "AddTimeDimToBatchAndZeroPad", "AddStatesFromEpisodesToBatch",
    "AgentToModuleMapping", "BatchIndividualItems", "NumpyToTensor",
)  # fmt: skip


def _of_rllib(trained: Any) -> nn.Module | None:
    module = trained
    if hasattr(trained, "env_runner"):
        module = trained.env_runner.module
        pipeline = getattr(trained.env_runner, "_env_to_module", None)
        for connector in getattr(pipeline, "connectors", []):
            if type(connector).__name__ not in CONNECTORS:
                raise ValueError(
                    f"{_class(trained)}: the connector {type(connector).__name__} may change observations before its "
                    f"module reads them; {PUT_INSIDE}, or the RLModule alone if it does not"
                )
    if hasattr(module, "keys"):
        module = _only_actor(dict(module.items()), _class(trained))
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
            if unknown := [last(key) for key in one.in_keys if last(key) not in values]:
                raise ValueError(
                    f"it reads {', '.join(unknown)}; expected observation and action_mask. If a transform of the "
                    f"environment computes that, {PUT_INSIDE}"
                )
            found = inner(*(values[last(key)] for key in one.in_keys))
            values.update(zip(map(last, one.out_keys), found if isinstance(found, tuple) else (found,)))

    call(module)
    return next((values[name] for name in ("logits", "action_value") if name in values), [*values.values()][-1])


# Plain modules, and CleanRL's agents


def _of_torch(trained: Any) -> nn.Module | None:
    if not isinstance(trained, nn.Module):
        return _of_torch(trained.actor) if isinstance(getattr(trained, "actor", None), nn.Module) else None
    if not _has_forward(trained):
        return Actor(trained, _cleanrl_logits) if hasattr(trained, "actor") else None
    return trained if _reads_mask(trained) else Actor(trained, _observation_alone)


def _has_forward(trained: object) -> bool:
    """Return whether this is a module that can be called."""
    own = getattr(type(trained), "forward", None) is not nn.Module.forward or "forward" in vars(trained)
    return isinstance(trained, nn.Module) and own


def _reads_mask(module: nn.Module) -> bool:
    """Return whether a module has a second input that is required, or called a mask."""
    if isinstance(module, torch.jit.ScriptModule):
        script: Any = module.forward
        arguments = script.schema.arguments[1:]
        second = arguments[1] if len(arguments) > 1 else None
        return second is not None and (not second.has_default_value() or "mask" in second.name)
    parameters = [*inspect.signature(module.forward).parameters.values()]
    if isinstance(inner := getattr(module, "module", None), nn.Module) and all(
        one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in parameters
    ):
        return _reads_mask(inner)  # a wrapper that hands on all arguments
    one = parameters[1] if len(parameters) > 1 else None
    is_required = one is not None and one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    return is_required or (one is not None and "mask" in one.name)


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
