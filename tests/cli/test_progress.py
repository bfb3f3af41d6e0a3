"""Progress: the compile line when there is something to compile and only then; the bar on a terminal only."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys

import pytest

LINE = "compiling kernels, first run only\n"
KERNEL = """
from numba import njit

@njit
def helper(x):
    return x + 1

@njit(cache=True)
def kernel(x):
    return helper(x) * 2
"""
USE = """
from mcrank.cli.progress import announce_compilation
announce_compilation()
announce_compilation()
import kernels
kernels.kernel(1), kernels.kernel(1.5), kernels.helper(1)
"""
BAR = """
from types import SimpleNamespace
from mcrank.cli.progress import TrainingProgress
with TrainingProgress("a ranker") as progress:
    event = SimpleNamespace(round=3, rounds=7, scores={"ndcg@10": 0.25}, seconds=0.1, note="")
    assert progress(event) is False
"""


def run(code, folder, **streams):
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": str(folder),
        "TERM": "xterm",
    }
    return subprocess.run([sys.executable, "-c", code], env=environment, cwd=folder, check=True, **streams)


@pytest.mark.slow
def test_compilation_is_announced_once_and_never_when_cached(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNEL)
    first = run(USE, tmp_path, capture_output=True, text=True)
    assert (first.stdout, first.stderr) == ("", LINE)
    second = run(USE, tmp_path, capture_output=True, text=True)
    assert (second.stdout, second.stderr) == ("", "")


def test_there_is_no_bar_without_a_terminal(tmp_path):
    done = run(BAR, tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_the_bar_shows_round_and_measure_on_a_terminal(tmp_path):
    ours, theirs = pty.openpty()
    try:
        done = run(BAR, tmp_path, stdout=subprocess.PIPE, stderr=theirs)
        shown = os.read(ours, 65536).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.stdout == b""
    for words in ("a ranker", "round 3/7", "ndcg@10 0.2500"):
        assert words in shown


def test_ctrl_c_twice_is_an_interrupt():
    from mcrank.cli.progress import TrainingProgress

    with TrainingProgress("x") as progress:
        os.kill(os.getpid(), signal.SIGINT)
        assert progress.stopped
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
