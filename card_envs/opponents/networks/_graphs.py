"""Validation of untrusted ONNX graphs before anything runs: their operators, and the cost of running them.

Only operators whose work follows from the sizes of their inputs and outputs are accepted. The size of every value is
inferred for a given number of rows, node by node, and the cost of each node is added to the total before the next one
is examined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from card_envs._files import read_file, short_repr

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto, TypeProto

MOST_PARTS = 1 << 18  # fields of all protobuf messages of the file
MOST_NODES = 4096
MOST_BYTES = 1 << 30  # total size of the values of one run
MOST_WORK = 1 << 35  # multiply-adds of one run: a few seconds on one core
AN_ELEMENT = 16  # multiply-adds per entry read or written, by time
SLOW = 16  # cost of a multiply-add in other types than float32, relative to float32
SMALL = 1024  # most entries of a constant on which sizes may depend
STANDARD = ("", "ai.onnx")
ENDLESS = {"Loop", "Scan"}  # operators that may not terminate
PLAIN = frozenset(
    """Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh BatchNormalization BitShift BitwiseAnd BitwiseNot
    BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Concat Constant ConstantOfShape Cos Cosh CumSum DepthToSpace
    DequantizeLinear Div Dropout Elu Equal Erf Exp Expand EyeLike Flatten Floor Gather GatherElements GatherND Gelu
    GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual GroupNormalization HardSigmoid HardSwish Hardmax Identity
    InstanceNormalization IsInf IsNaN LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization Max
    Mean MeanVarianceNormalization Min Mish Mod Mul Neg Not OneHot Or PRelu Pad Pow QuantizeLinear Range Reciprocal
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare
    Relu Reshape RMSNormalization Round ScatterElements ScatterND Selu Shape Shrink Sigmoid Sign Sin Sinh Size Slice
    Softmax Softplus Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Swish Tan Tanh ThresholdedRelu Tile TopK Transpose
    Trilu Unsqueeze Where Xor""".split()  # noqa: SIM905 (a hundred quoted words are no better to read)
)  # work proportional to the entries that they read and write
Sizes = list[int]


# Structure of a file


def read_model(model: bytes, folder: Path | None = None, limit: int = 0) -> ModelProto:
    """Return a model reduced to what runs: standard operators, and weights inside the model.

    Args:
        model: content of the file.
        folder: where external weights may be; None: they are refused.
        limit: of the total size of external weights, in bytes.

    Raises:
        ValueError: not a model, or it has other parts.
        OSError: weights can't be read.
    """
    import onnx

    _check_parts(model, onnx.ModelProto.DESCRIPTOR)
    try:
        found = onnx.load_model_from_string(model)
    except Exception as error:  # protobuf's exceptions have no common class
        raise ValueError(f"no ONNX model: {short_repr(str(error))}") from None
    if len(found.graph.node) > MOST_NODES:
        raise ValueError(f"ONNX model: {len(found.graph.node):,} nodes: expected at most {MOST_NODES:,}")
    versions = [opset.version for opset in found.opset_import if opset.domain in STANDARD]
    if len(versions) != 1 or len(found.opset_import) != 1 or found.functions:
        raise ValueError("ONNX model: expected operators of the standard alone")
    made = onnx.ModelProto(ir_version=found.ir_version, graph=found.graph)
    made.opset_import.add(domain="", version=versions[0])
    for field in ("value_info", "quantization_annotation", "doc_string", "metadata_props"):
        made.graph.ClearField(field)  # annotations are untrusted: sizes are inferred instead
    folded, read = 0, dict[str, bytes]()
    for message in messages(made):
        if isinstance(message, onnx.TensorProto):
            folded += _fold(message, folder, limit, read)
            if folded > limit:
                raise ValueError(f"ONNX model: its weights are more than {limit:,} bytes")
    if any(isinstance(message, onnx.SparseTensorProto) for message in messages(made)):
        raise ValueError("ONNX model: a sparse tensor is refused: export it as a dense one")
    for node in made.graph.node:
        _check_node(node)
    try:
        onnx.checker.check_model(made)
    except Exception as error:  # onnx's own
        raise ValueError(f"no ONNX model: {short_repr(str(error))}") from None
    return made


def messages(message: Any) -> Iterator[Any]:
    """Yield a protobuf message and all messages within it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in value if isinstance(value, Mapping) or hasattr(value, "add") else [value]:
                yield from messages(part)


