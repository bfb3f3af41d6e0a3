"""How many threads to use, and some that are kept: work of milliseconds cannot wait for new ones.

A new thread costs a tenth of what it does in an evaluation. Training has pools of its own, made once a fit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from numbers import Integral
from typing import Any, TypeVar

from mcrank.errors import OptionError

Item = TypeVar("Item")


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
    """Run a task over items on up to ``n_jobs`` threads, this one among them, and raise what one raised.

    Each thread takes the next item when it is free. One that has not woken up when all items are taken is not
    waited for.

    Examples
    --------
    >>> from mcrank.threads import run_all
    >>> squares = [0] * 4
    >>> run_all(lambda i: squares.__setitem__(i, i * i), range(4), n_jobs=2)
    >>> squares
    [0, 1, 4, 9]
    """
    waiting = iter(items)

    def chain() -> None:
        for item in waiting:
            task(item)

    threads = min(n_jobs, len(items))
    others = [_pool(n_jobs).submit(chain) for _ in range(threads - 1)]
    try:
        chain()
    finally:
        late = [other for other in others if not other.cancel()]
        errors = [error for error in (other.exception() for other in late) if error is not None]
    if errors:
        raise errors[0]


@lru_cache(maxsize=2)
def _pool(n_jobs: int) -> ThreadPoolExecutor:
    """Return the threads kept for this number; none is started before there is work for one."""
    return ThreadPoolExecutor(n_jobs, thread_name_prefix="mcrank")


if hasattr(os, "register_at_fork"):
    # The threads stay behind in the parent; a child that waited for them would wait forever.
    os.register_at_fork(after_in_child=_pool.cache_clear)
