"""Kernels read and write nothing beyond their arrays: nobody checks it while they run."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import mcrank

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages are guarded by Linux's calls")
SCRIPT = Path(__file__).parent / "guarded.py"


def run(*args):
    source = str(Path(mcrank.__file__).parents[1])
    return subprocess.run(
        [sys.executable, str(SCRIPT), *args],
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )


def test_who_reads_beyond_an_array_is_ended():
    assert run("beyond").returncode == -signal.SIGSEGV


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["1", "2"])
def test_no_kernel_of_training_does(seed):
    done = run(seed, "15")
    assert done.returncode == 0, done.stderr
