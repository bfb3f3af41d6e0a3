"""Running sums on vectors, which LLVM does not find by itself: `scan_block`, `scan_pairs`."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from mcrank.kernels.memory import LONG, WORD, load_at, place_of
from mcrank.kernels.vectors import constants, splat

SCANNED = 8  # numbers of a block

_VECTOR = ir.VectorType(LONG, SCANNED)
_BOTH = ir.VectorType(LONG, 2 * SCANNED)


def _chosen(builder: Any, one: Any, other: Any, lanes: list[int]) -> Any:
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(WORD, SCANNED), lanes))


def _sums(builder: Any, numbers: Any) -> Any:
    """Running sums of a block: each number plus its neighbour, then plus that of two, then of four."""
    none = constants(numbers, 0)
    for apart in (1, 2, 4):
        lanes = [i - apart if i >= apart else SCANNED for i in range(SCANNED)]
        numbers = builder.add(numbers, _chosen(builder, numbers, none, lanes))
    return numbers


def _store(builder: Any, place: Any, sums: Any, before: Any) -> Any:
    """Write sums that go on from a number; return the last one."""
    pointer = builder.bitcast(place, _VECTOR.as_pointer())
    builder.store(builder.add(sums, splat(builder, before, _VECTOR)), pointer).align = 8
    # Not taken out of what was written: a block then waits for one addition of the block before, no more.
    return builder.add(before, builder.extract_element(sums, WORD(SCANNED - 1)))


@intrinsic
def _scan_block(typing_context: Any, values: Any, at: Any, sums: Any, to: Any, before: Any) -> Any:
    """``scan_block(values, at, sums, to, before)``: ``sums[to + i]`` becomes ``before`` plus the int64
    ``values[at : at + i + 1]``, for i below 8; return the last.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values, at, sums, to, before = args
        kinds = signature.args
        place = place_of(context, builder, kinds[0], values, at)
        found = _sums(builder, load_at(builder, place, _VECTOR, 8)[1])
        return _store(builder, place_of(context, builder, kinds[2], sums, to), found, before)

    return types.int64(values, types.uint64, sums, types.uint64, types.int64), generate


@intrinsic
def _scan_pairs(typing_context: Any, values: Any, at: Any, sums: Any, to: Any, before: Any) -> Any:
    """``scan_pairs(values, at, (sums, others), to, before)``: `scan_block` of every second number from ``at``
    on into ``sums``, and of those between into ``others``; ``before`` and what is returned are pairs.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values, at, sums, to, before = args
        kinds = signature.args
        place = place_of(context, builder, kinds[0], values, at)
        both = load_at(builder, place, _BOTH, 8)[1]
        last = []
        for side in range(2):
            numbers = _chosen(builder, both, both, list(range(side, 2 * SCANNED, 2)))
            of = builder.extract_value(sums, side)
            place = place_of(context, builder, kinds[2].dtype, of, to)
            last.append(_store(builder, place, _sums(builder, numbers), builder.extract_value(before, side)))
        return context.make_tuple(builder, signature.return_type, last)

    pair = types.UniTuple(types.int64, 2)  # type: ignore[no-untyped-call]
    return pair(values, types.uint64, sums, types.uint64, pair), generate


# Kernels call these without the typing context; Any says so.
scan_block: Any = _scan_block
scan_pairs: Any = _scan_pairs
