"""Other people's trainers on the environments as they are; each is skipped where it is not installed."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

from card_envs.envs.aec import CardEnv
from card_envs.game import Game
from card_envs.games import get_game
from card_envs.opponents import OpponentPool, TorchPolicy, actor_of
from card_envs.opponents.networks.folder import golden_decisions
from card_envs.opponents.policy import Policy
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import short_options
from tests.test_environments import gymnasium_id

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

warnings.filterwarnings("ignore", category=DeprecationWarning, module="torchrl|tensordict")


@pytest.mark.mechanics
def test_maskable_ppo_learns_from_the_gymnasium_environment(game: Game) -> None:
    """sb3-contrib's MaskablePPO finds the masks by itself."""
    sb3 = pytest.importorskip("sb3_contrib")
    env = gymnasium.make(gymnasium_id(game), opponents="random", **short_options(game))
    model = sb3.MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=2, seed=0, device="cpu")
    before = [parameter.detach().clone() for parameter in model.policy.parameters()]
    model.learn(256)
    assert any((one != other).any() for one, other in zip(before, model.policy.parameters()))
    obs, _ = env.reset(seed=1)
    over = False
    while not over:
        masks = env.unwrapped.action_masks()  # type: ignore[attr-defined]
        action, _ = model.predict(obs, action_masks=masks)
        assert masks[int(action)]
        obs, _, over, _, _ = env.step(action)
    assert env.unwrapped._env.outcome()["reason"] != "illegal"  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore")
def test_torchrl_finds_out_what_infos_hold(game: Game) -> None:
    """`auto_register_info_dict` plays at random, illegal actions included, and then demands of every info the same."""
    pytest.importorskip("torchrl")
    from torchrl.envs import GymWrapper

    for seed in range(6):
        raw = gymnasium.make(gymnasium_id(game), disable_env_checker=True, **short_options(game))
        raw.action_space.seed(seed)
        env = GymWrapper(raw).auto_register_info_dict()
        steps = env.rollout(40, break_when_any_done=False)
        assert steps["next", "illegal"].any() and steps["next", "action_mask"].shape[-1] == game.rules.NUM_ACTIONS


