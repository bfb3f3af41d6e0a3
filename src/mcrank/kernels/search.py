"""Search in registers: how many of a few thresholds lie below each of many values.

`turn_rows` puts columns of a matrix where eight values of one column can be loaded at once, and `search_rows`
searches them. Where a search in memory loads one threshold for one value, this one loads eight into a
register, and lets the processor pick one of them for each of eight values in one instruction (x86's
``vpermps``, which LLVM has no portable word for; elsewhere single loads, correct and slow, so that who has a
choice asks `searches_fast`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from mcrank.kernels.memory import BYTE, LONG, WORD, load_at, place_of
from mcrank.kernels.vectors import constants, gather, splat

TURNED = 8  # rows and columns that are turned at a time
PARTS = 8  # of sorted thresholds: a value's part is found first, then its place there

_FLOATS = ir.VectorType(ir.FloatType(), 8)
_WORDS = ir.VectorType(WORD, 8)
# Pairs of lanes of two registers, as every vector unit of x86 can take them: of ones, of twos, of fours.
_ONES = ((0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15))
_TWOS = ((0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15))
_FOURS = ((0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15))


def searches_fast() -> bool:
    """Whether this processor picks among eight numbers of a register in one instruction.

    Examples
    --------
    >>> from mcrank.kernels.search import searches_fast
    >>> isinstance(searches_fast(), bool)
    True
    """
    return _has_permute(cpu_target.target_context)


def _has_permute(context: Any) -> bool:
    triple, _, features = context.codegen().magic_tuple()
    return triple.startswith("x86_64") and "+avx2" in features.split(",")


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

    ``numbers`` are (start, at, first, part, low, high, nobody). The thresholds, rising, are cut into `PARTS`
    of ``part`` each, filled up with infinity: ``thresholds[first + 8 k + p]`` is number k of part p. For each
    i of start : start + lanes, and the number of thresholds below ``values[at + i]``: ``ranks[low + i]``
    becomes that number less 128, and so does ``ranks[high + i]``, where NaN becomes 127. Nothing is below
    NaN. Where ``low`` or ``high`` is ``nobody``, nothing is written.
    """

    @intrinsic
    def search(typing_context: Any, values: Any, thresholds: Any, ranks: Any, numbers: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values, thresholds, ranks, numbers = args
            of_values, of_thresholds, of_ranks = signature.args[:3]
            number = [builder.extract_value(numbers, k) for k in range(7)]
            start, at, first, part, low, high, nobody = number

            def threshold(k: Any) -> Any:
                return place_of(context, builder, of_thresholds, thresholds, builder.add(first, k))

            def is_below(one: Any, x: Any) -> Any:
                return builder.sext(builder.fcmp_ordered("<", one, x), _WORDS)  # -1 for yes

            places = [builder.add(builder.add(at, start), LONG(k)) for k in range(0, lanes, 8)]
            x = [
                load_at(builder, place_of(context, builder, of_values, values, one), _FLOATS, 4)[1]
                for one in places
            ]
            last = builder.sub(part, LONG(1))
            found = [ir.Constant(_WORDS, [0] * 8)] * len(x)
            for k in range(PARTS - 1):  # the last of each part but the last
                end = threshold(builder.add(builder.mul(last, LONG(PARTS)), LONG(k)))
                spread = splat(builder, builder.load(end), _FLOATS)
                found = [builder.sub(n, is_below(spread, one)) for n, one in zip(found, x, strict=True)]
            size = splat(builder, builder.trunc(part, WORD), _WORDS)
            room: Any = cgutils.alloca_once_value
            kept = [room(builder, builder.mul(n, size)) for n in found]
            loop: Any = cgutils.for_range
            with loop(builder, last) as every:
                memory = threshold(builder.mul(every.index, LONG(PARTS)))
                register = load_at(builder, memory, _FLOATS, 4)[1]
                for n, place, one in zip(found, kept, x, strict=True):
                    below = is_below(_pick(context, builder, memory, register, n), one)
                    builder.store(builder.sub(builder.load(place), below), place)
            ranked = [builder.load(place) for place in kept]
            for to, missing in ((low, False), (high, True)):
                with builder.if_then(builder.icmp_unsigned("!=", to, nobody)):
                    for k in range(0, len(x), 2):
                        two = ranked[k : k + 2]
                        if missing:
                            two = [
                                builder.select(builder.fcmp_ordered("ord", one, one), n, constants(n, 255))
                                for one, n in zip(x[k : k + 2], two, strict=True)
                            ]
                        place = builder.add(builder.add(to, start), LONG(8 * k))
                        _store(context, builder, two, of_ranks, ranks, place)
            return context.get_dummy_value()

        seven = types.UniTuple(types.uint64, 7)  # type: ignore[no-untyped-call]
        return types.void(values, thresholds, ranks, seven), generate

    return search


def _pick(context: Any, builder: Any, memory: Any, register: Any, places: Any) -> Any:
    """Of eight numbers, in memory and in a register, those at some places."""
    if not _has_permute(context):
        return gather(builder, memory, places, ir.FloatType())
    insert: Any = cgutils.get_or_insert_function
    kind = ir.FunctionType(_FLOATS, [_FLOATS, _WORDS])
    return builder.call(insert(builder.module, kind, "llvm.x86.avx2.permps"), [register, places])


def _store(context: Any, builder: Any, two: list[Any], kind: Any, ranks: Any, to: Any) -> None:
    """Store twice eight numbers below 256 as signed bytes, less 128."""
    every = ir.Constant(ir.VectorType(WORD, 16), list(range(16)))
    joined = builder.shuffle_vector(*(builder.and_(one, constants(one, 255)) for one in two), every)
    found = builder.trunc(joined, ir.VectorType(BYTE, 16))
    found = builder.xor(found, constants(found, 128))
    place = place_of(context, builder, kind, ranks, to)
    builder.store(found, builder.bitcast(place, found.type.as_pointer())).align = 1
