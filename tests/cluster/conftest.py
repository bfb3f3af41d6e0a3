"""A Dask cluster of four processes on this machine, for all tests of a run.

Nothing here waits for a moment: a worker is killed or held when something of mcrank is called at it, and
tests wait for what they wait for, however busy the machine is; `PATIENCE` only ends a run that hangs.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from mcrank import Dataset

dask = pytest.importorskip("dask", reason="needs the extra dask: make scale-test")
distributed = pytest.importorskip("distributed", reason="needs the extra dask: make scale-test")

# What Dask says of a slow machine is no error.
SLOW = "ignore:.* taking a surprisingly long time:UserWarning"


def pytest_configure(config):
    config.addinivalue_line("filterwarnings", SLOW)


WORKERS = 4
PATIENCE = 600.0  # seconds


class Workers:
    """A scheduler in this process, and worker processes that may be killed: new ones take their places."""

    def __init__(self):
        # A worker that is stopped stays one of Dask's: noticing it is mcrank's business alone.
        with dask.config.set({"distributed.scheduler.worker-ttl": None}):
            self.cluster = distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None)
        self._processes, self._numbers = {}, count()
        self.refill()

    def refill(self):
        self._processes = {name: one for name, one in self._processes.items() if one.poll() is None}
        for _ in range(WORKERS - len(self._processes)):
            name = f"worker-{next(self._numbers)}"
            command = [sys.executable, "-m", "distributed.cli.dask_worker", self.cluster.scheduler_address]
            options = ["--no-nanny", "--nthreads", "1", "--host", "127.0.0.1", "--memory-limit", "0"]
            options += ["--dashboard-address", "127.0.0.1:0", "--name", name, "--death-timeout", "600"]
            self._processes[name] = subprocess.Popen(
                [*command, *options, "--local-directory", tempfile.gettempdir()],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def ready(self, client):
        """Whether Dask has exactly the processes that live."""
        self.refill()
        return sorted(client.run_on_scheduler(names)) == sorted(self._processes)

    def close(self):
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()
        self.cluster.close()


def names(dask_scheduler):
    return [worker.name for worker in dask_scheduler.workers.values()]


def until(found, what):
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.1)


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
        until(lambda: workers.ready(client), "all workers there")
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


def arm(place, calls, act):
    """At a worker: do something when something of mcrank is called for the n-th time from now on."""
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
            act()
        return real(*args, **kwargs)

    setattr(owner, name, wrapped)
    return os.getpid()


@contextmanager
def armed(client, place, calls, number=signal.SIGKILL, which=1):
    """Have a worker send itself a signal; afterwards it is gone for good, whatever it was sent."""
    worker = addresses(client)[which]
    (pid,) = client.run(arm, place, calls, lambda: os.kill(os.getpid(), number), workers=[worker]).values()
    try:
        yield worker
    finally:
        kill(client, worker, pid)


@contextmanager
def held(client, place, calls, folder, which=1):
    """Have a worker wait where something is called for the n-th time, until this is left.

    Gives the path of a file that is there once it waits.
    """
    there, go = Path(folder) / "there", Path(folder) / "go"

    def wait():
        there.touch()
        while not go.exists():
            time.sleep(0.05)

    client.run(arm, place, calls, wait, workers=[addresses(client)[which]])
    try:
        yield there
    finally:
        go.touch()


def kill(client, worker, pid):
    """Kill a worker, and wait until Dask knows."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    until(lambda: worker not in addresses(client), f"{worker} gone")


def descendants(pid):
    """Processes that a process started, and those that they started."""
    found = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *descendants(child)]
    return found


def lives(pid):
    """Whether a process runs, rather than being gone or a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