def _check_parts(data: bytes, descriptor: Any) -> None:
    """Raise ValueError for a file with too many fields: parsing them would fill memory, however small they are."""
    left, waiting = MOST_PARTS, [(0, len(data), descriptor)]
    while waiting:
        at, end, kind = waiting.pop()
        while at < end:
            left -= 1
            if left < 0:
                raise ValueError(f"ONNX model: made of more than {MOST_PARTS:,} parts")
            tag, at = _varint(data, at)
            wire, size = tag & 7, 0
            if wire == 0:
                _, at = _varint(data, at)
            elif wire == 2:
                size, at = _varint(data, at)
            elif wire in (1, 5):
                size = {1: 8, 5: 4}[wire]
            else:
                return  # unknown field: the parser reports it
            field = kind.fields_by_number.get(tag >> 3)
            if wire == 2 and field is not None and field.message_type is not None:
                waiting.append((at, min(at + size, end), field.message_type))
            at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a protobuf varint and the position after it."""
    number = shift = 0
    while at < len(data) and shift < 70:
        number |= (data[at] & 127) << shift
        at += 1
        shift += 7
        if data[at - 1] < 128:
            break
    return number, at


def _fold(tensor: TensorProto, folder: Path | None, limit: int, read: dict[str, bytes]) -> int:
    """Read a tensor's external weights into the model; return their size in bytes.

    Raises ValueError where there is no folder that they may be in, or they are no plain file there.
    """
    if not tensor.external_data and tensor.data_location != tensor.EXTERNAL:
        return 0
    said = {entry.key: entry.value for entry in tensor.external_data}
    name = said.get("location", "")
    if folder is None:
        raise ValueError("ONNX model: its weights are in another file: export it as one file, or `import` it with it")
    if not name or name in (".", "..") or {"/", "\\", "\0", ":"} & set(name) or (folder / name).is_symlink():
        raise ValueError(f"ONNX model: its weights are in {name!r:.80}: expected a file beside the model")
    offset, length = (_number(said, key) for key in ("offset", "length"))
    if name not in read:
        read[name] = read_file(folder / name, limit - sum(map(len, read.values())))
    data = read[name][offset : offset + length if "length" in said else None]
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    tensor.raw_data = data
    return len(data)


def _number(said: Mapping[str, str], key: str) -> int:
    text = said.get(key, "0")
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ValueError(f"ONNX model: {key} of its weights: expected a number, got {text!r:.80}")
    return int(text)


def _check_node(node: NodeProto) -> None:
    kind = node.op_type
    if node.domain not in STANDARD:
        raise ValueError("ONNX model: expected operators of the standard alone")
    if kind in ENDLESS:
        raise ValueError(f"ONNX model: operator {kind:.80} is refused: it may not terminate")
    if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
        raise ValueError(f"ONNX model: operator {kind:.80} is refused: it contains a graph")
    if kind not in PLAIN and kind not in PRODUCTS:
        raise ValueError(f"ONNX model: operator {kind:.80} is refused: its cost can't be determined in advance")


# Cost of a graph


def check_cost(model: ModelProto, inputs: Mapping[str, Sizes]) -> dict[str, Sizes]:
    """Return the sizes of a checked model's outputs for inputs of these sizes.

    Raises:
        ValueError: a run would take too much memory or time, or its cost can't be determined.
    """
    import onnx

    graph, version = model.graph, model.opset_import[0].version
    types: dict[str, TypeProto] = {}
    known: dict[str, TensorProto] = {}  # values of small constants
    size, work = 0, 0
    for tensor in graph.initializer:
        if min(tensor.dims, default=0) < 0:
            raise ValueError(f"ONNX model: {tensor.name!r:.80}: negative sizes")
        types[tensor.name] = onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        if math.prod(tensor.dims) <= SMALL:
            known[tensor.name] = tensor
    for entry in graph.input:
        if entry.name in inputs:
            kind = entry.type.tensor_type.elem_type
            types[entry.name] = onnx.helper.make_tensor_type_proto(kind, inputs[entry.name])
    size = sum(_count(kind) * _width(kind) for kind in types.values())
    for node in graph.node:
        outputs = _infer(node, version, types, known)
        given = [types[name] for name in node.input if name]
        made = list(outputs.values())
        here = PRODUCTS[node.op_type](node, given, made) if node.op_type in PRODUCTS else (0, 0)
        size += sum(_count(kind) * _width(kind) for kind in made) + 4 * here[1]
        slow = 1 if all(kind.tensor_type.elem_type == onnx.TensorProto.FLOAT for kind in made) else SLOW
        work += here[0] * slow + AN_ELEMENT * sum(_count(kind) for kind in [*given, *made])
        if size > MOST_BYTES:
            raise ValueError(f"ONNX model: {_named(node)}: its values take more than {MOST_BYTES:,} bytes")
        if work > MOST_WORK:
            raise ValueError(f"ONNX model: {_named(node)}: it takes more than {MOST_WORK:,} multiply-adds")
        types |= outputs
        if all(name in known for name in node.input if name) or node.op_type in ("Shape", "Size"):
            known |= _evaluated(node, version, types, known)
    return {entry.name: _sizes(types[entry.name]) for entry in graph.output if entry.name in types}


def _infer(
    node: NodeProto, version: int, types: Mapping[str, TypeProto], known: Mapping[str, TensorProto]
) -> dict[str, TypeProto]:
    """Return the types of a node's outputs, with all sizes. Raises ValueError if one can't be determined."""
    import onnx

    try:
        schema = onnx.defs.get_schema(node.op_type, version, "")
        given = {name: types[name] for name in node.input if name}
        data = {name: known[name] for name in given if name in known}
        opset = onnx.helper.make_operatorsetid("", version)
        found = onnx.shape_inference.infer_node_outputs(schema, node, given, data, opset_imports=[opset])
    except Exception as error:  # onnx's own
        raise ValueError(f"ONNX model: {_named(node)}: {short_repr(str(error))}") from None
    for name in filter(None, node.output):
        kind = found[name].tensor_type if name in found else None
        fixed = kind is not None and kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim)
        if not fixed or kind is None or kind.elem_type in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING):
            raise ValueError(f"ONNX model: {_named(node)}: the size of {name!r:.80} can't be determined from the model")
        if any(dim.dim_value < 0 for dim in kind.shape.dim):
            raise ValueError(f"ONNX model: {_named(node)}: the size of {name!r:.80} is negative")
    return {name: found[name] for name in node.output if name}


def _evaluated(
    node: NodeProto, version: int, types: Mapping[str, TypeProto], known: Mapping[str, TensorProto]
) -> dict[str, TensorProto]:
    """Compute the outputs of a node with constant inputs, if they are small: sizes may depend on them."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    if sum(_count(types[name]) for name in node.output if name) > SMALL:
        return {}
    fed: dict[str, NDArray[Any]] = {}
    entries = [onnx.helper.make_value_info(name, types[name]) for name in dict.fromkeys(node.input) if name]
    names = [name for name in node.output if name]
    outputs = [onnx.helper.make_value_info(name, types[name]) for name in names]
    graph = onnx.helper.make_graph([node], "constants", entries, outputs)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_operatorsetid("", version)])
    try:
        if node.op_type in ("Shape", "Size"):
            fed = {node.input[0]: np.broadcast_to(np.float32(0), _sizes(types[node.input[0]]))}
        else:
            fed = {name: onnx.numpy_helper.to_array(known[name]) for name in node.input if name}
        with np.errstate(all="ignore"):
            found = ReferenceEvaluator(model).run(None, fed)
        return {name: onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in zip(names, found)}
    except Exception:  # unknown then: sizes that depend on it are refused
        return {}


