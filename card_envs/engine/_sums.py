"""Weighted sums of weight rows, kept in registers: the hot loop of networks with sparse inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.cpu import CPUContext
from numba.extending import intrinsic
from numpy.typing import NDArray

from card_envs.engine.jit import INTERPRETED, checks_bounds

Floats = NDArray[np.float32]
WIDE, NARROW = 64, 16  # columns per tile; 64 fill four to sixteen registers


def add_rows(weights: Floats, entry: NDArray[np.int32], value: Floats, first: int, last: int, sums: Floats) -> None:
    """Add value[k] * weights[entry[k]] to the sums, for first <= k < last.

    Each column is summed in the order of k whatever the vector width and the processor, so that rounding never differs.

    Args:
        weights: [D, H].
        entry: row numbers.
        value: the factor of each row.
        first, last: range of k.
        sums: [H].
    """
    width = sums.shape[0]
    column = 0
    while column + WIDE <= width:
        add_tile(weights, entry, value, first, last, sums, column, WIDE)
        column += WIDE
    while column + NARROW <= width:
        add_tile(weights, entry, value, first, last, sums, column, NARROW)
        column += NARROW
    _add_tile(weights, entry, value, first, last, sums, column, width - column)


def _add_tile(
    weights: Floats, entry: NDArray[np.int32], value: Floats, first: int, last: int, sums: Floats, column: int,
    size: int,
) -> None:  # fmt: skip
    """Do the same for `size` columns from `column` on."""
    for k in range(first, last):
        for h in range(column, column + size):
            sums[h] += value[k] * weights[entry[k], h]


if INTERPRETED:
    add_tile = _add_tile
else:
    KINDS = [types.float32, types.int32, types.float32, types.float32]

    @intrinsic(prefer_literal=True)
    def add_tile(  # type: ignore[no-untyped-def]
        typing, weights, entry, value, first, last, sums, column, size
    ) -> Any:
        """Do `_add_tile` with vector instructions; the compiler would not, because `sums` might alias the weights."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            arrays = [array for array in signature.args if isinstance(array, types.Array)]
            whole = all(array.layout == "C" for array in arrays) and [array.dtype for array in arrays] == KINDS
            if not whole or not isinstance(context, CPUContext) or checks_bounds():
                return context.compile_internal(builder, _add_tile, signature, arguments)
            number = signature.args[-1].literal_value
            kind = ir.VectorType(ir.FloatType(), number)
            table, rows, times, target = (
                context.make_array(array)(context, builder, arguments[i]) for array, i in zip(arrays, (0, 1, 2, 5))
            )
            begin, end, start = (context.cast(builder, arguments[i], signature.args[i], types.intp) for i in (3, 4, 6))
            place = builder.bitcast(builder.gep(target.data, [start]), kind.as_pointer())
            total = cgutils.alloca_once_value(builder, builder.load(place, align=4))
            width = builder.extract_value(table.shape, 1)
            nothing, lanes = ir.Constant(kind, ir.Undefined), ir.VectorType(ir.IntType(32), number)
            with cgutils.for_range_slice(builder, begin, end, context.get_constant(types.intp, 1)) as (k, _):
                row = builder.sext(builder.load(builder.gep(rows.data, [k])), ir.IntType(64))
                origin = builder.gep(table.data, [builder.add(builder.mul(row, width), start)])
                weight = builder.load(builder.bitcast(origin, kind.as_pointer()), align=4)
                factor = builder.load(builder.gep(times.data, [k]))
                one = builder.insert_element(nothing, factor, ir.Constant(lanes.element, 0))
                each = builder.shuffle_vector(one, nothing, ir.Constant(lanes, None))
                builder.store(builder.fadd(builder.load(total), builder.fmul(each, weight)), total)
            builder.store(builder.load(total), place, align=4)
            return context.get_dummy_value()

        return types.void(weights, entry, value, first, last, sums, column, size), generate
