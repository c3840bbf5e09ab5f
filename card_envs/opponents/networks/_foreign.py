"""A foreign ONNX model in a process of its own: nothing of it is parsed or run in this one.

The child (`_foreign_child.py`) limits the time of each call before it looks at the model, and on Linux its memory. A
model that goes beyond ends its own process alone; here that is a ValueError. Requests and replies are a line of JSON
and the bytes of arrays; nothing that the child says is trusted beyond its form and size.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import weakref
from collections.abc import Mapping
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHILD = Path(__file__).with_name("_foreign_child.py")
MEMORY = 1 << 30  # bytes that a model may take, its weights included; where the system counts them
SECONDS = 10.0  # of a call
LINE = 1 << 16  # bytes of JSON in a reply

Entry = tuple[str, str, list[int | str]]  # name, type and shape of an input or output


class ForeignModel:
    """An ONNX model that runs elsewhere. Calls of several threads wait for each other; a forked process has its own.

    Attributes:
        model: the model with its weights inside, and without what does not run.
        inputs, outputs: what the model declares.
    """

    def __init__(self, model: bytes, folder: Path | None = None, limit: int = 0, seconds: float = SECONDS) -> None:
        """Load a model.

        Args:
            model: content of the file.
            folder: where external weights may be; None: they are refused.
            limit: of the total size of external weights, in bytes.
            seconds: that loading it, or a run, may take.

        Raises:
            ValueError: not a model, or it takes too much memory or time, or its weights can't be read.
        """
        self.model = model
        self._begin = {"folder": str(folder) if folder else None, "limit": limit, "seconds": seconds, "memory": MEMORY}
        self.inputs: list[Entry]
        self.outputs: list[Entry]
        self._lock, self._runs = RLock(), False
        _MODELS.add(self)
        self._start(limit + len(model))

    def run(self, output: str, inputs: Mapping[str, NDArray[Any]], shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Return an output. Raises ValueError if it has another shape, or the model fails, or takes too much."""
        with self._lock:
            if not self._runs:
                self._start(len(self.model))
            kinds = {name: (array.dtype.str, array.shape) for name, array in inputs.items()}
            reply = self._ask({"output": output, "inputs": kinds}, *map(np.ascontiguousarray, inputs.values()))
            if reply["shape"] != [*shape]:
                self._stop()
                raise ValueError(f"ONNX model: output {output}: expected the shape {[*shape]}, got {reply['shape']}")
            return np.frombuffer(self._read(4 * int(np.prod(shape))), np.float32).reshape(shape)

    def _start(self, most: int) -> None:
        """Start the child and load the model there, which is made again of at most `most` bytes."""
        command, path = [sys.executable, "-P", str(CHILD)], os.pathsep.join(filter(None, sys.path))
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path}, start_new_session=True,  # Ctrl-C is not for the child
            )  # fmt: skip
        except OSError as error:
            raise ValueError(f"ONNX model: no process can be started for it: {error.strerror}") from None
        self._finalizer = weakref.finalize(self, _end, self._process, os.getpid())
        try:
            reply = self._ask({**self._begin, "size": len(self.model)}, self.model)
        except ValueError:
            self._stop()
            raise
        self.inputs, self.outputs = reply["inputs"], reply["outputs"]
        self.model = self._read(min(int(reply["size"]), most + LINE))
        self._begin["folder"] = None
        self._runs = True

    def forget(self) -> None:
        """Leave the child to the process that this one was forked from."""
        self._lock, self._runs = RLock(), False

    def _ask(self, request: Mapping[str, Any], *parts: Any) -> Any:
        """Return the reply to a request. Raises ValueError, and ends the child if it is no longer of use."""
        try:
            assert self._process.stdin and self._process.stdout
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            for part in parts:
                self._process.stdin.write(part)
            self._process.stdin.flush()
            reply = json.loads(self._process.stdout.readline(LINE))
        except (OSError, ValueError):
            self._stop()
            most = f"{MEMORY >> 20:,} MiB or {self._begin['seconds']:g} s"
            raise ValueError(f"ONNX model: it takes more than {most}, or crashes") from None
        if "error" in reply:
            raise ValueError(f"ONNX model: {reply['error']}")
        return reply

    def _stop(self) -> None:
        """End the child; the next run starts another one."""
        self._finalizer()
        self._runs = False

    def _read(self, size: int) -> bytes:
        assert self._process.stdout
        return self._process.stdout.read(size)


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    """End a child of the process `owner`, if that is this one."""
    if owner == os.getpid():
        process.kill()
        process.communicate()


def load_foreign(model: bytes) -> ForeignModel:
    """Return the model, loaded once as long as somebody uses it. Raises ValueError: see `ForeignModel`."""
    found = _LOADED.get(model) or ForeignModel(model)
    _LOADED[found.model] = found
    return found


def _forget_all() -> None:
    for model in list(_MODELS):
        model.forget()


_LOADED: weakref.WeakValueDictionary[bytes, ForeignModel] = weakref.WeakValueDictionary()
_MODELS: weakref.WeakSet[ForeignModel] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
