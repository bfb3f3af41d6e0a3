"""How compiled functions are declared: kernels, which Python calls, and steps, which only kernels call.

Numba compiles for every function, beside its body, a way in from Python (which unpacks each array) and one
from C. Both go through the optimiser, and for a function of ten arrays they are two fifths of its compile
time. Nothing here is called from C, and steps are not called from Python, so they go without.

`kernel` and `step` also fix what all have in common: no GIL while they run, and kernels kept on disk. What a
kernel calls is compiled into it, so a step has no place on disk of its own. A step with one caller is better
declared with ``njit(inline="always")``: Numba then writes it into its caller and compiles it once, not twice;
one that both kernels and steps call with ``njit(nogil=True)``: Numba compiles a `step` once for each kind of
caller.
"""

from __future__ import annotations

from typing import Any

from numba import njit
from numba.extending import register_jitable


def kernel(*signature: Any, **options: Any) -> Any:
    """Declare a function that Python calls; options are those of `numba.njit`.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.quantize import round_gradients  # declared with @kernel
    >>> rounded = np.empty(2, dtype=np.int32)
    >>> round_gradients(np.array([0.5, -1.0]), 0.25, rounded)
    >>> rounded.tolist()
    [2, -4]
    """
    declare: Any = njit  # whose own types leave out options that it documents
    return declare(*signature, nogil=True, cache=True, no_cfunc_wrapper=True, **options)


def step(**options: Any) -> Any:
    """Declare a function that kernels call.

    It stays a Python function, which is what runs when Python calls it: slow, but safe. (A function without
    a way in that is declared by `njit` ends the interpreter when it is called.) ``njit(function)`` gives
    tests a compiled one.

    Examples
    --------
    >>> from mcrank.kernels import step
    >>> @step()
    ... def successor(i):
    ...     return i + 1
    >>> successor(1)
    2
    """
    return register_jitable(nogil=True, no_cfunc_wrapper=True, **options)