def _sizes(kind: TypeProto) -> Sizes:
    return [dim.dim_value for dim in kind.tensor_type.shape.dim]


def _count(kind: TypeProto) -> int:
    return math.prod(_sizes(kind))


def _width(kind: TypeProto) -> int:
    from onnx import helper

    dtype: NDArray[Any] = np.zeros((), helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type))
    return dtype.itemsize


def _named(node: NodeProto) -> str:
    return f"node {node.name or node.output[0]!r:.80} ({node.op_type})" if node.output else node.op_type


def _numbers(node: NodeProto, name: str) -> list[int]:
    return [number for attribute in node.attribute if attribute.name == name for number in attribute.ints]


# Operators that multiply: their multiply-adds, and the entries that they need besides their outputs


def _matrix_product(node: NodeProto, given: list[TypeProto], made: list[TypeProto]) -> tuple[int, int]:
    """Return the cost of a matrix product: each output entry is a sum over the inner axis.

    That is the last or, transposed, the second last axis of the first operand.
    """
    shared = max(_sizes(given[0])[-2:], default=1) if node.op_type == "Gemm" else (_sizes(given[0]) or [1])[-1]
    return _count(made[0]) * shared, 0


def _convolution(node: NodeProto, given: list[TypeProto], made: list[TypeProto]) -> tuple[int, int]:
    weights = _sizes(given[1])
    a_channel = _count(given[1]) // max(weights[0], 1)
    source = given[0] if node.op_type == "ConvTranspose" else made[0]
    positions = _count(source) // max(_sizes(source)[1], 1)
    groups = next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)
    return _count(source) * a_channel, positions * a_channel * max(groups, 1)


