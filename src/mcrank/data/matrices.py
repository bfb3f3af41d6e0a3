"""Arrays and sparse matrices as feature matrices: float32, C-contiguous, finite or NaN."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from mcrank.arrays import Array, FeatureArray
from mcrank.data.columns import Column, foreign_errors, refuse_masked, to_numbers
from mcrank.errors import DataError

HINT = "leave it out, give it as numbers, or name it in categorical="
# Rows looked at or converted at a time: no temporary as large as the matrix.
_ROW_BLOCK = 16384


def of_array(X: Any, where: str) -> FeatureArray:
    """Nested lists or an array as a feature matrix."""
    if not isinstance(X, np.ndarray) and hasattr(X, "to_numpy"):
        raise _not_2d(where, 1)  # a series of a table library
    refuse_masked(X, where)
    try:
        given = np.asarray(X)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where} must be a matrix of numbers: {error}.") from None
    if given.dtype.names is not None:
        raise DataError(
            f"{where} is an array of records; give a mapping of its fields: {{name: X[name], ...}}."
        )
    if given.ndim != 2:
        raise _not_2d(where, given.ndim)
    if 0 in given.shape:
        raise DataError(f"{where} is empty: {given.shape[0]} rows, {given.shape[1]} features.")
    given = to_numbers(Column(given), where, HINT)
    return as_float32(given, where)


def _not_2d(where: str, found: int) -> DataError:
    hint = ""
    if found == 1:
        hint = ". Reshape your data: X.reshape(1, -1) makes one row of it, X.reshape(-1, 1) one feature"
    return DataError(f"{where} must have 2 dimensions (rows, features), got {found}{hint}.")


def dense(X: Any, where: str) -> FeatureArray:
    """A sparse matrix as a dense one: what it leaves out is 0, not missing."""
    with foreign_errors(f"{where} cannot be read as a sparse matrix"):
        rows = X.tocsr()
    if rows.ndim != 2 or 0 in rows.shape:
        raise DataError(f"{where} must have rows and features, got shape {rows.shape}.")
    features = np.empty(rows.shape, dtype=np.float32)
    for start in range(0, rows.shape[0], _ROW_BLOCK):
        with foreign_errors(f"{where} cannot be read as a sparse matrix"):
            block = rows[start : start + _ROW_BLOCK].toarray()
        block = to_numbers(Column(block), where, HINT)
        features[start : start + _ROW_BLOCK] = as_float32(block, where, first_row=start)
    return features


def as_float32(
    given: Array, where: str, *, titles: Sequence[str] | None = None, first_row: int = 0
) -> FeatureArray:
    """Numbers as C-contiguous float32; one that does not fit is `DataError`."""
    # A signalling NaN is a NaN like any other.
    quiet = np.errstate(over="ignore", invalid="ignore")
    with quiet if given.dtype != np.float32 else contextlib.nullcontext():
        values: FeatureArray = np.ascontiguousarray(given, dtype=np.float32)
    for start in range(0, len(values), _ROW_BLOCK):
        bad = np.isinf(values[start : start + _ROW_BLOCK])
        if not bad.any():
            continue
        row, *rest = (int(i) for i in np.argwhere(bad)[0])
        what = titles[rest[0]] if titles else where
        column = f", column {rest[0]}" if rest and not titles else ""
        raise DataError(
            f"{what} has {float(given[(start + row, *rest)])!r} at row {first_row + start + row}{column}; "
            "values must fit float32 (use NaN or null for a missing value)."
        )
    return values
