"""Networks as ONNX models: export for other languages, and import from other libraries (extra `onnx`).

A model reads named inputs and returns `probabilities` [n, A] float32:

- `observation` [n, D] float32: of the seat to move, as the environments return it, unscaled;
- `action_mask` [n, A] float32: 1 where legal;
- for models that score actions by their afterstates, the R legal actions of all n decisions: `moves` [R, M] float32,
  the entries of `move_fields`, unscaled; `decision` [R] and `action` [R] int64: the decision and action of each row.
  Models with lookahead read `lookahead_moves` [R, M] instead, one row for each afterstate.

`dense_moves` computes the last three in Python. An exported model names its game, version and inputs in its metadata:
`game`, `version`, `layout` (digest of the observation and the actions) and `inputs`.

An imported model may return `logits` [n, A] instead; illegal actions are then masked here. onnxruntime runs it in this
process, so pass models of people whom you trust. What a folder holds is checked before: see `check_self_contained`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import warnings
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from card_envs.game import Game, Rules, layout_digest, total
from card_envs.opponents.networks.afterstates import NUM_AHEAD, Afterstates, move_fields, move_scale
from card_envs.opponents.networks.policies import (
    ILLEGAL,
    STEADY,
    Architecture,
    Inputs,
    Outputs,
    TrainedPolicy,
    afterstates_in,
    afterstates_of,
    input_scale,
    layers_of,
    not_finite,
)
from card_envs.opponents.networks.torch_policy import actor_of, device_of, evaluating, outputs_of
from card_envs.opponents.policy import Decisions
from card_envs.system.files import read_file, user_path

OPSET, IR_VERSION = 18, 9  # supported by the programs of recent years
MISSING = "ONNX models need the extra onnx: pip install 'card_envs[onnx]'"
FLOATS, WHOLE = "tensor(float)", "tensor(int64)"
MOST_ROWS = 64  # decisions per run, because the moves of all of them are dense rows
STANDARD = ("", "ai.onnx")  # domains of operators
MOVES = ("moves", "lookahead_moves")
LOOKAHEAD = 1


class OnnxSession:
    """A model loaded by onnxruntime, with one thread; a pickle is the model."""

    def __init__(self, model: bytes) -> None:
        """Load a model. Raises ValueError if onnxruntime can't."""
        check_runtime()
        import onnxruntime

        self.model = model
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.add_session_config_entry("session.load_model_format", "ONNX")  # not guessed from the first bytes
        try:
            self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions have no common class
            raise ValueError(f"ONNX model: onnxruntime can't load it: {error!s:.1000}") from None
        self.inputs, self.outputs = (
            {entry.name: (entry.type, entry.shape) for entry in entries}
            for entries in (self._session.get_inputs(), self._session.get_outputs())
        )

    def run(self, output: str, inputs: Mapping[str, NDArray[Any]], shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Return an output. Raises ValueError if it has another shape, or the model fails."""
        try:
            values: NDArray[np.float32] = self._session.run([output], dict(inputs))[0]
        except Exception as error:
            raise ValueError(f"ONNX model: {error!s:.1000}") from None
        if values.shape != shape:
            raise ValueError(f"ONNX model: output {output}: expected the shape {[*shape]}, got {[*values.shape]}")
        return values

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.model,)


class OnnxPolicy(TrainedPolicy):
    """Plays by an ONNX model."""

    architecture: ClassVar[Architecture] = "onnx"

    def __init__(self, game: Game, model: bytes, sampled: bool = True) -> None:
        """Take a model.

        Args:
            game: the game.
            model: content of the file, which you trust as you trust code.
            sampled: draw actions from the probabilities; False: play the likeliest, as a model of `values` always does.

        Raises:
            ValueError: not a model, or unsuitable inputs or outputs.
        """
        super().__init__(game, {}, sampled)
        self._session = OnnxSession(model)
        inputs, outputs = self._session.inputs, self._session.outputs
        wanted = wanted_inputs(game.rules)
        of_moves = set(inputs) & (set(MOVES) | {"decision", "action"})
        if not {"observation"} <= set(inputs) <= set(wanted) or len(of_moves) not in (0, 3) or set(MOVES) <= of_moves:
            raise ValueError(f"ONNX model: inputs {', '.join(inputs)}: expected {', '.join(wanted)}, or the first ones")
        for name, (kind, shape) in inputs.items():
            _check_entry("input", name, kind, shape, *wanted[name])
        self._reads = list(inputs)
        self._gives = next((name for name in ("probabilities", "logits", "values") if name in outputs), "")
        if not self._gives:
            raise ValueError(f"ONNX model: outputs {', '.join(outputs)}: expected probabilities, logits or values")
        self.sampled = sampled and self._gives != "values"
        _check_entry("output", self._gives, *outputs[self._gives], FLOATS, [None, game.rules.NUM_ACTIONS])
        for rows in (1, MOST_ROWS):
            self._try(rows)

    @property
    def model(self) -> bytes:  # type: ignore[override]
        """Content of the model's file."""
        return self._session.model

    @property
    def num_entries(self) -> int:
        return total(move_fields(self.game.rules)) if any(name in self._reads for name in MOVES) else 0

    def afterstates(self, decisions: Decisions) -> Afterstates:
        return afterstates_of(decisions, MOVES[LOOKAHEAD] in self._reads)

    def logits(self, inputs: Inputs) -> NDArray[np.float32]:
        """Return [n, A] scores of the actions. Raises ValueError if the model fails or a number is not finite."""
        number = len(inputs["mask"])
        if number <= MOST_ROWS:
            return self._logits(inputs)
        starts = range(0, number, MOST_ROWS)
        return np.concatenate([self._logits(some_rows(inputs, at, min(at + MOST_ROWS, number))) for at in starts])

    def _logits(self, inputs: Inputs) -> NDArray[np.float32]:
        mask = inputs["mask"]
        fed = {"observation": inputs["obs"].astype(np.float32), "action_mask": mask.astype(np.float32)}
        if self.reads_moves:
            fed |= dense_moves(self.game.rules, inputs)
        answers = self._session.run(self._gives, {name: fed[name] for name in self._reads}, mask.shape)
        if not np.isfinite(answers[mask != 0]).all():
            raise not_finite(f"ONNX model: {self._gives}: expected finite numbers", answers, mask)
        if self._gives == "probabilities":
            answers = np.log(np.maximum(answers, np.finfo(np.float32).tiny))
        return np.where(mask != 0, answers, ILLEGAL).astype(np.float32)

    def _try(self, rows: int) -> None:
        """Raise ValueError if a run of that many decisions, with all actions legal, fails."""
        rules, actions = self.game.rules, self.game.rules.NUM_ACTIONS
        moves = np.ones((rows * actions, total(move_fields(rules))), np.float32)
        fed: Inputs = {
            "observation": np.ones((rows, rules.OBS_SIZE), np.float32),
            "action_mask": np.ones((rows, actions), np.float32),
            **dict.fromkeys(MOVES, moves),
            "decision": np.repeat(np.arange(rows), actions),
            "action": np.tile(np.arange(actions), rows),
        }
        self._session.run(self._gives, {name: fed[name] for name in self._reads}, (rows, actions))


def model_file(path: str | Path, limit: int) -> bytes:
    """Return an ONNX file as one self-contained model; torch's exporter, for one, stores weights beside it.

    Args:
        path: the model's file.
        limit: most bytes of the model with its weights.

    Raises:
        ValueError: not a model, too large, or its weights are not in regular files in its own folder.
        OSError: it can't be read.
    """
    path = user_path(path)
    model = _parse(read_file(path, limit))
    import onnx

    tensors = [message for message in _messages(model) if isinstance(message, onnx.TensorProto)]
    beside = {entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location"}
    size = path.stat().st_size + sum((path.parent / name).stat().st_size for name in beside)
    if size <= limit:
        try:
            onnx.external_data_helper.load_external_data_for_model(model, str(path.parent))
        except Exception as error:  # onnx raises its own exceptions
            raise ValueError(f"{path}: its weights: {error!s:.300}") from None
        size = model.ByteSize()
    if size > limit:
        raise ValueError(f"{path}: {size:,} bytes with its weights; expected at most {limit:,}")
    return bytes(model.SerializeToString(deterministic=True))


def check_self_contained(model: bytes) -> None:
    """Check that a model has standard operators alone and refers to nothing outside, as models in folders must.

    Such a graph can neither run code nor read files or memory. Raises ValueError.
    """
    parsed = _parse(model)
    import onnx

    for message in _messages(parsed):
        if isinstance(message, onnx.TensorProto) and (message.external_data or message.data_location):
            raise ValueError("ONNX model: its weights are in another file: export it as one file, or `import` it")
        if isinstance(message, onnx.NodeProto) and message.domain not in STANDARD:
            operator = f"{message.domain}.{message.op_type}"
            raise ValueError(f"ONNX model: operator {operator!r:.200}: expected operators of the standard alone")


def _parse(model: bytes) -> Any:
    """Return a model as a message. Raises ValueError."""
    check_runtime()
    import onnx

    try:
        return onnx.load_model_from_string(model)
    except Exception as error:  # protobuf's exceptions have no common class
        raise ValueError(f"no ONNX model: {error!s:.200}") from None


def _messages(message: Any) -> Iterator[Any]:
    """Yield a protobuf message and all messages within it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in value if hasattr(value, "add") else [value]:
                yield from _messages(part)


def wanted_inputs(rules: Rules) -> dict[str, tuple[str, list[int | None]]]:
    """Return the inputs that a model may have: types, and the sizes that are fixed."""
    return {
        "observation": (FLOATS, [None, rules.OBS_SIZE]),
        "action_mask": (FLOATS, [None, rules.NUM_ACTIONS]),
        **dict.fromkeys(MOVES, (FLOATS, [None, total(move_fields(rules))])),
        "decision": (WHOLE, [None]),
        "action": (WHOLE, [None]),
    }


def _check_entry(what: str, name: str, kind: str, shape: list[Any], wanted: str, sizes: list[int | None]) -> None:
    """Raise ValueError if a model's input or output has another type or another fixed size."""
    fits = len(shape) == len(sizes) and all(
        not isinstance(got, int) or got == size for got, size in zip(shape, sizes) if size is not None
    )
    free = all(not isinstance(got, int) for got, size in zip(shape, sizes) if size is None)
    if kind != wanted or not fits or not free:
        expected = ", ".join("any number" if size is None else str(size) for size in sizes)
        raise ValueError(f"ONNX model: {what} {name}: expected {wanted} [{expected}], got {kind} {shape}")


def some_rows(inputs: Inputs, start: int, end: int) -> Inputs:
    """Return the inputs of the decisions [start, end)."""
    rows = {name: inputs[name][start:end] for name in ("obs", "mask")}
    if "first" not in inputs:
        return rows
    first, starts = inputs["first"][start : end + 1], inputs["starts"]
    starts = starts[first[0] : first[-1] + 1]
    entries = slice(starts[0], starts[-1])
    moves = {"action": inputs["action"][first[0] : first[-1]], "first": first - first[0], "starts": starts - starts[0]}
    return rows | moves | {name: inputs[name][entries] for name in ("entry", "value")}


def dense_moves(rules: Rules, inputs: Inputs) -> Inputs:
    """Return a model's inputs of the legal actions, for networks that score actions by their afterstates.

    Args:
        rules: the game's rules.
        inputs: `policy.inputs(decisions)` of the `AfterstatePolicy` or `OnnxPolicy` that the model is.

    Returns:
        `moves` and `lookahead_moves`, the same array [R, M] float32; `decision` and `action` [R] int64. A model reads
        one of the first two.
    """
    after = afterstates_in(inputs)
    starts, entry, value = after.rows
    moves = np.zeros((len(after.action), total(move_fields(rules))), np.float32)
    unscaled = np.rint(NUM_AHEAD * value / move_scale(rules)[entry]) / NUM_AHEAD
    moves[np.repeat(np.arange(len(moves)), np.diff(starts)), entry] = unscaled
    return {**dict.fromkeys(MOVES, moves), "decision": after.decision(), "action": after.action}


# Export


@STEADY
def to_onnx(policy: TrainedPolicy) -> bytes:
    """Export a trained network as an ONNX model with the output `probabilities`.

    Raises:
        ValueError: the extra `onnx` is missing, or the architecture can't be exported.
    """
    try:
        import onnx
    except ImportError:
        raise ValueError(MISSING) from None
    if policy.model:
        return _with_metadata(onnx.load_model_from_string(policy.model), policy.game)
    if policy.architecture == "n-tuple":
        raise ValueError(f"a network of {policy.architecture} can't be written as an ONNX model")
    rules, graph = policy.game.rules, _Graph()
    names = ["observation", "action_mask"]
    seen = graph.node("Concat", *names, axis=1)
    (first, bias), *rest = layers_of(policy.weights)
    x = graph.node("MatMul", seen, graph.constant(first * input_scale(policy.game.input_fields)[:, None]))
    x = graph.node("Add", x, graph.constant(bias))
    if policy.reads_moves:
        moves = MOVES[policy.lookahead]
        names += [moves, "decision", "action"]
        weight = policy.weights["move.weight"].astype(np.float32).T * move_scale(rules)[:, None]
        change = graph.node("MatMul", moves, graph.constant(weight))
        x = graph.node("Add", graph.node("Gather", x, "decision", axis=0), change)
    for weight, bias in rest:
        x = graph.node("Add", graph.node("MatMul", graph.node("Relu", x), graph.constant(weight)), graph.constant(bias))
    legal = graph.node("Greater", "action_mask", graph.constant(np.zeros((), np.float32)))
    low = graph.constant(np.full((), ILLEGAL, np.float32))
    if policy.reads_moves:
        is_baseline = graph.node("Gather", moves, graph.constant(np.array([total(move_fields(rules)) - 1])), axis=1)
        bonus = graph.constant(policy.weights["own"].astype(np.float32))
        x = graph.node("Add", x, graph.node("Mul", is_baseline, bonus))
        scores = graph.node("Squeeze", x, graph.constant(np.array([1])))
        axis = graph.constant(np.array([1]))
        at = graph.node(
            "Concat", graph.node("Unsqueeze", "decision", axis), graph.node("Unsqueeze", "action", axis), axis=1
        )
        x = graph.node("ScatterND", graph.node("Where", legal, low, low), at, scores)
    never = graph.constant(np.full((), -np.inf, np.float32))
    x = graph.node("Softmax", graph.node("Where", legal, x, never), axis=1)
    graph.node("Identity", x, output="probabilities")
    return _with_metadata(graph.to_model(policy.game, names), policy.game)


def inputs_read(model: bytes) -> list[str]:
    """Return the names of the inputs of a model that `to_onnx` made."""
    import onnx

    return [entry.name for entry in _inputs(onnx.load_model_from_string(model).graph)]


def _inputs(graph: Any) -> list[Any]:
    """Return the entries of a graph's inputs; older models list their weights among them."""
    weights = {tensor.name for tensor in graph.initializer}
    return [entry for entry in graph.input if entry.name not in weights]


def _with_metadata(model: Any, game: Game) -> bytes:
    """Return a model with its game and inputs in the metadata."""
    from onnx import helper

    inputs = ",".join(entry.name for entry in _inputs(model.graph))
    about = {"game": game.name, "version": str(game.version), "layout": layout_digest(game.rules), "inputs": inputs}
    helper.set_model_props(model, about)
    return bytes(model.SerializeToString(deterministic=True))


def module_to_onnx(module: Any, game: Game, outputs: Outputs | None = None) -> bytes:
    """Export a torch module, or anything else that `actor_of` takes, as an ONNX model.

    Args:
        module: what `actor_of` takes.
        game: the game.
        outputs: as for `actor_of`; the model's output has this name, so that those who play by it know.

    Raises:
        ValueError: the extra `onnx` is missing, there is no actor, it does not fit the game, or torch can't export it.
    """
    import torch

    check_installed()
    rules, name = game.rules, type(module).__name__
    module = actor_of(module, outputs)
    outputs = outputs_of(module)
    device = device_of(module)
    example = tuple(torch.ones(2, size, device=device) for size in (rules.OBS_SIZE, rules.NUM_ACTIONS))
    with evaluating(module):
        try:
            with torch.no_grad():
                logits = module(*example)
            if not isinstance(logits, torch.Tensor) or logits.shape != example[1].shape:
                got = list(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
                raise ValueError(f"expected {outputs} of shape {list(example[1].shape)}, got {got}")
        except Exception as error:
            shapes = f"observation {list(example[0].shape)} and action_mask {list(example[1].shape)}"
            raise ValueError(f"{name} does not fit {game.name}: with {shapes}: {_cause(error)}") from None
        try:
            return _with_metadata(_export(module, example, outputs), game)
        except Exception as error:  # torch raises many types for modules that it can't translate
            raise ValueError(f"{name} can't be written as an ONNX model: {_cause(error)}") from None


def _export(module: Any, example: tuple[Any, ...], outputs: Outputs) -> Any:
    """Return a module as a model, silently: torch prints progress and pages of graphs, and logs what it lacks."""
    import torch

    rows, logged = torch.export.Dim("n"), logging.root.manager.disable
    silence = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    try:
        with warnings.catch_warnings(), silence[0], silence[1]:
            warnings.simplefilter("ignore")
            logging.disable()
            program = torch.onnx.export(
                module, example, dynamo=True, verbose=False, opset_version=OPSET,
                input_names=["observation", "action_mask"], output_names=[outputs],
                dynamic_shapes=({0: rows}, {0: rows}),
            )  # fmt: skip
            assert program is not None
            return program.model_proto
    finally:
        logging.disable(logged)


def _cause(error: BaseException) -> str:
    """Return the first line of the error that caused this one."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    line = next((line for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {line.strip():.200}" if not isinstance(error, ValueError) else f"{line:.200}"


def check_runtime() -> None:
    """Raise ValueError if what runs models is missing."""
    if not all(importlib.util.find_spec(name) for name in ("onnx", "onnxruntime")):
        raise ValueError(MISSING)


def check_installed() -> None:
    """Raise ValueError if the extra `onnx` is missing."""
    if not all(importlib.util.find_spec(name) for name in ("onnx", "onnxruntime", "onnxscript")):
        raise ValueError(MISSING)


class _Graph:
    """Builds a graph; nodes and constants get unique names."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._numbers = count()

    def node(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add an operator; return the name of its output."""
        from onnx import helper

        output = output or f"{kind.lower()}{next(self._numbers)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def constant(self, array: NDArray[Any]) -> str:
        """Add a constant; return its name."""
        from onnx import numpy_helper

        name = f"constant{next(self._numbers)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def to_model(self, game: Game, inputs: list[str]) -> Any:
        """Return the graph as a model with these inputs and the output `probabilities`, and check it."""
        import onnx
        from onnx import TensorProto, helper

        kinds = {FLOATS: TensorProto.FLOAT, WHOLE: TensorProto.INT64}
        rows = dict.fromkeys(("observation", "action_mask", "probabilities"), "n")

        def entry(name: str, kind: str, shape: list[int | None]) -> Any:
            sizes = [rows.get(name, "R") if size is None else size for size in shape]
            return helper.make_tensor_value_info(name, kinds[kind], sizes)

        sizes = wanted_inputs(game.rules)
        output = entry("probabilities", FLOATS, [None, game.rules.NUM_ACTIONS])
        entries = [entry(name, *sizes[name]) for name in inputs]
        model = helper.make_model(
            helper.make_graph(self.nodes, game.name, entries, [output], self.constants),
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="card_envs",
        )
        onnx.checker.check_model(model, full_check=True)
        return model
