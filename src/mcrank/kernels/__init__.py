"""Compiled functions: how they are declared, where they are kept, and when a kept one may be used.

`declare` has `kernel` and `step`, `linked` how far a step is compiled; `stamp` describes all that a kernel is
compiled from; `cache` keeps kernels on disk under that description (`mcrank.kept`). `tested` says for which
Numba. What kernels are made of: `memory`, `vectors` and `search` (all LLVM written by hand),
`exp`, `sort`, `fenwick`. `handed` passes tuples of many arrays as one pointer.
"""

from mcrank.errors import KernelError
from mcrank.kernels.tested import untested

try:
    from mcrank.kernels.declare import kernel as kernel
    from mcrank.kernels.declare import step as step
except (ImportError, AttributeError) as error:
    import numba

    said = untested(numba.__version__)
    if said is None:
        raise
    raise KernelError(f"a part of Numba that mcrank needs is gone: {error}. {said}") from error
