"""Pairs of one row with eight others on vectors: `lambda_block`, `lambda_block_norm`."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from mcrank.kernels.memory import LONG, load_at, place_of
from mcrank.kernels.vectors import constants, splat

LAMBDA_LANES = 8  # the sums over a query's pairs are the same for any vector unit


def _lambda_block(distances: bool) -> Any:
    """Make ``block(rows, own, at, sums)``: weigh the pairs of one row with eight rows from ``at`` on.

    ``rows`` are float64 arrays (worth, discount, power, slope, curve), ``own`` has the one row's first three.
    Of each pair whose other row has the lower discount, with change = (difference of worths) (difference of
    discounts) and P = power / (sum of both powers):

    * pair = change P(worse) is taken from its slope and added to ``sums[:8]``, in its lane;
    * bend = |change| P(worse) P(better) is added to its curve and to ``sums[8:16]``.

    With ``distances``, rows have a sixth array, of scores, and ``own`` its score and a number: changes are
    divided by that number plus the distance of the scores, and ``sums[16:24]`` grows by |pair|.
    """
    vector = ir.VectorType(ir.DoubleType(), LAMBDA_LANES)

    @intrinsic
    def block(typing_context: Any, rows: Any, own: Any, at: Any, sums: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            rows, own, at, sums = args
            kind = signature.args[0].dtype

            def add(array: Any, kind: Any, index: Any, terms: Any) -> None:
                place = place_of(context, builder, kind, array, index)
                pointer, old = load_at(builder, place, vector, align=8)
                builder.store(builder.fadd(old, terms), pointer).align = 8

            def load(k: int) -> Any:
                place = place_of(context, builder, kind, builder.extract_value(rows, k), at)
                return load_at(builder, place, vector, align=8)[1]

            def given(k: int) -> Any:
                return splat(builder, builder.extract_value(own, k), vector)

            def size(terms: Any) -> Any:
                return builder.select(
                    builder.fcmp_ordered("<", terms, zero), builder.fsub(zero, terms), terms
                )

            worth, discount, power = (load(k) for k in range(3))
            own_worth, own_discount, own_power = (given(k) for k in range(3))
            zero, one = constants(worth, 0.0), constants(worth, 1.0)
            lower = builder.fsub(own_discount, discount)
            lower = builder.select(builder.fcmp_ordered(">", lower, zero), lower, zero)
            ahead = builder.fsub(own_worth, worth)
            better = builder.fcmp_ordered(">", ahead, zero)
            both = builder.fadd(own_power, power)
            if distances:
                # One division for both quotients: 1 / (both far), times one of the two, is 1 / the other.
                far = builder.fadd(given(4), size(builder.fsub(given(3), load(5))))
                inverse = builder.fdiv(one, builder.fmul(both, far))
                share = builder.fmul(inverse, far)
                lower = builder.fmul(lower, builder.fmul(inverse, both))
            else:
                share = builder.fdiv(one, both)
            own_share, other_share = builder.fmul(own_power, share), builder.fmul(power, share)
            # Where both are worth the same, nothing is changed and it does not matter which is better.
            pair = builder.fmul(builder.fmul(ahead, lower), builder.select(better, other_share, own_share))
            bend = builder.fmul(pair, builder.select(better, own_share, other_share))
            bend = builder.select(better, bend, builder.fsub(zero, bend))
            add(builder.extract_value(rows, 3), kind, at, builder.fsub(zero, pair))
            add(builder.extract_value(rows, 4), kind, at, bend)
            add(sums, signature.args[3], LONG(0), pair)
            add(sums, signature.args[3], LONG(LAMBDA_LANES), bend)
            if distances:
                add(sums, signature.args[3], LONG(2 * LAMBDA_LANES), size(pair))
            return context.get_dummy_value()

        return types.void(rows, own, types.uint64, sums), generate

    return block


# Kernels call these without the typing context; Any says so.
lambda_block: Any = _lambda_block(distances=False)
lambda_block_norm: Any = _lambda_block(distances=True)
