"""Work that a GPU repeats as one launch.

An update consists of thousands of small kernels, and launching one takes the processor about as long as the card needs
for it. A CUDA graph has the launches of a function with the addresses that they were captured with, and replays them at
once. So a function that is repeated reads and writes tensors that stay where they are, draws from generators that the
graph knows, and takes nothing from Python that changes between two calls.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeAlias

import torch

WARM_UPS = 2  # calls before a function is captured: libraries and Adam allocate memory in the first


class NoGraphs:
    """Calls functions: on a CPU, and where the tensors' sizes are not known before."""

    replays = False  # functions are called each time

    def __init__(self, *generators: torch.Generator) -> None:
        pass

    def repeat(self, name: Hashable, function: Callable[[], None]) -> None:
        """Call a function without arguments or results; those of one name must do the same."""
        function()

    def forget(self) -> None:
        pass


class ReplayedGraphs:
    """Calls a function twice, captures it at its third call, and replays it from then on."""

    replays = True

    def __init__(self, *generators: torch.Generator) -> None:
        """Take the generators, the only ones that functions may draw from."""
        self.generators = generators
        self._calls: dict[Hashable, int] = {}
        self._replays: dict[Hashable, Callable[[], None]] = {}

    def repeat(self, name: Hashable, function: Callable[[], None]) -> None:
        calls = self._calls[name] = self._calls.get(name, 0) + 1
        if calls <= WARM_UPS:
            self.warm_up(function)
            return
        if name not in self._replays:
            self._replays[name] = self.capture(function)
        self._replays[name]()

    def forget(self) -> None:
        """Capture all functions again, since tensors that they used have moved."""
        self._calls.clear()
        self._replays.clear()

    def warm_up(self, function: Callable[[], None]) -> None:
        """Call a function as it will be captured."""
        raise NotImplementedError

    def capture(self, function: Callable[[], None]) -> Callable[[], None]:
        """Return a function that replays this one; capturing does not run it."""
        raise NotImplementedError


class CudaGraphs(ReplayedGraphs):
    """Those of one GPU, torch's current device."""

    def __init__(self, *generators: torch.Generator) -> None:
        super().__init__(*generators)
        # Gradients are added up on the stream of their first use: the one of capturing.
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def warm_up(self, function: Callable[[], None]) -> None:
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            function()
        torch.cuda.current_stream().wait_stream(self._stream)

    def capture(self, function: Callable[[], None]) -> Callable[[], None]:
        graph = torch.cuda.CUDAGraph()
        for generator in self.generators:
            graph.register_generator_state(generator)
        try:
            # Another thread, such as a logger's, may use the card meanwhile.
            with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
                function()
        except RuntimeError as error:
            raise ValueError(f"no CUDA graph could be captured; graphs = false does without: {error}") from error
        return graph.replay


Graphs: TypeAlias = NoGraphs | ReplayedGraphs
