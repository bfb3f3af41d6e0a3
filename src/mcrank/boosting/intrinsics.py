"""Machine operations Numba has no words for: a prefetch, one vector add to a row of counters, and numbers
that one thread leaves for another.

All emit a few lines of LLVM and are correct (if slower) on any machine LLVM knows.
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def _prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """``prefetch(array, index)``: ask for the cache line of ``array[index]``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte = ir.IntType(8).as_pointer()
        i32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module, kind, "llvm.prefetch.p0"
        )
        place = builder.bitcast(builder.gep(data, [args[1]]), byte)
        # Read, keep in all cache levels, data rather than instructions.
        builder.call(function, [place, i32(0), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(array, types.uint64), codegen


def _lane_adder(lanes: int) -> Any:
    @intrinsic
    def add_lanes(typingctx: Any, counters: Any, at: Any, values: Any, source: Any) -> Any:
        """``add_lanes(counters, at, values, source)``: counters[at:at + L] += values[source:source + L]."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(ir.IntType(64), lanes)
            counts = context.make_array(signature.args[0])(context, builder, args[0]).data
            added = context.make_array(signature.args[2])(context, builder, args[2]).data
            loads = []
            for data, index in ((counts, args[1]), (added, args[3])):
                place = builder.bitcast(builder.gep(data, [index]), vector.as_pointer())
                load = builder.load(place)
                load.align = 8  # NumPy promises no more
                loads.append((place, load))
            (place, old), (_, new) = loads
            builder.store(builder.add(old, new), place).align = 8
            return context.get_dummy_value()

        return types.void(counters, types.uint64, values, types.uint64), codegen

    return add_lanes


@intrinsic
def _leave(typingctx: Any, board: Any, index: Any, value: Any) -> Any:
    """``leave(board, index, value)``: who reads the value sees all this thread wrote before it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        builder.store_atomic(args[2], builder.gep(data, [args[1]]), "release", 8)
        return context.get_dummy_value()

    return types.void(board, types.uint64, types.int64), codegen


@intrinsic
def _look(typingctx: Any, board: Any, index: Any) -> Any:
    """``look(board, index)``: the value now, read again at every call."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.load_atomic(builder.gep(data, [args[1]]), "acquire", 8)

    return types.int64(board, types.uint64), codegen


@intrinsic
def _count_up(typingctx: Any, board: Any, index: Any) -> Any:
    """``count_up(board, index)``: add 1, whoever else does so too; return the value before."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", builder.gep(data, [args[1]]), ir.IntType(64)(1), "acq_rel")

    return types.int64(board, types.uint64), codegen


@intrinsic
def _pause(typingctx: Any) -> Any:
    """``pause()``: tell the processor that this thread only looks, so that it leaves room for others."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if platform.machine().lower() in ("x86_64", "amd64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                builder.module, kind, "llvm.x86.sse2.pause"
            )
            builder.call(function, [])
        return context.get_dummy_value()

    return types.void(), codegen


# Kernels call these without the typing context; Any says so.
pause: Any = _pause
leave: Any = _leave
look: Any = _look
count_up: Any = _count_up
prefetch: Any = _prefetch
add2: Any = _lane_adder(2)
add4: Any = _lane_adder(4)
