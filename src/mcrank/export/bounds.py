"""How far a right copy of a model may be from it: what rounding can do, and no more.

A sum of n terms rounded at every step is off by at most n half units in the last place of the sum of their
sizes. A copy that adds in double or in float stays within that on every row; one that sends a row another way
leaves it, unless that way says the same.
"""

from __future__ import annotations

import itertools

import numpy as np

from mcrank.arrays import FeatureArray, FloatArray
from mcrank.export.target import Exportable
from mcrank.scorers.base import Scorer
from mcrank.scorers.blend import WeightedSum
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.heads import Head
from mcrank.scorers.linear import Linear
from mcrank.scorers.net import Net
from mcrank.scorers.scaling import Scaling

_SLACK = 4.0  # of the functions behind sums, whose last places differ from one library to the next
_BLOCK = 8192  # rows at a time: the units of a net, in double, may not fit for all
_HALF_UNIT = {True: 2.0**-24, False: 2.0**-53}  # of float, of double


def bound(model: Exportable, X: FeatureArray, single: bool) -> FloatArray:
    """Return how far the score of each row may be off; infinite where its terms are beyond the type.

    Parameters
    ----------
    model : Exportable
        What was copied.
    X : ndarray of shape (rows, features)
        The rows.
    single : bool
        Whether the copy adds up in float rather than in double.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.export.bounds import bound
    >>> from mcrank.export.target import Exportable
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> from mcrank.scorers.heads import Head
    >>> builder = ForestBuilder(n_features=1, base=[1.0])
    >>> builder.append(feature=[0, -1, -1], left=[1, -1, -1], right=[2, -1, -1], value=[0, -1.0, 3.0])
    >>> model = Exportable(builder.build(), Head(), None, ("f1",), "regression", "", "")
    >>> X = np.zeros((1, 1), dtype=np.float32)
    >>> bool(1e-7 < bound(model, X, single=True)[0] < 1e-5), bool(bound(model, X, single=False)[0] < 1e-14)
    (True, True)
    """
    blocks = [_bound(model, X[start : start + _BLOCK], single) for start in range(0, len(X), _BLOCK)]
    return np.concatenate([np.empty(0), *blocks])


def _bound(model: Exportable, X: FeatureArray, single: bool) -> FloatArray:
    half = _HALF_UNIT[single]
    with np.errstate(over="ignore", invalid="ignore"):
        size, error = _raw(model.scorer, X, half)
        found = _behind(model.head, model.values, error, half, model.scores(X))
        largest = float(np.finfo(np.float32 if single else np.float64).max)
        return np.where((size < largest / 2) & np.isfinite(found), _SLACK * found, np.inf)


def _raw(scorer: Scorer, X: FeatureArray, half: float) -> tuple[FloatArray, FloatArray]:
    """Sizes of the terms of a row, added up, and how far any raw output may be off."""
    if isinstance(scorer, Forest):
        largest, terms = _forest(scorer)
        return np.full(len(X), largest), np.full(len(X), (terms + 2) * half * largest)
    if isinstance(scorer, Linear):
        of_terms = _scaled(scorer.scaling, X) @ np.abs(scorer.weights)
        return of_terms, (X.shape[1] + 4) * half * of_terms
    if isinstance(scorer, Net):
        return _net(scorer, X, half)
    assert isinstance(scorer, WeightedSum)  # there are no others
    size, error = np.zeros(len(X)), np.zeros(len(X))
    factors = scorer.weights * scorer.standard.factor
    for member, factor, shift in zip(scorer.members, factors, scorer.standard.shift, strict=True):
        own = X if member.columns is None else np.take(X, member.columns, axis=1)
        own_size, own_error = _raw(member.scorer, own, half)
        score = member.score(X, 1, None)
        off = _behind(member.head, member.head.values, own_error, half, score)
        size = np.maximum(size + factor * (np.abs(score) + abs(shift)), own_size)
        error += factor * off
    return size, error + (len(scorer.members) + 3) * half * size


def _forest(forest: Forest) -> tuple[float, int]:
    """Size of the largest sum of leaves of an output, and how many are added."""
    if forest.n_trees == 0:
        return float(np.abs(forest.base).max()), 1
    largest = np.maximum.reduceat(np.abs(forest.value), forest.tree_offsets[:-1])
    sizes = np.bincount(forest.tree_output, largest, forest.n_outputs) + np.abs(forest.base)
    return float(sizes.max()), int(np.bincount(forest.tree_output).max()) + 1


def _scaled(scaling: Scaling, X: FeatureArray) -> FloatArray:
    """Sizes of the two terms of each scaled value, added up: the value and the shift."""
    size = np.abs(X.astype(np.float64))
    size = np.log1p(size) if scaling.kind == "log" else size
    found = (size + np.abs(scaling.shift)) * scaling.factor
    return np.where(np.isnan(found), np.abs(scaling.fill) + np.abs(scaling.shift) * scaling.factor, found)


def _net(net: Net, X: FeatureArray, half: float) -> tuple[FloatArray, FloatArray]:
    """Layer by layer: units are no larger than their sums, and no activation is steeper than 1."""
    units, at = _scaled(net.scaling, X), 0
    error = 4 * half * units
    largest = units.max(axis=1, initial=0.0)
    for number, (a, b) in enumerate(itertools.pairwise(net.sizes.tolist())):
        if number and net.activation != "relu":
            units = np.minimum(units, 1.0) if net.activation == "tanh" else np.ones_like(units)
        layer = np.abs(net.weights[at : at + (a + 1) * b].reshape(a + 1, b))
        units, error = units @ layer[:-1] + layer[-1], error @ layer[:-1]
        error += (a + 4) * half * units
        largest = np.maximum(largest, units.max(axis=1))
        at += (a + 1) * b
    return largest, error[:, 0]


def _behind(
    head: Head, values: FloatArray | None, error: FloatArray, half: float, scores: FloatArray
) -> FloatArray:
    """How far a score may be off whose raw outputs are."""
    if values is None:
        if head.kind != "exp":
            return error
        return np.abs(scores) * (np.expm1(error) + 4 * half)
    worth = float(np.abs(values).max())
    own = (len(values) + 4) * half * worth
    if head.kind == "cumulative":
        return float(np.abs(np.diff(values)).sum()) / 4 * error + own
    # Scores are means of T under probabilities; no mean moves faster than half the range of T. A score of a
    # class is a sum of its pairs, where outputs are those.
    pairs = 2 * (len(values) - 1) if head.kind == "base-pairs" else 1
    return float(values.max() - values.min()) * pairs * error + own