@pytest.mark.mechanics
@pytest.mark.filterwarnings("ignore")
def test_torchrl_rolls_out_and_trains(game: Game) -> None:
    """TorchRL's PettingZooWrapper with masks: a rollout, and a policy gradient step that changes the network."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchrl")
    TensorDictModule = pytest.importorskip("tensordict.nn").TensorDictModule
    from torchrl.envs import PettingZooWrapper, TransformedEnv
    from torchrl.envs.transforms import RewardSum
    from torchrl.modules import MaskedCategorical

    raw = CardEnv(game, **short_options(game))
    groups = {"seats": list(raw.possible_agents)}
    env = TransformedEnv(
        PettingZooWrapper(raw, use_mask=True, group_map=groups, categorical_actions=True, seed=0),
        RewardSum(in_keys=[("seats", "reward")], out_keys=[("seats", "episode_reward")]),
    )
    network = torch.nn.Linear(game.rules.OBS_SIZE, game.rules.NUM_ACTIONS)

    def distribution(observation: Any, legal: Any) -> Any:
        # A seat that is not to move has no legal action; what is chosen for it is not played.
        legal = legal.bool() | ~legal.bool().any(-1, keepdim=True)
        return MaskedCategorical(logits=network(observation.float()), mask=legal)

    policy = TensorDictModule(
        lambda observation, legal: distribution(observation, legal).sample(),
        in_keys=[("seats", "observation", "observation"), ("seats", "action_mask")],
        out_keys=[("seats", "action")],
    )
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    before = network.weight.detach().clone()
    for _ in range(3):
        with torch.no_grad():
            steps = env.rollout(100, policy, break_when_any_done=False)
        assert steps.batch_size[0] == 100
        played = steps["seats", "mask"]
        legal = steps["seats", "action_mask"]
        action = steps["seats", "action"]
        assert (played.sum(-1) == 1).all()  # one seat moves at a time
        assert legal.gather(-1, action.unsqueeze(-1))[played].all()
        reward = steps["next", "seats", "reward"].squeeze(-1)
        assert np.isfinite(reward.numpy()).all()
        chosen = distribution(steps["seats", "observation", "observation"], legal).log_prob(action)
        loss = -(chosen * (1 + reward))[played].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert (network.weight != before).any()


def trained_by(library: str, rules: Any) -> tuple[Any, Callable[[Any, Any], Any]]:
    """Something that a library trains, and its own probabilities from observations and masks."""
    torch = pytest.importorskip("torch")
    size, num_actions = rules.OBS_SIZE, rules.NUM_ACTIONS
    layer = torch.nn.Linear(size, num_actions)

    def share(logits: Any, mask: Any) -> Any:
        return logits.masked_fill(mask == 0, -torch.inf).softmax(1)

    if library == "sb3_contrib":
        sb3 = pytest.importorskip("sb3_contrib")
        env = gymnasium.make("card_envs/BigBen-v0", observe="dict")
        model = sb3.MaskablePPO("MultiInputPolicy", env, device="cpu", seed=0)
        return (
            model,
            lambda obs, mask: (
                model.policy.get_distribution(
                    {"observation": obs, "action_mask": mask}, mask.numpy()
                ).distribution.probs
            ),
        )
    if library == "torchrl":
        pytest.importorskip("torchrl")
        TensorDict = pytest.importorskip("tensordict").TensorDict
        TensorDictModule = pytest.importorskip("tensordict.nn").TensorDictModule
        from torchrl.modules import MLP, MaskedCategorical, ProbabilisticActor

        network = TensorDictModule(
            MLP(in_features=size, out_features=num_actions, num_cells=[16]), [("seats", "observation")], ["logits"]
        )
        keys = {"logits": "logits", "mask": ("seats", "action_mask")}
        actor = ProbabilisticActor(network, in_keys=keys, distribution_class=MaskedCategorical)
        return (
            actor,
            lambda obs, mask: (
                actor.get_dist(
                    TensorDict({"seats": {"observation": obs, "action_mask": mask.bool()}}, [len(obs)])
                ).probs
            ),
        )
    if library == "tianshou":
        pytest.importorskip("tianshou")
        from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
        from tianshou.utils.net.common import Net
        from tianshou.utils.net.discrete import DiscreteActor

        net = Net(state_shape=(size,), hidden_sizes=[16])
        policy = DiscreteActorPolicy(
            actor=DiscreteActor(preprocess_net=net, action_shape=num_actions),
            action_space=gymnasium.spaces.Discrete(num_actions),
        )
        return policy, lambda obs, mask: share(policy.dist_fn(policy.actor(obs)[0]).logits, mask)
    if library == "ray":
        pytest.importorskip("ray")
        from ray.rllib.algorithms.ppo.ppo_catalog import PPOCatalog
        from ray.rllib.core.rl_module.rl_module import RLModuleSpec
        from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule

        env = gymnasium.make("card_envs/BigBen-v0", observe="dict", obs_key="observations", obs_dtype="float32")
        module = RLModuleSpec(
            module_class=ActionMaskingTorchRLModule, observation_space=env.observation_space,
            action_space=env.action_space, catalog_class=PPOCatalog, model_config={},
        ).build()  # fmt: skip
        return module, lambda obs, mask: module.forward_inference({"obs": {"observations": obs, "action_mask": mask}})[
            "action_dist_inputs"
        ].softmax(1)
    if library == "agilerl":
        algorithms = pytest.importorskip("agilerl.algorithms")
        spaces = gymnasium.spaces
        agent = algorithms.PPO(spaces.Box(-128, 127, (size,), np.int8), spaces.Discrete(num_actions))
        return agent, lambda obs, mask: share(agent.actor.head_net.wrapped(agent.actor.extract_features(obs)), mask)

    class Agent(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.actor, self.critic = layer, torch.nn.Linear(size, 1)

    class Second(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, action_mask: Any = None) -> Any:
            return layer(x) + action_mask.cumsum(1)

    if library == "cleanrl":
        return Agent(), lambda obs, mask: share(layer(obs), mask)
    if library == "torch, mask":
        return Second(), lambda obs, mask: share(layer(obs) + mask.cumsum(1), mask)
    return layer, lambda obs, mask: share(layer(obs), mask)


LIBRARIES = ("sb3_contrib", "torchrl", "tianshou", "ray", "agilerl", "cleanrl", "torch", "torch, mask")


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_libraries_train_is_an_opponent_in_one_call(library: str) -> None:
    """Its probabilities are the library's own, in this process and as an ONNX model."""
    for needed in ("torch", "onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(needed)
    import torch

    from card_envs.opponents.networks.onnx import OnnxPolicy, module_to_onnx

    game = get_game("big_ben")
    trained, own = trained_by(library, game.rules)
    decisions = golden_decisions(game)
    with torch.no_grad():
        expected = own(torch.from_numpy(decisions.obs).float(), torch.from_numpy(decisions.mask).float()).numpy()
    policy = TorchPolicy(trained)
    np.testing.assert_allclose(policy.probabilities(decisions), expected, atol=1e-5)
    model = OnnxPolicy(game, module_to_onnx(trained, game))
    np.testing.assert_allclose(model.probabilities(decisions), expected, atol=1e-5)


def sb3_model(kind: str, observe: str, wrap: Callable[[Any], Any]) -> Any:
    """A model of stable-baselines3 in an environment with wrappers."""
    sb3, contrib = pytest.importorskip("stable_baselines3"), pytest.importorskip("sb3_contrib")
    vec = sb3.common.vec_env.DummyVecEnv([lambda: gymnasium.make("card_envs/BigBen-v0", observe=observe)])
    settings = {"n_steps": 16, "batch_size": 16, "n_epochs": 1} if kind != "DQN" else {"learning_starts": 8}
    policy = "MultiInputPolicy" if observe == "dict" else "MlpPolicy"
    made = getattr(contrib if kind in ("MaskablePPO", "RecurrentPPO") else sb3, kind)
    policy = policy.replace("Policy", "LstmPolicy") if kind == "RecurrentPPO" else policy
    return made(policy, wrap(vec), seed=0, device="cpu", **settings)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("observe", ["flat", "dict"])
@pytest.mark.parametrize("kind", ["PPO", "MaskablePPO", "DQN"])
def test_what_learned_from_normalized_observations_plays_by_them(kind: str, observe: str) -> None:
    """As the library does: in this process, in a pool, where nothing changes later, and as an ONNX model."""
    for needed in ("torch", "onnx", "onnxruntime", "onnxscript", "stable_baselines3"):
        pytest.importorskip(needed)
    from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

    from card_envs.opponents.networks.onnx import OnnxPolicy, module_to_onnx

    game = get_game("big_ben")
    keys: dict[str, Any] = {"norm_obs_keys": ["observation", "action_mask"]} if observe == "dict" else {}
    model = sb3_model(kind, observe, lambda env: VecMonitor(VecNormalize(env, clip_obs=3.0, **keys)))
    model.learn(64, **({"use_masking": False} if kind == "MaskablePPO" else {}))
    decisions = golden_decisions(game)

    def own() -> Any:
        seen: Any = decisions.obs.astype(np.float32)
        if observe == "dict":
            seen = {"observation": seen, "action_mask": decisions.mask.astype(np.float32)}
        seen, _ = model.policy.obs_to_tensor(model.get_vec_normalize_env().normalize_obs(seen))
        with torch.no_grad():
            if kind == "DQN":
                logits = model.policy.q_net(seen)
            else:
                logits = model.policy.get_distribution(seen).distribution.logits
        return logits.masked_fill(torch.from_numpy(decisions.mask) == 0, -torch.inf).softmax(1).numpy()

    expected = own()
    policy, pool = TorchPolicy(model), OpponentPool(game)
    pool.add(actor_of(model))
    pool.add(model)
    model_file = OnnxPolicy(game, module_to_onnx(model, game))
    assert not np.allclose(TorchPolicy(model.policy).probabilities(decisions), expected, atol=1e-3)
    players: list[Policy] = [policy, *(member.policy for member in pool.members), model_file]
    for player in players:
        np.testing.assert_allclose(player.probabilities(decisions), expected, atol=1e-5)
    statistics = model.get_vec_normalize_env().obs_rms
    for one in statistics.values() if observe == "dict" else (statistics,):
        one.mean += 1  # as if learning had gone on
    assert not np.allclose(policy.probabilities(decisions), expected, atol=1e-3)
    for player in players[1:]:
        np.testing.assert_allclose(player.probabilities(decisions), expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_what_comes_between_environment_and_network_is_refused_or_known() -> None:
    """In any of the libraries: whatever changes observations, where it can be found."""
    for needed in ("torch", "stable_baselines3", "sb3_contrib"):
        pytest.importorskip(needed)
    from gymnasium import wrappers
    from stable_baselines3.common import vec_env

    def inside(wrap: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda env: vec_env.DummyVecEnv([lambda: wrap(gymnasium.make("card_envs/BigBen-v0"))])

    def double(env: Any) -> Any:
        return wrappers.TransformObservation(env, lambda obs: obs, env.observation_space)

    for wrap, name in (
        (lambda env: vec_env.VecFrameStack(env, 2), "VecFrameStack"),
        (lambda env: vec_env.VecNormalize(vec_env.VecNormalize(env)), "VecNormalize"),
        (inside(wrappers.NormalizeObservation), "NormalizeObservation"),
        (inside(lambda env: wrappers.FrameStackObservation(env, 2)), "FrameStackObservation"),
        (inside(double), "TransformObservation"),
    ):
        with pytest.raises(ValueError, match=f"PPO: {name} may change observations before its network reads them"):
            TorchPolicy(sb3_model("PPO", "flat", wrap))
    for wrap in (
        lambda env: vec_env.VecNormalize(env, norm_obs=False),
        vec_env.VecMonitor,
        inside(lambda env: wrappers.DtypeObservation(env, np.float32)),
    ):
        assert TorchPolicy(sb3_model("PPO", "flat", wrap)).module.normalize is None
    with pytest.raises(ValueError, match="RecurrentPPO: a recurrent policy needs the whole episode"):
        TorchPolicy(sb3_model("RecurrentPPO", "flat", lambda env: env))

    class Agent:
        actor = torch.nn.Linear(3, 2)
        obs_rms = object()

    with pytest.raises(ValueError, match="Agent: it normalizes observations before its actor reads them"):
        TorchPolicy(Agent())

    class MeanStdFilter:
        pass

    class NumpyToTensor:
        pass

    class Algorithm:
        __module__ = "ray.rllib"

        def __init__(self, *connectors: Any) -> None:
            module = torch.nn.Linear(3, 2)
            module.forward_inference = None  # type: ignore[assignment]
            pipeline = SimpleNamespace(connectors=connectors)
            self.env_runner = SimpleNamespace(module=module, _env_to_module=pipeline)

    TorchPolicy(Algorithm(NumpyToTensor()))
    with pytest.raises(ValueError, match="Algorithm: the connector MeanStdFilter may change observations"):
        TorchPolicy(Algorithm(NumpyToTensor(), MeanStdFilter()))


class Two(torch.nn.Module if torch else object):  # type: ignore[misc]
    """Reads observation and mask; what it does depends on its mode."""

    def __init__(self, size: int, num_actions: int) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(size, num_actions)
        self.drop = torch.nn.Dropout(0.9)

    def forward(self, observation: torch.Tensor, action_mask: torch.Tensor) -> torch.Tensor:
        return self.drop(self.layer(observation)) + torch.cumsum(action_mask, 1)


class One(Two):
    """Reads the observation alone."""

    def forward(self, observation: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return self.drop(self.layer(observation))


class Around(torch.nn.Module if torch else object):  # type: ignore[misc]
    """A module around one of another kind."""

    def __init__(self, inner: Any, num_inputs: int) -> None:
        super().__init__()
        self.inner = inner
        self.num_inputs = num_inputs

    def forward(self, observation: torch.Tensor, action_mask: torch.Tensor) -> Any:
        return self.inner(*(observation, action_mask)[: self.num_inputs])


@pytest.fixture
def one_process() -> Iterator[None]:
    """Torch's processes, of which there is one."""
    distributed = pytest.importorskip("torch.distributed")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def exported(module: Any, example: Any) -> Any:
    rows = torch.export.Dim("n")
    return torch.export.export(module, example, dynamic_shapes=tuple({0: rows} for _ in example))


WRAPPED: dict[str, Callable[[Any, Any], Any]] = {
    "compiled": lambda module, example: torch.compile(module, backend="eager"),
    "compiled in place": lambda module, example: module.compile(backend="eager") or module,
    "scripted": lambda module, example: torch.jit.script(module),
    "traced": lambda module, example: torch.jit.trace(module, example),  # type: ignore[no-untyped-call]
    "frozen": lambda module, example: torch.jit.freeze(torch.jit.script(module)),
    "graph": lambda module, example: torch.fx.symbolic_trace(module),
    "exported": lambda module, example: exported(module, example).module(),
    "exported program": exported,
    "parallel": lambda module, example: torch.nn.DataParallel(module),
    "distributed": lambda module, example: torch.nn.parallel.DistributedDataParallel(module),
    "averaged": lambda module, example: torch.optim.swa_utils.AveragedModel(module),
    "a part scripted": lambda module, example: Around(torch.jit.script(module), len(example)),
    "a part traced": lambda module, example: Around(torch.jit.trace(module, example), len(example)),  # type: ignore[no-untyped-call]
    "a part exported": lambda module, example: Around(exported(module, example).module(), len(example)),
    "twice": lambda module, example: torch.compile(torch.nn.DataParallel(module), backend="eager"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("kind", [One, Two])
@pytest.mark.parametrize("how", WRAPPED)
def test_modules_of_every_kind_that_torch_has_are_opponents(how: str, kind: Any) -> None:
    """At every door, in every number of decisions, and they play as the module that they are made of."""
    for needed in ("torch", "onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(needed)
    from card_envs.opponents.networks.onnx import OnnxPolicy, module_to_onnx

    game = HIGH_CARD
    size, num_actions = game.rules.OBS_SIZE, game.rules.NUM_ACTIONS
    torch.manual_seed(1)
    module = kind(size, num_actions).eval()
    example = (torch.ones(2, size), torch.ones(2, num_actions))[: 1 if kind is One else 2]
    wrapped = WRAPPED[how](module, example)
    decisions = golden_decisions(game)
    expected = TorchPolicy(kind(size, num_actions).eval()).probabilities(decisions)  # other weights
    assert not np.allclose(expected, TorchPolicy(module).probabilities(decisions))
    expected = TorchPolicy(module).probabilities(decisions)
    np.testing.assert_allclose(TorchPolicy(wrapped).probabilities(decisions), expected, atol=1e-5)
    sent = pickle.loads(pickle.dumps(TorchPolicy(wrapped)))
    for one in (sent, pickle.loads(pickle.dumps(sent)), copy.copy(TorchPolicy(wrapped))):
        np.testing.assert_allclose(one.probabilities(decisions), expected, atol=1e-5)
    with torch.no_grad():
        logits = actor_of(wrapped)(torch.ones(3, size), torch.ones(3, num_actions))
    assert logits.shape == (3, num_actions)
    pool = OpponentPool(game)
    pool.add(wrapped)
    np.testing.assert_allclose(pool.members[0].probabilities(decisions), expected, atol=1e-5)
    model = OnnxPolicy(game, module_to_onnx(wrapped, game))
    np.testing.assert_allclose(model.probabilities(decisions), expected, atol=1e-5)


class Half(torch.nn.Module if torch else object):  # type: ignore[misc]
    """Parts in different modes, as where a layer is frozen; with several actors inside."""

    def __init__(self, size: int, num_actions: int) -> None:
        super().__init__()
        self.actor = One(size, num_actions)
        self.critic = torch.nn.Linear(size, 1)


@pytest.mark.parametrize("size", [0, 1], ids=["fits", "fails"])
@pytest.mark.parametrize("kind", [One, Two, Half])
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_a_module_stays_in_its_mode(kind: Any, size: int, training: bool, frozen: bool) -> None:
    """Each part of it, whatever is made of it, and also where that fails."""
    for needed in ("torch", "onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(needed)
    from card_envs.opponents.networks.onnx import module_to_onnx

    game = HIGH_CARD
    module = kind(game.rules.OBS_SIZE + size, game.rules.NUM_ACTIONS).train(training)
    if frozen:
        getattr(module, "actor", module).drop.train(not training)
    modes = [part.training for part in module.modules()]
    pool = OpponentPool(game)
    for use in (TorchPolicy, actor_of, pool.add, lambda one: module_to_onnx(one, game)):
        with suppress(ValueError) if size else nullcontext():
            use(module)
        assert [part.training for part in module.modules()] == modes


def test_why_something_is_no_opponent_is_said_in_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    for needed in ("torch", "onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(needed)
    import torch

    from card_envs.opponents.networks.onnx import module_to_onnx

    game = HIGH_CARD
    size, num_actions = game.rules.OBS_SIZE, game.rules.NUM_ACTIONS

    class Branches(torch.nn.Module):
        def forward(self, observation: Any, action_mask: Any) -> Any:
            return action_mask if observation.sum() > 0 else -action_mask

    for wrong, said in (
        (object(), "object: expected a torch module, or"),
        (torch.nn.Linear(size + 1, num_actions), f"Linear does not fit .*mat1 and mat2.*{size + 1}x{num_actions}"),
        (
            torch.nn.Linear(size, 3),
            rf"Linear does not fit .*expected logits of shape \[2, {num_actions}\], got \[2, 3\]",
        ),
        (Branches(), "Branches can't be written as an ONNX model: .*data-dependent"),
    ):
        with pytest.raises(ValueError, match=said) as error:
            module_to_onnx(wrong, game)
        assert "\n" not in str(error.value) and "\x1b" not in str(error.value) and len(str(error.value)) < 300
    assert capfd.readouterr() == ("", "")


ROOT = Path(__file__).parents[1]
# The example, what it needs, the decisions it takes and the game it plays.
EXAMPLES = (
    ("cleanrl_ppo", "torch", 4096, "back_alley"),
    ("cleanrl_ppo", "torch", 2048, "big_ben"),
    ("maskable_ppo", "sb3_contrib", 256, "russian_bank"),
    ("maskable_ppo_pool", "sb3_contrib", 2048, "back_alley"),
    ("torchrl_ppo", "torchrl", 512, "big_ben"),
    ("rllib_ppo", "ray", 256, "big_ben"),
    ("tianshou_dqn", "tianshou", 256, "big_ben"),
)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """What a Python command said, from the checkout."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", *words], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.processes
@pytest.mark.parametrize(("example", "needs", "steps", "game_name"), EXAMPLES)
def test_examples_train(example: str, needs: str, steps: int, game_name: str) -> None:
    """Each example runs as it stands and prints a loss that is a number."""
    pytest.importorskip(needs)
    done = run(f"examples/{example}.py", "--game", game_name, "--steps", str(steps))
    assert done.returncode == 0, done.stderr
    losses = re.findall(r"loss\W+(-?[\d.]+(?:e[+-]?\d+)?|nan|inf)", done.stdout)
    assert losses and all(math.isfinite(float(loss)) for loss in losses), done.stdout


@pytest.mark.processes
@pytest.mark.parametrize("example", ["cleanrl_ppo", "maskable_ppo"])
def test_what_an_example_trained_is_an_opponent(example: str, tmp_path: Path) -> None:
    """As the guide says: train, save, `compare`."""
    for needed in ("onnx", "onnxruntime", "onnxscript", {"maskable_ppo": "sb3_contrib"}.get(example, "torch")):
        pytest.importorskip(needed)
    game, folder = "big_ben", tmp_path / "mine"
    for words in (
        [f"examples/{example}.py", "--game", game, "--steps", "128", "--evaluate", "64", "--save", str(folder)],
        ["-m", "card_envs", "compare", game, "trivial", str(folder), "--pairs", "4", "--json", str(tmp_path / "found")],
    ):
        done = run(*words)
        assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found").read_text())
    assert [policy["name"] for policy in found["policies"]] == ["trivial", str(folder)]
    assert found["policies"][1]["decisions"] > 0


def test_every_trainers_example_is_run() -> None:
    # Tests of the server, of OpenSpiel, of data and of play in words run them.
    others = {"_command", "client_stdio", "open_spiel_bots", "behaviour_cloning", "chat_model"}
    assert {file.stem for file in (ROOT / "examples").glob("*.py")} - others == {example for example, *_ in EXAMPLES}
