"""Squares of numbers turned: what lies side by side in rows comes to lie side by side in columns."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from mcrank.kernels.memory import LONG, WORD, load_at, place_of


def turn(width: int, apart: int) -> Any:
    """Make ``turn(values, places, out, to)``: number k of those from ``places[i]`` on becomes
    ``out[to + k * apart + i]``, for ``width`` places and as many numbers of 64 bits from each.

    As loads, shuffles of registers and stores: a row at a time would be ``width`` stores each.
    """
    vector = ir.VectorType(LONG, width)

    @intrinsic
    def turned(typing_context: Any, values: Any, places: Any, out: Any, to: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values, places, out, to = args
            rows = []
            for i in range(width):
                place = place_of(
                    context, builder, signature.args[0], values, builder.extract_value(places, i)
                )
                rows.append(load_at(builder, place, vector, 8)[1])
            for k, column in enumerate(_columns(builder, rows)):
                at = builder.add(to, LONG(k * apart))
                place = place_of(context, builder, signature.args[2], out, at)
                builder.store(column, builder.bitcast(place, vector.as_pointer())).align = 8
            return context.get_dummy_value()

        every = types.UniTuple(types.uint64, width)  # type: ignore[no-untyped-call]
        return types.void(values, every, out, types.uint64), generate

    return turned


def _columns(builder: Any, rows: list[Any]) -> list[Any]:
    """Columns of a square of vectors: in turn each bit of the row's and the place's number changes sides."""
    width = len(rows)
    vector = ir.VectorType(WORD, width)
    bit = 1
    while bit < width:
        lower = [j if not j & bit else width + j - bit for j in range(width)]
        upper = [j + bit if not j & bit else width + j for j in range(width)]
        for i in range(width):
            if not i & bit:
                pair = rows[i], rows[i + bit]
                rows[i], rows[i + bit] = (
                    builder.shuffle_vector(*pair, ir.Constant(vector, side)) for side in (lower, upper)
                )
        bit *= 2
    return rows
