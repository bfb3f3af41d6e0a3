"""A comparison killed at any moment goes on where it stopped, and ends with the same bytes."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mcrank
from tests.experiments.conftest import TIMES, tree

SCRIPT = """
import sys, mcrank
rankers = ["mcrank:n_estimators=40,num_leaves=3|6,subsample=0.5", "regression:n_estimators=60"]
mcrank.compare(rankers, sys.argv[1], ["ndcg@5"], ["yahoo"], out=sys.argv[2], n_jobs=2, seed=3)
print("finished")
"""


def start(letor, out):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(letor), str(out)], stdout=subprocess.PIPE, text=True
    )


def finish(letor, out):
    with start(letor, out) as process:
        said, _ = process.communicate(timeout=300)
    assert (process.returncode, said) == (0, "finished\n")


def workers(parent):
    """Worker processes of a process, where the system can tell."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes()
            after_name = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if b"mcrank.experiments.workers" in words and int(after_name[1]) == parent:
            found.append(path)
    return found


@pytest.mark.slow
def test_killed_at_random_moments(letor, tmp_path):
    finish(letor, tmp_path / "whole")
    out, seed = tmp_path / "killed", random.randrange(10**6)
    print("seed", seed)
    moments = random.Random(seed)
    kills = 0
    for wanted in (1, 5):  # somewhere behind the first trial, and behind the fifth
        with start(letor, out) as process:
            while process.poll() is None and len(list(out.glob("trials/*.trial"))) < wanted:
                time.sleep(0.01)
            time.sleep(moments.random() * 0.2)
            helpers = workers(process.pid)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        kills += process.returncode == -signal.SIGKILL
        for _ in range(300):  # its workers notice that it is gone
            if not any(path.exists() for path in helpers):
                break
            time.sleep(0.1)
        assert not any(path.exists() for path in helpers)
    assert kills >= 1
    half = tmp_path / "killed" / "trials" / ".half.trial.0123abcd.part"
    half.write_bytes(b"what a kill in the middle of writing leaves")
    finish(letor, out)
    assert tree(out, without=TIMES) == tree(tmp_path / "whole", without=TIMES)
    assert sorted(tree(out)) == sorted(tree(tmp_path / "whole"))


def test_ctrl_c_keeps_no_half_trained_cell(letor, tmp_path):
    def press(progress):
        if any("round" in words for words in progress.running):
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        mcrank.compare(
            "regression:n_estimators=100000", letor, out=tmp_path / "run", n_jobs=1, callback=press
        )
    assert signal.getsignal(signal.SIGINT) is before
    assert not list((tmp_path / "run" / "trials").iterdir())
    with pytest.raises(mcrank.DataError, match="is not finished yet; run it again to go on"):
        mcrank.Comparison.load(tmp_path / "run")
