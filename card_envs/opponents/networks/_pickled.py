"""Pickles of torch modules with parts that torch can't pickle: scripted, traced and exported ones."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import torch
from torch import fx, nn

GUARDS = "_guards_fn"  # checks of the inputs, which refer to functions that can't be pickled


class _Pickler(pickle.Pickler):
    def reducer_override(self, part: Any) -> Any:
        if isinstance(part, torch.jit.ScriptModule):
            file = io.BytesIO()
            torch.jit.save(part, file)
            file.seek(0)
            return torch.jit.load, (file,)
        if isinstance(part, fx.GraphModule):
            return _without_types(part).__reduce__()
        return NotImplemented


def pickle_module(module: nn.Module) -> bytes:
    """Return a module as a pickle for `pickle.loads`. Raises what pickling does for parts of other kinds."""
    file = io.BytesIO()
    _Pickler(file).dump(module)
    return file.getvalue()


def _without_types(module: Any) -> fx.GraphModule:
    """Return a graph with the same weights, without types as text; an exported one for tensors, without its checks."""
    graph = copy.deepcopy(module.graph)
    if is_exported := any(kind.__name__ == "_StatefulGraphModule" for kind in type(module).__mro__):
        graph.set_codegen(fx.graph.CodeGen())
        graph._tracer_cls = None
    for node in graph.nodes:
        node.type = None
        if is_exported and node.op == "call_module" and node.target == GUARDS:
            graph.erase_node(node)
        elif is_exported and node.op == "output" and module._out_spec.is_leaf():
            node.args = (node.args[0][0],)
    return fx.GraphModule(module, graph)
