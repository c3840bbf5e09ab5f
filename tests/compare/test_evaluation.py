"""Learning curves of a training loop of one's own, and what may be given as the learner."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs.compare.evaluation import Evaluation, evaluate_every
from card_envs.compare.pairs import play_pairs
from card_envs.opponents.networks.onnx import OnnxPolicy, module_to_onnx
from card_envs.opponents.networks.torch_policy import TorchPolicy, actor_of
from card_envs.opponents.phased import PhasedPolicy
from card_envs.opponents.policy import Decisions, Opponent
from card_envs.opponents.scripted import RandomPolicy
from card_envs.scaffold.high_card import GAME

torch = pytest.importorskip("torch")
PAIRS = 8


class Figures:
    """A writer that keeps what it gets."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float, int]] = []

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        self.rows.append((tag, scalar_value, global_step))


def module(*more: Any) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(*more, torch.nn.Linear(GAME.rules.OBS_SIZE, GAME.rules.NUM_ACTIONS))


def quiet(learner: Any, every: int = 100, **settings: Any) -> Evaluation:
    evaluation = evaluate_every(every, learner, GAME, **{"pairs": PAIRS} | settings)
    evaluation.say = None
    return evaluation


@pytest.mark.parametrize(
    ("steps", "measured"),
    [
        (range(0, 401, 50), [0, 100, 200, 300, 400]),
        ((64, 128, 192, 256, 320), [64, 128, 256, 320]),
        ((10, 20, 1000, 1010), [10, 1000]),
    ],
)
def test_it_is_measured_first_and_at_each_multiple(steps: Any, measured: list[int]) -> None:
    evaluation = quiet("trivial")
    found = [step for step in steps if evaluation(step)]
    assert found == measured == [step for step, _ in evaluation.history]
    assert evaluation.measure(7777) is evaluation.measure(7777)  # the end, once


def test_all_measurements_play_the_same_deals() -> None:
    """And read the learner as it is by then."""
    learner = module()
    evaluation = quiet(learner, against=["greedy", "random"])
    first, same = evaluation.measure(1), evaluation.measure(2)
    for name, result in first.items():
        alone = play_pairs(GAME, learner, name, PAIRS, seed=1)
        assert (result.margins == alone.margins).all() and (same[name].margins == alone.margins).all()
    with torch.no_grad():
        learner[0].bias += 100 * torch.arange(len(learner[0].bias))
    assert any((result.margins != first[name].margins).any() for name, result in evaluation.measure(3).items())


def test_measuring_leaves_the_training_as_it_was() -> None:
    """Dropout is off while it plays, and on afterwards; nothing is drawn from the trainer's random numbers."""
    learner = module(torch.nn.Dropout(0.9))
    learner.train()
    np.random.seed(0)  # noqa: NPY002 (trainers draw from it)
    before = torch.random.get_rng_state(), repr(np.random.get_state())  # noqa: NPY002
    found = quiet(learner).measure(0)["greedy"]
    assert learner.training and learner[0].training
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert before[1] == repr(np.random.get_state())  # noqa: NPY002
    assert (found.margins == play_pairs(GAME, learner.eval(), "greedy", PAIRS, seed=1).margins).all()


def test_figures_are_written_and_said() -> None:
    writer = Figures()
    said: list[str] = []
    evaluation = evaluate_every(5, "trivial", GAME, ["greedy"], pairs=PAIRS, writer=writer)
    evaluation.say = said.append
    result = evaluation(20)["greedy"]
    assert said == [f"20 steps: against greedy {result.in_words()}"]
    assert writer.rows == [
        ("strength/win_share_greedy", result.win_share.mean, 20),
        ("strength/win_share_greedy_low", result.win_share.low, 20),
        ("strength/win_share_greedy_high", result.win_share.high, 20),
        ("strength/margin_greedy", result.margin_per_deal.mean, 20),
    ]


def test_what_does_not_fit_is_refused_before_training() -> None:
    wrong: dict[str, Any]
    for wrong, said in (
        ({"every": 0}, "steps: expected"),
        ({"pairs": 0}, "pairs: expected"),
        ({"against": "greedy"}, "against: expected a list"),
        ({"against": ["nobody"]}, "unknown opponent 'nobody'"),
        ({"options": {"cards": "many"}}, "cards"),
        ({"seed": "one"}, "seed"),
        ({"sampled": 1}, "sampled: expected True or False"),
    ):
        with pytest.raises(ValueError, match=said):
            quiet("trivial", **wrong)
    for learner in (3, torch.nn.Linear(2, 2)):
        with pytest.raises(ValueError, match=r"expected|shapes"):
            quiet(learner).measure(0)
    evaluation = quiet("trivial")
    for step in (-5, 1.5, True, None, 1 << 63):
        with pytest.raises(ValueError, match="step: expected a whole number from 0"):
            evaluation(step)  # type: ignore[arg-type]
    assert not evaluation.history


