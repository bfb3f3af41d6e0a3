"""How scores of several rankers become one: what each weighs."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.data.dataset import Dataset
from mcrank.training.ascent import ascend, line_search

_DOUBLINGS = 20
_SWEEPS = 20


def mixing_weights(scores: FloatArray, data: Dataset, options: dict[str, Any]) -> FloatArray:
    """Return the weight of each ranker (first axis of its standardised scores): not negative, adding up to 1.

    Parameters
    ----------
    scores : ndarray of shape (rankers, rows)
        In the grouped order of ``data``.
    data : Dataset
        Rows the rankers were not trained on.
    options : dict
        ``method``, ``shrink``, ``measure`` and ``random_state``.
    """
    count = len(scores)
    equal = np.full(count, 1.0 / count)
    if options["method"] == "equal" or count == 1:
        return equal
    found = _ascent(scores, data, options) if options["method"] == "ascent" else _nnls(scores, data)
    found = np.maximum(found, 0.0)
    if found.sum() > 0:
        found = found / found.sum()
        return np.asarray(options["shrink"] * equal + (1.0 - options["shrink"]) * found)
    return equal


def _ascent(scores: FloatArray, data: Dataset, options: dict[str, Any]) -> FloatArray:
    search = line_search(options["measure"], data, "exact", _DOUBLINGS)
    stream = np.random.default_rng([options["random_state"], len(scores)])
    columns = np.ascontiguousarray(scores[:, search.rows])
    return ascend(search, columns, np.ones(len(scores)), stream, 0.0, _SWEEPS)[0]


def _nnls(scores: FloatArray, data: Dataset) -> FloatArray:
    """Least squares of gains, as far as they differ inside a query."""
    from scipy.optimize import nnls

    gain = np.exp2(data.y - data.y.max()) - np.exp2(-data.y.max())  # 2^grade - 1, whose size does not matter
    starts, sizes = data.offsets[:-1], data.sizes
    rows = np.vstack([scores, gain])
    rows -= np.repeat(np.add.reduceat(rows, starts, axis=1) / sizes, sizes, axis=1)
    if data.row_weight is not None:
        rows *= np.sqrt(data.row_weight / data.row_weight.max())
    # The products of so few columns are all that matters, and much smaller than the rows.
    square = rows[:-1] @ rows[:-1].T
    values, vectors = np.linalg.eigh(square)
    kept = values > 1e-10 * max(float(values[-1]), 1e-300)
    root = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    target = (vectors[:, kept].T @ (rows[:-1] @ rows[-1])) / np.sqrt(values[kept])
    return np.asarray(nnls(root, target)[0]) if kept.any() else np.zeros(len(scores))
