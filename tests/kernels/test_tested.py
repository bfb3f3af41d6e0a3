"""A Numba nobody tested is said, once, and where it is too new to work, so is that."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest

from mcrank.kernels import cache, tested
from mcrank.kernels.tested import NEWEST_TESTED, untested

TOP = Path(__file__).parents[2]
TOO_NEW = f"0.{NEWEST_TESTED[1] + 1}.0"


def test_the_bound_of_the_package_the_lock_and_the_check_agree():
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    (bound,) = (line for line in project["dependencies"] if line.startswith("numba"))
    assert bound.endswith(f",<{NEWEST_TESTED[0]}.{NEWEST_TESTED[1] + 1}")
    lock = (TOP / "requirements" / "lock.txt").read_text().splitlines()
    # One line, or one for each kind of machine: some of the extras need an older Numba on some of them.
    locked = [line.partition("==")[2].split(" ")[0] for line in lock if line.startswith("numba==")]
    assert [untested(version) for version in locked] == [None] * len(locked)
    assert max(tuple(map(int, version.split(".")[:2])) for version in locked) == NEWEST_TESTED


@pytest.mark.parametrize("version", ["0.61.0", "0.68.0rc1", "0.68.9", "0.9.1", "unknown", "0+unknown", ""])
def test_tested_and_strange_versions_are_silent(version):
    assert untested(version) is None


@pytest.mark.parametrize("version", [TOO_NEW, TOO_NEW + "rc1", "0.100.2", "1.0.0"])
def test_newer_versions_are_told_with_what_to_do(version):
    assert version in untested(version)
    assert f"numba<{NEWEST_TESTED[0]}.{NEWEST_TESTED[1] + 1}" in untested(version)


def test_the_first_compile_warns_once(sample, monkeypatch):
    monkeypatch.setattr(tested, "_told", False)
    monkeypatch.setitem(cache.VERSIONS, "numba", TOO_NEW)
    main = sample.fresh()
    with pytest.warns(UserWarning, match=f"Numba {TOO_NEW} is newer"):
        main.value(main.Pair(1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        main.value(main.Pair(1, 2.0))  # compiled as well


def test_a_missing_part_of_a_newer_numba_is_an_error_that_says_what_to_do():
    code = f"""
import numba, numba.core.caching
numba.__version__ = {TOO_NEW!r}
del numba.core.caching._Cache
from mcrank.errors import KernelError
try:
    import mcrank.kernels
except KernelError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "_Cache" in done.stdout
    assert "pip install 'numba<" in done.stdout
