"""Single features as rankers: the value of a measure when one feature, either way up, orders the rows."""

from __future__ import annotations

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.data.dataset import Dataset
from mcrank.metrics.prepared import PreparedMeasure
from mcrank.scorers.scaling import Scaling
from mcrank.threads import run_all

_BLOCK = 16  # features read together: a cache line of float32


def column(data: Dataset, scaling: Scaling, feature: int) -> FloatArray:
    """Return one scaled feature of every row, missing values filled as the scaling says.

    Examples
    --------
    >>> from mcrank import Dataset
    >>> from mcrank.training.one_feature import column
    >>> from mcrank.scorers.scaling import Scaling
    >>> data = Dataset([[1.0], [3.0], [float("nan")]], y=[0, 1, 0], qid=[1, 1, 1])
    >>> column(data, Scaling.fit(data.X, "none"), 0).tolist()
    [1.0, 3.0, 2.0]
    """
    return np.asarray(_columns(data, scaling, feature, feature + 1)[0])


def _columns(data: Dataset, scaling: Scaling, start: int, end: int) -> FloatArray:
    part = Scaling(scaling.kind, scaling.shift[start:end], scaling.factor[start:end], scaling.fill[start:end])
    return np.ascontiguousarray(part.apply(data.X[:, start:end]).T)


def feature_values(
    data: Dataset, prepared: PreparedMeasure, scaling: Scaling, both_signs: bool, n_jobs: int
) -> FloatArray:
    """Return the measure of every query ordered by each single feature: signs x features x queries.

    The first sign ranks high values first, the second (with ``both_signs``) low values. A feature that is
    constant in the training rows orders nothing: its values are NaN, lest the order of the file count as its
    merit.

    Examples
    --------
    >>> from mcrank import MRR, Dataset
    >>> from mcrank.training.one_feature import feature_values
    >>> from mcrank.scorers.scaling import Scaling
    >>> data = Dataset([[1.0], [3.0]], y=[1, 0], qid=[1, 1])
    >>> scaling = Scaling.fit(data.X, "none")
    >>> feature_values(data, MRR().on(data), scaling, both_signs=True, n_jobs=1).tolist()
    [[[0.5]], [[1.0]]]
    """
    signs = (1.0, -1.0) if both_signs else (1.0,)
    out = np.full((len(signs), data.n_features, data.n_queries), np.nan)
    prepared.per_query(np.zeros(data.n_rows))  # what it finds out at first use, it finds before the threads

    def fill(start: int) -> None:
        end = min(start + _BLOCK, data.n_features)
        values = _columns(data, scaling, start, end)
        for feature in range(start, end):
            if scaling.factor[feature] > 0.0:
                for s, sign in enumerate(signs):
                    out[s, feature] = prepared.per_query(sign * values[feature - start])

    run_all(fill, range(0, data.n_features, _BLOCK), n_jobs)
    return out
