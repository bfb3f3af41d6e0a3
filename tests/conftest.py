"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

import mcrank

# Kernels compile inside the first example, and machines are noisy: a slow example is not a wrong one.
settings.register_profile("mcrank", deadline=None)
settings.load_profile("mcrank")


def pytest_configure(config: pytest.Config) -> None:
    """Forget compiled kernels older than the code.

    Numba notices a change of a kernel's own file, not of the files of kernels it calls, and would go on
    running the old ones.
    """
    if hasattr(config, "workerinput"):
        return  # the controller has done it before its workers started
    package = Path(mcrank.__file__).parent
    newest = max(path.stat().st_mtime for path in package.rglob("*.py"))
    for index in package.rglob("__pycache__/*.nbi"):
        if index.stat().st_mtime < newest:
            index.unlink(missing_ok=True)
