"""How far a step is compiled: to code that kernels link in, and no further.

Numba optimises a function together with all that it calls, makes machine code of it, and does both again in
each of its callers, up to the kernel. Of a step only what the kernel makes of it is ever run, so no machine
code is made of a step. Optimised it is: loops that were optimised by themselves and again in the kernel run 3
to 4 percent faster than those that were only optimised there. An *outer* step, which has no such loops but
calls much, is left to the kernel: all that is below it would be optimised once more for nothing.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from mcrank.kernels.lowering import by_values


class _NoMachineCode:
    """Stands where Numba tells machine code of the objects it may use: there is none to tell."""

    def set_env(self, name: str, environment: Any) -> None:
        pass


class LinkedLibrary(JITCodeLibrary):
    """Code of a step, to be linked into that of its callers."""

    codegen = _NoMachineCode()

    def get_pointer_to_function(self, name: str) -> int:
        """Return what Numba takes for a function that Python cannot call."""
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True


class OuterLibrary(LinkedLibrary):
    """The same of an outer step."""

    def _optimize_final_module(self) -> None:
        """Left to the kernel."""


class StepCompiler(Compiler):
    """Numba's compiler, but for what becomes of the code."""

    library: Any = LinkedLibrary

    def define_pipelines(self) -> Any:
        """Return Numba's passes; they write into a library of the kind above."""
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        return by_values(super().define_pipelines())  # type: ignore[no-untyped-call]


class OuterCompiler(StepCompiler):
    """The same for outer steps."""

    library = OuterLibrary
