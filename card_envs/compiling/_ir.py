"""Loops to LLVM's language: Numba's front end, and an entry that takes a loop's arguments from a row of slots.

Nothing is optimized for this machine on the way: what Numba would do to each function is switched off, so that what
comes out knows no processor yet. A process that did this can compile nothing else, and one that has compiled for itself
can't do it: Numba would link what it has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.compiler_lock import global_compiler_lock
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import as_dtype

from card_envs.compiling import _numba

SLOT = ir.IntType(64)
STATUS = ir.IntType(32)
Call: TypeAlias = Callable[[list[Any]], tuple[Any, Any]]
# What an error would say: pickled, with paths of this machine. An entry returns a number instead.
PICKLES = re.compile(r'(@\.const\.pickledata\.\S+ = \w+ constant \[\d+ x i8\] )c".*"')


class Entry(NamedTuple):
    """A loop in LLVM's language.

    Attributes:
        symbol: the name of its entry, `int32 symbol(uint64 *slots)`: 0, or Numba's number of an error.
        arguments: how they are put into slots, by kind (`compiling/_library.py`).
        returns: what comes back in the first slots, likewise.
        text: the module.
    """

    symbol: str
    arguments: list[Any]
    returns: list[Any]
    text: str


@global_compiler_lock
def compile_entry(function: Any, signature: tuple[Any, ...], symbol: str) -> Entry:
    """Return a loop whose helpers are a game's own (see `compiling/_specialize.py`) for these types of arguments."""

    def body(context: Any, builder: Any, call: Call, returns: Any) -> None:
        slots = Slots(context, builder, builder.function.args[0])
        status, value = call([slots.argument(kind) for kind in signature])
        with builder.if_then(status.is_ok):
            Slots(context, builder, builder.function.args[0]).put(returns, value)
        builder.ret(status.code)

    text, returns = _with_entry(function, signature, symbol, [SLOT.as_pointer()], body)
    arguments = list(map(manifest_kind, signature))
    return Entry(symbol, arguments, manifest_kind(returns), link_modules([text], [symbol]))


def _with_entry(
    function: Any, signature: tuple[Any, ...], symbol: str, parameters: list[Any], body: Callable[..., None],
    aliases: Sequence[str] = (),
) -> tuple[str, Any]:  # fmt: skip
    """Return a module with a loop and `int32 symbol(parameters…)`, for `link_modules`, and the loop's result type.

    `body(context, builder, call, returns)` writes the entry; `call(arguments)` calls the loop and returns status and
    value. `aliases` are more names for the entry.
    """
    _numba.keep_unoptimized()
    linked = _numba._Linked(function, {}, _numba.IN_RULES, _numba._ForLinking)
    linked.compile(signature)
    (result,) = linked.overloads.values()
    library, context = result.library, result.target_context
    module = library._codegen._create_empty_module(f"entry.{symbol}")
    entry = ir.Function(module, ir.FunctionType(STATUS, parameters), symbol)
    builder = ir.IRBuilder(entry.append_basic_block())
    loop = context.declare_function(module, result.fndesc)
    kinds, returns = result.fndesc.argtypes, result.fndesc.restype

    def call(arguments: list[Any]) -> tuple[Any, Any]:
        status, value = context.call_conv.call_function(builder, loop, returns, kinds, arguments)
        return status, value

    with context.push_code_library(library):
        body(context, builder, call, returns)
    for alias in aliases:
        other = ir.Function(module, entry.function_type, alias)
        builder = ir.IRBuilder(other.append_basic_block())
        builder.ret(builder.call(entry, other.args))
    loop.linkage = "external"
    library._ensure_finalized()  # links what it calls
    whole = library._final_module.clone()
    whole.link_in(llvm.parse_assembly(cgutils.normalize_ir_text(str(module))))
    return PICKLES.sub(r"\1zeroinitializer", str(whole)), returns


