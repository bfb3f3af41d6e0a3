"""Numbers looked up in registers: of a few float64 one for each of 64 rows, added to sums.

To load a number for each row takes most of the time of adding it. AVX-512 has an instruction (``vpermb``, of
its part VBMI) that picks one of 64 bytes for each of 64 rows, so the numbers are kept as *planes*: the lowest
byte of each of 64 numbers, then the next byte of each, and so on. Eight picks, and the bytes are put together
again, two, four and eight at a time.
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
from mcrank.kernels.memory import BYTE, LONG, WORD, aligned, load_at, place_of
from mcrank.kernels.processor import has_features
from mcrank.kernels.vectors import joined

ROWS = 64  # that are looked up at once, and numbers they are looked up in
PLANES = 8 * ROWS  # bytes of the planes of so many numbers
_BYTES, _PAIR = ir.VectorType(BYTE, ROWS), ir.VectorType(ir.DoubleType(), 2)
_LANES = 4  # of a register; bytes are put together within each


def looks_up_fast() -> bool:
    """Whether this processor can look up in registers.

    Examples
    --------
    >>> from mcrank.kernels.planes import looks_up_fast
    >>> isinstance(looks_up_fast(), bool)
    True
    """
    return _has_lookup(cpu_target.target_context)


def _has_lookup(context: Any) -> bool:
    return has_features(context, "avx512f", "avx512bw", "avx512vbmi")


def planes_of(numbers: Array) -> Array:
    """Rows of 64 float64 as planes, one behind another.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.kernels.planes import planes_of
    >>> planes_of(np.full((2, 64), 1.0)).reshape(2, 8, 64)[0, :, 5].tolist()  # the bytes of 1.0
    [0, 0, 0, 0, 0, 0, 240, 63]
    """
    planes = aligned(len(numbers), 8, ROWS, dtype=np.uint8)
    planes[:] = np.ascontiguousarray(numbers, dtype="<f8").view(np.uint8).reshape(-1, ROWS, 8).swapaxes(1, 2)
    return planes.reshape(-1)


def add_numbers(count: int, step: int) -> Any:
    """Make ``add(planes, first, places, at, sums, to)`` for 64 rows: for each row i, and each of ``count``
    lists of numbers in turn, ``sums[to + i]`` grows by the number at ``places[at + step list + i]``.

    Planes begin at ``first``. Only for processors that can (`looks_up_fast`): elsewhere it does nothing.
    """

    @intrinsic
    def add(typing_context: Any, planes: Any, first: Any, places: Any, at: Any, sums: Any, to: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            planes, first, places, at, sums, to = args
            of_planes, of_places, of_sums = (signature.args[i] for i in (0, 2, 4))
            if not _has_lookup(context):
                return context.get_dummy_value()

            def pair(row: int) -> Any:
                place = place_of(context, builder, of_sums, sums, builder.add(to, LONG(row)))
                return load_at(builder, place, _PAIR, 8)

            room: Any = cgutils.alloca_once_value
            firsts = [[16 * lane + 2 * k for lane in range(_LANES)] for k in range(8)]
            kept = [room(builder, joined(builder, [pair(row)[1] for row in rows])) for rows in firsts]
            loop: Any = cgutils.for_range
            with loop(builder, LONG(count)) as every:
                here = builder.add(at, builder.mul(every.index, LONG(step)))
                _, chosen = load_at(builder, place_of(context, builder, of_places, places, here), _BYTES)
                table = builder.add(first, builder.mul(every.index, LONG(PLANES)))
                picked = []
                for plane in range(8):
                    here = builder.add(table, LONG(ROWS * plane))
                    _, numbers = load_at(builder, place_of(context, builder, of_planes, planes, here), _BYTES)
                    picked.append(_pick(builder, numbers, chosen))
                for place, number in zip(kept, _together(builder, picked), strict=True):
                    more = builder.bitcast(number, ir.VectorType(ir.DoubleType(), 8))
                    builder.store(builder.fadd(builder.load(place), more), place)
            for rows, place in zip(firsts, kept, strict=True):
                total = builder.load(place)
                for lane, row in enumerate(rows):
                    both = ir.Constant(ir.VectorType(WORD, 2), [2 * lane, 2 * lane + 1])
                    builder.store(builder.shuffle_vector(total, total, both), pair(row)[0]).align = 8
            return context.get_dummy_value()

        u64 = types.uint64
        return types.void(planes, u64, places, u64, sums, u64), generate

    return add


def _pick(builder: Any, numbers: Any, places: Any) -> Any:
    insert: Any = cgutils.get_or_insert_function
    kind = ir.FunctionType(_BYTES, [_BYTES, _BYTES])
    return builder.call(insert(builder.module, kind, "llvm.x86.avx512.permvar.qi.512"), [numbers, places])


def _together(builder: Any, parts: list[Any]) -> list[Any]:
    """Put the parts of numbers, the lowest first, together: two beside each other become one twice as wide,
    within each lane of 16 rows those of the first half of the rows and those of the second.
    """
    while parts[0].type.count > 8:
        count = parts[0].type.count
        wider = ir.VectorType(ir.IntType(2 * parts[0].type.element.width), count // 2)
        lane, half = count // _LANES, count // _LANES // 2
        halves = []
        for start in (0, half):
            mixed = [
                k + other
                for begin in range(start, count, lane)
                for k in range(begin, begin + half)
                for other in (0, count)
            ]
            order = ir.Constant(ir.VectorType(WORD, count), mixed)
            halves.append(
                [
                    builder.bitcast(builder.shuffle_vector(*parts[k : k + 2], order), wider)
                    for k in range(0, len(parts), 2)
                ]
            )
        # Parts of the same rows lie beside each other again.
        return [number for some in halves for number in _together(builder, some)]
    return parts
