"""Networks as ONNX models, out and in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from card_envs.__main__ import app
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents import load_opponent
from card_envs.opponents.folder import MODEL_FILE, save_model, save_network
from card_envs.opponents.network import ARCHITECTURES, NetworkPolicy, TrainedPolicy
from card_envs.opponents.policy import turn_of_states
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import positions, some

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
from card_envs.opponents.onnx import OnnxPolicy, to_onnx, wanted_inputs  # noqa: E402

helper, FLOAT = onnx.helper, onnx.TensorProto.FLOAT


def network(game: Game, kind: type[TrainedPolicy]) -> TrainedPolicy:
    rng = np.random.default_rng(0)
    shapes = kind.shapes(game, [24, 16])
    return kind(game, {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()})


@pytest.mark.parametrize("kind", ARCHITECTURES.values())
def test_a_model_plays_as_its_network(game: Game, kind: type[TrainedPolicy]) -> None:
    policy = network(game, kind)
    model = OnnxPolicy(game, to_onnx(policy))
    turn = turn_of_states(game, some(positions(game), 1000))
    np.testing.assert_allclose(model.probabilities(turn), policy.probabilities(turn), atol=1e-5)
    one = turn.at(np.array([0]))
    np.testing.assert_allclose(model.probabilities(one), policy.probabilities(one), atol=1e-5)


@pytest.mark.parametrize("kind", ARCHITECTURES.values())
def test_models_survive_the_disk(game: Game, kind: type[TrainedPolicy], tmp_path: Path) -> None:
    policy = OnnxPolicy(game, to_onnx(network(game, kind)))
    turn = turn_of_states(game, some(positions(game), 32))
    save_network(tmp_path / "mine", policy, turn, training={}, strength=[])
    found = load_opponent(tmp_path / "mine")
    np.testing.assert_array_equal(found.probabilities(turn), policy.probabilities(turn))
    data = bytearray((tmp_path / "mine" / MODEL_FILE).read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "mine" / MODEL_FILE).write_bytes(bytes(data))
    with pytest.raises(ValueError, match=r"model\.onnx: truncated or altered"):
        load_opponent(tmp_path / "mine")
    (tmp_path / "mine" / MODEL_FILE).unlink()
    with pytest.raises(ValueError, match=r"model\.onnx: No such file"):
        load_opponent(tmp_path / "mine")


def test_out_and_in_by_command(tmp_path: Path) -> None:
    save_network(
        tmp_path / "mine", network(TINY, NetworkPolicy), turn_of_states(TINY, some(positions(TINY), 8)),
        training={}, strength=[],
    )  # fmt: skip
    model = tmp_path / "model.onnx"
    result = CliRunner().invoke(app, ["export", str(tmp_path / "mine"), str(model)])
    assert result.exit_code == 0, result.output
    notes = (tmp_path / "model.md").read_text()
    assert all(f"`{field.name}`" in notes for field in (*TINY.rules.OBS_FIELDS, *TINY.rules.ACTION_FIELDS))
    result = CliRunner().invoke(app, ["import", TINY.name, str(model), str(tmp_path / "back")])
    assert result.exit_code == 0, result.output
    turn = turn_of_states(TINY, some(positions(TINY), 100))
    one, other = (load_opponent(tmp_path / name).probabilities(turn) for name in ("mine", "back"))
    np.testing.assert_allclose(one, other, atol=1e-3)
    refused = CliRunner().invoke(app, ["export", f"{TINY.name}/greedy", str(tmp_path / "greedy.onnx")])
    assert isinstance(refused.exception, ValueError) and "only these can be exported" in str(refused.exception)
    assert not (tmp_path / "greedy.onnx").exists()


def model(
    nodes: list[Any], inputs: dict[str, list[Any]], output: list[Any], name: str = "logits", constants: Any = ()
) -> bytes:
    """A model of these nodes, whatever it does."""
    entries = [helper.make_tensor_value_info(entry, FLOAT, shape) for entry, shape in inputs.items()]
    graph = helper.make_graph(
        nodes, "graph", entries, [helper.make_tensor_value_info(name, FLOAT, output)], list(constants)
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return bytes(made.SerializeToString())


D, A = TINY.rules.OBS_SIZE, TINY.rules.NUM_ACTIONS
MASK = {"observation": ["n", D], "action_mask": ["n", A]}
SCORED = [helper.make_node("Identity", ["action_mask"], ["logits"])]


def external() -> bytes:
    weights = onnx.numpy_helper.from_array(np.zeros((A,), np.float32), "w")
    weights.ClearField("raw_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="/etc/passwd")
    return model([helper.make_node("Add", ["action_mask", "w"], ["logits"])], MASK, ["n", A], constants=[weights])


def endless() -> bytes:
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["c2"])], "body",
        [helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
         helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("c2", onnx.TensorProto.BOOL, [])],
    )  # fmt: skip
    true = onnx.numpy_helper.from_array(np.array(True), "true")
    nodes = [helper.make_node("Loop", ["", "true"], [], body=body), *SCORED]
    return model(nodes, MASK, ["n", A], constants=[true])


def foreign() -> bytes:
    made = onnx.load_model_from_string(model(SCORED, MASK, ["n", A]))
    made.opset_import.add(domain="com.example", version=1)
    return bytes(made.SerializeToString())


FAULTS: dict[str, tuple[Callable[[], bytes], str]] = {
    "no model": (lambda: b"nonsense", "no ONNX model"),
    "empty": (lambda: b"", "ONNX model"),
    "half a model": (lambda: to_onnx(network(TINY, NetworkPolicy))[:-1000], "ONNX model"),
    "other observation": (
        lambda: model(SCORED, {**MASK, "observation": ["n", D + 1]}, ["n", A]), rf"observation: .*any number, {D}",
    ),
    "other mask": (lambda: model(SCORED, {**MASK, "action_mask": ["n", A + 1]}, ["n", A + 1]), "action_mask"),
    "one decision at a time": (
        lambda: model(SCORED, {"observation": [1, D], "action_mask": [1, A]}, [1, A]), "any number",
    ),
    "unknown input": (lambda: model(SCORED, {**MASK, "memory": ["n", 4]}, ["n", A]), "inputs .*memory"),
    "no observation": (lambda: model(SCORED, {"action_mask": ["n", A]}, ["n", A]), "inputs action_mask"),
    "no output": (
        lambda: model([helper.make_node("Identity", ["action_mask"], ["q"])], MASK, ["n", A], "q"), "outputs q",
    ),
    "weights elsewhere": (external, "ONNX model: .*(another file|extern)"),
    "for ever": (endless, "Loop"),
    "operators of others": (foreign, "standard alone"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_no_model_of_the_game_is_refused(fault: str, tmp_path: Path) -> None:
    make, said = FAULTS[fault]
    with pytest.raises(ValueError, match=said):
        save_model(tmp_path / "mine", TINY, make())
    assert not (tmp_path / "mine").exists()


def test_a_model_that_gives_no_numbers_is_refused(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Sub", ["action_mask", "action_mask"], ["zero"]),
        helper.make_node("Log", ["zero"], ["logits"]),
    ]
    with pytest.raises(ValueError, match="expected finite numbers"):
        save_model(tmp_path / "mine", TINY, model(nodes, MASK, ["n", A]))


def test_a_torch_module_becomes_an_opponent(tmp_path: Path) -> None:
    """As the README of any library says: `torch.onnx.export`."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript", reason="torch exports with onnxscript")
    game = next(iter(GAMES.values()))
    rules = game.rules

    class Scores(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(rules.OBS_SIZE, 16), torch.nn.Tanh(), torch.nn.Linear(16, rules.NUM_ACTIONS)
            )

        def forward(self, observation: Any, action_mask: Any) -> Any:
            return self.layers(observation) - 100 * (1 - action_mask)

    module = Scores().eval()
    example = (torch.zeros(2, rules.OBS_SIZE), torch.ones(2, rules.NUM_ACTIONS))
    path = tmp_path / "model.onnx"
    rows = torch.export.Dim("n")
    torch.onnx.export(
        module, example, path, input_names=["observation", "action_mask"], output_names=["logits"], dynamo=True,
        external_data=False, dynamic_shapes={"observation": {0: rows}, "action_mask": {0: rows}},
    )  # fmt: skip
    save_model(tmp_path / "mine", game, path.read_bytes())
    turn = turn_of_states(game, some(positions(game), 50))
    with torch.no_grad():
        logits = module(torch.from_numpy(turn.obs).float(), torch.from_numpy(turn.mask).float())
        expected = logits.masked_fill(torch.from_numpy(turn.mask == 0), -1e9).softmax(1).numpy()
    np.testing.assert_allclose(load_opponent(tmp_path / "mine").probabilities(turn), expected, atol=1e-5)
    assert set(wanted_inputs(rules)) > {"observation", "action_mask"}
