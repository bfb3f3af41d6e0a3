"""Work on several threads, one way for all of it: readers, measures, training and scoring.

Threads are kept: an evaluation takes a few times as long as a new thread does to start. And they only ever
help. Items are claimed, not assigned, and the thread that asks claims its share like any other, so that
nobody waits for a thread that has not begun, be it because the machine is busy or because no more threads can
be had. Who has to wait for an item that another has claimed sleeps.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral
from typing import Any, Generic, TypeVar

from mcrank.cores import available_cores
from mcrank.errors import OptionError

# Calls that wait for a thread to be free; of more the oldest, which will have been answered otherwise, go.
_MOST_LATER = 64
Item = TypeVar("Item")
Result = TypeVar("Result")


def check_jobs(n_jobs: Any, where: str) -> int:
    """Return the number of threads asked for, all cores for None or -1, or raise `OptionError`.

    Examples
    --------
    >>> from mcrank.threads import check_jobs
    >>> check_jobs(3, "predict")
    3
    """
    if n_jobs is None or n_jobs == -1:
        return available_cores()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or int(n_jobs) < 1:
        raise OptionError(f"n_jobs of {where} must be an integer >= 1, or -1 for all cores, got {n_jobs!r}.")
    return int(n_jobs)


def run_all(task: Callable[[Item], object], items: Sequence[Item], n_jobs: int) -> None:
    """Run a task over items on up to ``n_jobs`` threads, this one among them.

    What a task raised is raised, of several that did the one of the earliest item: as on one thread.

    Examples
    --------
    >>> from mcrank.threads import run_all
    >>> squares = [0] * 4
    >>> run_all(lambda i: squares.__setitem__(i, i * i), range(4), n_jobs=2)
    >>> squares
    [0, 1, 4, 9]
    """
    if n_jobs == 1 or len(items) < 2:
        for item in items:
            task(item)
        return
    with InOrder[object](n_jobs) as work:
        for item in items:
            work.add(partial(task, item))
        for _ in items:
            work.take()


def call_helpers(work: Callable[[], None], count: int, n_jobs: int) -> None:
    """Have up to ``count`` other threads do some work, whenever they come to it; nobody waits for them.

    Threads that are busy come when they are done with what they do. The work must keep its errors to itself,
    and what it does must be done if no helper ever comes.

    Examples
    --------
    >>> import threading
    >>> from mcrank.threads import call_helpers
    >>> came = threading.Event()
    >>> call_helpers(came.set, 1, n_jobs=2)
    >>> came.wait(60)
    True
    """
    for _ in range(count):
        _kept.call_soon(work, n_jobs - 1)


class InOrder(Generic[Result]):
    """Tasks that up to ``n_jobs`` threads, this one among them, run; their results in the order of adding.

    Use it in a ``with`` block, whose end drops the tasks that no thread has claimed and waits for the others.

    Parameters
    ----------
    n_jobs : int
        Most threads at work. The one that takes results works, too: whenever it would have to wait.

    Examples
    --------
    >>> from mcrank.threads import InOrder
    >>> with InOrder(n_jobs=2) as work:
    ...     for i in range(3):
    ...         work.add(lambda i=i: i * i)
    ...     [work.take() for _ in range(len(work))]
    [0, 1, 4]
    """

    def __init__(self, n_jobs: int) -> None:
        self._most = n_jobs - 1
        self._helpers = 0  # called and not gone again; they may not have begun
        self._running = 0  # tasks claimed by them and not done
        self._added: deque[_Task[Result]] = deque()  # whose results nobody has taken
        self._waiting: deque[_Task[Result]] = deque()  # which nobody has claimed
        self._changed = threading.Condition(threading.Lock())

    def __len__(self) -> int:
        """Results to come."""
        return len(self._added)

    def add(self, task: Callable[[], Result]) -> None:
        """Add a task; a helper may begin with it at once."""
        added = _Task(task)
        with self._changed:
            self._added.append(added)
            self._waiting.append(added)
        self._call_helper()

    def _call_helper(self) -> None:
        """Call one more helper, if there is work for it and one is free."""
        with self._changed:
            if self._helpers >= self._most or not self._waiting:
                return
            self._helpers += 1
        if not _kept.call(self._help, self._most):
            with self._changed:
                self._helpers -= 1

    def take(self) -> Result:
        """Return the next result, or raise what its task raised; run tasks while it is not there."""
        wanted = self._added[0]
        while True:
            with self._changed:
                while not (wanted.done or self._waiting):
                    self._changed.wait()
                if wanted.done:
                    break
                mine = self._waiting.popleft()
            self._call_helper()  # none may have been free before
            mine.run()
            if mine.error is not None and not isinstance(mine.error, Exception):
                raise mine.error  # an interrupt is for this thread, not for the task it came in
        self._added.popleft()
        return wanted.result()

    def _help(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._helpers -= 1
                    return
                task = self._waiting.popleft()
                self._running += 1
            task.run()
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def __enter__(self) -> InOrder[Result]:
        return self

    def __exit__(self, *error: Any) -> None:
        with self._changed:
            self._waiting.clear()
            while self._running:
                self._changed.wait()
        self._added.clear()


class _Task(Generic[Result]):
    """A task and what came of it."""

    __slots__ = ("_call", "_result", "done", "error")

    def __init__(self, call: Callable[[], Result]) -> None:
        self._call: Callable[[], Result] | None = call
        self._result: Result | None = None
        self.error: BaseException | None = None
        self.done = False

    def run(self) -> None:
        call, self._call = self._call, None  # what it holds is let go with it
        try:
            if call is not None:
                self._result = call()
        except BaseException as error:
            self.error = error
        self.done = True

    def result(self) -> Result:
        if self.error is not None:
            raise self.error
        return self._result  # type: ignore[return-value]


class _Worker(threading.Thread):
    """A kept thread: sleeps until it is given work."""

    def __init__(self, kept: _Kept) -> None:
        # Nothing is lost when the interpreter ends while it sleeps; while it works somebody waits for it.
        super().__init__(name="mcrank", daemon=True)
        self._kept = kept
        self._bell = threading.Lock()
        self._bell.acquire()
        self._work: Callable[[], None] | None = None

    def give(self, work: Callable[[], None]) -> None:
        """Wake it up; it must be idle."""
        self._work = work
        self._bell.release()

    def run(self) -> None:
        """Work, and be idle again."""
        while True:
            self._bell.acquire()
            work, self._work = self._work, None
            while work is not None:
                work()
                work = self._kept.next_for(self)


class _Kept:
    """The threads that are kept.

    One that was called and has not woken up yet is not idle, so on a busy machine calls get rarer by
    themselves. All callers together get as many as there are cores, or as one of them asks for.
    """

    def __init__(self) -> None:
        self._idle: list[_Worker] = []
        self._count = 0
        self._later: deque[Callable[[], None]] = deque(maxlen=_MOST_LATER)
        self._lock = threading.Lock()

    def call(self, work: Callable[[], None], most: int) -> bool:
        """Have another thread do some work; False when none is free and there may not be more."""
        try:
            worker = self._idle.pop()
        except IndexError:
            with self._lock:
                if self._count >= max(most, available_cores() - 1):
                    return False
                worker = _Worker(self)
                try:
                    worker.start()
                except RuntimeError:  # no more threads: a limit, or the interpreter is about to end
                    return False
                self._count += 1
        worker.give(work)
        return True

    def call_soon(self, work: Callable[[], None], most: int) -> None:
        """Have another thread do some work, if none is free as soon as one is."""
        if self.call(work, most):
            return
        with self._lock:
            if not self._idle and self._count:
                self._later.append(work)
                return
        self.call(work, most)

    def next_for(self, worker: _Worker) -> Callable[[], None] | None:
        """Return more work for one that is done, or note that it is idle."""
        with self._lock:
            if self._later:
                return self._later.popleft()
            self._idle.append(worker)
        return None


_kept = _Kept()


def _forget() -> None:
    """In a forked process: the threads, and whatever locks they held, stay behind in the parent."""
    global _kept
    _kept = _Kept()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