class Agent:
    """Plays by `act`, though it has an actor for training, as agents of one's own do."""

    def __init__(self) -> None:
        self.actor = module()

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        return decisions.mask.argmax(axis=1)


def test_an_agent_with_act_plays_by_it() -> None:
    def first_legal(decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        return decisions.mask.argmax(axis=1)

    margins = [play_pairs(GAME, player, "greedy", 20).margins for player in (Agent(), first_legal, Agent().actor)]
    assert (margins[0] == margins[1]).all() and (margins[0] != margins[2]).any()


def figures_of(player: Any, **settings: Any) -> tuple[list[float], str]:
    """The margins of a player over `greedy`, from `play_pairs` and the same ones from a curve; and its line."""
    result = play_pairs(GAME, player, "greedy", PAIRS, 1, **settings)
    (measured,) = quiet(player, **settings).measure(0).values()
    assert (result.margins == measured.margins).all() and result.in_words() == measured.in_words()
    return result.margins.tolist(), result.in_words()


def test_networks_draw_or_play_the_likeliest() -> None:
    """As asked, however they are given, inside a combination too; and the line says which."""
    network, actions = module(), range(GAME.rules.NUM_ACTIONS)
    likeliest, drawing = TorchPolicy(network, sampled=False), TorchPolicy(network)
    expected = {sampled: play_pairs(GAME, drawing if sampled else likeliest, "greedy", PAIRS, 1).margins.tolist()
                for sampled in (True, False)}  # fmt: skip
    assert expected[True] != expected[False]
    for player in (network, drawing, PhasedPolicy(actions, drawing, RandomPolicy()), Opponent("mine", GAME, drawing)):
        for settings, sampled in (({}, True), ({"sampled": True}, True), ({"sampled": False}, False)):
            margins, line = figures_of(player, **settings)
            assert margins == expected[sampled]
            assert line.endswith(", moves drawn" if sampled else ", likeliest moves")
    assert drawing.sampled  # it was not changed
    margins, line = figures_of("search:4", sampled=False)  # draws nothing
    assert (margins, line) == figures_of("search:4") and line.endswith("points")
    for sampled in (True, False):  # it was made to play so
        assert figures_of(likeliest, sampled=sampled) == (expected[False], figures_of(likeliest)[1])
    assert play_pairs(GAME, network, "greedy", PAIRS, sampled=False).as_dict()["sampled"] == [False, None]
    assert play_pairs(GAME, "random", network, PAIRS).as_dict()["sampled"] == [None, True]


@pytest.mark.filterwarnings("ignore")
def test_of_values_the_largest_is_played() -> None:
    """Nothing is drawn from them: in this process, as a file, and of what stable-baselines3 knows to be values."""
    dqn = pytest.importorskip("stable_baselines3").DQN
    values = module()
    env = gymnasium.make(GAME.gymnasium_id, opponents="random")
    learned = dqn("MlpPolicy", env, buffer_size=10, seed=0, device="cpu")
    of_values: Any = "values"
    players = (values, of_values), (lambda observation: values(observation), of_values), (learned, None)
    for trained, outputs in players:
        best = play_pairs(GAME, TorchPolicy(trained, sampled=False), "greedy", PAIRS, 1).margins.tolist()
        file = OnnxPolicy(GAME, module_to_onnx(values if trained is not learned else learned, GAME, outputs))
        for player in (TorchPolicy(trained, outputs=outputs), TorchPolicy(actor_of(trained, outputs)), file):
            margins, line = figures_of(player)
            assert margins == best and line.endswith("likeliest moves") and player.sampled is False
        with pytest.raises(ValueError, match="sampled=True: no moves can be drawn from values"):
            TorchPolicy(trained, sampled=True, outputs=outputs)
    assert figures_of(learned) == figures_of(TorchPolicy(learned, sampled=False))
    assert TorchPolicy(actor_of(values, "values"), outputs="logits").sampled  # what is said last holds
    calls: list[Any] = [TorchPolicy, actor_of, lambda trained, outputs: module_to_onnx(trained, GAME, outputs)]
    for call in calls:
        with pytest.raises(ValueError, match='outputs: expected "logits" or "values", got'):
            call(values, outputs="scores")


@pytest.mark.parametrize(("fault", "shown", "outputs"), [(math.nan, "nan", "logits"), (-math.inf, "-inf", "values")])
def test_a_network_that_diverged_is_told_so(fault: float, shown: str, outputs: Any) -> None:
    """Not that its shape is wrong: what it returned, and for which action."""
    network, last = module(), GAME.rules.NUM_ACTIONS - 1
    with torch.no_grad():
        network[0].bias[last] = fault
    for player in (TorchPolicy(network, outputs=outputs), OnnxPolicy(GAME, module_to_onnx(network, GAME, outputs))):
        with pytest.raises(ValueError, match=rf"expected finite .*, got {shown} at \[\d+, {last}\]"):
            play_pairs(GAME, player, "greedy", PAIRS)
    with pytest.raises(ValueError, match=r"expected logits of shape \(\d+, \d+\), got \(\d+, 2\)"):
        play_pairs(GAME, torch.nn.Linear(GAME.rules.OBS_SIZE, 2), "greedy", PAIRS)


def test_each_measurement_is_of_its_time_and_step() -> None:
    """Also where the numbers of steps begin again, as in a second loop; numbers are plain ints."""
    learner, writer = module(), Figures()
    evaluation = quiet(learner, every=10, writer=writer)
    steps: list[Any] = [np.int64(0), 4, 10, 12, 0, 10, 12, 5]
    for number, step in enumerate(steps):
        with torch.no_grad():
            learner[0].bias.copy_((number + 1) * torch.randn(len(learner[0].bias)))
        alone = play_pairs(GAME, learner, "greedy", PAIRS, seed=1)
        results = evaluation(step) if step != 12 else evaluation.measure(step)
        assert results == {} or (results["greedy"].margins == alone.margins).all()
    assert [step for step, _ in evaluation.history] == [0, 10, 12, 0, 10, 12, 5]
    assert all(type(step) is int for step, _ in evaluation.history)
    logged = [(figure, step) for tag, figure, step in writer.rows if tag == "strength/margin_greedy"]
    assert logged == [(result["greedy"].margin_per_deal.mean, step) for step, result in evaluation.history]


def test_the_best_network_is_kept(tmp_path: Path) -> None:
    """The folder holds the network with the highest mean margin so far, and loads as an opponent."""
    pytest.importorskip("onnxscript")
    learner, folder = module(), tmp_path / "best"
    evaluation = quiet(learner, against=["greedy", "random"], best=folder)
    margins, kept = [], []
    for step in range(6):
        with torch.no_grad():
            learner[0].weight.copy_(torch.randn(learner[0].weight.shape))
        results = evaluation.measure(step)
        margins.append(np.mean([result.margin_per_deal.mean for result in results.values()]))
        kept.append((play_pairs(GAME, str(folder), "greedy", PAIRS, 1).margins, results["greedy"].margins))
    assert len(set(margins)) > 2
    for step, (saved, _) in enumerate(kept):
        assert (saved == kept[int(np.argmax(margins[: step + 1]))][1]).all()
    with pytest.raises(ValueError, match="contains other files"):
        quiet(learner, best=tmp_path)
    with pytest.raises(ValueError, match="best: expected a learner that is a torch module"):
        quiet("greedy", best=tmp_path / "other")
    assert "6 measurements; last at 5: {'greedy': PairResult(8 pairs: " in repr(evaluation)


class Learning:
    """Masked PPO of stable-baselines3, and what its log shows: the margin over `greedy` at each step."""

    def __init__(self) -> None:
        sb3 = pytest.importorskip("sb3_contrib")
        env = gymnasium.make(GAME.gymnasium_id, opponents="random")
        self.model = sb3.MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=1, seed=0, device="cpu")

    def learn(self, steps: int, callback: Any, **settings: Any) -> list[tuple[int, float]]:
        from stable_baselines3.common.logger import KVWriter, Logger

        rows: list[tuple[int, float]] = []

        class Margins(KVWriter):
            def write(self, key_values: dict[str, Any], key_excluded: Any, step: int = 0) -> None:
                rows.extend([(step, value) for key, value in key_values.items() if key == "strength/margin_greedy"])

        self.model.set_logger(Logger(None, [Margins()]))
        self.model.learn(steps, callback=callback, **settings)
        return rows


