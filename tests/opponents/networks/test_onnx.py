"""Networks as ONNX models, out and in."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from card_envs.__main__ import app
from card_envs.game import Game, layout_digest
from card_envs.games import GAMES
from card_envs.layout import model_page
from card_envs.opponents import load_opponent
from card_envs.opponents.networks.folder import CARD_FILE, MODEL_FILE, WEIGHTS_FILE, save_model, save_network
from card_envs.opponents.networks.policies import ARCHITECTURES, NetworkPolicy, TrainedPolicy
from card_envs.opponents.policy import decisions_at
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import positions, some, untrained

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
from card_envs.opponents.networks.onnx import MOST_ROWS, OnnxPolicy, inputs_read, model_file, to_onnx, wanted_inputs  # noqa: E402

helper, FLOAT = onnx.helper, onnx.TensorProto.FLOAT


def network(game: Game, kind: type[TrainedPolicy]) -> TrainedPolicy:
    return untrained(game, kind, [24, 16], sampled=True)


@pytest.mark.mechanics
@pytest.mark.parametrize("kind", ARCHITECTURES.values())
def test_a_model_plays_as_its_network(game: Game, kind: type[TrainedPolicy]) -> None:
    policy = network(game, kind)
    model = OnnxPolicy(game, to_onnx(policy))
    decisions = decisions_at(game, some(positions(game), 1000))
    np.testing.assert_allclose(model.probabilities(decisions), policy.probabilities(decisions), atol=1e-5)
    one = decisions.at(np.array([0]))
    np.testing.assert_allclose(model.probabilities(one), policy.probabilities(one), atol=1e-5)


@pytest.mark.parametrize("kind", ARCHITECTURES.values())
def test_a_model_says_what_it_reads(kind: type[TrainedPolicy]) -> None:
    """In its metadata, also after a way through a folder, and on the page beside it, which has nothing else."""
    policy = network(TINY, kind)
    for model in (to_onnx(policy), to_onnx(OnnxPolicy(TINY, to_onnx(policy)))):
        about = {entry.key: entry.value for entry in onnx.load_model_from_string(model).metadata_props}
        inputs = [entry.name for entry in onnx.load_model_from_string(model).graph.input]
        assert about == {
            "game": TINY.name, "version": str(TINY.version), "layout": layout_digest(TINY.rules),
            "inputs": ",".join(inputs),
        }  # fmt: skip
        assert inputs_read(model) == inputs and ("decision" in inputs) == policy.reads_moves
        page = model_page(TINY, inputs)
        headings = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
        assert headings == inputs and ("dense_moves" in page) == policy.reads_moves


@pytest.mark.mechanics
@pytest.mark.parametrize("kind", ARCHITECTURES.values())
def test_models_survive_the_disk(game: Game, kind: type[TrainedPolicy], tmp_path: Path) -> None:
    policy = OnnxPolicy(game, to_onnx(network(game, kind)))
    decisions = decisions_at(game, some(positions(game), 32))
    save_network(tmp_path / "mine", policy, decisions, training={}, strength=[])
    found = load_opponent(tmp_path / "mine")
    np.testing.assert_array_equal(found.probabilities(decisions), policy.probabilities(decisions))
    data = bytearray((tmp_path / "mine" / MODEL_FILE).read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "mine" / MODEL_FILE).write_bytes(bytes(data))
    with pytest.raises(ValueError, match=r"model\.onnx: checksum mismatch"):
        load_opponent(tmp_path / "mine")
    (tmp_path / "mine" / MODEL_FILE).unlink()
    with pytest.raises(ValueError, match=r"model\.onnx: No such file"):
        load_opponent(tmp_path / "mine")


def test_out_and_in_by_command(tmp_path: Path) -> None:
    save_network(
        tmp_path / "mine", network(TINY, NetworkPolicy), decisions_at(TINY, some(positions(TINY), 8)),
        training={}, strength=[],
    )  # fmt: skip
    model = tmp_path / "model.onnx"
    result = CliRunner().invoke(app, ["export", str(tmp_path / "mine"), str(model)])
    assert result.exit_code == 0, result.output
    notes = (tmp_path / "model.md").read_text()
    assert all(f"`{field.name}`" in notes for field in (*TINY.rules.OBS_FIELDS, *TINY.rules.ACTION_FIELDS))
    result = CliRunner().invoke(app, ["import", TINY.name, str(model), str(tmp_path / "back")])
    assert result.exit_code == 0, result.output
    decisions = decisions_at(TINY, some(positions(TINY), 100))
    one, other = (load_opponent(tmp_path / name).probabilities(decisions) for name in ("mine", "back"))
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


def elsewhere(location: str = "/etc/passwd", **more: str) -> Any:
    """Weights [A] in another file."""
    weights = onnx.TensorProto(name="w", data_type=FLOAT, dims=[A], data_location=onnx.TensorProto.EXTERNAL)
    for key, value in {"location": location, **more}.items():
        weights.external_data.add(key=key, value=value)
    return weights


def constant(array: Any, name: str) -> Any:
    return onnx.numpy_helper.from_array(np.asarray(array), name)


def branches(graph: Any) -> bytes:
    true = constant(True, "true")
    node = helper.make_node("If", ["true"], ["w"], then_branch=graph, else_branch=graph)
    return model([node, helper.make_node("Add", ["action_mask", "w"], ["logits"])], MASK, ["n", A], constants=[true])


def hidden(where: str) -> bytes:
    """A model with weights in another file, wherever those can be named."""
    add = helper.make_node("Add", ["action_mask", "w"], ["logits"])
    tensor = elsewhere()
    sparse = onnx.SparseTensorProto(values=tensor, indices=constant(np.arange(A), "indices"), dims=[A])
    inner = helper.make_node("Constant", [], ["w"], value=tensor)
    if where == "initializer":
        return model([add], MASK, ["n", A], constants=[tensor])
    if where == "sparse constant":
        return model([helper.make_node("Constant", [], ["w"], sparse_value=sparse), add], MASK, ["n", A])
    if where == "constant in a branch":
        return branches(helper.make_graph([inner], "branch", [], [helper.make_tensor_value_info("w", FLOAT, [A])]))
    made = onnx.load_model_from_string(model([add], MASK, ["n", A]))
    if where == "sparse initializer":
        made.graph.sparse_initializer.append(sparse)
    else:
        made.functions.append(helper.make_function("x", "f", [], ["w"], [inner], [helper.make_opsetid("", 18)]))
    return bytes(made.SerializeToString())


HIDDEN = ("initializer", "sparse constant", "constant in a branch", "sparse initializer", "function")


def of_others(domain: str, operator: str = "") -> bytes:
    """A model that declares another set of operators, and uses one of them if that is named."""
    nodes = [helper.make_node(operator, ["action_mask"], ["logits"], domain=domain)] if operator else SCORED
    changed = onnx.load_model_from_string(model(nodes, MASK, ["n", A]))
    changed.opset_import.add(domain=domain, version=1)
    return bytes(changed.SerializeToString())


def imported(model: bytes, folder: Path) -> Path:
    """The folder of an opponent in which somebody put another model, with the right digest."""
    save_model(folder, TINY, to_onnx(network(TINY, NetworkPolicy)))
    (folder / MODEL_FILE).write_bytes(model)
    card = json.loads((folder / CARD_FILE).read_text())
    (folder / CARD_FILE).write_text(json.dumps(card | {"model_sha256": hashlib.sha256(model).hexdigest()}))
    return folder


FAULTS: dict[str, tuple[Callable[[], bytes], str]] = {
    "no model": (lambda: b"nonsense", "onnxruntime can.t load it"),
    "half a model": (lambda: to_onnx(network(TINY, NetworkPolicy))[:-1000], "onnxruntime can.t load it"),
    "other observation": (
        lambda: model(SCORED, {**MASK, "observation": ["n", D + 1]}, ["n", A]), rf"observation: .*any number, {D}",
    ),
    "one decision at a time": (
        lambda: model(SCORED, {"observation": [1, D], "action_mask": [1, A]}, [1, A]), "any number",
    ),
    "unknown input": (lambda: model(SCORED, {**MASK, "memory": ["n", 4]}, ["n", A]), "inputs .*memory"),
    "no output": (
        lambda: model([helper.make_node("Identity", ["action_mask"], ["q"])], MASK, ["n", A], "q"), "outputs q",
    ),
    "unknown operators": (lambda: of_others("com.example", "Special"), "Special"),
    "operators of onnxruntime": (lambda: of_others("com.microsoft", "Gelu"), "com.microsoft.Gelu.*standard alone"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_no_model_of_the_game_is_refused(fault: str, tmp_path: Path) -> None:
    make, said = FAULTS[fault]
    with pytest.raises(ValueError, match=said):
        save_model(tmp_path / "mine", TINY, make())
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize("where", HIDDEN)
def test_a_folder_whose_model_reads_other_files_is_refused(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever they are named; also if they exist, where onnxruntime looks for them."""
    monkeypatch.chdir(tmp_path)
    Path("w.bin").write_bytes(bytes(4 * A))
    with pytest.raises(ValueError, match=r"ONNX model: its weights are in another file"):
        load_opponent(imported(hidden(where), tmp_path / "mine"))


