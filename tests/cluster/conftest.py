"""A Dask cluster of three processes on this machine, for all tests of a run."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress

import numpy as np
import pytest

from mcrank import Dataset

distributed = pytest.importorskip("distributed", reason="needs the extra dask: make scale-test")

WORKERS = 3


class Workers:
    """A scheduler in this process, and worker processes that may be killed: new ones take their places."""

    def __init__(self):
        self.cluster = distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None)
        self._processes = []
        self.refill()

    def refill(self):
        self._processes = [process for process in self._processes if process.poll() is None]
        for _ in range(WORKERS - len(self._processes)):
            command = [sys.executable, "-m", "distributed.cli.dask_worker", self.cluster.scheduler_address]
            options = ["--no-nanny", "--nthreads", "1", "--host", "127.0.0.1", "--memory-limit", "0"]
            options += ["--dashboard-address", "127.0.0.1:0"]
            self._processes.append(
                subprocess.Popen(
                    [*command, *options, "--local-directory", tempfile.gettempdir()],
                    env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )

    def close(self):
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait(30)
        self.cluster.close()


@pytest.fixture(scope="session")
def workers():
    found = Workers()
    yield found
    found.close()


@pytest.fixture
def client(workers):
    """A client, with all workers there."""
    workers.refill()
    with distributed.Client(workers.cluster, set_as_default=False) as client:
        deadline = time.monotonic() + 120
        while len(addresses(client)) < WORKERS:
            assert time.monotonic() < deadline, "workers do not start"
            time.sleep(0.1)
        yield client
        workers.refill()  # they start while the next test begins


def addresses(client):
    """Workers that answer, in their order."""
    return sorted(client.nthreads())


def made(queries=40, features=5, seed=1, weighted=False, named=False, largest=12):
    stream = np.random.default_rng(seed)
    sizes = stream.integers(1, largest, queries)
    rows = int(sizes.sum())
    X = stream.normal(size=(rows, features)).round(2)
    X[stream.random(X.shape) < 0.05] = np.nan
    y = np.clip(np.nansum(X[:, :2], axis=1) + stream.normal(size=rows), 0, 3).astype(int)
    weight = stream.random(rows) + 0.1 if weighted else None
    names = [f"feature {j}" for j in range(features)] if named else None
    return Dataset(X, y, np.repeat(np.arange(queries) + 100, sizes), weight, feature_names=names)


def arm(place, calls, number):
    """At a worker: send it a signal when something of mcrank is called for the n-th time from now on."""
    module, _, path = place.partition(":")
    owner = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    real, left = getattr(owner, name), [calls]

    def wrapped(*args, **kwargs):
        left[0] -= 1
        if left[0] == 0:
            setattr(owner, name, real)
            os.kill(os.getpid(), number)
        return real(*args, **kwargs)

    setattr(owner, name, wrapped)
    return os.getpid()


@contextmanager
def armed(client, place, calls, number=signal.SIGKILL, which=1):
    """Arm a worker; afterwards it is gone for good, whatever it was sent."""
    worker = addresses(client)[which]
    (pid,) = client.run(arm, place, calls, number, workers=[worker]).values()
    try:
        yield worker
    finally:
        kill(client, worker, pid)


def kill(client, worker, pid):
    """Kill a worker, and wait until Dask knows."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while worker in addresses(client) and time.monotonic() < deadline:
        time.sleep(0.1)
