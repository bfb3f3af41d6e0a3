"""Checks of what a caller gives a `Dataset`, and the grouping of rows by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.errors import DataError
from mcrank.texts import check_text

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Rows looked at or converted at a time: no temporary as large as the matrix.
_BLOCK = 16384


def refuse_masked(values: Any, where: str) -> None:
    """Raise `DataError` for the first masked entry: NumPy's conversions use it as if it were not masked."""
    # Asked this way because `numpy.ma` is not loaded unless somebody uses it.
    masked = getattr(values, "mask", False) if isinstance(values, np.ndarray) else False
    if np.any(masked):
        row = int(np.argwhere(np.broadcast_to(masked, values.shape))[0][0])
        raise DataError(f"{where} is masked at row {row}; give it a value there, or leave the row out.")


def refuse_unreal(values: Any, where: str) -> None:
    """Raise `DataError` for what would silently become another number: masked, complex, or a time."""
    refuse_masked(values, where)
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", "") in ("c", "m", "M"):
        raise DataError(f"{where} must be real numbers, got {dtype}.")


def check_features(X: Any, where: str) -> npt.NDArray[np.float32]:
    """Return ``X`` as a C-contiguous float32 matrix; infinite values and wrong shapes are `DataError`.

    Sparse matrices of scipy become dense: what they leave out is 0, not missing.
    """
    if hasattr(X, "toarray") and hasattr(X, "tocsr"):
        return _dense(X, where)
    refuse_unreal(X, where)
    try:
        given = np.asarray(X)
        if given.dtype.kind not in "fiub":
            given = given.astype(np.float64)
        with np.errstate(over="ignore"):
            features = np.ascontiguousarray(given, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where} must be a matrix of numbers: {error}.") from None
    if features.ndim != 2:
        raise DataError(f"{where} must have 2 dimensions (rows, features), got {features.ndim}.")
    if features.shape[0] == 0 or features.shape[1] == 0:
        raise DataError(f"{where} is empty: {features.shape[0]} rows, {features.shape[1]} features.")
    for start in range(0, features.shape[0], _BLOCK):
        bad = np.isinf(features[start : start + _BLOCK])
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            raise _too_large(where, given[start + row, column], start + row, column)
    return features


def _dense(X: Any, where: str) -> npt.NDArray[np.float32]:
    rows = X.tocsr()
    if rows.ndim != 2 or 0 in rows.shape:
        raise DataError(f"{where} must have rows and features, got shape {rows.shape}.")
    features = np.empty(rows.shape, dtype=np.float32)
    for start in range(0, rows.shape[0], _BLOCK):
        block = rows[start : start + _BLOCK].toarray()
        with np.errstate(over="ignore"):
            features[start : start + _BLOCK] = block
        bad = np.isinf(features[start : start + _BLOCK])
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            raise _too_large(where, block[row, column], start + row, column)
    return features


def _too_large(where: str, value: Any, row: int, column: int) -> DataError:
    return DataError(
        f"{where} has {float(value)!r} at row {row}, column {column}; values must fit float32 "
        "(use NaN for a missing value)."
    )


def check_column(values: Any, name: str, rows: int) -> npt.NDArray[Any]:
    """Return one value per row as an array of its own, of dtype object where types are mixed."""
    if isinstance(values, np.ndarray):
        refuse_masked(values, f"{name} of Dataset")
        column = np.asarray(values).view()
    elif hasattr(values, "to_numpy"):
        column = values.to_numpy().view()
    else:
        listed = list(values)
        column = np.array(listed) if len({type(v) for v in listed}) == 1 else np.array(listed, dtype=object)
        if column.ndim != 1:
            column = np.empty(len(listed), dtype=object)
            column[:] = listed
    if column.ndim != 1 or column.shape[0] != rows:
        raise DataError(
            f"{name} of Dataset must have one value per row: {rows} rows, got shape {column.shape}."
        )
    return column