def test_a_folder_whose_model_has_operators_of_others_is_refused(tmp_path: Path) -> None:
    """Also in a branch that is never run, and in a function."""
    domain = "com.microsoft"
    special = helper.make_node("Special", ["action_mask"], ["w"], domain=domain)
    branch = helper.make_graph([special], "branch", [], [helper.make_tensor_value_info("w", FLOAT, ["n", A])])
    function = onnx.load_model_from_string(model(SCORED, MASK, ["n", A]))
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(domain, 1)]
    function.functions.append(helper.make_function("x", "f", ["action_mask"], ["w"], [special], opsets))
    hiding = (of_others(domain, "Special"), branches(branch), bytes(function.SerializeToString()))
    for number, data in enumerate(hiding):
        with pytest.raises(
            ValueError, match=rf"operator '{domain}\.Special': expected operators of the standard alone"
        ):
            load_opponent(imported(data, tmp_path / f"{number}"))


def test_operators_that_are_declared_and_not_used_are_none(tmp_path: Path) -> None:
    decisions = decisions_at(TINY, some(positions(TINY), 8))
    save_model(tmp_path / "mine", TINY, of_others("com.example"))
    expected = OnnxPolicy(TINY, model(SCORED, MASK, ["n", A])).probabilities(decisions)
    np.testing.assert_array_equal(load_opponent(tmp_path / "mine").probabilities(decisions), expected)


