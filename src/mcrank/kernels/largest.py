"""The largest of integers on vectors of eight: `largest_of`, `first_largest`, `take_first`, `count_before`.

Arrays are int64; what fills up the last eight of one has to be `LOWEST`, which no key is.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import int64, njit, types, uint64
from numba.core import cgutils
from numba.extending import intrinsic

from mcrank.kernels.memory import BYTE, LONG, float_to_bits, load_at, place_of
from mcrank.kernels.vectors import constants, splat

KEY_LANES = 8
LOWEST = -(2**63)

_VECTOR = ir.VectorType(LONG, KEY_LANES)
_LANES = ir.Constant(_VECTOR, list(range(KEY_LANES)))


def _reduced(builder: Any, vector: Any, how: str) -> Any:
    insert: Any = cgutils.get_or_insert_function
    name = f"llvm.vector.reduce.{how}.v{KEY_LANES}i64"
    return builder.call(insert(builder.module, ir.FunctionType(LONG, [_VECTOR]), name), [vector])


def _eight(context: Any, builder: Any, kind: Any, keys: Any, at: Any) -> tuple[Any, Any]:
    """Where eight keys are, and these."""
    return load_at(builder, place_of(context, builder, kind, keys, at), _VECTOR, 8)


@intrinsic
def _largest_of(typing_context: Any, keys: Any, at: Any) -> Any:
    """``largest_of(keys, at)``: the largest of eight keys from ``at`` on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _reduced(builder, _eight(context, builder, signature.args[0], *args)[1], "smax")

    return types.int64(keys, types.uint64), generate


@intrinsic
def _first_largest(typing_context: Any, keys: Any, n: Any) -> Any:
    """``first_largest(keys, n)``: the place of the largest of ``n`` keys, of equal ones the first."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        keys, n = args
        room: Any = cgutils.alloca_once_value
        _, first = _eight(context, builder, signature.args[0], keys, LONG(0))
        # In each lane: the largest so far, and the first place that has it.
        most, places = room(builder, first), room(builder, _LANES)
        loop: Any = cgutils.for_range_slice
        with loop(builder, LONG(KEY_LANES), n, LONG(KEY_LANES), LONG) as (at, _):
            _, more = _eight(context, builder, signature.args[0], keys, at)
            old = builder.load(most)
            above = builder.icmp_signed(">", more, old)
            builder.store(builder.select(above, more, old), most)
            now = builder.add(splat(builder, at, _VECTOR), _LANES)
            builder.store(builder.select(above, now, builder.load(places)), places)
        found = builder.load(most)
        best = builder.icmp_signed("==", found, splat(builder, _reduced(builder, found, "smax"), _VECTOR))
        return _reduced(builder, builder.select(best, builder.load(places), constants(found, -1)), "umin")

    return types.uint64(keys, types.uint64), generate


@intrinsic
def _take_first(typing_context: Any, keys: Any, at: Any, key: Any) -> Any:
    """``take_first(keys, at, key)``: the place of the first of eight keys from ``at`` on that is ``key``,
    which becomes the lowest; one must be.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        keys, at, key = args
        pointer, eight = _eight(context, builder, signature.args[0], keys, at)
        same = builder.bitcast(builder.icmp_signed("==", eight, splat(builder, key, _VECTOR)), BYTE)
        lane = builder.cttz(builder.zext(same, LONG), cgutils.false_bit)
        # All eight are written at once: a load of eight would have to wait for a single one.
        taken = builder.icmp_unsigned("==", _LANES, splat(builder, lane, _VECTOR))
        builder.store(builder.select(taken, constants(eight, LOWEST), eight), pointer).align = 8
        return builder.add(at, lane)

    return types.uint64(keys, types.uint64, types.int64), generate


@intrinsic
def _count_before(typing_context: Any, keys: Any, i: Any, n: Any) -> Any:
    """``count_before(keys, i, n)``: how many of ``n`` keys stand before key ``i``: larger ones, and equal
    ones that are earlier.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        keys, i, n = args
        own = splat(builder, builder.load(place_of(context, builder, signature.args[0], keys, i)), _VECTOR)
        place = splat(builder, i, _VECTOR)
        room: Any = cgutils.alloca_once_value
        count = room(builder, LONG(0))
        loop: Any = cgutils.for_range_slice
        with loop(builder, LONG(0), n, LONG(KEY_LANES), LONG) as (at, _):
            _, others = _eight(context, builder, signature.args[0], keys, at)
            earlier = builder.icmp_unsigned("<", builder.add(splat(builder, at, _VECTOR), _LANES), place)
            equal = builder.and_(builder.icmp_signed("==", others, own), earlier)
            before = builder.bitcast(builder.or_(builder.icmp_signed(">", others, own), equal), BYTE)
            more = builder.zext(builder.ctpop(before), LONG)
            builder.store(builder.add(builder.load(count), more), count)
        return builder.load(count)

    return types.uint64(keys, types.uint64, types.uint64), generate


# Kernels call these without the typing context; Any says so.
largest_of: Any = _largest_of
first_largest: Any = _first_largest
take_first: Any = _take_first
count_before: Any = _count_before


@njit(inline="always")
def ordered_bits(value):  # type: ignore[no-untyped-def]
    """A float as an integer that is larger where the float is: vectors can tell the largest; -0.0 is 0.0."""
    bits = float_to_bits(value)
    # By its bits: adding 0.0 is nothing to a kernel that need not tell zeros apart.
    bits = int64(0) if bits == int64(LOWEST) else bits
    return bits ^ ((bits >> int64(63)) & int64(2**63 - 1))


@njit(inline="always")
def whole_vectors(n):  # type: ignore[no-untyped-def]
    """Keys of whole vectors, for ``n`` of them."""
    return (n + uint64(KEY_LANES - 1)) // uint64(KEY_LANES) * uint64(KEY_LANES)
