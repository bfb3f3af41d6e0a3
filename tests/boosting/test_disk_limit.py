"""Training from disk under a limit of private memory that training in memory does not fit."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("resource")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA of Linux")]

# Peaks are told apart from what the process has before any data: libraries differ from machine to machine.
CODE = """
import hashlib, re, resource, sys
import mcrank, pyarrow.parquet
from mcrank.memory import private_bytes
from mcrank.rankers.registry import to_bytes

where, path, more = sys.argv[1], sys.argv[2], int(sys.argv[3])
train, *_ = mcrank.make_artificial(n_train=20, n_valid=1, n_test=1, n_features=3, seed=0)
mcrank.McRank(n_estimators=1, n_jobs=1).fit(train)  # kernels are loaded
status = open("/proc/self/status").read()
limit = int(re.search(r"VmData:\\s+(\\d+)", status)[1]) * 1024 + more
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
peak = [0]

def watch(event):
    peak[0] = max(peak[0], private_bytes())
    return False

before = private_bytes()
source = mcrank.scan(path) if where == "disk" else mcrank.read(path)
ranker = mcrank.McRank(n_estimators=3, n_jobs=1).fit(source, callback=watch)
print(hashlib.sha256(to_bytes(ranker)).hexdigest(), peak[0] - before)
"""


def trained(where, path, more):
    command = [sys.executable, "-c", CODE, where, str(path), str(more)]
    # Arrow's other allocators reserve a gigabyte that nobody uses, and the limit is of what is reserved.
    env = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_training_takes_a_part_of_what_the_matrix_alone_would(tmp_path):
    rows, features = 200_000, 100
    rng, path = np.random.default_rng(0), tmp_path / "train.parquet"
    X = rng.integers(0, 500, (features, rows)).astype(np.float32)
    y = np.digitize(X[0] + X[1], [500, 700, 800])
    columns = {"qid": np.arange(rows) // 40, "label": y} | {f"x{j}": X[j] for j in range(features)}
    pq.write_table(pa.table(columns), path)
    matrix = X.nbytes  # 80 MB; the bins take half as much again
    del X, columns
    here = trained("memory", path, 1 << 40)
    assert here.returncode == 0, here.stderr
    assert trained("memory", path, matrix).returncode != 0
    disk = trained("disk", path, matrix)
    assert disk.returncode == 0, disk.stderr
    (wanted, _), (found, peak) = here.stdout.split(), disk.stdout.split()
    assert found == wanted
    assert int(peak) < matrix
