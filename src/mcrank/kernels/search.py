"""Search in registers: how many of a few thresholds lie below each of many values.

`turn_rows` puts columns of a matrix where eight values of one column can be loaded at once, and `search_rows`
searches them. Where a search in memory loads one threshold for one value, this one loads eight into a
register, and lets the processor pick one of them for each of eight values in one instruction (x86's
``vpermps``, which LLVM has no portable word for; elsewhere single loads, correct and slow, so that who has a
choice asks `most_searched`). With registers of 16 it goes another way: `mcrank.kernels.descend`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from mcrank.arrays import Array
from mcrank.kernels.descend import LEVELS, WIDE, by_level, descend
from mcrank.kernels.memory import BYTE, LONG, WORD, aligned, load_at, place_of
from mcrank.kernels.processor import has_features
from mcrank.kernels.vectors import constants, gather, joined, splat

TURNED = 8  # rows and columns that are turned at a time
PARTS = 8  # of sorted thresholds: a value's part is found first, then its place there

_FLOATS = ir.VectorType(ir.FloatType(), 8)
_WORDS = ir.VectorType(WORD, 8)
# Pairs of lanes of two registers, as every vector unit of x86 can take them: of ones, of twos, of fours.
_ONES = ((0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15))
_TWOS = ((0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15))
_FOURS = ((0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15))


def most_searched() -> int:
    """Thresholds up to which `search_rows` is the fastest way on this processor.

    Examples
    --------
    >>> from mcrank.kernels.search import most_searched
    >>> most_searched() in (0, 95, 255)
    True
    """
    context = cpu_target.target_context
    return 255 if _has_wide(context) else 95 if _has_permute(context) else 0


def laid_out(thresholds: Array) -> tuple[Array, Array]:
    """Thresholds of tables, rows of 256 that rise and end in infinity, as `search_rows` reads them: what it
    calls the ``part`` of each table, 0 where there are too many, and the thresholds, 256 for each again.
    """
    count = np.count_nonzero(thresholds < np.inf, axis=1)
    placed = aligned(*thresholds.shape, dtype=np.float32)
    if _has_wide(cpu_target.target_context):
        part = np.searchsorted([(1 << levels) - 1 for levels in LEVELS], count) + LEVELS[0]
        for levels in LEVELS:
            of = np.flatnonzero(part == levels)
            placed[of, : 1 << levels] = by_level(thresholds[of, : 1 << levels], levels)
        return part.astype(np.uint64), placed
    part = np.where(count <= most_searched(), count // PARTS + 1, 0)  # the last place of the last is free
    for size in np.unique(part[part > 0]).tolist():
        of = np.flatnonzero(part == size)
        cut = thresholds[of, : PARTS * size].reshape(-1, PARTS, size)
        placed[of, : PARTS * size] = cut.swapaxes(1, 2).reshape(len(of), PARTS * size)
    return part.astype(np.uint64), placed


def _has_permute(context: Any) -> bool:
    return has_features(context, "avx2")


def _has_wide(context: Any) -> bool:
    return has_features(context, "avx512f", "avx512bw", "avx512vl")


def _mixed(builder: Any, one: Any, other: Any, lanes: tuple[int, ...]) -> Any:
    return builder.shuffle_vector(one, other, ir.Constant(_WORDS, list(lanes)))


def turn_rows(step: int) -> Any:
    """Make ``turn(X, column, rows, start, out)``: eight columns of eight rows, each column in one piece.

    For i and k below 8: ``out[start + i + k step] = X[column + rows[start + i] + k]``; rows are int32.
    """

    @intrinsic
    def turn(typing_context: Any, X: Any, column: Any, rows: Any, start: Any, out: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            X, column, rows, start, out = args
            of_x, of_rows, of_out = (signature.args[i] for i in (0, 2, 4))
            lines = []
            for i in range(TURNED):
                row = place_of(context, builder, of_rows, rows, builder.add(start, LONG(i)))
                at = builder.add(column, builder.zext(builder.load(row), LONG))
                lines.append(load_at(builder, place_of(context, builder, of_x, X, at), _FLOATS, 4)[1])
            ones = [_mixed(builder, lines[i], lines[i + 1], side) for i in (0, 2, 4, 6) for side in _ONES]
            twos = [
                _mixed(builder, ones[i + k], ones[i + k + 2], side)
                for i in (0, 4)
                for k in (0, 1)
                for side in _TWOS
            ]
            columns = [_mixed(builder, twos[k], twos[k + 4], side) for side in _FOURS for k in range(4)]
            for k, one in enumerate(columns):
                to = place_of(context, builder, of_out, out, builder.add(start, LONG(k * step)))
                builder.store(one, builder.bitcast(to, _FLOATS.as_pointer())).align = 4
            return context.get_dummy_value()

        return types.void(X, types.uint64, rows, types.uint64, out), generate

    return turn


def search_rows(lanes: int) -> Any:
    """Make ``search(values, thresholds, ranks, numbers)`` for ``lanes`` float32 at once, a multiple of 16.

    ``numbers`` are (start, end, at, first, part, low, high, nobody). For each i of start : end (rounded up to
    ``lanes`` after start), and the number of thresholds below ``values[at + i]``: ``ranks[low + i]`` becomes
    that number less 128, and so does ``ranks[high + i]``, where NaN becomes 127. Nothing is below NaN. Where
    ``low`` or ``high`` is ``nobody``, nothing is written. From ``first`` on the thresholds lie as
    `laid_out` puts them, with the ``part`` it says.
    """

    @intrinsic
    def search(typing_context: Any, values: Any, thresholds: Any, ranks: Any, numbers: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values, thresholds, ranks, numbers = args
            of_values, of_thresholds, of_ranks = signature.args[:3]
            number = [builder.extract_value(numbers, k) for k in range(8)]
            start, end, at, first, part, low, high, nobody = number

            def threshold(k: Any) -> Any:
                k = LONG(k) if isinstance(k, int) else k
                return place_of(context, builder, of_thresholds, thresholds, builder.add(first, k))

            wide = _has_wide(context)
            together = lanes if wide else min(lanes, 32)  # more would not stay in registers
            register = ir.VectorType(ir.FloatType(), WIDE if wide else 8)
            loop: Any = cgutils.for_range_slice
            with loop(builder, start, end, LONG(together), LONG) as (i, _):
                x = []
                for k in range(0, together, register.count):
                    here = builder.add(builder.add(at, i), LONG(k))
                    place = place_of(context, builder, of_values, values, here)
                    x.append(load_at(builder, place, register, 4)[1])
                ranked = (
                    descend(builder, threshold, part, x)
                    if wide
                    else _eighths(context, builder, threshold, part, x)
                )
                ranked = builder.xor(ranked, constants(ranked, 128))
                for to, missing in ((low, False), (high, True)):
                    with builder.if_then(builder.icmp_unsigned("!=", to, nobody)):
                        if missing:
                            known = joined(builder, [builder.fcmp_ordered("ord", one, one) for one in x])
                            ranked = builder.select(known, ranked, constants(ranked, 127))
                        place = place_of(context, builder, of_ranks, ranks, builder.add(to, i))
                        builder.store(ranked, builder.bitcast(place, ranked.type.as_pointer())).align = 1
            return context.get_dummy_value()

        eight = types.UniTuple(types.uint64, 8)  # type: ignore[no-untyped-call]
        return types.void(values, thresholds, ranks, eight), generate

    return search


def _eighths(context: Any, builder: Any, threshold: Any, part: Any, x: list[Any]) -> Any:
    """How many thresholds are below each of some registers of 8 float32, as bytes.

    The thresholds are cut into `PARTS` of ``part`` each: ``threshold(8 k + p)`` is the place of number k of
    part p.
    """

    def is_below(one: Any, each: Any) -> Any:
        return builder.sext(builder.fcmp_ordered("<", one, each), _WORDS)  # -1 for yes

    last = builder.sub(part, LONG(1))
    found = [ir.Constant(_WORDS, [0] * 8)] * len(x)
    for k in range(PARTS - 1):  # the last of each part but the last
        end = threshold(builder.add(builder.mul(last, LONG(PARTS)), LONG(k)))
        spread = splat(builder, builder.load(end), _FLOATS)
        found = [builder.sub(n, is_below(spread, one)) for n, one in zip(found, x, strict=True)]
    size = splat(builder, builder.trunc(part, WORD), _WORDS)
    room: Any = cgutils.alloca_once_value
    kept = [room(builder, ir.Constant(_WORDS, [0] * 8)) for _ in found]
    for n, place in zip(found, kept, strict=True):
        builder.store(builder.mul(n, size), place)
    loop: Any = cgutils.for_range
    with loop(builder, last) as every:
        memory = threshold(builder.mul(every.index, LONG(PARTS)))
        register = load_at(builder, memory, _FLOATS, 4)[1]
        for n, place, one in zip(found, kept, x, strict=True):
            below = is_below(_pick(context, builder, memory, register, n), one)
            builder.store(builder.sub(builder.load(place), below), place)
    ranked = joined(builder, [builder.load(place) for place in kept])
    return builder.trunc(ranked, ir.VectorType(BYTE, ranked.type.count))


def _pick(context: Any, builder: Any, memory: Any, register: Any, places: Any) -> Any:
    """Of eight numbers, in memory and in a register, those at some places."""
    if not _has_permute(context):
        return gather(builder, memory, places, ir.FloatType())
    insert: Any = cgutils.get_or_insert_function
    kind = ir.FunctionType(_FLOATS, [_FLOATS, _WORDS])
    return builder.call(insert(builder.module, kind, "llvm.x86.avx2.permps"), [register, places])
