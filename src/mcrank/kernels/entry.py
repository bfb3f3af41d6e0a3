"""The way into a kernel from Python, left as it is written.

It unpacks arguments, each array with checks and messages of its own, calls the kernel's body, which is a
function apart, and packs what that returns. LLVM makes it faster by some 20 ns for each array, which takes
longer than most kernels are ever called for. Here, unless a kernel is called ``often``, it is marked to be
left alone; the body is not, and its machine code is the same.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

from mcrank.kernels.lowering import by_values

_WAY_IN = "_ZN7cpython"  # how Numba's names of these functions begin


class KernelLibrary(JITCodeLibrary):
    """Code of a kernel."""

    def add_ir_module(self, ir_module: Any) -> None:
        """Add functions, and mark the way in."""
        for function in ir_module.functions:
            if function.name.startswith(_WAY_IN) and function.blocks:
                function.attributes.add("noinline")
                function.attributes.add("optnone")
        super().add_ir_module(ir_module)  # type: ignore[no-untyped-call]

    def _optimize_functions(self, ll_module: Any) -> None:
        """Left to the passes over the whole module, which come when steps are linked in."""
        ll_module.data_layout = self._codegen._data_layout


class KernelCompiler(Compiler):
    """Numba's compiler, but for the library that it writes into, and how (`mcrank.kernels.lowering`)."""

    library: Any = KernelLibrary

    def define_pipelines(self) -> Any:
        """Return Numba's passes."""
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()  # so that it can be kept on disk
        return by_values(super().define_pipelines())  # type: ignore[no-untyped-call]


class OftenCompiler(KernelCompiler):
    """The same for kernels that are called often: their way in is optimised."""

    library = JITCodeLibrary