def check_grades(y: npt.ArrayLike, rows: int) -> FloatArray:
    """Return the grades as float64: one per row, finite, not negative."""
    refuse_unreal(y, "y of Dataset")
    try:
        grades: FloatArray = np.array(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"y of Dataset must be numbers: {error}.") from None
    if grades.shape != (rows,):
        raise DataError(f"y of Dataset must have one grade per row: {rows} rows, got shape {grades.shape}.")
    bad = ~(np.isfinite(grades) & (grades >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"y of Dataset has {float(grades[row])!r} at row {row}; grades must be finite and >= 0."
        )
    return grades


def check_weights(values: npt.ArrayLike, name: str, expected: int) -> FloatArray:
    """Return weights as float64: finite, not negative, not all 0."""
    refuse_unreal(values, f"{name} of Dataset")
    try:
        weights: FloatArray = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} of Dataset must be numbers: {error}.") from None
    if weights.shape != (expected,):
        raise DataError(f"{name} of Dataset must have {expected} values, got shape {weights.shape}.")
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        at = int(np.argmax(bad))
        raise DataError(
            f"{name} of Dataset has {float(weights[at])!r} at position {at}; weights must be finite and >= 0."
        )
    if not weights.any():
        raise DataError(f"{name} of Dataset is 0 everywhere; at least one weight must be positive.")
    return weights


def check_query_weights(values: Any, qids: npt.NDArray[Any]) -> FloatArray | None:
    """Return one weight per query, given in first-seen order or by query id."""
    if values is None:
        return None
    if isinstance(values, Mapping):
        missing = [q for q in qids.tolist() if q not in values]
        if missing:
            raise DataError(f"query_weight of Dataset has no weight for query {missing[0]!r}.")
        values = [values[q] for q in qids.tolist()]
    return check_weights(values, "query_weight", len(qids))


def check_names(names: Sequence[str] | None, features: int) -> tuple[str, ...]:
    """Return one different name per feature; f1, f2, ... when none are given."""
    if names is None:
        return tuple(f"f{j + 1}" for j in range(features))
    named = tuple(str(name) for name in names)
    if len(named) != features:
        raise DataError(f"feature_names of Dataset must name {features} features, got {len(named)} names.")
    seen: set[str] = set()
    for name in named:
        check_text(name, "feature name")
        if name in seen:
            raise DataError(f"feature_names of Dataset has {name!r} twice; names must differ.")
        seen.add(name)
    return named


def group_rows(qid: npt.NDArray[Any]) -> tuple[IntArray | None, IntArray, npt.NDArray[Any]]:
    """Group rows by query in first-seen order, stable inside: (row order or None, offsets, query ids)."""
    if qid.dtype == object:
        codes, qids = _object_codes(qid)
        starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
        order, offsets, found = group_runs(codes[starts], starts, len(qid))
        return order, offsets, qids[found]
    if qid.dtype.kind in "fcmM" and (qid != qid).any():
        row = int(np.argmax(qid != qid))
        raise DataError(f"qid of Dataset is missing at row {row}; every row needs a query id.")
    starts = np.flatnonzero(np.r_[True, qid[1:] != qid[:-1]])
    return group_runs(qid[starts], starts, len(qid))


def group_runs(
    ids: npt.NDArray[Any], starts: IntArray, rows: int
) -> tuple[IntArray | None, IntArray, npt.NDArray[Any]]:
    """Group runs of rows, each of one query, by query: the work is per run, not per row."""
    ends = np.append(starts[1:], rows)
    if ids.dtype == object:
        codes, qids = _object_codes(ids)
    else:
        unique, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
        by_first = np.argsort(first)
        rank = np.empty(len(unique), dtype=np.int64)
        rank[by_first] = np.arange(len(unique))
        codes, qids = rank[inverse], unique[by_first]
    sizes = np.bincount(codes, weights=ends - starts, minlength=len(qids)).astype(np.int64)
    offsets = np.r_[0, np.cumsum(sizes)].astype(np.int64)
    if (np.diff(codes) >= 0).all():
        return None, offsets, qids
    order = np.argsort(np.repeat(codes, ends - starts), kind="stable").astype(np.int64)
    return order, offsets, qids


def _object_codes(ids: npt.NDArray[Any]) -> tuple[IntArray, npt.NDArray[Any]]:
    """Number ids of any hashable type in first-seen order: (number of each, the ids)."""
    seen: dict[Any, int] = {}
    try:
        codes = np.fromiter((seen.setdefault(q, len(seen)) for q in ids), dtype=np.int64, count=len(ids))
    except TypeError as error:
        raise DataError(f"qid of Dataset must be hashable values: {error}.") from None
    for value, code in seen.items():
        # None, NaN, and the missing marks of pandas (NA, NaT), which this module must not import.
        if value is None or (isinstance(value, float) and value != value) or type(value).__name__ in _MISSING:
            row = int(np.argmax(codes == code))
            raise DataError(
                f"qid of Dataset is missing ({value!r}) at row {row}; every row needs a query id."
            )
    qids = np.empty(len(seen), dtype=object)
    qids[:] = list(seen)
    return codes, qids


_MISSING = ("NAType", "NaTType")
