"""Running the trials of a comparison, in this process, in several, or on a cluster.

A worker process is started as ``python -m mcrank.experiments.workers``, which, unlike a pool of
`multiprocessing`, never runs the caller's script again and ends by itself when its parent is gone: its
standard input closes. It is told in JSON lines what to do and answers in JSON lines: first it is told
``{"recipe": ..., "dialects": ...}``, then ``{"trial": ..., "target": ..., "seconds": ...}`` for each trial;
it answers with some ``{"round": ..., "rounds": ...}``, then ``{"took": ...}`` or an error.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TYPE_CHECKING, Any

import mcrank
from mcrank import errors
from mcrank.errors import McrankError
from mcrank.experiments.cells import ask_cluster, named
from mcrank.experiments.fold_source import KeptFolds, Source, make_fold
from mcrank.experiments.schedule import Schedule, Task
from mcrank.experiments.trial import Rounds, Trial, compute, keep
from mcrank.metrics.dialect import Dialect
from mcrank.metrics.tools import DIALECTS, define_dialect

if TYPE_CHECKING:
    from mcrank.scale.desk import Desk

_WAIT = 0.1  # seconds between two looks at the workers


# Has a task done somewhere, and returns the seconds it took.
Ask = Callable[[Schedule, Task], float]


def run_tasks(
    schedule: Schedule, source: Source, folds: KeptFolds, n_jobs: int, desk: Desk | None = None
) -> None:
    """Run all tasks of a schedule, ``n_jobs`` at a time and each on one thread; or each worker of a cluster
    one at a time.
    """
    schedule.jobs = n_jobs if desk is None else desk.size
    if desk is not None:
        _run_there(schedule, [partial(ask_cluster, desk, folds, number) for number in range(desk.size)])
    elif schedule.jobs == 1 or not sys.executable:
        _run_here(schedule, folds)
    else:
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory(prefix="mcrank-"))
            recipe = source.handed_over(folder, folds)
            folds.clear()
            workers = [stack.enter_context(_worker(recipe)) for _ in range(schedule.jobs)]
            _run_there(schedule, [partial(_ask, worker) for worker in workers])
    if schedule.failure is not None:
        raise schedule.failure


def _run_here(schedule: Schedule, folds: KeptFolds) -> None:
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    fold = None
    # Sums of a BLAS with more threads may round otherwise.
    with threadpool_limits(limits=1), _ctrl_c_noted() as interrupted:
        while (task := schedule.take(fold)) is not None:
            fold = task.trial.fold
            try:
                told = {"trial": task.trial.to_json(), "target": task.target, "seconds": task.seconds}
                took = run_task(told, folds, partial(_tell, schedule, task), interrupted)
            except McrankError as error:
                schedule.failed(named(task, type(error), str(error)))
                return
            schedule.finished(task, took)
            schedule.say()


@contextmanager
def _ctrl_c_noted() -> Iterator[Callable[[], bool]]:
    """Whether there was a Ctrl-C, for rankers may take it for a wish to end early and say nothing."""
    noted = threading.Event()

    def on_ctrl_c(number: int, frame: FrameType | None) -> None:
        noted.set()
        raise KeyboardInterrupt

    here = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, on_ctrl_c) if here else None
    try:
        yield noted.is_set
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def _tell(schedule: Schedule, task: Task, done: int, of: int) -> None:
    schedule.round(task, done, of)
    schedule.say()


def _run_there(schedule: Schedule, workers: Sequence[Ask]) -> None:
    """One thread for each worker, asking and listening. This thread tells the callback, and Ctrl-C reaches
    it.
    """
    threads = [threading.Thread(target=_converse, args=(schedule, ask), daemon=True) for ask in workers]
    for thread in threads:
        thread.start()
    # After a failure what the other workers are at is lost, and done again next time.
    while schedule.failure is None and any(thread.is_alive() for thread in threads):
        threads[0].join(timeout=_WAIT)
        for thread in threads[1:]:
            thread.join(timeout=0.0)
        schedule.say()


def _converse(schedule: Schedule, ask: Ask) -> None:
    fold = None
    try:
        while (task := schedule.take(fold)) is not None:
            fold = task.trial.fold
            schedule.finished(task, ask(schedule, task))
    except Exception as error:  # raised again by the thread that started this one
        schedule.failed(error)


def _ask(worker: subprocess.Popen[str], schedule: Schedule, task: Task) -> float:
    if worker.stdin is None or worker.stdout is None:
        raise McrankError("a worker process has no pipes.")
    told = {"trial": task.trial.to_json(), "target": task.target, "seconds": task.seconds}
    try:
        worker.stdin.write(json.dumps(told) + "\n")
        worker.stdin.flush()
        for line in worker.stdout:
            said = json.loads(line)
            if "took" in said:
                return float(said["took"])
            if "error" in said:
                raise named(task, getattr(errors, said["kind"], McrankError), said["error"])
            schedule.round(task, said["round"], said["rounds"])
    except BrokenPipeError:
        pass
    try:
        code = worker.wait(timeout=5)
    except subprocess.TimeoutExpired:
        worker.kill()
        code = worker.wait()
    raise McrankError(
        f"{task.words}: its process ended with code {code}, perhaps for want of memory; what is finished is "
        "kept: run it again with fewer n_jobs."
    )


@contextmanager
def _worker(recipe: dict[str, Any]) -> Iterator[subprocess.Popen[str]]:
    """A worker process that has been told where its data come from; ended when left."""
    one_thread = {
        f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")
    }
    # Found wherever this process found it, and nothing else from the folder we happen to be in (-P).
    paths = [str(Path(mcrank.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "mcrank.experiments.workers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, **one_thread, "PYTHONPATH": os.pathsep.join(paths)},
    )
    try:
        begin = {"recipe": recipe, "dialects": [asdict(dialect) for dialect in DIALECTS.values()]}
        if process.stdin is not None:
            process.stdin.write(json.dumps(begin) + "\n")
            process.stdin.flush()
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what could not be delivered to a process that is gone
                if pipe is not None:
                    pipe.close()


def run_task(
    task: Mapping[str, Any],
    folds: KeptFolds,
    tell: Callable[[int, int], Any],
    interrupted: Callable[[], bool] = lambda: False,
) -> float:
    """Run the trial that a task describes; return the seconds it took."""
    trial = Trial(**task["trial"])
    target, seconds = Path(task["target"]), Path(task["seconds"])
    return keep(compute(trial, folds[trial.fold], Rounds(tell), interrupted), target, seconds)


def main() -> None:
    """Answer the parent until it closes its end."""
    # Whatever a library prints must not get between our lines.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # Ctrl-C goes to the whole terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()

    def answer(**words: Any) -> None:
        print(json.dumps(words), file=answers, flush=True)

    begin = json.loads(lines.get())
    for switches in begin["dialects"]:
        define_dialect(Dialect(**switches))
    folds = KeptFolds(lambda number: make_fold(begin["recipe"], number))
    while True:
        task = json.loads(lines.get())
        try:
            answer(took=run_task(task, folds, lambda done, of: answer(round=done, rounds=of)))
        except Exception as error:
            answer(**told_of(error))


def told_of(error: Exception) -> dict[str, str]:
    """Return what a worker tells of an error: of one that nobody expects also where it arose.

    Examples
    --------
    >>> from mcrank.experiments.workers import told_of
    >>> told_of(OSError(28, "No space left on device", "c/trials/1"))
    {'error': 'c/trials/1: No space left on device.', 'kind': 'OSError'}
    """
    kind = type(error).__name__
    if isinstance(error, McrankError):
        return {"error": str(error), "kind": kind}
    if isinstance(error, MemoryError):
        return {"error": "not enough memory", "kind": kind}
    if isinstance(error, OSError):  # a full disk is no fault of the code's
        what = error.strerror or str(error)
        return {"error": f"{error.filename}: {what}." if error.filename else f"{what}.", "kind": kind}
    return {"error": f"{kind}: {error}\n{traceback.format_exc(limit=-3)}", "kind": "unexpected"}


def _listen(lines: SimpleQueue[str]) -> None:
    """Read tasks; when the parent is gone there is nobody to work for, not even to finish the trial."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
