"""How compiled functions are declared: kernels, which Python calls, and steps, which only kernels call.

Numba compiles for every function, beside its body, a way in from Python (which unpacks each array) and one
from C. Both go through the optimiser, and for a function of ten arrays they are two fifths of its compile
time. Nothing here is called from C, and steps are not called from Python, so they go without.

`kernel` and `step` also fix what all have in common: no GIL while they run, and kernels kept on disk
(`mcrank.kernels.cache`). What a kernel calls is compiled into it, so a step has no place on disk of its own,
and no machine code (`mcrank.kernels.linked`). A step with one caller is better declared with
``njit(inline="always")``: Numba then writes it into its caller.

Nor are references counted. Numba counts those to every array that is handed on or taken out of a tuple, and
then looks for counts that cancel, a sixth of the time in which the kernels of trees are compiled; but arrays
that Python passes to a kernel are Python's as long as it runs. Only kernels that make arrays
(``allocates=True``) need to count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.core import config as numba_config
from numba.core import typeinfer
from numba.core.typing.templates import infer_global
from numba.extending import register_jitable

from mcrank.errors import KernelError
from mcrank.kernels.cache import KernelCache
from mcrank.kernels.entry import KernelCompiler, OftenCompiler
from mcrank.kernels.linked import OuterCompiler, StepCompiler
from mcrank.kernels.stamp import STEP_OPTIONS

_DISPATCHER = "_mcrank_dispatcher"

if getattr(numba_config, "DISABLE_JIT", False):
    # Some steps are machine instructions that have no form in Python: it could not even be slow.
    raise KernelError(
        "mcrank cannot work with NUMBA_DISABLE_JIT=1: parts of its kernels are instructions that exist only "
        "compiled. Unset it, or set it only for the code you want to step through."
    )


def kernel(*signature: Any, allocates: bool = False, often: bool = False, **options: Any) -> Any:
    """Declare a function that Python calls; options are those of `numba.njit`.

    With a signature, or a list of them, it is compiled (or found on disk) when it is declared. One that makes
    arrays, itself or in a step, must say so by ``allocates``; else Numba refuses to compile it. One that
    is called ``often`` and does little, for a single row, has a way in that is optimised.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.quantize import round_gradients  # declared with @kernel
    >>> rounded = np.empty(2, dtype=np.int32)
    >>> round_gradients(np.array([0.5, -1.0]), 0.25, rounded)
    >>> rounded.tolist()
    [2, -4]
    """
    signatures = signature[0] if signature and isinstance(signature[0], list) else signature

    def declare(function: Callable[..., Any]) -> Any:
        compiled: Any = njit
        own = {"nogil": True, "no_cfunc_wrapper": True, "_nrt": allocates, **options}
        dispatcher = compiled(pipeline_class=OftenCompiler if often else KernelCompiler, **own)(function)
        # Not njit's cache=True: that one looks at the function's own file only.
        dispatcher._cache = KernelCache(dispatcher)
        with typeinfer.register_dispatcher(dispatcher):
            for one in signatures:
                dispatcher.compile(one)
        if signatures:
            dispatcher.disable_compile()
        return dispatcher

    return declare


def step(*, shared: bool = False, outer: bool = False, allocates: bool = False, **options: Any) -> Any:
    """Declare a function that kernels call.

    It stays a Python function, which is what runs when Python calls it: slow, but safe. (A function without
    a way in that is declared by `njit` ends the interpreter when it is called.) ``njit(function)`` gives
    tests a compiled one.

    Numba compiles it once for each kind of caller (kernels, steps, those with another ``error_model``).
    With ``shared`` it does so once for all: for large ones with several callers. The number 0 then counts as
    a type of its own, so typed numbers are to be passed, and an ``error_model`` of callers does not count;
    if it makes arrays it must say so by ``allocates``, and so must the kernels.
    With ``outer`` what it calls is not optimised with it, only with the kernel (`mcrank.kernels.linked`).

    Examples
    --------
    >>> from mcrank.kernels import step
    >>> @step()
    ... def successor(i):
    ...     return i + 1
    >>> successor(1)
    2
    """
    compiler = OuterCompiler if outer else StepCompiler
    own = {"no_cpython_wrapper": True, "error_model": "python", "_nrt": allocates} if shared else {}
    all_options = {"nogil": True, "no_cfunc_wrapper": True, **own, **options}

    def declare(function: Callable[..., Any]) -> Any:
        setattr(function, STEP_OPTIONS, {**all_options, "shared": shared, "outer": outer})
        if not shared:
            return register_jitable(pipeline_class=compiler, **all_options)(function)
        compiled: Any = njit
        dispatcher = compiled(pipeline_class=compiler, **all_options)(function)
        setattr(function, _DISPATCHER, dispatcher)  # Numba's type holds on to it only weakly
        infer_global(function, types.Dispatcher(dispatcher))  # type: ignore[no-untyped-call]
        return function

    return declare
