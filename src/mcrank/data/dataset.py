"""`Dataset`: features, grades and query offsets, frozen.

One shape for ragged things: rows of all queries lie in one flat array, and query ``q`` owns the rows
``offsets[q]:offsets[q + 1]``. No padding, no object per query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mcrank.arrays import Array, FeatureArray, FloatArray, IntArray
from mcrank.data.checks import (
    check_features,
    check_grades,
    check_names,
    check_query_weights,
    check_weights,
    group_rows,
    group_runs,
    is_immutable,
    tell_of_columns_aside,
)
from mcrank.data.ids import check_ids
from mcrank.data.tables import Features, as_features
from mcrank.errors import DataError
from mcrank.options import checked

__all__ = ["Dataset", "check_features"]


_UNSET: dict[str, Any] = {"dropped_queries": 0, "named": False, "categories": {}}


class Dataset:
    """Rows (query-document pairs) grouped by query.

    Rows whose query ids are not contiguous are grouped by query in first-seen order, keeping their
    order inside a query; `source_rows` remembers where each came from, and predictions come back in
    the caller's order.

    Parameters
    ----------
    X : array-like, scipy sparse matrix, frame or mapping of columns, of shape (rows, features)
        Feature values, kept as float32. NaN, NA and null are missing values; infinities are errors. Columns
        named like an id or a grade, such as ``qid`` and ``label``, are left aside with a `UserWarning`,
        unless ``feature_names`` names them. An array that can be written to is copied.
    y : array-like of shape (rows,)
        Grades: finite and not negative.
    qid : array-like of shape (rows,)
        Query id of each row, in any order: integers, texts, or tuples of these, never mixed.
    weight : array-like of shape (rows,), optional
        Row weights, acting in the loss.
    query_weight : array-like of shape (queries,) or mapping, optional
        Query weights in first-seen order, or by query id (so is a series of pandas that has an index of its
        own); they act in the loss and in the mean of a measure.
    feature_names : sequence of str, optional
        One name per feature, or the columns of ``X`` to take if these have names; by default all columns
        with their names, or ``f1, f2, ...``.
    doc_ids : sequence, optional
        One document id per row, of the same kinds; an empty text where there is none.
    categorical : sequence of str or int, optional
        Features, by name or number from 0, that hold categories and no numbers. Columns of a table that its
        library calls categories, or whose values are texts that look like no numbers, are known without.

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
    categories : dict of tuple of str
        By number of the feature, names of its categories; its values are places among them.
    named : bool
        Whether the features have names of their own; those of arrays and LETOR text are made up here.
    dropped_queries : int
        Queries that `drop_empty_queries` has removed on the way to this data set.

    Examples
    --------
    >>> from mcrank import Dataset
    >>> data = Dataset([[1.0], [2.0], [3.0]], y=[0, 1, 2], qid=["b", "a", "b"])
    >>> data.y.tolist(), data.offsets.tolist(), data.qids.tolist()
    ([0.0, 2.0, 1.0], [0, 2, 3], ['b', 'a'])
    """

    __slots__ = (
        "X", "categories", "doc_ids", "dropped_queries", "feature_names", "named", "offsets", "qids",
        "query_weight", "source_rows", "weight", "y",
    )  # fmt: skip

    X: FeatureArray
    y: FloatArray
    offsets: IntArray
    qids: Array
    weight: FloatArray | None
    query_weight: FloatArray | None
    feature_names: tuple[str, ...]
    categories: dict[int, tuple[str, ...]]
    named: bool
    doc_ids: Array | None
    source_rows: IntArray | None
    dropped_queries: int

    def __init__(
        self,
        X: Any,
        y: npt.ArrayLike,
        qid: npt.ArrayLike,
        weight: npt.ArrayLike | None = None,
        query_weight: npt.ArrayLike | Mapping[Any, float] | None = None,
        *,
        feature_names: Sequence[str] | None = None,
        doc_ids: Sequence[Any] | Array | None = None,
        categorical: Sequence[str | int] | None = None,
    ) -> None:
        features = as_features(X, "X of Dataset", feature_names, categorical)
        tell_of_columns_aside(features.aside, "X of Dataset")
        if features.names is None and feature_names is not None:
            features = features._replace(names=tuple(feature_names))
        self._check(features, y, qid, doc_ids, weight, query_weight)

    @classmethod
    def of_features(cls, features: Features, y: Any, qid: Any, *weights: Any, doc_ids: Any = None) -> Dataset:
        """Make a data set of what `as_features` gave; whoever asked for it knows what was left aside.

        Examples
        --------
        >>> from mcrank import Dataset
        >>> from mcrank.data.tables import as_features
        >>> Dataset.of_features(as_features({"a": [1.0]}, "X"), [0], ["x"]).feature_names
        ('a',)
        """
        data = cls.__new__(cls)
        data._check(features, y, qid, doc_ids, *weights)
        return data

    def _check(
        self, given: Features, y: Any, qid: Any, doc_ids: Any, weight: Any = None, query_weight: Any = None
    ) -> None:
        """Check what belongs to the features, and become a data set of it."""
        features, names = given.values, given.names
        rows = len(features)
        order, offsets, qids = group_rows(check_ids(qid, "qid of Dataset", rows))
        if order is None and not is_immutable(features):
            features = features.copy()
        self._freeze(
            order,
            X=features,
            y=check_grades(y, rows),
            offsets=offsets,
            qids=qids,
            weight=None if weight is None else check_weights(weight, "weight", rows),
            query_weight=check_query_weights(query_weight, qids),
            feature_names=check_names(names, features.shape[1]),
            named=names is not None,
            categories=dict(given.categories),
            doc_ids=None if doc_ids is None else check_ids(doc_ids, "doc_ids of Dataset", rows, blank=True),
        )

    @classmethod
    def from_runs(
        cls,
        X: FeatureArray,
        y: FloatArray,
        run_rows: IntArray,
        run_ids: Array,
        *,
        feature_names: Sequence[str] | None = None,
        doc_ids: Array | None = None,
    ) -> Dataset:
        """Make a data set of arrays a reader has checked; ``run_rows`` are the rows where the query changes.

        The arrays are its own from then on, and ``feature_names`` count as made up.

        Examples
        --------
        >>> import numpy as np
        >>> from mcrank import Dataset
        >>> X = np.zeros((3, 1), dtype=np.float32)
        >>> Dataset.from_runs(X, np.zeros(3), np.array([0, 2]), np.array([7, 9])).offsets.tolist()
        [0, 2, 3]
        """
        data = cls.__new__(cls)
        order, offsets, qids = group_runs(run_ids, run_rows, len(X))
        names = check_names(feature_names, X.shape[1])
        data._freeze(order, X=X, y=y, offsets=offsets, qids=qids, feature_names=names, doc_ids=doc_ids)
        return data

    def _freeze(self, order: IntArray | None, **values: Any) -> None:
        """Set every attribute, per-row ones in the order of the queries, and forbid writing to the arrays."""
        for name in self.__slots__:
            value = values.get(name, _UNSET.get(name))
            if name == "source_rows":
                value = order
            elif order is not None and value is not None and name in ("X", "y", "weight", "doc_ids"):
                value = value[order]
            if isinstance(value, np.ndarray):
                # What came from a caller has been copied: no one else holds these.
                value = value.view(np.ndarray)
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} of Dataset cannot be set: a Dataset is frozen, make a new one.")

    def __reduce__(self) -> tuple[Any, ...]:
        return restore, ({name: getattr(self, name) for name in self.__slots__},)

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
    def qid(self) -> Array:
        """Query id of each row, in grouped order."""
        return np.repeat(self.qids, self.sizes)

    @property
    def row_weight(self) -> FloatArray | None:
        """Weight of each row in a loss: row weight times query weight; None when all are 1."""
        if self.query_weight is None:
            return self.weight
        spread = np.repeat(self.query_weight, self.sizes)
        return spread if self.weight is None else spread * self.weight

    def to_caller(self, values: Array) -> Array:
        """Bring per-row values from this grouped order back to the caller's row order."""
        if self.source_rows is None:
            return values
        out = np.empty_like(values)
        out[self.source_rows] = values
        return out

    def to_grouped(self, values: Array) -> Array:
        """Bring per-row values from the caller's row order into this grouped order."""
        return values if self.source_rows is None else values[self.source_rows]

    def select(self, queries: npt.ArrayLike) -> Dataset:
        """Keep some queries: positions (in the order wanted) or one True or False per query.

        Rows of the result are its own: its `source_rows` is None.

        Examples
        --------
        >>> from mcrank import Dataset
        >>> data = Dataset([[1.0], [2.0], [3.0]], y=[0, 1, 2], qid=["a", "b", "b"])
        >>> data.select([1]).y.tolist(), data.select(data.qids == "a").y.tolist()
        ([1.0, 2.0], [0.0])
        """
        chosen = np.asarray(queries)
        if chosen.dtype == bool and chosen.shape == (self.n_queries,):
            chosen = np.flatnonzero(chosen)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise DataError(
                f"queries of select must be positions, or one True or False for each of {self.n_queries}, "
                f"got {chosen.dtype} of shape {chosen.shape}."
            )
        if len(chosen) == 0:
            raise DataError("queries of select names no query; a Dataset has at least one.")
        chosen = chosen.astype(np.int64)
        if chosen.min() < 0 or chosen.max() >= self.n_queries or len(np.unique(chosen)) < len(chosen):
            raise DataError(f"queries of select must be different positions below {self.n_queries}.")
        rows, offsets = self._rows_of(chosen)
        data = Dataset.__new__(Dataset)
        data._freeze(
            None,
            X=self.X[rows],
            y=self.y[rows],
            offsets=offsets,
            qids=self.qids[chosen],
            weight=None if self.weight is None else self.weight[rows],
            query_weight=None if self.query_weight is None else self.query_weight[chosen],
            feature_names=self.feature_names,
            named=self.named,
            categories=self.categories,
            doc_ids=None if self.doc_ids is None else self.doc_ids[rows],
            dropped_queries=self.dropped_queries,
        )
        return data

    def _rows_of(self, queries: IntArray) -> tuple[slice | IntArray, IntArray]:
        """Rows of the queries in their order (a slice when they are neighbours), and the new offsets."""
        sizes = self.sizes[queries]
        offsets = np.r_[0, np.cumsum(sizes)].astype(np.int64)
        if (np.diff(queries) == 1).all():
            return slice(int(self.offsets[queries[0]]), int(self.offsets[queries[-1] + 1])), offsets
        return np.arange(offsets[-1]) + np.repeat(self.offsets[queries] - offsets[:-1], sizes), offsets

    def sample(self, queries: int | float, *, seed: int = 0) -> Dataset:
        """Keep a random number (int) or share (float, up to 1.0) of the queries, in their order here.

        Examples
        --------
        >>> from mcrank import Dataset
        >>> data = Dataset([[1.0], [2.0], [3.0]], y=[0, 1, 2], qid=[1, 2, 3])
        >>> data.sample(2, seed=1).n_queries
        2
        """
        count, given = 0, np.asarray(queries)  # NumPy's own numbers are welcome
        if given.dtype.kind == "f" and given.ndim == 0:
            count = max(1, round(float(given) * self.n_queries)) if 0 < given <= 1 else 0
        elif given.dtype.kind in "iu" and given.ndim == 0:
            count = int(given)
        if not 1 <= count <= self.n_queries:
            raise DataError(
                f"queries of sample must be 1 to {self.n_queries}, or a share above 0.0 and up to 1.0, "
                f"got {queries!r}."
            )
        stream = np.random.Generator(np.random.PCG64(checked(seed, "seed", "sample", low=0)))
        return self.select(np.sort(stream.permutation(self.n_queries)[:count]))

    def drop_empty_queries(self) -> Dataset:
        """Drop the queries without a relevant row (every grade 0); `dropped_queries` keeps the count.

        NDCG has no value for such queries, and tools disagree about what to put in its place.

        Examples
        --------
        >>> from mcrank import Dataset
        >>> data = Dataset([[1.0], [2.0], [3.0]], y=[0, 0, 2], qid=["a", "a", "b"]).drop_empty_queries()
        >>> data.qids.tolist(), data.dropped_queries
        (['b'], 1)
        """
        relevant = np.maximum.reduceat(self.y, self.offsets[:-1]) > 0
        if not relevant.any():
            raise DataError(
                "no query of this Dataset has a relevant row; nothing is left after dropping empty queries."
            )
        data = self.select(relevant)
        object.__setattr__(data, "dropped_queries", self.dropped_queries + self.n_queries - data.n_queries)
        return data

    @staticmethod
    def merge(parts: Sequence[Dataset], *, same_query: Literal["error", "join"] = "error") -> Dataset:
        """Put data sets one behind the other.

        Parameters
        ----------
        parts : sequence of Dataset
            Features with names of their own are matched by name, others by their place. Query ids must be of
            one kind in all parts.
        same_query : {"error", "join"}
            What a query id in two parts means: a mistake, or rows of one query.

        Examples
        --------
        >>> from mcrank import Dataset
        >>> a, b = Dataset([[1.0]], y=[1], qid=["a"]), Dataset([[2.0]], y=[0], qid=["b"])
        >>> Dataset.merge([a, b]).qids.tolist()
        ['a', 'b']
        """
        from mcrank.data.merge import merge

        return merge(list(parts), same_query)

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        return f"Dataset({self.n_rows} rows, {self.n_queries} queries, {self.n_features} features)"


def restore(values: dict[str, Any]) -> Dataset:
    """Make a data set again from its own attributes (unpickling, the cache); they are not checked.

    Examples
    --------
    >>> import pickle
    >>> from mcrank import Dataset
    >>> pickle.loads(pickle.dumps(Dataset([[1.0]], y=[1], qid=["a"])))
    Dataset(1 rows, 1 queries, 1 features)
    """
    data = Dataset.__new__(Dataset)
    data._freeze(None, **values)
    object.__setattr__(data, "source_rows", values.get("source_rows"))
    return data
