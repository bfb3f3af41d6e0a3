"""Numbers picked out of their order by the bits of a mask, without a branch for each.

A loop from bit to bit waits for each end that the processor has not foreseen, as long as ten bits take.
AVX-512 has an instruction that moves the lanes of a register that a mask names to its front (``vpcompressq``,
in registers; where it writes to memory itself it is slow on some processors); other machines keep the loop.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mcrank.kernels.memory import LONG, WORD, load_at, place_of
from mcrank.kernels.processor import has_features
from mcrank.kernels.vectors import splat

_LANES = 8
_BIT, _MASK = ir.IntType(1), ir.IntType(_LANES)


def _has_pick(context: Any) -> bool:
    return has_features(context, "avx512f", "popcnt")


@intrinsic
def _picks_fast(typing_context: Any) -> Any:
    """``picks_fast()``: whether the processor has the instruction; known when compiling."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _BIT(int(_has_pick(context)))

    return types.boolean(), generate


@intrinsic
def _pick_entries(typing_context: Any, found: Any, first: Any, low: Any, out: Any, to: Any) -> Any:
    """``pick_entries(found, first, low, out, to)``: for each bit i of ``found``, from the lowest on, the next
    of ``out``, from ``to`` on, becomes the number with ``first + i`` in its upper 32 bits and ``low[first +
    i]``, an int32, in its lower. Return where the next one would go; up to eight numbers from there on are
    written over. Only where `picks_fast`.
    """
    longs, words = ir.VectorType(LONG, _LANES), ir.VectorType(WORD, _LANES)
    mask_type = ir.VectorType(_BIT, _LANES)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found, first, low, out, to = args
        if not _has_pick(context):  # never run
            return to
        insert: Any = cgutils.get_or_insert_function
        kind = ir.FunctionType(longs, [longs, longs, mask_type])
        compress = insert(builder.module, kind, "llvm.x86.avx512.mask.compress.v8i64")
        upper = ir.Constant(longs, [i << 32 for i in range(_LANES)])
        for part in range(0, 64, _LANES):
            row = builder.add(first, LONG(part))
            _, value = load_at(builder, place_of(context, builder, signature.args[2], low, row), words, 4)
            rows = builder.add(splat(builder, builder.shl(row, LONG(32)), longs), upper)
            entries = builder.or_(rows, builder.zext(value, longs))
            bits = builder.trunc(builder.lshr(found, LONG(part)), _MASK)
            chosen = [entries, ir.Constant(longs, ir.Undefined), builder.bitcast(bits, mask_type)]
            place = place_of(context, builder, signature.args[3], out, to)
            pointer = builder.bitcast(place, longs.as_pointer())
            builder.store(builder.call(compress, chosen), pointer).align = 8
            to = builder.add(to, builder.zext(builder.ctpop(bits), LONG))
        return to

    return types.uint64(types.uint64, types.uint64, low, out, types.uint64), generate


# Kernels call these without the typing context; Any says so.
picks_fast: Any = _picks_fast
pick_entries: Any = _pick_entries
