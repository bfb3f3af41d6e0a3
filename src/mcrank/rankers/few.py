"""Words about data to learn from that have no order, and held-out data that are too small to choose a round
by, or to correct probabilities on.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from mcrank.arrays import FloatArray, IntArray, RowArray
from mcrank.rounds import Rounds
from mcrank.scorers.heads import Head
from mcrank.sums import Sums

FEW_QUERIES = 30
FEW_ROWS = 10  # of a grade
_SILENT: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def silently() -> Iterator[None]:
    """Warn of nothing here while this lasts: fits of a search, a curve or a blend, which are judged together.

    Examples
    --------
    >>> from mcrank.rankers.few import silently
    >>> with silently():
    ...     pass
    """
    token = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(token)


def few_rows(classes: RowArray, head: Head, sums: Sums) -> list[str]:
    """Say which grades have too few held-out rows for their probabilities to be corrected well.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.rankers.few import few_rows
    >>> from mcrank.scorers.heads import Head
    >>> from mcrank.sums import ALONE
    >>> classes, head = np.array([0] * 50 + [1] * 3, dtype=np.int32), Head("cumulative", np.arange(2.0))
    >>> few_rows(classes, head, ALONE)[0][:56]
    'corrected probabilities on held-out rows, of which grade'
    """
    values = np.empty(0) if head.values is None else head.values
    rows = sums.add(np.bincount(classes[classes >= 0], minlength=len(values)).astype(np.int64))
    few = [f"grade {g:g} has {n}" for g, n in zip(values, rows.tolist(), strict=True) if n < FEW_ROWS]
    if not few:
        return []
    return [
        f"corrected probabilities on held-out rows, of which {', '.join(few)}: fewer than {FEW_ROWS} rows of "
        "a grade say little about its probability; hold out more queries"
    ]


def few_queries(rounds: Rounds, folds: int | None) -> list[str]:
    """Say that too few queries have chosen a round, and what difference so many could show."""
    shown = rounds.shown
    if rounds.n_rounds < 2 or not 0 < shown.queries < FEW_QUERIES:
        return []
    least = shown.smallest_difference
    what = "no difference at all" if least is None else f"differences above {least:.2g} only"
    words = "give more queries" if folds else "give more queries, or folds=4, which holds each query out once"
    many = "query shows" if shown.queries == 1 else "queries show"
    return [f"chose by the measure on held-out data, whose {shown.queries} {many} {what}; {words}"]


def no_order(y: FloatArray, offsets: IntArray) -> list[str]:
    """Say that no query tells which of its rows is better.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.rankers.few import no_order
    >>> no_order(np.array([0.0, 1.0, 1.0]), np.array([0, 2, 3]))
    []
    >>> no_order(np.array([1.0, 1.0]), np.array([0, 2]))[0][:53]
    'got training data in which no query has rows of diffe'
    """
    starts = offsets[:-1]
    if not len(y) or (np.maximum.reduceat(y, starts) > np.minimum.reduceat(y, starts)).any():
        return []
    what = f"every grade is {y[0]:g}" if (y == y[0]).all() else "of each query all grades are equal"
    return [
        f"got training data in which no query has rows of different grades ({what}): there is no order to "
        "learn; look for grades and query ids that were lost (mcrank doctor)"
    ]


def tell_of_no_order(name: str, y: FloatArray, offsets: IntArray) -> None:
    """Warn whoever calls `fit` of data that no order can be learned from."""
    for words in [] if _SILENT.get() else no_order(y, offsets):
        warnings.warn(f"{name}.fit {words}.", stacklevel=4)


def tell_of_few(name: str, rounds: Rounds, folds: int | None) -> None:
    """Warn whoever called `fit` of held-out data that are too small, with figures."""
    if _SILENT.get():
        return
    for words in [*few_queries(rounds, folds), *rounds.notes]:
        warnings.warn(f"{name}.fit {words}.", stacklevel=4)
