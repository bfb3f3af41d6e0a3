"""Trials of a comparison as tasks of a Dask cluster: data go there, what came of a trial comes back.

Whoever compares writes all files: a worker needs to see none, but those that options of rankers name.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcrank.errors import McrankError
from mcrank.experiments.fold_source import KeptFolds, Parts
from mcrank.experiments.schedule import Schedule, Task
from mcrank.experiments.trial import Computed, Rounds, Trial, compute, keep
from mcrank.metrics.dialect import Dialect
from mcrank.metrics.tools import DIALECTS, define_dialect

if TYPE_CHECKING:
    from mcrank.scale.desk import Desk, Line

# Warnings of a trial are caught for the whole process.
_ONE_AT_A_TIME = threading.Lock()


def ask_cluster(desk: Desk, folds: KeptFolds, number: int, schedule: Schedule, task: Task) -> float:
    """Have a worker run a task, and keep what came of it; return the seconds it took."""
    trial = task.trial
    model = None if trial.model is None else Path(trial.model).read_bytes()
    try:
        found: Computed = desk.run(
            number,
            compute_there,
            (trial.fold, lambda: folds[trial.fold]),
            trial,
            tuple(DIALECTS.values()),
            model,
            reply=lambda said: schedule.round(task, *said),
        )
    except McrankError as error:
        raise named(task, type(error), str(error)) from None
    return keep(found, Path(task.target), Path(task.seconds))


def compute_there(
    line: Line, parts: Parts, trial: Trial, dialects: tuple[Dialect, ...], model: bytes | None
) -> Computed:
    """At a worker: run a trial."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    # Sums of a BLAS with more threads may round otherwise.
    with _ONE_AT_A_TIME, threadpool_limits(limits=1):
        for dialect in dialects:
            define_dialect(dialect)
        return compute(trial, parts, Rounds(lambda *rounds: line.tell(list(rounds))), model=model)


def named(task: Task, kind: type[Any], words: str) -> McrankError:
    """Return an error that says which task it is about."""
    return kind(f"{task.words}: {words}") if issubclass(kind, McrankError) else McrankError(words)
