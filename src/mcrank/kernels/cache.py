"""Compiled kernels on disk: one file for each kernel and its argument types, under a name that says it all.

The name has a digest of everything the machine code depends on: what the kernel is compiled from
(`mcrank.kernels.stamp`), the types, the processor, the versions of Numba, LLVM, NumPy and Python, and Numba's
settings. A file found under the right name is therefore the right one. How files are written, checked and
pruned is in `mcrank.kept.files`, which folders and whose files are run in `mcrank.kept.folders`.

Whoever adds to what the name depends on adds to `mcrank.kept.conditions` as well.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from typing import Any

from numba.core import config as numba_config
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from mcrank.kept import files
from mcrank.kept.folders import folders
from mcrank.kernels.stamp import VERSIONS, Undescribed, describe_types, stamp
from mcrank.kernels.tested import warn_if_untested

# Settings of Numba that change what it compiles, beyond those it tells itself (processor, features).
_SETTINGS = (
    "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LLVM_REFPRUNE_PASS",
    "LLVM_REFPRUNE_FLAGS", "LLVM_PASS_TIMINGS", "ENABLE_AVX", "DISABLE_INTEL_SVML", "INLINE_ARRAYEXPR",
)  # fmt: skip
# Files of kernels that this process found or wrote; None stands for those it could not keep.
_used: set[str | None] = set()


def kernels_used() -> frozenset[str] | None:
    """Return the files of all kernels of this process so far; None if one of them could not be kept.

    Examples
    --------
    >>> import mcrank.losses.quantize  # declares kernels with their types
    >>> from mcrank.kernels.cache import kernels_used
    >>> any(name.startswith("mcrank.losses.quantize.") for name in kernels_used())
    True
    """
    if None in _used:
        return None
    return frozenset(name for name in _used if name is not None)


class KernelCache(_Cache):
    """The place on disk of one kernel, as Numba's dispatcher wants it.

    Nothing here raises: a kernel that cannot be kept, found or unpacked is compiled. What is compiled under a
    Numba nobody tested is said once.
    """

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher
        self._stamp: str | None = None

    @property
    def cache_path(self) -> str | None:
        """The first folder that is there."""
        return next((folder.path for folder in folders() if folder.usable()), None)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel compiled for these types, or None: then Numba compiles it."""
        found = self._find(sig, target_context)
        if found is None:
            warn_if_untested(VERSIONS["numba"])
        return found

    def _find(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        name = self._name(sig, target_context.codegen())
        if name is None:
            return None
        for path, content in files.found(name):
            try:
                rebuild: Any = CompileResult._rebuild
                found = rebuild(target_context, *pickle.loads(content))
            except MemoryError:
                raise
            except Exception:
                files.remove(path)  # intact, and still of no use: whatever the reason, compiling helps
            else:
                files.mark_used(path)
                _used.add(name)
                return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel in the first folder that takes it."""
        # Where its code has addresses of this process in it, it is of no use to others.
        movable = all(lifted.can_cache for lifted in data.lifted) and not data.library.has_dynamic_globals
        name = self._name(sig, data.codegen) if movable else None
        pack: Any = dumps
        # Without Numba's printout of types, which takes longer to write than the rest and nobody reads.
        kept = name is not None and files.keep(name, pack(data._replace(type_annotation="")._reduce()))
        _used.add(name if kept else None)

    def enable(self) -> None:
        """Nothing to do: it is on."""

    def disable(self) -> None:
        """Nothing to do: Numba never asks."""

    def flush(self) -> None:
        """Nothing to do: a file under the right name is right."""

    def _name(self, sig: Any, codegen: Any) -> str | None:
        """Return the file name for these types, or None if what the kernel is made of cannot be told."""
        function = self._dispatcher.py_func
        try:
            if self._stamp is None:
                # When it is first needed: what it calls may be defined below it.
                self._stamp = stamp(self._dispatcher)
            machine = (
                describe_types(sig),
                codegen.magic_tuple(),
                VERSIONS,
                sys.implementation.cache_tag,
                getattr(sys, "abiflags", ""),
                [getattr(numba_config, setting, None) for setting in _SETTINGS],
            )
        except Undescribed:
            return None
        digest = hashlib.sha256(repr((self._stamp, machine)).encode()).hexdigest()
        where = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
        return f"{where}-{self._stamp[:16]}-{digest[:32]}{files.KERNEL}"
