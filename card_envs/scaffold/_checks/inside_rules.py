"""Constructs not allowed in rules, and undefined names: found in the source, before Numba sees it."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType

import numpy as np

from card_envs.compiling._rules import INTERPRETED
from card_envs.game import Game
from card_envs.scaffold._checks.sources import Finding, Source, Sources, did_you_mean, module_of

COMPILED = ("rules", "bot")
TAKE_STATES = (*COMPILED, "view")
FORBIDDEN: dict[type[ast.AST], str] = {
    ast.Raise: "`raise`",
    ast.Assert: "`assert`",
    ast.Try: "`try`",
    ast.With: "`with`",
    ast.List: "a list",
    ast.Set: "a set",
    ast.Dict: "a dict",
    ast.ListComp: "a list",
    ast.SetComp: "a set",
    ast.DictComp: "a dict",
    ast.GeneratorExp: "a generator",
    ast.Yield: "`yield`",
    ast.JoinedStr: "a text",
    ast.Lambda: "`lambda`",
    ast.FunctionDef: "a function within it",
    ast.ClassDef: "a class",
    ast.Import: "`import`",
    ast.ImportFrom: "`import`",
    ast.Global: "`global`",
}
OBJECTS = {"list", "dict", "set", "str", "sorted", "print", "open", "sum", "any", "all", "map", "filter", "isinstance"}


def check_sources(game: Game, sources: Sources) -> Iterator[Finding]:
    """Yield faults in the source of rules and bots, and unknown fields of a State in views."""
    fields = getattr(getattr(module_of(game, "rules"), "STATE", None), "names", None) or ()
    for name in TAKE_STATES:
        source, module = sources.files[name], module_of(game, name)
        for function in source.functions.values():
            compiled = name in COMPILED and is_rule(function)
            reader = _Reader(function, module, fields, compiled)
            for line, text in sorted(set(reader.faults())):
                yield Finding(source.file, line, f"{function.name}: {text}")
    yield from _undecorated(game, sources)


def is_rule(function: ast.FunctionDef) -> bool:
    """Return whether it has the decorator `@rule`."""
    return any(ast.unparse(decorator).split(".")[-1] == "rule" for decorator in function.decorator_list)


def holds_state(argument: ast.arg) -> bool:
    """Return whether a parameter is a State, by its type or its name."""
    return ast.unparse(argument.annotation) == "State" if argument.annotation else argument.arg == "state"


def _undecorated(game: Game, sources: Sources) -> Iterator[Finding]:
    """Yield functions of the contract without the decorator."""
    from card_envs.scaffold._checks.declared import PARTS, functions_of

    for name in COMPILED:
        source: Source = sources.files[name]
        listed = functions_of(PARTS[name])
        for function in source.functions.values():
            if function.name in listed and function.name != "new_state" and not is_rule(function):
                yield source.finding(function.name, f"{function.name}: expected the decorator @rule")


class _Reader:
    """A function: the parameters that hold a State, and the names that it looks up."""

    def __init__(self, function: ast.FunctionDef, module: ModuleType, fields: Iterable[str], compiled: bool) -> None:
        self.function = function
        self.names = vars(module)
        self.compiled = compiled
        self.known = set(fields) if compiled else {*fields, *dir(np.record)}
        arguments = function.args.args
        stored = (node for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        self.local = {argument.arg for argument in arguments} | {node.id for node in stored}
        self.states = {argument.arg for argument in arguments if holds_state(argument)} if fields else set()

    def faults(self) -> Iterator[tuple[int, str]]:
        """Yield line and text of each fault."""
        body = self.function.body
        documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
        for statement in body[1:] if documented else body:
            for node in ast.walk(statement):
                line = getattr(node, "lineno", self.function.lineno)
                for text in self._of_node(node):
                    yield line, text

    def _of_node(self, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield from self._of_attribute(node.value.id, node.attr)
        if not self.compiled:
            return
        if type(node) in FORBIDDEN or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            what = FORBIDDEN.get(type(node), "a text")
            yield f"{what} in a rule: rules neither raise nor allocate, and use only numbers, States and arrays"
        if isinstance(node, ast.Name):
            yield from self._of_name(node.id)
        if isinstance(node, ast.Call):
            yield from self._of_call(node)

    def _of_attribute(self, owner: str, attribute: str) -> Iterator[str]:
        if owner in self.states:
            if attribute not in self.known:
                yield f"State has no field {attribute!r}{did_you_mean(attribute, self.known)}"
        elif owner not in self.local and owner in self.names:
            there = self.names[owner]
            if (self.compiled or isinstance(there, ModuleType)) and not hasattr(there, attribute):
                known = getattr(there, "_fields", None) or dir(there)
                yield f"{owner} has no {attribute!r}{did_you_mean(attribute, known)}"

    def _of_name(self, name: str) -> Iterator[str]:
        if name not in self.local and name not in self.names and not hasattr(builtins, name):
            yield f"{name} is not defined{did_you_mean(name, [*self.names, *self.local])}"

    def _of_call(self, node: ast.Call) -> Iterator[str]:
        called = node.func
        if isinstance(called, ast.Name) and called.id not in self.local:
            value = self.names.get(called.id)
            if isinstance(value, FunctionType) and not INTERPRETED:
                yield f"calls {called.id}, which is not compiled: it lacks the decorator @rule"
            if value is None and called.id in OBJECTS:
                yield f"`{called.id}` in a rule: rules neither raise nor allocate, and use no Python objects"
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            if self.names.get(called.value.id) is np and called.value.id not in self.local:
                value = getattr(np, called.attr, None)
                if not isinstance(value, (type, np.ufunc)):
                    yield f"np.{called.attr} in a rule: rules allocate no arrays"
