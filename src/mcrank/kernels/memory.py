"""Machine operations that Numba has no words for, as LLVM written by hand: all of it is in this file.

* Between threads: `load_acquire`, `store_release`, `fetch_add`, `cpu_pause`, `nap`, `ticks`; and `prefetch`.
* On vectors of fixed width, where LLVM does not find them by itself: `vector_add2`, `vector_add4`,
  `select_greater`, `product_of_chosen`, `count_below`, `lambda_block`, and `match_any` and `match_range` for
  characters.
* On bits: `float_to_bits`, `bits_to_float`, `trailing_zeros`, `load_u64`.

Each emits a few lines that are correct (if slower) on any machine LLVM knows, and is tried on its own in
``tests/kernels/test_memory.py``. Places are counted in items of the array, unsigned, and none is checked.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import platform
import time
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mcrank.arrays import Array

CACHE_LINE = 64
LAMBDA_LANES = 8  # of `lambda_block`: the sums over a query's pairs are the same for any vector unit
_BYTE, _WORD, _LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def aligned(*shape: int, dtype: npt.DTypeLike = np.int64) -> Array:
    """Return zeros that begin with a cache line: a vector that straddles two lines costs two accesses.

    Examples
    --------
    >>> from mcrank.kernels.memory import aligned
    >>> aligned(3, 5).ctypes.data % 64
    0
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.zeros(size + CACHE_LINE, dtype=np.uint8)
    start = -raw.ctypes.data % CACHE_LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Pointer to ``array[index]``."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [index])


def _load(builder: Any, place: Any, kind: Any, align: int = 1) -> tuple[Any, Any]:
    """Pointer to what lies at a place as another type, and its value; not trusted to be aligned."""
    pointer = builder.bitcast(place, kind.as_pointer())
    value = builder.load(pointer)
    value.align = align  # the arrays are aligned for speed; being wrong about it must not crash
    return pointer, value


def _splat(builder: Any, number: Any, vector: Any) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(undefined, number, ir.Constant(_WORD, 0))
    return builder.shuffle_vector(
        one, undefined, ir.Constant(ir.VectorType(_WORD, vector.count), [0] * vector.count)
    )


def _call(builder: Any, name: str, kinds: list[Any], values: list[Any]) -> None:
    insert: Any = cgutils.get_or_insert_function
    builder.call(insert(builder.module, ir.FunctionType(ir.VoidType(), kinds), name), values)


