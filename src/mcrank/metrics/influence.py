"""What each query adds to a mean that is not the plain one: what tests and intervals of it are made of."""

from __future__ import annotations

import numpy as np

from mcrank.arrays import BoolArray, FloatArray
from mcrank.metrics.prepared import PreparedMeasure


def in_mean(ready: PreparedMeasure, values: FloatArray, queries: BoolArray | None = None) -> FloatArray:
    """Return values per query (last axis) with the measure's mean as plain mean, which spread as it does.

    Where every query counts once these are the values themselves, as the mean counts them. Of a weighted mean
    they are what the jackknife takes (pseudo-values): the mean, and by how much it would move without the
    query. Of a sum they are the values times the number of queries. Of a geometric mean they are the values,
    which have another mean. NaN where a query is left out or weighs nothing.
    ``queries`` marks those to take the mean of, as if there were no others; all by default.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank import Grades, parse_measure
    >>> from mcrank.metrics.influence import in_mean
    >>> ready = parse_measure("mrr").on(Grades([1, 0, 1], qid=[1, 2, 2], query_weight=[3.0, 1.0]))
    >>> in_mean(ready, np.array([1.0, 0.5])).tolist(), ready.mean_of(np.array([1.0, 0.5]))
    ([1.125, 0.625], 0.875)
    """
    counted = ready.counted(values)
    if queries is not None:
        counted = np.where(queries, counted, np.nan)
    if ready.plain:
        return counted
    weight = ready.query_weight
    if counted.ndim > 1:
        return np.stack([in_mean(ready, row, queries) for row in values])
    if ready.arithmetic.summary == "sum":
        return counted * float((~np.isnan(counted)).sum())
    assert weight is not None  # or the mean were plain
    once = ready.arithmetic.empty & ready.empty_counts_once
    counted[(weight == 0.0) & ~once] = np.nan
    known = ~np.isnan(counted)
    if not weight[known].any():
        return np.full_like(counted, np.nan)
    scale = float(weight[known].max())  # their sum may be too large for a number
    unit = float((weight[known] / scale).mean())
    share, one = weight / scale / unit, 1.0 / scale / unit
    mean, n = ready.mean_of(values, queries), int(known.sum())
    # What the mean would move without the query, times the queries that are left: with the share alone, heavy
    # queries, which draw the mean towards them, would seem to spread less than they do.
    moved = (np.where(once, one, share) * counted - mean * share) * (n - 1) / np.maximum(n - share, 1e-6)
    return np.asarray(mean + moved - moved[known].mean())
