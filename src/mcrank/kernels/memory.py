"""Machine operations that Numba has no words for, as LLVM written by hand: here and in some modules beside.

* Between threads: `load_acquire`, `store_release`, `fetch_add`, `cpu_pause`, `nap`, `ticks`; and `prefetch`.
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
BYTE, WORD, LONG = ir.IntType(8), ir.IntType(32), ir.IntType(64)


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


def place_of(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Pointer to ``array[index]``."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [index])


def load_at(builder: Any, place: Any, kind: Any, align: int = 1) -> tuple[Any, Any]:
    """Pointer to what lies at a place as another type, and its value; not trusted to be aligned."""
    pointer = builder.bitcast(place, kind.as_pointer())
    value = builder.load(pointer)
    value.align = align  # the arrays are aligned for speed; being wrong about it must not crash
    return pointer, value


def _call(builder: Any, name: str, kinds: list[Any], values: list[Any]) -> None:
    insert: Any = cgutils.get_or_insert_function
    builder.call(insert(builder.module, ir.FunctionType(ir.VoidType(), kinds), name), values)


@intrinsic
def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """``prefetch(array, index)``: ask for the cache line of ``array[index]``, to have it in the L2 cache."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = BYTE.as_pointer()
        place = builder.bitcast(place_of(context, builder, signature.args[0], *args), pointer)
        # Read, data rather than instructions; not into the L1 cache: what is at work there would make room.
        values = [place, WORD(0), WORD(2), WORD(1)]
        _call(builder, "llvm.prefetch.p0", [pointer, WORD, WORD, WORD], values)
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


@intrinsic
def _store_release(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """``store_release(array, index, value)``: who loads the value sees all this thread wrote before it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = place_of(context, builder, signature.args[0], args[0], args[1])
        builder.store_atomic(args[2], place, "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.uint64, types.int64), generate


@intrinsic
def _load_acquire(typing_context: Any, array: Any, index: Any) -> Any:
    """``load_acquire(array, index)``: the value now, read again at every call."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(place_of(context, builder, signature.args[0], *args), "acquire", 8)

    return types.int64(array, types.uint64), generate


@intrinsic
def _fetch_add(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """``fetch_add(array, index, value)``: add, whoever else does so too; return what was there before."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = place_of(context, builder, signature.args[0], args[0], args[1])
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
        place = room(builder, ir.Constant(ir.ArrayType(LONG, 2), [0, 0]))
        first = builder.gep(place, [WORD(0), WORD(0)])
        if _CLOCK_NAME == "clock_gettime":
            _call(builder, _CLOCK, [WORD, LONG.as_pointer()], [WORD(time.CLOCK_MONOTONIC), first])
            fraction = builder.load(builder.gep(place, [WORD(0), WORD(1)]))
            return builder.add(builder.mul(builder.load(first), LONG(10**9)), fraction)
        if _CLOCK_NAME:
            _call(builder, _CLOCK, [LONG.as_pointer()], [first])
        return builder.load(first)

    return types.int64(), generate


@intrinsic
def _nap(typing_context: Any, microseconds: Any) -> Any:
    """``nap(microseconds)``: sleep so long, so that others can have the core.

    Rather than yield it: on a busy machine who yields is put behind everybody else for milliseconds.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        unit = 1000 if _SLEEP_NAME == "Sleep" else 1
        _call(builder, _SLEEP, [WORD], [builder.trunc(builder.udiv(args[0], LONG(unit)), WORD)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def _float_to_bits(typing_context: Any, x: Any) -> Any:
    """Bits of a float64 as an int64."""
    return types.int64(types.float64), lambda c, builder, s, args: builder.bitcast(args[0], LONG)


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
        return load_at(builder, place_of(context, builder, signature.args[0], *args), LONG)[1]

    return types.uint64(text, types.uint64), generate


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
