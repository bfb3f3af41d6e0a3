"""Places of a training as threads of one process, which tell each other everything."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np


class Together:
    """One of several places; all that it asks for is made of what everybody gathers."""

    def __init__(self, rank: int, shared: list[Any], barrier: threading.Barrier) -> None:
        self.rank, self.size = rank, len(shared)
        self._shared, self._barrier = shared, barrier

    def gather(self, value):
        self._shared[self.rank] = value
        self._barrier.wait(600)  # a place may be busy compiling
        everything = list(self._shared)
        self._barrier.wait(600)  # nobody may write before everybody has read
        return everything

    def add(self, values):
        return np.sum(self.gather(values), axis=0)

    def most(self, value):
        return max(self.gather(value))

    def least(self, values):
        return np.min(self.gather(values.copy()), axis=0)  # the caller may write to them again

    def exchange(self, parts):
        return [given[self.rank] for given in self.gather(parts)]

    def scatter(self, hists, cuts):
        out = np.full_like(hists, -(2**40))  # what is not asked for is no sum
        mine = slice(cuts[self.rank], cuts[self.rank + 1])
        out[:, mine] = sum(part[:, mine] for part in self.gather(hists.copy()))
        return out

    def agree(self, found):
        everything = np.stack(self.gather(found.copy()))
        best = np.argmax(everything["terms"], axis=0)
        return everything[best, np.arange(len(found))]


def in_places(parts, task):
    """Run ``task(part, sums)`` in a thread for each part; return what each gave."""
    shared, barrier = [None] * len(parts), threading.Barrier(len(parts))
    given, errors = [None] * len(parts), []

    def work(rank):
        try:
            given[rank] = task(parts[rank], Together(rank, shared, barrier))
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=work, args=[rank]) for rank in range(len(parts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = [error for error in errors if not isinstance(error, threading.BrokenBarrierError)]
    if told or errors:
        raise (told or errors)[0]
    return given