def test_copies_play_alike() -> None:
    policy = OnnxPolicy(TINY, to_onnx(network(TINY, NetworkPolicy)))
    decisions = decisions_at(TINY, some(positions(TINY), 64))
    for other in (copy.copy(policy), copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        np.testing.assert_array_equal(other.probabilities(decisions), policy.probabilities(decisions))


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("../w.bin", "points outside the directory"),
        ("missing", "No such file"),
        ("large", "expected at most"),
        ("short", "onnxruntime can't load it"),
    ],
)
def test_weights_are_taken_from_files_in_the_models_folder_alone(location: str, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(4 * A))
    with (folder / "large").open("wb") as file:
        file.truncate(1 << 40)
    (folder / "short").write_bytes(bytes(4))
    add = helper.make_node("Add", ["action_mask", "w"], ["logits"])
    path = folder / "model.onnx"
    path.write_bytes(model([add], MASK, ["n", A], constants=[elsewhere(location)]))
    with pytest.raises((ValueError, OSError), match=said):
        save_model(tmp_path / "mine", TINY, model_file(path, 1 << 20))
    assert not (tmp_path / "mine").exists()


def test_weights_beside_a_model_become_part_of_it(tmp_path: Path) -> None:
    weights = np.arange(A, dtype=np.float32)
    (tmp_path / "w.bin").write_bytes(b"head" + weights.tobytes() + b"tail")
    tensor = elsewhere("w.bin", offset="4", length=str(4 * A), checksum="0")
    add = helper.make_node("Add", ["action_mask", "w"], ["logits"])
    (tmp_path / "model.onnx").write_bytes(model([add], MASK, ["n", A], constants=[tensor]))
    save_model(tmp_path / "mine", TINY, model_file(tmp_path / "model.onnx", 1 << 20))
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {CARD_FILE, MODEL_FILE, WEIGHTS_FILE}
    (tmp_path / "w.bin").unlink()
    decisions = decisions_at(TINY, some(positions(TINY), 8))
    policy = load_opponent(tmp_path / "mine").policy
    assert isinstance(policy, OnnxPolicy)
    np.testing.assert_allclose(
        policy.logits_at(decisions)[decisions.mask != 0], (decisions.mask + weights)[decisions.mask != 0]
    )


@pytest.mark.mechanics
def test_many_decisions_are_given_in_parts(game: Game) -> None:
    """The cost of a model is bounded for one part; the rows are the same."""
    policy = OnnxPolicy(game, to_onnx(network(game, ARCHITECTURES["afterstates"])))
    decisions = decisions_at(game, some(positions(game), 2 * MOST_ROWS + 1))
    logits = policy.logits_at(decisions)
    for rows in (slice(0, 3), slice(MOST_ROWS - 1, MOST_ROWS + 2), slice(2 * MOST_ROWS, None)):
        np.testing.assert_allclose(
            policy.logits_at(decisions.at(np.arange(len(decisions))[rows])), logits[rows], atol=1e-4
        )


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
        dynamic_shapes={"observation": {0: rows}, "action_mask": {0: rows}},
    )  # fmt: skip
    done = CliRunner().invoke(app, ["import", game.name, str(path), str(tmp_path / "mine")])
    assert done.exit_code == 0, done.output
    decisions = decisions_at(game, some(positions(game), 50))
    with torch.no_grad():
        logits = module(torch.from_numpy(decisions.obs).float(), torch.from_numpy(decisions.mask).float())
        expected = logits.masked_fill(torch.from_numpy(decisions.mask == 0), -1e9).softmax(1).numpy()
    np.testing.assert_allclose(load_opponent(tmp_path / "mine").probabilities(decisions), expected, atol=1e-5)
    assert set(wanted_inputs(rules)) > {"observation", "action_mask"}
