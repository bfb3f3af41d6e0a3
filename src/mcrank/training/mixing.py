"""How scores of several rankers become one: standardised, then weighted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.data.dataset import Dataset
from mcrank.errors import ModelFileError
from mcrank.training.ascent import ascend, line_search

FloatArray = npt.NDArray[np.float64]

STANDARDS = ("global", "query")
FARTHEST = 1e140  # scores beyond are cut off; their squares still have a sum
_LEAST = 1e-100  # of a standard deviation
_CONSTANT = 1e-12  # scores that vary less, as a share of their size, are equal but for rounding
_DOUBLINGS = 20
_SWEEPS = 20


@dataclass(frozen=True, eq=False)
class Standard:
    """Brings scores of several rankers to one scale: ``(score - shift) * factor``, or anew in each query.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.training.mixing import Standard
    >>> scores = np.array([[0.0, 2.0, 4.0, 6.0]])
    >>> Standard.fit(scores, "global").apply(scores, None).round(3).tolist()
    [[-1.342, -0.447, 0.447, 1.342]]
    """

    kind: str
    shift: FloatArray
    factor: FloatArray

    @classmethod
    def fit(cls, scores: FloatArray, kind: str) -> Standard:
        """Learn the scale of each ranker (first axis) from its scores."""
        clipped = np.clip(scores, -FARTHEST, FARTHEST)
        shift = clipped.mean(axis=1)
        return cls(kind, shift, _factor(((clipped - shift[:, None]) ** 2).mean(axis=1), clipped, axis=1))

    def repeat(self, times: list[int]) -> Standard:
        """Return the same with each ranker so many times."""
        return Standard(self.kind, np.repeat(self.shift, times), np.repeat(self.factor, times))

    def apply(self, scores: FloatArray, data: Dataset | None) -> FloatArray:
        """Return scores on one scale; ``data`` (scores in its grouped order) tells the queries."""
        clipped = np.clip(scores, -FARTHEST, FARTHEST)
        if self.kind == "global" or data is None:
            return np.asarray((clipped - self.shift[:, None]) * self.factor[:, None])
        starts, sizes = data.offsets[:-1], data.sizes
        clipped -= np.repeat(np.add.reduceat(clipped, starts, axis=1) / sizes, sizes, axis=1)
        variance = np.add.reduceat(clipped**2, starts, axis=1) / sizes
        size = np.maximum.reduceat(np.abs(scores), starts, axis=1)
        return np.asarray(clipped * np.repeat(_factor(variance, size), sizes, axis=1))

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays a model file keeps; the kind is an option of the ranker."""
        return {"standard_shift": self.shift, "standard_factor": self.factor}

    @classmethod
    def from_arrays(cls, kind: str, arrays: dict[str, npt.NDArray[Any]], count: int) -> Standard:
        """Return what `to_arrays` described; what cannot be one is a `ModelFileError`."""
        shift, factor = arrays["standard_shift"], arrays["standard_factor"]
        if any(array.dtype != np.float64 or array.shape != (count,) for array in (shift, factor)):
            raise ModelFileError(f"standard_shift and standard_factor must be {count} float64 numbers.")
        if np.abs(shift).max() > FARTHEST or factor.min() < 0 or factor.max() > 1 / _LEAST:
            raise ModelFileError("standard_shift or standard_factor is out of bounds.")
        return cls(kind, shift, factor)


def _factor(variance: FloatArray, scores: FloatArray, axis: int | None = None) -> FloatArray:
    """1 / standard deviation; 0 where scores of that size are equal but for rounding."""
    size = np.abs(scores) if axis is None else np.abs(scores).max(axis=axis)
    spread = np.sqrt(variance)
    varies = spread > np.maximum(_CONSTANT * size, _LEAST)
    return np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)


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