@intrinsic
def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """``prefetch(array, index)``: ask for the cache line of ``array[index]``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _BYTE.as_pointer()
        place = builder.bitcast(_place(context, builder, signature.args[0], *args), pointer)
        # Read, keep in all cache levels, data rather than instructions.
        values = [place, _WORD(0), _WORD(3), _WORD(1)]
        _call(builder, "llvm.prefetch.p0", [pointer, _WORD, _WORD, _WORD], values)
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


@intrinsic
def _store_release(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """``store_release(array, index, value)``: who loads the value sees all this thread wrote before it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature.args[0], args[0], args[1])
        builder.store_atomic(args[2], place, "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.uint64, types.int64), generate


@intrinsic
def _load_acquire(typing_context: Any, array: Any, index: Any) -> Any:
    """``load_acquire(array, index)``: the value now, read again at every call."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_place(context, builder, signature.args[0], *args), "acquire", 8)

    return types.int64(array, types.uint64), generate


@intrinsic
def _fetch_add(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """``fetch_add(array, index, value)``: add, whoever else does so too; return what was there before."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, signature.args[0], args[0], args[1])
        return builder.atomic_rmw("add", place, args[2], "acq_rel")

    return types.int64(array, types.uint64, types.int64), generate


@intrinsic
def _cpu_pause(typing_context: Any) -> Any:
    """``cpu_pause()``: tell the processor that this thread only waits, so that it leaves room for others."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if platform.machine().lower() in ("x86_64", "amd64"):
            _call(builder, "llvm.x86.sse2.pause", [], [])
        return context.get_dummy_value()

    return types.void(), generate


def _system_call(*choices: tuple[str | None, str]) -> tuple[Any, str]:
    """The first of some functions of the system's libraries that exists, and its name.

    Where there is none, one that does nothing whatever it is given.
    """
    for library, name in choices:
        with contextlib.suppress(OSError, AttributeError, TypeError):
            return getattr(ctypes.CDLL(library), name), name
    return ctypes.pythonapi.Py_IsInitialized, ""


# By names of our own, so that a kernel can be kept on disk: addresses are others in the next process.
_SLEEP, _CLOCK = "mcrank_sleep", "mcrank_clock"
_sleep, _SLEEP_NAME = _system_call((None, "usleep"), ("kernel32", "Sleep"))
_clock, _CLOCK_NAME = _system_call((None, "clock_gettime"), ("kernel32", "QueryPerformanceCounter"))
for _name, _function in ((_SLEEP, _sleep), (_CLOCK, _clock)):
    binding.add_symbol(_name, ctypes.cast(_function, ctypes.c_void_p).value)


@intrinsic
def _ticks(typing_context: Any) -> Any:
    """``ticks()``: time in some unit; always 0 where the system does not tell."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        room: Any = cgutils.alloca_once_value
        place = room(builder, ir.Constant(ir.ArrayType(_LONG, 2), [0, 0]))
        first = builder.gep(place, [_WORD(0), _WORD(0)])
        if _CLOCK_NAME == "clock_gettime":
            _call(builder, _CLOCK, [_WORD, _LONG.as_pointer()], [_WORD(time.CLOCK_MONOTONIC), first])
            fraction = builder.load(builder.gep(place, [_WORD(0), _WORD(1)]))
            return builder.add(builder.mul(builder.load(first), _LONG(10**9)), fraction)
        if _CLOCK_NAME:
            _call(builder, _CLOCK, [_LONG.as_pointer()], [first])
        return builder.load(first)

    return types.int64(), generate


@intrinsic
def _nap(typing_context: Any, microseconds: Any) -> Any:
    """``nap(microseconds)``: sleep so long, so that others can have the core.

    Rather than yield it: on a busy machine who yields is put behind everybody else for milliseconds.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        unit = 1000 if _SLEEP_NAME == "Sleep" else 1
        _call(builder, _SLEEP, [_WORD], [builder.trunc(builder.udiv(args[0], _LONG(unit)), _WORD)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def _float_to_bits(typing_context: Any, x: Any) -> Any:
    """Bits of a float64 as an int64."""
    return types.int64(types.float64), lambda c, builder, s, args: builder.bitcast(args[0], _LONG)


@intrinsic
def _bits_to_float(typing_context: Any, bits: Any) -> Any:
    """Float64 with the bits of an int64."""
    return types.float64(types.int64), lambda c, builder, s, args: builder.bitcast(args[0], ir.DoubleType())


@intrinsic
def _trailing_zeros(typing_context: Any, word: Any) -> Any:
    """``trailing_zeros(word)``: the place of the lowest bit that is set; 64 when none is."""
    return types.uint64(types.uint64), lambda c, builder, s, args: builder.cttz(args[0], cgutils.false_bit)


@intrinsic
def _load_u64(typing_context: Any, text: Any, at: Any) -> Any:
    """``load_u64(text, at)``: eight bytes from ``at`` on as one number, the first byte lowest."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(builder, _place(context, builder, signature.args[0], *args), _LONG)[1]

    return types.uint64(text, types.uint64), generate


def _vector_add(lanes: int) -> Any:
    """Make ``add(counters, at, values, start)``: counters[at:at + L] += values[start:start + L], int64."""
    vector = ir.VectorType(_LONG, lanes)

    @intrinsic
    def add(typing_context: Any, counters: Any, at: Any, values: Any, start: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            # NumPy promises an alignment of 8, no more.
            to = _place(context, builder, signature.args[0], args[0], args[1])
            pointer, old = _load(builder, to, vector, align=8)
            _, new = _load(builder, _place(context, builder, signature.args[2], args[2], args[3]), vector, 8)
            builder.store(builder.add(old, new), pointer).align = 8
            return context.get_dummy_value()

        return types.void(counters, types.uint64, values, types.uint64), generate

    return add


def select_greater(lanes: int) -> Any:
    """Make ``select(slots, keys, left, right, column, key, out)`` for ``lanes`` bytes at once.

    In every lane: ``slots[out] = slots[right] if keys[column] > key else slots[left]``; keys are int8.
    """
    vector = ir.VectorType(_BYTE, lanes)

    @intrinsic
    def select(
        typing_context: Any, slots: Any, keys: Any, left: Any, right: Any, column: Any, key: Any, out: Any
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            slots, keys, left, right, column, key, out = args
            of_slots, of_keys = signature.args[:2]
            _, values = _load(builder, _place(context, builder, of_keys, keys, column), vector)
            _, from_left = _load(builder, _place(context, builder, of_slots, slots, left), vector)
            _, from_right = _load(builder, _place(context, builder, of_slots, slots, right), vector)
            goes_right = builder.icmp_signed(">", values, _splat(builder, key, vector))
            to = builder.bitcast(_place(context, builder, of_slots, slots, out), vector.as_pointer())
            builder.store(builder.select(goes_right, from_right, from_left), to).align = 1
            return context.get_dummy_value()

        u64 = types.uint64
        return types.void(slots, keys, u64, u64, u64, types.int8, u64), generate

    return select


def product_of_chosen(lanes: int, add: bool) -> Any:
    """Make ``multiply(values, masks, at, first, second, factors, place, out, to)`` for ``lanes`` float64.

    In every lane: ``out[to]`` becomes (or grows by, if ``add``) ``values[at]`` times one of three factors:
    ``factors[place]`` where ``masks[first]`` is not 0, else ``factors[place + 1]`` where ``masks[second]`` is
    not 0, else ``factors[place + 2]``. Masks are int64.
    """
    vector, integers = ir.VectorType(ir.DoubleType(), lanes), ir.VectorType(_LONG, lanes)
    none = ir.Constant(integers, [0] * lanes)

    @intrinsic
    def multiply(
        typing_context: Any, values: Any, masks: Any, at: Any, first: Any, second: Any, factors: Any,
        place: Any, out: Any, to: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values, masks, at, first, second, factors, place, out, to = args
            of_values, of_masks, of_factors, of_out = (signature.args[i] for i in (0, 1, 5, 7))
            _, value = _load(builder, _place(context, builder, of_values, values, at), vector, 8)
            chosen = None
            for number, line in ((2, None), (1, second), (0, first)):
                number = builder.add(place, _LONG(number))
                factor = _splat(
                    builder, builder.load(_place(context, builder, of_factors, factors, number)), vector
                )
                if line is not None:
                    _, mask = _load(builder, _place(context, builder, of_masks, masks, line), integers, 8)
                    factor = builder.select(builder.icmp_signed("!=", mask, none), factor, chosen)
                chosen = factor
            pointer, old = _load(builder, _place(context, builder, of_out, out, to), vector, 8)
            product = builder.fmul(value, chosen)
            builder.store(builder.fadd(old, product) if add else product, pointer).align = 8
            return context.get_dummy_value()

        u64 = types.uint64
        return types.void(values, masks, u64, u64, u64, factors, u64, out, u64), generate

    return multiply


def count_below(size: int) -> Any:
    """Make ``count(values, start, x)``: how many of ``size`` float32 from ``start`` on are below ``x``.

    None are below NaN. ``size`` is 8 (one register of 32 bytes) or a multiple of it.
    """
    eight = ir.VectorType(ir.FloatType(), 8)

    @intrinsic
    def count(typing_context: Any, values: Any, start: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values, start, x = args
            spread = _splat(builder, x, eight)
            total = _LONG(0)
            for first in range(0, size, 8):
                at = builder.add(start, _LONG(first))
                _, part = _load(builder, _place(context, builder, signature.args[0], values, at), eight)
                below = builder.bitcast(builder.fcmp_ordered("<", part, spread), _BYTE)
                total = builder.add(total, builder.zext(builder.ctpop(below), _LONG))
            return total

        return types.uint64(values, types.uint64, types.float32), generate

    return count


@intrinsic
def _lambda_block(typing_context: Any, rows: Any, own: Any, at: Any, sums: Any) -> Any:
    """``lambda_block(rows, own, at, sums)``: weigh the pairs of one row with eight rows from ``at`` on.

    ``rows`` are float64 arrays (worth, discount, power, slope, curve), ``own`` has the one row's first three.
    Of each pair whose other row has the lower discount, with change = (difference of worths) (difference of
    discounts) and P = power / (sum of both powers):

    * pair = change P(worse) is taken from its slope and added to ``sums[:8]``, in its lane;
    * bend = |change| P(worse) P(better) is added to its curve and to ``sums[8:16]``.
    """
    vector = ir.VectorType(ir.DoubleType(), LAMBDA_LANES)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows, own, at, sums = args
        kind = signature.args[0].dtype

        def add(array: Any, kind: Any, index: Any, terms: Any) -> None:
            pointer, old = _load(builder, _place(context, builder, kind, array, index), vector, align=8)
            builder.store(builder.fadd(old, terms), pointer).align = 8

        places = [_place(context, builder, kind, builder.extract_value(rows, k), at) for k in range(3)]
        worth, discount, power = (_load(builder, place, vector, align=8)[1] for place in places)
        own_worth, own_discount, own_power = (
            _splat(builder, builder.extract_value(own, k), vector) for k in range(3)
        )
        zero, one = _constants(worth, 0.0), _constants(worth, 1.0)
        lower = builder.fsub(own_discount, discount)
        lower = builder.select(builder.fcmp_ordered(">", lower, zero), lower, zero)
        ahead = builder.fsub(own_worth, worth)
        better = builder.fcmp_ordered(">", ahead, zero)
        share = builder.fdiv(one, builder.fadd(own_power, power))
        own_share, other_share = builder.fmul(own_power, share), builder.fmul(power, share)
        # Where both are worth the same, nothing is changed and it does not matter which is taken as better.
        pair = builder.fmul(builder.fmul(ahead, lower), builder.select(better, other_share, own_share))
        bend = builder.fmul(pair, builder.select(better, own_share, other_share))
        bend = builder.select(better, bend, builder.fsub(zero, bend))
        add(builder.extract_value(rows, 3), kind, at, builder.fsub(zero, pair))
        add(builder.extract_value(rows, 4), kind, at, bend)
        add(sums, signature.args[3], _LONG(0), pair)
        add(sums, signature.args[3], _LONG(LAMBDA_LANES), bend)
        return context.get_dummy_value()

    return types.void(rows, own, types.uint64, sums), generate


def match_any(size: int, characters: bytes) -> Any:
    """Make ``match(text, at)``: which of ``size`` bytes from ``at`` on are one of a few, a bit for each."""

    def test(builder: Any, vector: Any) -> Any:
        found = None
        for character in characters:
            same = builder.icmp_unsigned("==", vector, _constants(vector, character))
            found = same if found is None else builder.or_(found, same)
        return found

    return _matcher(size, test)


def match_range(size: int, first: int, last: int) -> Any:
    """Make ``match(text, at)``: which of ``size`` bytes from ``at`` on lie in a range, a bit for each."""

    def test(builder: Any, vector: Any) -> Any:
        above = builder.sub(vector, _constants(vector, first))
        return builder.icmp_unsigned("<=", above, _constants(vector, last - first))

    return _matcher(size, test)


def _matcher(size: int, test: Any) -> Any:
    bytes_, bits = ir.VectorType(_BYTE, size), ir.IntType(size)

    @intrinsic
    def match(typing_context: Any, text: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, vector = _load(builder, _place(context, builder, signature.args[0], *args), bytes_)
            return builder.zext(builder.bitcast(test(builder, vector), bits), _LONG)

        return types.uint64(text, types.uint64), generate

    return match


def _constants(vector: Any, number: float) -> Any:
    return ir.Constant(vector.type, [number] * vector.type.count)


# Kernels call these without the typing context; Any says so.
prefetch: Any = _prefetch
load_acquire: Any = _load_acquire
store_release: Any = _store_release
fetch_add: Any = _fetch_add
cpu_pause: Any = _cpu_pause
nap: Any = _nap
ticks: Any = _ticks
float_to_bits: Any = _float_to_bits
bits_to_float: Any = _bits_to_float
trailing_zeros: Any = _trailing_zeros
load_u64: Any = _load_u64
lambda_block: Any = _lambda_block
vector_add2: Any = _vector_add(2)
vector_add4: Any = _vector_add(4)
