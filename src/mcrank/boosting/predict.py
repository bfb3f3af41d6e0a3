"""Scoring: the raw score of every row in every output of a forest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from mcrank.boosting.trees import Forest
from mcrank.errors import DataError


@njit(nogil=True, cache=True)
def _walk(X, tree_offsets, tree_output, feature, threshold, missing_left, left, right, value, out):  # type: ignore[no-untyped-def]
    # IN: X and the arrays of a forest. OUT: out[row, output], added to.
    for i in range(X.shape[0]):
        for t in range(tree_output.shape[0]):
            start = tree_offsets[t]
            node = start
            while feature[node] >= 0:
                x = X[i, feature[node]]
                if x <= threshold[node] or (np.isnan(x) and missing_left[node] == 1):
                    node = start + left[node]
                else:
                    node = start + right[node]
            out[i, tree_output[t]] += value[node]


def predict_raw(
    forest: Forest,
    X: npt.NDArray[np.float32],
    n_jobs: int = 1,
    out: npt.NDArray[np.float64] | None = None,
) -> npt.NDArray[np.float64]:
    """Return the raw scores of the rows of ``X``, one column per output."""
    if X.ndim != 2 or X.shape[1] != forest.n_features:
        raise DataError(f"X must have {forest.n_features} columns, one per feature, got shape {X.shape}.")
    if out is None:
        out = np.empty((X.shape[0], forest.n_outputs))
    out[:] = forest.base
    _walk(
        X, forest.tree_offsets, forest.tree_output, forest.feature, forest.threshold, forest.missing_left,
        forest.left, forest.right, forest.value, out,
    )  # fmt: skip
    return out
