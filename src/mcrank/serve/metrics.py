"""What the service counts, in the text form of Prometheus.

Everything counted is one row of numbers. Several workers have a row each in one file, and whoever is asked
adds them up: counts go on when a worker dies and another takes its row.
"""

from __future__ import annotations

import bisect
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.serve.models import Models
from mcrank.serve.problems import STATUSES

OTHER = "other"
_BUCKETS = (0.0005, 0.001, 0.002, 0.003, 0.006, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_STARTED = time.time()


class Metrics:
    """Counts of one worker, and the sum of all.

    Parameters
    ----------
    endpoints, models : sequence of str
        What is counted apart.
    file : path, optional
        Where workers count together.
    slot : int
        The row of this one.
    """

    def __init__(
        self, endpoints: tuple[str, ...], models: tuple[str, ...], file: str | None = None, slot: int = 0
    ) -> None:
        self._endpoints = {name: place for place, name in enumerate((*endpoints, OTHER))}
        self._models = {name: place for place, name in enumerate(models)}
        self._statuses = {status: place for place, status in enumerate(STATUSES)}
        sizes = [
            len(self._endpoints) * len(STATUSES),
            len(self._endpoints) * (len(_BUCKETS) + 2),
            len(models) * 4,
            1,
        ]
        self._all: FloatArray
        if file is None:
            self._all = np.zeros((1, sum(sizes)))
        else:
            self._all = np.memmap(file, dtype=np.float64, mode="r+").reshape(-1, sum(sizes))
        parts = np.split(self._all[slot], np.cumsum(sizes)[:-1])
        self._requests = parts[0].reshape(len(self._endpoints), -1)
        self._times = parts[1].reshape(len(self._endpoints), -1)  # counts by bucket, more than all, seconds
        self._own = parts[2].reshape(-1, 4)  # requests, rows, reloads, failed reloads
        self._now = parts[3]  # requests under way
        self._now[:] = 0.0
        self._sizes = sizes

    @staticmethod
    def make_file(path: Path, endpoints: int, models: int, workers: int) -> None:
        """Make the file that workers count in."""
        size = (endpoints + 1) * (len(STATUSES) + len(_BUCKETS) + 2) + models * 4 + 1
        path.write_bytes(bytes(8 * size * workers))

    def begin(self) -> None:
        """Note that a request has begun."""
        self._now[0] += 1

    def end(self, endpoint: str, status: int, seconds: float) -> None:
        """Note that it has been answered."""
        place = self._endpoints.get(endpoint, len(self._endpoints) - 1)
        self._now[0] -= 1
        self._requests[place, self._statuses[status]] += 1
        times = self._times[place]
        times[bisect.bisect_left(_BUCKETS, seconds)] += 1
        times[-1] += seconds

    def scored(self, model: str, rows: int) -> None:
        """Note that a model has scored rows."""
        own = self._own[self._models[model]]
        own[0] += 1
        own[1] += rows

    def reloaded(self, model: str, done: bool) -> None:
        """Note that a file was loaded again, or could not be."""
        self._own[self._models[model], 2 if done else 3] += 1

    def text(self, models: Models) -> bytes:
        """Return all of it as Prometheus reads it."""
        total = self._all.sum(axis=0)
        parts = np.split(total, np.cumsum(self._sizes)[:-1])
        lines = [
            *self._request_lines(parts[0].reshape(len(self._endpoints), -1)),
            *self._time_lines(parts[1].reshape(len(self._endpoints), -1)),
            *_head("mcrank_requests_in_flight", "gauge", "Requests that are being answered."),
            f"mcrank_requests_in_flight {_number(parts[3][0])}",
            *self._model_lines(parts[2].reshape(-1, 4), models),
            *_process_lines(),
        ]
        return "\n".join(lines).encode() + b"\n"

    def _request_lines(self, counts: FloatArray) -> Iterator[str]:
        name = "mcrank_requests_total"
        yield from _head(name, "counter", "Requests by endpoint and status; 499 for those whose client left.")
        for endpoint, place in self._endpoints.items():
            for status, column in self._statuses.items():
                if counts[place, column]:
                    labels = f'endpoint="{endpoint}",status="{status}"'
                    yield f"{name}{{{labels}}} {_number(counts[place, column])}"

    def _time_lines(self, times: FloatArray) -> Iterator[str]:
        name = "mcrank_request_seconds"
        yield from _head(name, "histogram", "Seconds from the first line of a request to its answer.")
        for endpoint, place in self._endpoints.items():
            counts = np.cumsum(times[place, :-1])
            if not counts[-1]:
                continue
            for bound, count in zip((*_BUCKETS, "+Inf"), counts, strict=True):
                yield f'{name}_bucket{{endpoint="{endpoint}",le="{bound}"}} {_number(count)}'
            yield f'{name}_sum{{endpoint="{endpoint}"}} {_number(times[place, -1])}'
            yield f'{name}_count{{endpoint="{endpoint}"}} {_number(counts[-1])}'

    def _model_lines(self, own: FloatArray, models: Models) -> Iterator[str]:
        columns = {
            "mcrank_model_requests_total": "Requests that a model has answered.",
            "mcrank_model_rows_total": "Rows that a model has scored.",
            "mcrank_model_reloads_total": "How often a changed model file was taken.",
            "mcrank_model_reload_failures_total": "How often it could not be, and the old model went on.",
        }
        for column, (name, words) in enumerate(columns.items()):
            yield from _head(name, "counter", words)
            for key, place in self._models.items():
                yield f"{name}{{{_label(key)}}} {_number(own[place, column])}"
        name = "mcrank_model_stale"
        yield from _head(
            name, "gauge", "1 where the file of a model cannot be used and an older one goes on."
        )
        for model in models.all():
            yield f"{name}{{{_label(model.key)}}} {int(models.failed(model.key))}"
        name = "mcrank_model_loaded_timestamp_seconds"
        yield from _head(name, "gauge", "When a model was loaded.")
        for model in models.all():
            yield f"{name}{{{_label(model.key)}}} {model.loaded:.3f}"
        name = "mcrank_model_info"
        yield from _head(name, "gauge", "Which model it is.")
        for model in models.all():
            labels = f'{_label(model.key)},ranker="{model.ranker.name}",fingerprint="{model.fingerprint}"'
            yield f"{name}{{{labels}}} 1"


def _process_lines() -> Iterator[str]:
    """What Prometheus's own clients tell of the process that answers."""
    facts = {
        "process_cpu_seconds_total": ("counter", "Processor time.", time.process_time()),
        "process_start_time_seconds": ("gauge", "When the process started.", _STARTED),
    }
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        facts["process_resident_memory_bytes"] = (
            "gauge",
            "Memory in use.",
            pages * os.sysconf("SC_PAGE_SIZE"),
        )
        facts["process_open_fds"] = ("gauge", "Open files.", len(os.listdir("/proc/self/fd")))
    for name, (kind, words, value) in facts.items():
        yield from _head(name, kind, words)
        yield f"{name} {_number(value)}"


def _head(name: str, kind: str, words: str) -> tuple[str, str]:
    return f"# HELP {name} {words}", f"# TYPE {name} {kind}"


def _label(model: str) -> str:
    escaped = model.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'model="{escaped}"'


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
