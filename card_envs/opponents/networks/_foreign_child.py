"""Run a foreign ONNX model for `_foreign.py`: requests on standard input, replies on standard output.

Imports none of the package, so that it starts fast.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

STANDARD = ("", "ai.onnx")


def limit_time(seconds: float) -> None:
    """End this process unless this is called again in time; 0: no more."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)  # nobody handles its signal, so that it ends what runs
    elif seconds:
        faulthandler.dump_traceback_later(seconds, exit=True)
    else:
        faulthandler.cancel_dump_traceback_later()


def limit_memory(more: int) -> None:
    """Let this process take no more than these bytes from now on, where the system can limit that."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + more, taken + more))


def read_model(model: bytes, folder: str | None, limit: int) -> Any:
    """Return a model reduced to what runs: standard operators, and weights inside the model. Raises ValueError."""
    try:
        found = onnx.load_model_from_string(model)
    except Exception as error:  # protobuf's exceptions have no common class
        raise ValueError(f"no ONNX model: {error!s:.200}") from None
    versions = [opset.version for opset in found.opset_import if opset.domain in STANDARD]
    if len(versions) != 1 or len(found.opset_import) != 1 or found.functions:
        raise ValueError("expected operators of the standard alone")
    made = onnx.ModelProto(ir_version=found.ir_version, graph=found.graph)
    made.opset_import.add(domain="", version=versions[0])
    for field in ("value_info", "quantization_annotation", "doc_string", "metadata_props"):
        made.graph.ClearField(field)
    left, files = limit, dict[str, bytes]()
    for message in messages(made):
        if isinstance(message, onnx.TensorProto) and (message.external_data or message.data_location):
            left -= fold(message, folder, left, files)
    try:
        onnx.checker.check_model(made)
    except Exception as error:  # onnx's own
        raise ValueError(f"no ONNX model: {error!s:.200}") from None
    return made


def messages(message: Any) -> Iterator[Any]:
    """Yield a protobuf message and all messages within it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in value if isinstance(value, Mapping) or hasattr(value, "add") else [value]:
                yield from messages(part)


def fold(tensor: Any, folder: str | None, limit: int, files: dict[str, bytes]) -> int:
    """Read a tensor's external weights into the model; return their size. Raises ValueError or OSError."""
    said = {entry.key: entry.value for entry in tensor.external_data}
    name = said.get("location", "")
    if folder is None:
        raise ValueError("its weights are in another file: export it as one file, or `import` it with it")
    if not name or name in (".", "..") or {"/", "\\", "\0", ":"} & set(name) or Path(folder, name).is_symlink():
        raise ValueError(f"its weights are in {name!r:.80}: expected a file beside the model")
    if name not in files:
        files[name] = read_beside(Path(folder, name), limit)
    start, length = (int(said.get(key, "0")[:20]) for key in ("offset", "length"))
    tensor.raw_data = files[name][start : start + length if "length" in said else None]
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    if len(tensor.raw_data) > limit:
        raise ValueError(f"its weights are larger: expected at most {limit:,} bytes")
    return len(tensor.raw_data)


def read_beside(path: Path, limit: int) -> bytes:
    """Return a regular file of at most `limit` bytes. Raises ValueError or OSError."""
    with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{path}: not a regular file")
        if found.st_size > limit:
            raise ValueError(f"{path}: {found.st_size:,} bytes: expected at most {limit:,}")
        return file.read(limit)


def declared(entries: Any, weights: set[str]) -> list[tuple[str, str, list[int | str]]]:
    """Return name, type and shape of inputs or outputs; older models list their weights among the inputs."""
    names = {onnx.TensorProto.FLOAT: "tensor(float)", onnx.TensorProto.INT64: "tensor(int64)"}
    found = []
    for entry in entries:
        kind = entry.type.tensor_type
        shape = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in kind.shape.dim]
        if entry.name not in weights:
            found.append((entry.name, names.get(kind.elem_type, f"type {kind.elem_type}"), shape))
    return found


def opened(model: bytes) -> Any:
    """Return a session with one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # which takes more than is needed
    options.log_severity_level = 4
    options.add_session_config_entry("session.load_model_format", "ONNX")  # not guessed from the first bytes
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def main() -> None:
    """Load the model of the first request, and run it for each further one, until there are none."""
    asked, told, seconds = sys.stdin.buffer, os.fdopen(os.dup(1), "wb"), 0.0
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # replies alone go out
    session: Any = None
    for line in iter(asked.readline, b""):
        request, parts = json.loads(line), list[Any]()
        reply: dict[str, Any]
        try:
            if session is None:
                model, seconds = asked.read(request["size"]), request["seconds"]
                limit_time(seconds)
                limit_memory(request["memory"])
                made = read_model(model, request["folder"], request["limit"])
                parts = [made.SerializeToString(deterministic=True)]
                weights = {tensor.name for tensor in made.graph.initializer}
                both = {"inputs": made.graph.input, "outputs": made.graph.output}
                reply = {name: declared(entries, weights) for name, entries in both.items()} | {"size": len(parts[0])}
                session = opened(parts[0])
            else:
                fed = {}
                for name, (kind, shape) in request["inputs"].items():
                    size = int(np.prod(shape)) * np.dtype(kind).itemsize
                    fed[name] = np.frombuffer(asked.read(size), kind).reshape(shape)
                limit_time(seconds)
                answer = session.run([request["output"]], fed)[0]
                parts = [np.ascontiguousarray(answer, np.float32)]
                reply = {"shape": answer.shape}
        except Exception as error:  # whatever it is: it is told, and the model's fault
            reply, parts = {"error": f"{error!s:.1000}" or type(error).__name__}, []
        limit_time(0)
        told.write(json.dumps(reply).encode() + b"\n")
        for part in parts:
            told.write(part)
        told.flush()


if __name__ == "__main__":
    main()
