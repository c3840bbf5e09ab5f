"""Other people's trainers on the environments as they are; each is skipped where it is not installed."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
import textwrap
import warnings
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

from card_envs.games import get_game
from card_envs.opponents import OpponentPool, TorchPolicy, actor_of
from card_envs.opponents.networks.folder import golden_decisions
from card_envs.opponents.policy import Policy
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import run_python

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

warnings.filterwarnings("ignore", category=DeprecationWarning, module="torchrl|tensordict")


def share(logits: Any, mask: Any) -> Any:
    return logits.masked_fill(mask == 0, -torch.inf).softmax(1)


def policy_of_sb3() -> tuple[Any, Callable[[Any, Any], Any]]:
    """A model in an environment of dicts, and its own probabilities from observations and masks."""
    sb3 = pytest.importorskip("sb3_contrib")
    env = gymnasium.make("card_envs/BigBen-v0", observe="dict")
    model = sb3.MaskablePPO("MultiInputPolicy", env, device="cpu", seed=0)

    def probabilities(obs: Any, mask: Any) -> Any:
        seen = {"observation": obs, "action_mask": mask}
        return model.policy.get_distribution(seen, mask.numpy()).distribution.probs

    return model, probabilities


def agent_of_cleanrl(size: int, num_actions: int) -> tuple[Any, Callable[[Any, Any], Any]]:
    """An agent as its `ppo_atari.py` has it."""

    class Agent(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.network = torch.nn.Sequential(torch.nn.Linear(size, 16), torch.nn.ReLU())
            self.actor, self.critic = torch.nn.Linear(16, num_actions), torch.nn.Linear(16, 1)

        def get_logits(self, obs: Any) -> Any:
            return self.actor(self.network(obs))

    agent = Agent()
    return agent, lambda obs, mask: share(agent.get_logits(obs), mask)


GUIDE = (Path(__file__).parents[3] / "docs" / "guides" / "onnx.md").read_text(encoding="utf-8")
RECIPES = {
    name: textwrap.dedent("".join(re.findall(r"^(?:    .*)?\n", text, re.M)))
    for name, text in re.findall(r"^### ([^\n]*)\n(.*?)(?=^##)", GUIDE, re.M | re.S)
}


def plays_as_in_its_library(logits: Any, probabilities: Callable[[Any, Any], Any]) -> None:
    """In this process and as an ONNX model."""
    for needed in ("onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(needed)
    from card_envs.opponents.networks.onnx import OnnxPolicy, module_to_onnx

    game = get_game("big_ben")
    decisions = golden_decisions(game)
    with torch.no_grad():
        expected = probabilities(torch.from_numpy(decisions.obs).float(), torch.from_numpy(decisions.mask).float())
    for policy in (TorchPolicy(logits), OnnxPolicy(game, module_to_onnx(logits, game))):
        np.testing.assert_allclose(policy.probabilities(decisions), expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("library", RECIPES)
def test_recipes_of_the_guide_are_a_few_lines(library: str) -> None:
    assert 3 <= len(RECIPES[library].strip().splitlines()) <= 8 and not re.search(r"\._", RECIPES[library])
    compile(RECIPES[library], library, "exec")


@pytest.mark.filterwarnings("ignore")
def test_the_recipe_for_cleanrl_plays_as_its_agent_does() -> None:
    """The other libraries are not installed with the package; their recipes have the same form."""
    pytest.importorskip("torch")
    rules = get_game("big_ben").rules
    trained, probabilities = agent_of_cleanrl(rules.OBS_SIZE, rules.NUM_ACTIONS)
    names = {"trained": trained, "TorchPolicy": TorchPolicy}
    exec(RECIPES["CleanRL"], names)
    assert isinstance(names["policy"], TorchPolicy)
    plays_as_in_its_library(names["logits"], probabilities)


@pytest.mark.parametrize("kind", ["a model", "a module", "a module with a mask", "a function", "one with a mask"])
def test_what_reads_observations_is_an_opponent_in_one_call(kind: str) -> None:
    pytest.importorskip("torch")
    rules = get_game("big_ben").rules
    layer = torch.nn.Linear(rules.OBS_SIZE, rules.NUM_ACTIONS)

    class Second(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Any, action_mask: Any = None) -> Any:
            return self.layer(x) + action_mask.cumsum(1)

    if kind == "a model":
        plays_as_in_its_library(*policy_of_sb3())
    elif "mask" in kind:
        function = Second().forward
        source: Any = Second() if "module" in kind else lambda observation, mask: function(observation, mask)
        plays_as_in_its_library(source, lambda obs, mask: share(layer(obs) + mask.cumsum(1), mask))
    else:
        source = layer if kind == "a module" else lambda observation: layer(observation)
        plays_as_in_its_library(source, lambda obs, mask: share(layer(obs), mask))


def test_a_pool_does_not_take_a_function_that_keeps_learning() -> None:
    """It can't be copied with its weights; a module can."""
    pytest.importorskip("torch")
    layer = torch.nn.Linear(HIGH_CARD.rules.OBS_SIZE, HIGH_CARD.rules.NUM_ACTIONS)
    pool = OpponentPool(HIGH_CARD)
    with pytest.raises(ValueError, match="a function can't be copied with the weights that it reads"):
        pool.add(TorchPolicy(lambda observation: layer(observation)))
    assert len(pool) == 0


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
@pytest.mark.parametrize(("kind", "observe"), [("PPO", "flat"), ("MaskablePPO", "dict"), ("DQN", "flat")])
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


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [One, Two])
def test_a_module_plays_alike_wherever_it_is_taken(kind: Any) -> None:
    """In this process, sent to another, in a pool, as a file, and in every number of decisions."""
    for needed in ("torch", "onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(needed)
    from card_envs.opponents.networks.onnx import OnnxPolicy, module_to_onnx

    game = HIGH_CARD
    size, num_actions = game.rules.OBS_SIZE, game.rules.NUM_ACTIONS
    module = kind(size, num_actions).eval()
    policy, decisions, pool = TorchPolicy(module), golden_decisions(game), OpponentPool(game)
    expected = policy.probabilities(decisions)
    pool.add(module)
    model = OnnxPolicy(game, module_to_onnx(module, game))
    for player in (pickle.loads(pickle.dumps(policy)), copy.copy(policy), pool.members[0].policy, model):
        np.testing.assert_allclose(player.probabilities(decisions), expected, atol=1e-5)
    with torch.no_grad():
        assert actor_of(module)(torch.ones(3, size), torch.ones(3, num_actions)).shape == (3, num_actions)


WRAPPED: dict[str, Callable[[Any], Any]] = {
    "compiled": lambda module: torch.compile(module, backend="eager"),
    "parallel": lambda module: torch.nn.DataParallel(module),
    "averaged": lambda module: torch.optim.swa_utils.AveragedModel(module),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", WRAPPED)
def test_of_a_wrapper_the_module_inside_is_wanted(how: str) -> None:
    """It does not say whether it reads the mask; a function that calls it does."""
    pytest.importorskip("torch")
    module = Two(HIGH_CARD.rules.OBS_SIZE, HIGH_CARD.rules.NUM_ACTIONS).eval()
    wrapped = WRAPPED[how](module)
    with pytest.raises(ValueError, match="pass the module inside, or a function of observation and mask that calls it"):
        TorchPolicy(wrapped)
    policy, decisions = TorchPolicy(lambda observation, mask: wrapped(observation, mask)), golden_decisions(HIGH_CARD)
    expected = TorchPolicy(module).probabilities(decisions)
    np.testing.assert_allclose(policy.probabilities(decisions), expected, atol=1e-5)


@pytest.mark.parametrize("size", [0, 1], ids=["fits", "fails"])
@pytest.mark.parametrize(("kind", "training", "frozen"), [(One, True, False), (Two, False, True)])
def test_a_module_stays_in_its_mode(kind: Any, size: int, training: bool, frozen: bool) -> None:
    """Each part of it, whatever is made of it, and also where that fails."""
    for needed in ("torch", "onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(needed)
    from card_envs.opponents.networks.onnx import module_to_onnx

    game = HIGH_CARD
    module = kind(game.rules.OBS_SIZE + size, game.rules.NUM_ACTIONS).train(training)
    if frozen:
        module.drop.train(not training)
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
        (object(), "object: expected a torch module or function from observation .*onnx.md has recipes"),
        (torch.nn.Linear, "type: expected a torch module or function"),
        (SimpleNamespace(actor=torch.nn.Linear(size, num_actions)), "SimpleNamespace: expected a torch module"),
        (torch.nn.ModuleDict({"actor": torch.nn.Linear(size, num_actions)}), "ModuleDict has no forward: expected"),
        (lambda observation: (observation, None), "function does not fit .*expected logits .*got tuple"),
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


ROOT = Path(__file__).parents[3]
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


@pytest.mark.processes
@pytest.mark.parametrize(("example", "needs", "steps", "game_name"), EXAMPLES)
def test_examples_train(example: str, needs: str, steps: int, game_name: str) -> None:
    """Each example runs as it stands and prints a loss that is a number."""
    pytest.importorskip(needs)
    done = run_python("-W", "ignore", f"examples/{example}.py", "--game", game_name, "--steps", steps)
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
        run_python("-W", "ignore", *words)
    found = json.loads((tmp_path / "found").read_text())
    assert [policy["name"] for policy in found["policies"]] == ["trivial", str(folder)]
    assert found["policies"][1]["decisions"] > 0


def test_every_trainers_example_is_run() -> None:
    # Tests of the server, of OpenSpiel, of data and of play in words run them.
    others = {"_command", "client_stdio", "open_spiel_bots", "behaviour_cloning", "chat_model"}
    assert {file.stem for file in (ROOT / "examples").glob("*.py")} - others == {example for example, *_ in EXAMPLES}
