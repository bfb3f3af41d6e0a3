"""Small random data sets whose features have few distinct values, so that bins lose nothing."""

from __future__ import annotations

import numpy as np

from mcrank import Dataset


def few_values(seed, rows, features, values, n_grades, *, noise=1.0, missing=0.0):
    """Grades cut from a noisy curve over features on a grid; queries of ten rows."""
    stream = np.random.default_rng(seed)
    X = stream.integers(0, values, (rows, features)).astype(np.float32)
    # Uneven steps: where a cut lies in its gap must not matter on the grid.
    X = (X**1.5 / 4).astype(np.float32)
    curve = X[:, 0] + np.sin(2 * X[:, 1 % features]) * X[:, 2 % features] + noise * stream.normal(size=rows)
    cuts = np.quantile(curve, np.linspace(0, 1, n_grades + 1)[1:-1])
    y = np.searchsorted(cuts, curve).astype(float)
    if missing:
        X[stream.random(X.shape) < missing] = np.nan
    return X, y, np.arange(rows) // 10


def dataset(*args, weight=None, query_weight=None, **kwargs):
    X, y, qid = few_values(*args, **kwargs)
    return Dataset(X, y, qid, weight, query_weight)


TEACH_NOTHING = ["no relevant row", "equal grades", "single rows", "constant", "missing"]


def teaching_nothing(case, X, y, qid):
    """Rows changed so that nothing follows from them about any order."""
    if case == "no relevant row":
        y = np.zeros(len(y))
    elif case == "equal grades":
        y = np.ones(len(y))
    elif case == "single rows":
        qid = np.arange(len(y))
    else:
        X = np.full_like(X, {"constant": 2.0, "missing": np.nan}[case])
    return X, y, qid


def interrupt_after(n):
    """A callback that presses Ctrl-C in round ``n``."""

    def callback(event):
        if event.round == n:
            raise KeyboardInterrupt

    return callback