def test_stable_baselines_logs_each_figure_at_its_step() -> None:
    """Between its own entries, too, and when `learn` is called again: from 0, and from where it was."""
    learning = Learning()
    evaluation = quiet(learning.model, every=20)
    callback = evaluation.callback()
    for length, begins_at_0, steps in (
        (128, True, [0, 20, 40, 60, 80, 100, 120, 128]),
        (64, True, [0, 20, 40, 60, 64]),
        (64, False, [64, 80, 100, 120, 128]),
    ):
        before = len(evaluation.history)
        rows = learning.learn(length, callback, reset_num_timesteps=begins_at_0)
        measured = evaluation.history[before:]
        assert [step for step, _ in measured] == steps
        assert rows == [(step, result["greedy"].margin_per_deal.mean) for step, result in measured]
        alone = play_pairs(GAME, learning.model, "greedy", PAIRS, seed=1)
        assert (measured[-1][1]["greedy"].margins == alone.margins).all()


def test_a_callback_is_for_its_own_model() -> None:
    """Else the figures of one would be in the log of the other."""
    learning, other = Learning(), Learning()
    for learner in (other.model, other.model.policy):
        with pytest.raises(ValueError, match="callback: expected the model that is evaluated"):
            learning.learn(64, quiet(learner).callback())


def test_without_stable_baselines_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3.common.callbacks", None)
    with pytest.raises(ValueError, match=r"callback: stable.baselines3.* is missing: pip install 'card_envs\[sb3\]'"):
        quiet("trivial").callback()
