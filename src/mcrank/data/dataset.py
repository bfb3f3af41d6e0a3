"""`Dataset`: features, grades and query offsets, frozen.

One shape for ragged things: rows of all queries lie in one flat array, and query ``q`` owns the rows
``offsets[q]:offsets[q + 1]``. No padding, no object per query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.errors import DataError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Dataset:
    """Rows (query-document pairs) grouped by query.

    Rows whose query ids are not contiguous are grouped by query in first-seen order, keeping their
    order inside a query; `source_rows` remembers where each came from, and predictions come back in
    the caller's order.

    Parameters
    ----------
    X : array-like of shape (rows, features)
        Feature values, kept as float32. NaN is a missing value; infinities are errors.
    y : array-like of shape (rows,)
        Grades: finite and not negative.
    qid : array-like of shape (rows,)
        Query id of each row, of any hashable type, in any order.
    weight : array-like of shape (rows,), optional
        Row weights, acting in the loss.
    query_weight : array-like of shape (queries,) or mapping, optional
        Query weights in first-seen order, or by query id; they act in the loss and in the mean of a measure.
    feature_names : sequence of str, optional
        One name per feature; ``f1, f2, ...`` otherwise.
    doc_ids : sequence, optional
        One document id per row.

    Attributes
    ----------
    X, y : ndarray
        Features (float32) and grades (float64), grouped by query, read-only.
    offsets : ndarray of int64
        Query ``q`` owns rows ``offsets[q]:offsets[q + 1]``.
    qids : ndarray
        Id of each query, in first-seen order.
    source_rows : ndarray of int64 or None
        Row ``i`` here was row ``source_rows[i]`` of the caller; None when nothing moved.

    Examples
    --------
    >>> from mcrank import Dataset
    >>> data = Dataset([[1.0], [2.0], [3.0]], y=[0, 1, 2], qid=["b", "a", "b"])
    >>> data.y.tolist(), data.offsets.tolist(), data.qids.tolist()
    ([0.0, 2.0, 1.0], [0, 2, 3], ['b', 'a'])
    """

    __slots__ = (
        "X", "doc_ids", "feature_names", "offsets", "qids", "query_weight", "source_rows", "weight", "y",
    )  # fmt: skip

    X: npt.NDArray[np.float32]
    y: FloatArray
    offsets: IntArray
    qids: npt.NDArray[Any]
    weight: FloatArray | None
    query_weight: FloatArray | None
    feature_names: tuple[str, ...]
    doc_ids: npt.NDArray[Any] | None
    source_rows: IntArray | None

    def __init__(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        qid: npt.ArrayLike,
        weight: npt.ArrayLike | None = None,
        query_weight: npt.ArrayLike | Mapping[Any, float] | None = None,
        *,
        feature_names: Sequence[str] | None = None,
        doc_ids: Sequence[Any] | npt.NDArray[Any] | None = None,
    ) -> None:
        features = check_features(X, "X of Dataset")
        rows = features.shape[0]
        grades = _grades(y, rows)
        order, offsets, qids = _group(_column(qid, "qid", rows))
        row_weight = None if weight is None else _weights(weight, "weight", rows)
        docs = None if doc_ids is None else _column(doc_ids, "doc_ids", rows)
        if order is not None:
            features, grades = features[order], grades[order]
            row_weight = None if row_weight is None else row_weight[order]
            docs = None if docs is None else docs[order]
        elif features is X:
            # The caller may change its own array later; ours is frozen. A view costs nothing.
            features = features.view()
        values = {
            "X": features,
            "y": grades,
            "offsets": offsets,
            "qids": qids,
            "weight": row_weight,
            "query_weight": _query_weights(query_weight, qids),
            "feature_names": _names(feature_names, features.shape[1]),
            "doc_ids": docs,
            "source_rows": order,
        }
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} of Dataset cannot be set: a Dataset is frozen, make a new one.")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, tuple(getattr(self, name) for name in self.__slots__)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return int(self.offsets.shape[0] - 1)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def sizes(self) -> IntArray:
        """Rows of each query."""
        return np.diff(self.offsets)

    @property
    def qid(self) -> npt.NDArray[Any]:
        """Query id of each row, in grouped order."""
        return np.repeat(self.qids, self.sizes)

    @property
    def row_weight(self) -> FloatArray | None:
        """Weight of each row in a loss: row weight times query weight; None when all are 1."""
        if self.query_weight is None:
            return self.weight
        spread = np.repeat(self.query_weight, self.sizes)
        return spread if self.weight is None else spread * self.weight

    def to_caller(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Bring per-row values from this grouped order back to the caller's row order."""
        if self.source_rows is None:
            return values
        out = np.empty_like(values)
        out[self.source_rows] = values
        return out

    def to_grouped(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Bring per-row values from the caller's row order into this grouped order."""
        return values if self.source_rows is None else values[self.source_rows]

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        return f"Dataset({self.n_rows} rows, {self.n_queries} queries, {self.n_features} features)"


def check_features(X: npt.ArrayLike, where: str) -> npt.NDArray[np.float32]:
    """Return ``X`` as a C-contiguous float32 matrix; infinite values and wrong shapes are `DataError`."""
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
    # One pass without a temporary the size of the matrix: an infinite value makes its row's sum non-finite.
    for start in range(0, features.shape[0], 65536):
        part = features[start : start + 65536]
        bad = np.isinf(part)
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            value = given[start + row, column]
            raise DataError(
                f"{where} has {value!r} at row {start + row}, column {column}; values must fit float32 "
                "(use NaN for a missing value)."
            )
    return features


def _column(values: Any, name: str, rows: int) -> npt.NDArray[Any]:
    if isinstance(values, np.ndarray):
        column = values
    elif hasattr(values, "to_numpy"):
        column = values.to_numpy()
    else:
        listed = list(values)
        column = np.array(listed) if len({type(v) for v in listed}) == 1 else np.array(listed, dtype=object)
        if column.ndim != 1:
            column = np.empty(len(listed), dtype=object)
            column[:] = listed
    if column.ndim != 1 or column.shape[0] != rows:
        raise DataError(f"{name} of Dataset must have one value per row: {rows} rows, got shape {column.shape}.")
    return column


def _grades(y: npt.ArrayLike, rows: int) -> FloatArray:
    try:
        grades = np.array(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"y of Dataset must be numbers: {error}.") from None
    if grades.shape != (rows,):
        raise DataError(f"y of Dataset must have one grade per row: {rows} rows, got shape {grades.shape}.")
    bad = ~(np.isfinite(grades) & (grades >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"y of Dataset has {grades[row]!r} at row {row}; grades must be finite and >= 0.")
    return grades


def _weights(values: npt.ArrayLike, name: str, expected: int) -> FloatArray:
    weights = np.array(values, dtype=np.float64)
    if weights.shape != (expected,):
        raise DataError(f"{name} of Dataset must have {expected} values, got shape {weights.shape}.")
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        at = int(np.argmax(bad))
        raise DataError(f"{name} of Dataset has {weights[at]!r} at position {at}; weights must be finite and >= 0.")
    if not weights.any():
        raise DataError(f"{name} of Dataset is 0 everywhere; at least one weight must be positive.")
    return weights


def _query_weights(values: Any, qids: npt.NDArray[Any]) -> FloatArray | None:
    if values is None:
        return None
    if isinstance(values, Mapping):
        missing = [q for q in qids.tolist() if q not in values]
        if missing:
            raise DataError(f"query_weight of Dataset has no weight for query {missing[0]!r}.")
        values = [values[q] for q in qids.tolist()]
    return _weights(values, "query_weight", len(qids))


def _names(names: Sequence[str] | None, features: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"f{j + 1}" for j in range(features))
    named = tuple(str(name) for name in names)
    if len(named) != features:
        raise DataError(f"feature_names of Dataset must name {features} features, got {len(named)} names.")
    seen: set[str] = set()
    for name in named:
        if name in seen:
            raise DataError(f"feature_names of Dataset has {name!r} twice; names must differ.")
        seen.add(name)
    return named


def _group(qid: npt.NDArray[Any]) -> tuple[IntArray | None, IntArray, npt.NDArray[Any]]:
    """Stable grouping by query in first-seen order: (row order or None, offsets, query ids)."""
    if qid.dtype.kind == "f" and np.isnan(qid).any():
        raise DataError(f"qid of Dataset is NaN at row {int(np.argmax(np.isnan(qid)))}; every row needs a query id.")
    if qid.dtype == object:
        seen: dict[Any, int] = {}
        try:
            codes = np.fromiter((seen.setdefault(q, len(seen)) for q in qid), dtype=np.int64, count=len(qid))
        except TypeError as error:
            raise DataError(f"qid of Dataset must be hashable values: {error}.") from None
        if None in seen:
            row = int(np.argmax(codes == seen[None]))
            raise DataError(f"qid of Dataset is missing (None) at row {row}; every row needs a query id.")
        qids = np.empty(len(seen), dtype=object)
        qids[:] = list(seen)
    else:
        starts = np.flatnonzero(np.r_[True, qid[1:] != qid[:-1]])
        block_ids, first, block_codes = np.unique(qid[starts], return_index=True, return_inverse=True)
        if len(block_ids) == len(starts):
            return None, np.r_[starts, len(qid)].astype(np.int64), qid[starts].copy()
        rank = np.empty(len(block_ids), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(block_ids))
        codes = np.repeat(rank[block_codes], np.diff(np.r_[starts, len(qid)]))
        qids = block_ids[np.argsort(first)]
    offsets = np.r_[0, np.cumsum(np.bincount(codes, minlength=len(qids)))].astype(np.int64)
    if (np.diff(codes) >= 0).all():
        return None, offsets, qids
    return np.argsort(codes, kind="stable").astype(np.int64), offsets, qids


def _rebuild(*values: Any) -> Dataset:
    data = Dataset.__new__(Dataset)
    for name, value in zip(Dataset.__slots__, values, strict=True):
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(data, name, value)
    return data
