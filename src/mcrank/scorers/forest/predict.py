"""Scoring: the raw score of every row in every output of a forest."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from mcrank.arrays import FeatureArray, FloatArray
from mcrank.errors import DataError
from mcrank.scorers.forest.block_kernels import fold_rows, walk_rows
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.forest.rank_kernels import LANES
from mcrank.threads import check_jobs, run_all

# Up to this many rows even a narrow block would be mostly empty, and walking is cheaper
# (docs/engineering/scoring.md).
_WALKED_ROWS = 2
# Work a thread must have to be worth starting.
_THREAD_NANOSECONDS = 1_000_000
_PARTS = 4  # that rows are cut into for each thread


def predict_raw(
    forest: Forest, X: FeatureArray, n_jobs: int = 1, out: FloatArray | None = None
) -> FloatArray:
    """Return the raw scores of the rows of ``X``, one column per output.

    The leaf values of an output are added to its base in tree order in float64, whatever the number of rows
    and threads: the score of a row never depends on its company.

    Parameters
    ----------
    forest : Forest
        The trees.
    X : ndarray of float32, shape (rows, features)
        Feature values; NaN is a missing value. Other layouts and types are converted.
    n_jobs : int, default 1
        Threads; -1 for one per processor.
    out : ndarray of float64, shape (rows, outputs), optional
        Where to put the scores.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.forest.predict import predict_raw
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> builder = ForestBuilder(n_features=1, base=[0.5])
    >>> builder.append(feature=[0, -1, -1], threshold=[3.0, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
    ...                value=[0, -1.0, 2.0])
    >>> predict_raw(builder.build(), np.array([[3.0], [4.0], [np.nan]], dtype=np.float32)).tolist()
    [[-0.5], [2.5], [2.5]]
    """
    X = np.ascontiguousarray(X, dtype=np.float32)
    if X.ndim != 2 or X.shape[1] != forest.n_features:
        raise DataError(
            f"X must have shape (rows, {forest.n_features}), one column per feature of the model, "
            f"got {X.shape}."
        )
    rows = X.shape[0]
    if out is None:
        out = np.empty((rows, forest.n_outputs), dtype=np.float64)
    elif out.shape != (rows, forest.n_outputs) or out.dtype != np.float64 or not out.flags.carray:
        raise DataError(
            f"out must be a writable C-ordered float64 array of shape {(rows, forest.n_outputs)}, "
            f"got {out.dtype.name} of shape {out.shape}."
        )
    _score(forest, X, check_jobs(n_jobs, "predict"), out)
    return out


def predict_finite(forest: Forest, X: FeatureArray, n_jobs: int = 1) -> FloatArray | None:
    """`predict_raw` of rows nobody has looked at; None where they hold an infinite number.

    ``X`` is a C-ordered float32 matrix of as many columns as the forest has features.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.forest.predict import predict_finite
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> builder = ForestBuilder(n_features=1, base=[0.5])
    >>> builder.append(feature=[-1], value=[0.25])
    >>> predict_finite(builder.build(), np.array([[3.0], [np.nan]], dtype=np.float32)).tolist()
    [[0.75], [0.75]]
    >>> predict_finite(builder.build(), np.array([[3.0], [np.inf]], dtype=np.float32)) is None
    True
    """
    out = np.empty((X.shape[0], forest.n_outputs), dtype=np.float64)
    return None if _score(forest, X, n_jobs, out) else out


def _score(forest: Forest, X: FeatureArray, threads: int, out: FloatArray) -> bool:
    """Score all rows, and return whether they hold an infinite number."""
    rows = X.shape[0]
    if rows <= _WALKED_ROWS:
        return bool(walk_rows(_flat(X), 0, rows, forest.arrays, out))
    if threads > 1:
        threads = _worthwhile(rows, threads, forest.compiled.block_nanoseconds)
    if threads == 1:  # at once: a few rows take less time than to cut them into parts
        return _fold_part(forest, X, 0, rows, out)
    infinite: list[bool] = []
    run_all(lambda part: infinite.append(_fold_part(forest, X, *part, out)), _parts(rows, threads), threads)
    return any(infinite)


def _worthwhile(rows: int, threads: int, block_nanoseconds: int) -> int:
    """Threads that have enough to do."""
    blocks = -(-rows // LANES)
    return max(1, min(threads, blocks, blocks * block_nanoseconds // _THREAD_NANOSECONDS))


def _parts(rows: int, threads: int) -> list[tuple[int, int]]:
    """Cut rows into contiguous parts at block borders.

    There are more of them than threads: one that woke up late or runs on a busy core takes fewer.
    """
    blocks = -(-rows // LANES)
    parts = 1 if threads == 1 else min(blocks, _PARTS * threads)
    return list(pairwise(min(rows, blocks * i // parts * LANES) for i in range(parts + 1)))


def _fold_part(forest: Forest, X: FeatureArray, start: int, end: int, out: Any) -> bool:
    compiled = forest.compiled
    scratch = compiled.scratch(forest.n_outputs)
    tables, program = compiled.tables, compiled.program
    return bool(fold_rows(_flat(X), start, end, tables, program, forest.arrays, scratch, out))


def _flat(X: FeatureArray) -> FeatureArray:
    # Always read-only: to Numba a writable array is another type, and would be another compilation.
    flat = X.reshape(-1)
    flat.setflags(write=False)
    return flat
