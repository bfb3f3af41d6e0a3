"""Forking a process while other threads are at work in mcrank.

A child of `os.fork` has one thread. A lock that another thread held at that moment stays locked in the child
for ever, and a module that was half imported stays half imported. What the first prediction of a process
needs is of that kind: imports (each module has a lock) and compiling (Numba and LLVM have one each). So a
fork waits until no other thread is importing or compiling, and holds the compiler's locks over the moment
itself. Once a process is warm there is nothing to wait for.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time

TYPE_CHECKING = False  # as type checkers read it: `import mcrank` does not wait for `typing`
if TYPE_CHECKING:
    from typing import Any

# Packages that mcrank imports when they are first needed.
_PACKAGES = frozenset({"mcrank", "numba", "llvmlite", "numpy", "scipy", "sklearn"})
# A fork is never kept longer: whoever forks while importing cannot be waited for.
PATIENCE_SECONDS = 120.0
_PAUSE_SECONDS = 0.001

_mine = threading.local()  # two threads may fork at once


def _before() -> None:
    """Wait for a moment at which nobody else imports or compiles; keep the compiler's locks."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not _hold_compiler() or _others_import():
        _release()
        if time.monotonic() > give_up:
            return
        time.sleep(_PAUSE_SECONDS)


def _hold_compiler() -> bool:
    """Take the compiler's locks if nobody has them."""
    held = _mine.held = []
    for lock in _compiler_locks():
        if not lock.acquire(blocking=False):
            return False
        held.append(lock)
    return True


def _compiler_locks() -> list[Any]:
    """Return the locks of Numba and of LLVM, if loaded, in the order in which compiling takes them."""
    numba = getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)
    llvm = getattr(getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None), "_lock", None)
    locks = [getattr(holder, "_lock", None) for holder in (numba, llvm)]
    return [lock for lock in locks if lock is not None]


def _others_import() -> bool:
    """Whether another thread is importing a module that a prediction may need."""
    # There is no public way to ask. Where Python keeps these locks elsewhere, forks do not wait for imports.
    locks = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    me = threading.get_ident()
    for name, reference in list(locks.items()):
        if str(name).partition(".")[0] in _PACKAGES:
            lock = reference()
            if getattr(lock, "owner", None) not in (None, me):
                return True
    return False


def _release() -> None:
    held: list[Any] = getattr(_mine, "held", [])
    while held:
        held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_release)
