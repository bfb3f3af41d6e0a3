"""Pairs of one row with others on vectors of eight: `lambda_blocks`, `lambda_blocks_norm`."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mcrank.kernels.memory import LONG, load_at, place_of
from mcrank.kernels.vectors import constants, splat

LAMBDA_LANES = 8  # the sums over a query's pairs are the same for any vector unit


def _lambda_blocks(distances: bool) -> Any:
    """Make ``blocks(rows, own, n, sums)``: weigh the pairs of one row with the first ``n`` others, and with
    those that fill up the last eight.

    ``rows`` are float64 arrays (worth, discount, power, slope, curve), ``own`` has the one row's first three.
    Of each pair whose other row has the lower discount, with change = (difference of worths) (difference of
    discounts) and P = power / (sum of both powers):

    * pair = change P(worse) is taken from its slope, and summed in its lane of eight, ``sums[:8]``;
    * bend = |change| P(worse) P(better) is added to its curve, and summed in ``sums[8:16]``.

    With ``distances``, rows have a sixth array, of scores, and ``own`` its score and a number: changes are
    divided by that number plus the distance of the scores, and |pair| is summed in ``sums[16:24]``. Sums are
    kept in registers: in memory each block would wait for what the one before has written.
    """
    vector = ir.VectorType(ir.DoubleType(), LAMBDA_LANES)

    @intrinsic
    def blocks(typing_context: Any, rows: Any, own: Any, n: Any, sums: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            rows, own, n, sums = args
            kind = signature.args[0].dtype
            given = [splat(builder, builder.extract_value(own, k), vector) for k in range(len(own.type))]
            room: Any = cgutils.alloca_once_value
            kept = [room(builder, constants(given[0], 0.0)) for _ in range(3 if distances else 2)]
            loop: Any = cgutils.for_range_slice
            with loop(builder, LONG(0), n, LONG(LAMBDA_LANES), LONG) as (at, _):
                places = [
                    place_of(context, builder, kind, builder.extract_value(rows, k), at)
                    for k in range(len(rows.type))
                ]
                found = _pairs(builder, [load_at(builder, place, vector, 8)[1] for place in places], given)
                for place, terms in ((places[3], builder.fneg(found[0])), (places[4], found[1])):
                    pointer, old = load_at(builder, place, vector, 8)
                    builder.store(builder.fadd(old, terms), pointer).align = 8
                for room_of, terms in zip(kept, found, strict=True):
                    builder.store(builder.fadd(builder.load(room_of), terms), room_of)
            for k, room_of in enumerate(kept):
                place = place_of(context, builder, signature.args[3], sums, LONG(k * LAMBDA_LANES))
                pointer = builder.bitcast(place, vector.as_pointer())
                builder.store(builder.load(room_of), pointer).align = 8
            return context.get_dummy_value()

        return types.void(rows, own, types.uint64, sums), generate

    return blocks


def _pairs(builder: Any, rows: list[Any], own: list[Any]) -> list[Any]:
    """Pair and bend of eight rows with one, and with distances the size of the pair."""
    worth, discount, power = rows[:3]
    zero, one = constants(worth, 0.0), constants(worth, 1.0)

    def size(terms: Any) -> Any:
        insert: Any = cgutils.get_or_insert_function
        kind = ir.FunctionType(terms.type, [terms.type])
        return builder.call(insert(builder.module, kind, f"llvm.fabs.v{LAMBDA_LANES}f64"), [terms])

    lower = builder.fsub(own[1], discount)
    lower = builder.select(builder.fcmp_ordered(">", lower, zero), lower, zero)
    ahead = builder.fsub(own[0], worth)
    better = builder.fcmp_ordered(">", ahead, zero)
    both = builder.fadd(own[2], power)
    if len(own) > 3:
        # One division for both quotients: 1 / (both far), times one of the two, is 1 / the other.
        far = builder.fadd(own[4], size(builder.fsub(own[3], rows[5])))
        inverse = builder.fdiv(one, builder.fmul(both, far))
        share = builder.fmul(inverse, far)
        lower = builder.fmul(lower, builder.fmul(inverse, both))
    else:
        share = builder.fdiv(one, both)
    own_share, other_share = builder.fmul(own[2], share), builder.fmul(power, share)
    # Where both are worth the same, nothing is changed and it does not matter which is better.
    pair = builder.fmul(builder.fmul(ahead, lower), builder.select(better, other_share, own_share))
    moved = size(pair)
    bend = builder.fmul(moved, builder.select(better, own_share, other_share))
    return [pair, bend, moved] if len(own) > 3 else [pair, bend]


# Kernels call these without the typing context; Any says so.
lambda_blocks: Any = _lambda_blocks(distances=False)
lambda_blocks_norm: Any = _lambda_blocks(distances=True)
