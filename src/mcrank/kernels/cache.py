"""Compiled kernels on disk: one file for each kernel and its argument types, under a name that says it all.

The name has a digest of everything the machine code depends on: what the kernel is compiled from
(`mcrank.kernels.stamp`), the types, the processor, the versions of Numba, LLVM, NumPy and Python, and Numba's
settings. A file found under the right name is therefore the right one, and no index has to be kept. Inside, a
digest of the content is checked before anything is unpacked, so a file that was cut short or damaged is
deleted and its kernel compiled again. Files appear by renaming: processes that compile the same kernel at the
same time do not disturb each other.

Which folders, and whose files are run: `mcrank.kernels.folders`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import secrets
import sys
import time
from collections import defaultdict
from typing import Any

from numba.core import config as numba_config
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from mcrank.kernels.folders import Folder, folders
from mcrank.kernels.stamp import VERSIONS, Undescribed, describe_types, stamp
from mcrank.kernels.tested import warn_if_untested

SUFFIX = ".kernel"
_PART = ".part"
_MAGIC = b"mcrank kernel 1\n"
_DIGEST_BYTES = hashlib.sha256().digest_size
# Settings of Numba that change what it compiles, beyond those it tells itself (processor, features).
_SETTINGS = (
    "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LLVM_REFPRUNE_PASS",
    "LLVM_REFPRUNE_FLAGS", "LLVM_PASS_TIMINGS", "ENABLE_AVX", "DISABLE_INTEL_SVML", "INLINE_ARRAYEXPR",
)  # fmt: skip
# Versions of one kernel that are kept, so that going back and forth between two branches compiles nothing.
VERSIONS_KEPT = 4
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_DAY = 24 * 3600.0
UNUSED_SECONDS = 90 * _DAY
_ABANDONED_SECONDS = 3600.0


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
        for folder in folders():
            path = os.path.join(folder.path, name)
            content = _read(folder, path, name)
            if content is None:
                continue
            try:
                rebuild: Any = CompileResult._rebuild
                found = rebuild(target_context, *pickle.loads(content))
            except MemoryError:
                raise
            except Exception:
                _remove(path)  # intact, and still of no use: whatever the reason, compiling helps
            else:
                _mark_used(path)
                return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel in the first folder that takes it."""
        if any(not lifted.can_cache for lifted in data.lifted) or data.library.has_dynamic_globals:
            return  # its code has addresses of this process in it
        name = self._name(sig, data.codegen)
        if name is None:
            return
        pack: Any = dumps
        payload = pack(data._reduce())
        content = _MAGIC + hashlib.sha256(name.encode() + payload).digest() + payload
        for folder in folders():
            try:
                folder.make()
                _write(os.path.join(folder.path, name), content)
            except OSError:
                continue
            _prune(folder.path, name)
            return

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
        return f"{where}-{self._stamp[:16]}-{digest[:32]}{SUFFIX}"


def _read(folder: Folder, path: str, name: str) -> bytes | None:
    """Return what was kept in a file, if it is there, may be run and is whole; a damaged one is deleted."""
    if not folder.usable():
        return None
    try:
        # Without waiting: where others may put files, one may be a pipe that nobody writes to.
        with open(os.open(path, os.O_RDONLY | _NO_WAIT), "rb") as file:
            if not folder.trusts(os.fstat(file.fileno())):
                return None
            content = file.read()
    except OSError:
        return None
    start = len(_MAGIC) + _DIGEST_BYTES
    payload = content[start:]
    if content[:start] == _MAGIC + hashlib.sha256(name.encode() + payload).digest():
        return payload
    _remove(path)
    return None


def _write(path: str, content: bytes) -> None:
    part = f"{path}.{secrets.token_hex(4)}{_PART}"
    try:
        # Never writable for others, whatever the umask says: what anybody may change is not run.
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
            file.write(content)
        os.replace(part, path)
    except BaseException:
        _remove(part)
        raise


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _mark_used(path: str) -> None:
    """Note, once a day, that a kernel is in use."""
    with contextlib.suppress(OSError):
        if time.time() - os.stat(path).st_mtime > _DAY:
            os.utime(path)


def _prune(folder: str, name: str) -> None:
    """Delete what nobody will ask for again: old versions of this kernel, what was not used for long.

    Other processes may be reading: an open file stays whole, and one that is gone is compiled.
    """
    kernel = name.rsplit("-", 2)[0]
    versions: dict[str, list[tuple[float, str]]] = defaultdict(list)
    now = time.time()
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            used = entry.stat().st_mtime
            if entry.name.endswith(SUFFIX) and entry.name.count("-") >= 2:
                about, version, _ = entry.name.rsplit("-", 2)
                if now - used > UNUSED_SECONDS:
                    _remove(entry.path)
                elif about == kernel:
                    versions[version].append((used, entry.path))
            elif entry.name.endswith(_PART) and now - used > _ABANDONED_SECONDS:
                _remove(entry.path)
    latest_first = sorted(versions.values(), key=max, reverse=True)
    for version_files in latest_first[VERSIONS_KEPT:]:
        for _, path in version_files:
            _remove(path)
