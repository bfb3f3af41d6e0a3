"""Search in wide registers: how many thresholds lie below each of many values, found a bit at a time.

Of sorted thresholds the middle one is compared first, then the middle of the half a value falls into, and so
on: `LEVELS` of comparisons. AVX-512 has registers of 16 numbers, and instructions that pick, for each of 16
values, one number of a register or of two (``vpermps``, ``vpermi2ps``), so that all thresholds of a level lie
in registers. The first comparison makes the lowest bit of what is found: in this order of bits the bits known
so far are the place within the next level, whatever the level. In the end bits are turned round.

`mcrank.kernels.search` has the way of processors without such instructions, and chooses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from mcrank.arrays import Array
from mcrank.kernels.memory import BYTE, LONG, WORD, load_at
from mcrank.kernels.vectors import constants, joined, splat

LEVELS = (5, 6, 7, 8)  # that a search can have: for up to 31, 63, 127, 255 thresholds
WIDE = 16  # numbers of a register

_FLOATS, _WORDS = ir.VectorType(ir.FloatType(), WIDE), ir.VectorType(WORD, WIDE)
_OF_ONE = "llvm.x86.avx512.permvar.sf.512", ir.FunctionType(_FLOATS, [_FLOATS, _WORDS])
_OF_TWO = "llvm.x86.avx512.vpermi2var.ps.512", ir.FunctionType(_FLOATS, [_FLOATS, _WORDS, _FLOATS])


def by_level(thresholds: Array, levels: int) -> Array:
    """Put rows of 2 ** levels sorted thresholds, the last of which does not count, into the order in which a
    search reads them: those of level k from place 2 ** k on.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.kernels.descend import by_level
    >>> by_level(np.array([[1, 2, 3, 4, 5, 6, 7, 8]]), 3).tolist()
    [[8, 4, 2, 6, 1, 5, 3, 7]]
    """
    places = [(1 << levels) - 1]
    for level in range(levels):
        known = np.arange(1 << level)
        passed = np.zeros_like(known)
        for bit in range(level):
            passed += (known >> bit & 1) << (levels - 1 - bit)
        places.extend(passed + (1 << (levels - 1 - level)) - 1)
    return thresholds[:, places]


def descend(builder: Any, memory: Any, levels: Any, x: list[Any]) -> Any:
    """How many thresholds are below each of some registers of float32, as bytes; none is below NaN.

    ``memory(k)`` is the place of number k of `by_level`, from which on 16 must be there; ``levels`` a number
    among `LEVELS`, known when it runs.
    """
    kind = ir.VectorType(BYTE, WIDE * len(x))
    root = splat(builder, builder.load(memory(1)), _FLOATS)
    none, one = (ir.Constant(_WORDS, [number] * WIDE) for number in (0, 1))
    found = [builder.select(builder.fcmp_ordered("<", root, each), one, none) for each in x]
    done = builder.append_basic_block("found")
    ends = []
    for level in range(1, LEVELS[-1]):
        tables = [
            load_at(builder, memory(place), _FLOATS, 4)[1] for place in range(1 << level, 2 << level, WIDE)
        ]
        found = [_deeper(builder, tables, level, n, each) for n, each in zip(found, x, strict=True)]
        if level + 1 not in LEVELS:
            continue
        ends.append((_turned(builder, found, level + 1, kind), builder.block))
        if level + 1 == LEVELS[-1]:
            builder.branch(done)
        else:
            deeper = builder.append_basic_block("deeper")
            builder.cbranch(builder.icmp_unsigned("==", levels, LONG(level + 1)), done, deeper)
            builder.position_at_end(deeper)
    builder.position_at_end(done)
    result = builder.phi(kind)
    for value, block in ends:
        result.add_incoming(value, block)
    return result


def _deeper(builder: Any, tables: list[Any], level: int, found: Any, x: Any) -> Any:
    """Compare values with thresholds of a level, at the places found so far, and add a bit to these."""
    is_below = builder.fcmp_ordered("<", _pick(builder, tables, level, found), x)
    return builder.select(is_below, builder.or_(found, constants(found, 1 << level)), found)


def _pick(builder: Any, tables: list[Any], level: int, places: Any) -> Any:
    """Of the numbers in some registers those at 16 places, of which bits from ``level`` on are 0."""
    insert: Any = cgutils.get_or_insert_function
    if len(tables) <= 2:
        name, kind = _OF_ONE if len(tables) == 1 else _OF_TWO
        return builder.call(insert(builder.module, kind, name), [tables[0], places, *tables[1:]])
    half = len(tables) // 2
    low, high = (_pick(builder, some, level - 1, places) for some in (tables[:half], tables[half:]))
    bit = builder.and_(places, constants(places, 1 << (level - 1)))
    return builder.select(builder.icmp_unsigned("!=", bit, constants(bit, 0)), high, low)


def _turned(builder: Any, found: list[Any], levels: int, kind: Any) -> Any:
    """What was found, lowest bit first, as numbers in bytes."""
    insert: Any = cgutils.get_or_insert_function
    reverse = insert(builder.module, ir.FunctionType(kind, [kind]), f"llvm.bitreverse.v{kind.count}i8")
    turned = builder.call(reverse, [builder.trunc(joined(builder, found), kind)])
    return builder.lshr(turned, constants(turned, 8 - levels)) if levels < 8 else turned