def _pool(node: NodeProto, given: list[TypeProto], made: list[TypeProto]) -> tuple[int, int]:
    return AN_ELEMENT * _count(made[0]) * math.prod(max(number, 1) for number in _numbers(node, "kernel_shape")), 0


def _recurrent(node: NodeProto, given: list[TypeProto], made: list[TypeProto]) -> tuple[int, int]:
    """Return the cost of a recurrent layer: every row at every step uses all weights."""
    steps, rows = _sizes(given[0])[:2]
    weights = _sizes(given[1])
    return steps * rows * (_count(given[1]) + _count(given[2])), 2 * steps * rows * math.prod(weights[:2])


def _einstein_sum(node: NodeProto, given: list[TypeProto], made: list[TypeProto]) -> tuple[int, int]:
    equation = next((bytes(one.s).decode("ascii") for one in node.attribute if one.name == "equation"), "")
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    letters = [len(term) == len(_sizes(kind)) and term.isalpha() for term, kind in zip(terms, given)]
    if len(terms) > 2 or len(terms) != len(given) or not all(letters):
        raise ValueError(f"ONNX model: {_named(node)}: expected a letter for each axis of one or two operands")
    sizes: dict[str, int] = {}
    for letter, size in zip("".join(terms), [size for kind in given for size in _sizes(kind)]):
        sizes[letter] = max(size, sizes.get(letter, 1))
    return math.prod(sizes.values()), 0


PRODUCTS: dict[str, Callable[[NodeProto, list[TypeProto], list[TypeProto]], tuple[int, int]]] = {
    "MatMul": _matrix_product,
    "Gemm": _matrix_product,
    "Conv": _convolution,
    "ConvTranspose": _convolution,
    "AveragePool": _pool,
    "MaxPool": _pool,
    "GRU": _recurrent,
    "LSTM": _recurrent,
    "RNN": _recurrent,
    "Einsum": _einstein_sum,
}