class Slots:
    """The slots of an entry: arguments are read from them, or results written into them, from the first one on."""

    def __init__(self, context: Any, builder: Any, slots: Any) -> None:
        self.context = context
        self.builder = builder
        self.slots = slots
        self.number = 0

    def place(self) -> Any:
        """Return a pointer to the next slot."""
        self.number += 1
        return self.builder.gep(self.slots, [ir.Constant(ir.IntType(32), self.number - 1)])

    def argument(self, kind: Any) -> Any:
        """Return a value of a type, made from the next slots."""
        if isinstance(kind, types.Array):
            return self._array(kind)
        if isinstance(kind, types.BaseTuple):
            return self.context.make_tuple(self.builder, kind, [self.argument(part) for part in kind])
        if isinstance(kind, types.NoneType):
            return self.context.get_dummy_value()
        word = self.builder.load(self.place())
        if isinstance(kind, types.Float):
            double = self.builder.bitcast(word, ir.DoubleType())
            return self.context.cast(self.builder, double, types.float64, kind)
        return self.context.cast(self.builder, word, types.int64, kind)

    def _array(self, kind: Any) -> Any:
        data = self.builder.inttoptr(self.builder.load(self.place()), pointer_to(self.context, kind))
        return array_at(
            self.context, self.builder, kind, data, [self.builder.load(self.place()) for _ in range(kind.ndim)]
        )

    def put(self, kind: Any, value: Any) -> None:
        """Write a value into the next slots."""
        if isinstance(kind, types.BaseTuple):
            for k, part in enumerate(kind):
                self.put(part, self.builder.extract_value(value, k))
        elif isinstance(kind, types.Float):
            double = self.context.cast(self.builder, value, kind, types.float64)
            self.builder.store(self.builder.bitcast(double, SLOT), self.place())
        elif not isinstance(kind, types.NoneType):
            self.builder.store(self.context.cast(self.builder, value, kind, types.int64), self.place())


def pointer_to(context: Any, kind: Any) -> Any:
    """Return LLVM's type of a pointer to the entries of an array."""
    return context.get_data_type(kind.dtype).as_pointer()


def array_at(context: Any, builder: Any, kind: Any, data: Any, shape: list[Any]) -> Any:
    """Return a contiguous array in memory that it does not own."""
    itemsize = ir.Constant(SLOT, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides = [itemsize]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    array = make_array(kind)(context, builder)
    populate_array(array, data, shape, strides, itemsize, None)
    return array._getvalue()


def manifest_kind(kind: Any) -> list[Any]:
    """Return the kind of an argument or result as in a manifest: see `compiling/_library.py`.

    Raises:
        TypeError: an entry can't take it.
    """
    if isinstance(kind, types.Array) and kind.layout == "C" and kind.aligned:
        return ["array", describe_dtype(as_dtype(kind.dtype)), kind.ndim, kind.mutable]
    if isinstance(kind, types.BaseTuple):
        return ["tuple", *map(manifest_kind, kind)]
    if isinstance(kind, types.NoneType):
        return ["none"]
    if isinstance(kind, types.Boolean):
        return ["bool"]
    if isinstance(kind, (types.Integer, types.Float)):
        return [str(kind)]
    raise TypeError(f"entries take arrays in one piece, numbers, None and tuples of these, not {kind}")


def describe_dtype(dtype: np.dtype[Any]) -> Any:
    """Return a dtype as data: its name, or of a record its size and fields."""
    if dtype.fields is None:
        return dtype.str
    fields = [
        [name, describe_dtype(field[0].base), list(field[0].shape), field[1]] for name, field in dtype.fields.items()
    ]
    return [dtype.itemsize, fields]


def link_modules(texts: Sequence[str], entries: Collection[str]) -> str:
    """Return modules as one, with shared definitions merged; only the entries are visible from outside."""
    whole, *others = map(llvm.parse_assembly, texts)
    for module in (whole, *others):
        for value in _inner_values(module, entries):
            if value.linkage not in (llvm.Linkage.internal, llvm.Linkage.private):  # those may differ, of one name
                value.linkage = "linkonce_odr"
    for module in others:
        whole.link_in(module)
    for value in _inner_values(whole, entries):
        value.linkage = "internal"
    return str(whole)


def _inner_values(module: Any, entries: Collection[str]) -> list[Any]:
    """Return the functions and global variables that a module defines, but for entries."""
    values = (*module.functions, *module.global_variables)
    return [value for value in values if not value.is_declaration and value.name not in entries]
