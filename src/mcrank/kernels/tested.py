"""Which Numba mcrank was tested with, and what it says under a newer one.

Kernels are kept on disk by means Numba does not promise to keep: the dispatcher's ``_cache`` and what it asks
of it (``_Cache``, ``CompileResult._reduce`` and ``_rebuild``, ``has_dynamic_globals``, ``magic_tuple``,
``serialize.dumps``), ``typeinfer.register_dispatcher``, the option ``no_cfunc_wrapper``, the insides of an
intrinsic (``_defn``), the compiler's lock (`mcrank.forks`) and the LLVM that llvmlite writes; steps are
compiled by insides of ``JITCodeLibrary`` and ``infer_global``, and all is lowered by those of ``Lower``. A
release that changes them may fail loudly, or only compile everything anew; so pyproject.toml ends at the
newest release that passed the tests, and who installs a newer one all the same is told.
"""

from __future__ import annotations

import warnings

NEWEST_TESTED = (0, 68)
TRIED = ((0, 68),)  # whose insides `shortcuts` and `lowering` change
_told = False


def untested(version: str) -> str | None:
    """Return what to say about this version of Numba, or None if it is not newer than the tested ones.

    Examples
    --------
    >>> from mcrank.kernels.tested import untested
    >>> untested("0.68.1") is None
    True
    >>> print(untested("0.70.0"))  # doctest: +ELLIPSIS
    Numba 0.70.0 is newer than what this mcrank was tested with (0.68). ...: pip install 'numba<0.69'
    """
    numbers = version.split(".")[:2]
    if not all(number.isdigit() for number in numbers) or tuple(map(int, numbers)) <= NEWEST_TESTED:
        return None
    major, minor = NEWEST_TESTED
    return (
        f"Numba {version} is newer than what this mcrank was tested with ({major}.{minor}). If kernels fail"
        " to compile, or are compiled anew in every process, install a tested one:"
        f" pip install 'numba<{major}.{minor + 1}'"
    )


def was_tried(version: str) -> bool:
    """Whether shortcuts and our lowering were tried with this version of Numba.

    Examples
    --------
    >>> from mcrank.kernels.tested import was_tried
    >>> was_tried("0.68.1"), was_tried("0.61.0")
    (True, False)
    """
    return any(version.startswith(f"{major}.{minor}.") for major, minor in TRIED)


def warn_if_untested(version: str) -> None:
    """Warn, once in a process, of a Numba that is newer than the tested ones."""
    global _told
    told, _told = _told, True
    said = None if told else untested(version)
    if said is not None:
        warnings.warn(said, UserWarning, stacklevel=3)
