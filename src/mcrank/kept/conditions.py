"""Under which conditions kernels are compiled: all that the names of their files depend on, and more.

The name of a kernel's file (`mcrank.kernels.cache`) has digests of what the kernel is compiled from, of the
processor, of versions and of settings. To compute it takes the compiler, the types of the arguments, and the
functions as they are loaded. What is told here takes none of them and changes whenever one of those digests
does: every source file of the package for what kernels are made of, and every variable named ``NUMBA_...``
for the settings. It may also change when they do not, by an edited comment; then kernels are looked for one
by one, as ever.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import all_suffixes
from importlib.util import find_spec
from typing import NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The file in which a package says its version.
_VERSION_FILES = {"numba": "_version.py", "llvmlite": "_version.py", "numpy": "version.py"}
# Settings by which Numba, and bins kept between trainings, go other ways.
_VARIABLES = ("NUMBA_", "MCRANK_BINS")
_SETTINGS_FILE = ".numba_config.yaml"  # of the working directory: Numba reads it before its variables


class Conditions(NamedTuple):
    """Digests of the sources and of all else, and when the last of the sources changed."""

    sources: str
    rest: str
    changed: int


def conditions(package: str = _PACKAGE) -> Conditions | None:
    """Tell the conditions of now; None if something of them cannot be told.

    Examples
    --------
    >>> from mcrank.kept.conditions import conditions
    >>> conditions() == conditions()
    True
    """
    try:
        if os.path.exists(_SETTINGS_FILE):
            return None
        sources, changed = _sources(package)
        rest = repr((_processor(), _versions(), _python(), _settings()))
    except (OSError, ImportError, ValueError, RuntimeError):  # the last: LLVM does not know the processor
        return None
    return Conditions(sources, hashlib.sha256(rest.encode()).hexdigest(), changed)


def are_told(versions: Mapping[str, str]) -> bool:
    """Whether these versions, of packages as they are loaded, are those that their files say.

    Where a package works its version out when it is loaded, as one under development may, the file stays
    the same when the package does not.
    """
    try:
        told = _versions()
    except (OSError, ImportError, ValueError):
        return False
    return all(
        any(f"{quote}{version}{quote}".encode() in told.get(name, b"") for quote in "\"'")
        for name, version in versions.items()
    )


def _sources(package: str) -> tuple[str, int]:
    """Return the digest of every file of a package that can be imported, and when the last one changed."""
    digest = hashlib.sha256()
    changed = 0
    for path in sorted(_modules(package)):
        with open(path, "rb") as file:
            facts = os.fstat(file.fileno())
            content = file.read()
        changed = max(changed, facts.st_mtime_ns, facts.st_ctime_ns)
        digest.update(repr((os.path.relpath(path, package), len(content))).encode("utf-8", "surrogateescape"))
        digest.update(content)
    if not changed:
        raise FileNotFoundError(package)  # in an archive, say
    return digest.hexdigest(), changed


def _modules(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _modules(entry.path)
            elif entry.name.endswith(tuple(all_suffixes())):
                yield entry.path


def _processor() -> tuple[str, str, str]:
    """Ask LLVM, as Numba does."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def _versions() -> dict[str, bytes]:
    """Return what each package has in the file of its version; none of them is imported for that."""
    texts = {}
    for name, file_name in _VERSION_FILES.items():
        spec = find_spec(name)
        places = spec.submodule_search_locations if spec is not None else None
        if not places:
            raise ModuleNotFoundError(name)
        with open(os.path.join(places[0], file_name), "rb") as file:
            texts[name] = file.read()
    return texts


def _python() -> tuple[str, ...]:
    flags = f"{sys.flags.optimize}"  # without assertions byte code is another
    return sys.version, str(sys.implementation.cache_tag), getattr(sys, "abiflags", ""), sys.platform, flags


def _settings() -> list[tuple[str, str]]:
    return sorted(item for item in os.environ.items() if item[0].startswith(_VARIABLES))
