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

_SLACK = 2.0  # for functions behind sums, whose last places differ from one library to the next
_BLOCK = 8192  # rows at a time: the units of a net, in double, may not fit for all


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
    rounding = _Rounding(single)
    blocks = [rounding.bound(model, X[start : start + _BLOCK]) for start in range(0, len(X), _BLOCK)]
    return np.concatenate([np.empty(0), *blocks])


class _Rounding:
    """What rounding to a type can do; sizes of leaves are kept as forests of their own."""

    def __init__(self, single: bool) -> None:
        self.half = 2.0**-24 if single else 2.0**-53  # half a unit in the last place of 1
        kind = np.finfo(np.float32 if single else np.float64)
        self.largest, self.least = float(kind.max), float(kind.smallest_subnormal)
        self._sizes: dict[int, Forest] = {}

    def bound(self, model: Exportable, X: FeatureArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            size, error = self.raw(model.scorer, X)
            found = self.behind(model.head, model.values, error, model.scores(X))
            # Near 0 numbers have no more digits, and what is rounded is a number of least ones.
            found += (X.shape[1] + 1) * self.least
            return np.where((size < self.largest / 2) & np.isfinite(found), _SLACK * found, np.inf)

    def raw(self, scorer: Scorer, X: FeatureArray) -> tuple[FloatArray, FloatArray]:
        """Return the sizes of the terms of a row, added up, and how far any raw output may be off."""
        if isinstance(scorer, Forest):
            size = self._of_leaves(scorer).raw(X).max(axis=0)
            terms = int(np.bincount(scorer.tree_output, minlength=1).max()) + 3
            return size, terms * self.half * size
        if isinstance(scorer, Linear):
            scaled = _scaled(scorer.scaling, X)
            size = scaled @ np.abs(scorer.weights)
            # A weight of a feature as it is, written down near 0, is off by half a least number; a feature
            # that has such a weight is large.
            near_zero = self.least * _unscaled(scorer.scaling, scaled).sum(axis=1)
            return size, (X.shape[1] + 4) * self.half * size + near_zero
        if isinstance(scorer, Net):
            return self._net(scorer, X)
        assert isinstance(scorer, WeightedSum)  # there are no others
        size, error = np.zeros(len(X)), np.zeros(len(X))
        factors = scorer.weights * scorer.standard.factor
        for member, factor, shift in zip(scorer.members, factors, scorer.standard.shift, strict=True):
            own = X if member.columns is None else np.take(X, member.columns, axis=1)
            own_size, own_error = self.raw(member.scorer, own)
            score = member.score(X, 1, None)
            size = np.maximum(size + factor * (np.abs(score) + abs(shift)), own_size)
            error += factor * self.behind(member.head, member.head.values, own_error, score)
        return size, error + (len(scorer.members) + 3) * self.half * size

    def _of_leaves(self, forest: Forest) -> Forest:
        """Return the forest whose leaves are the sizes of the leaves."""
        if id(forest) not in self._sizes:
            arrays = forest.to_arrays()
            sizes = {name: np.abs(arrays[name]) for name in ("value", "base")}
            self._sizes[id(forest)] = Forest.from_arrays(arrays | sizes)
        return self._sizes[id(forest)]

    def _net(self, net: Net, X: FeatureArray) -> tuple[FloatArray, FloatArray]:
        """Layer by layer: units are no larger than their sums, and no activation is steeper than 1."""
        units, at = _scaled(net.scaling, X), 0
        error = 4 * self.half * units
        # A copy that scales takes the shift away first, which may leave the type.
        beyond = (_unscaled(net.scaling, units) > self.largest).any(axis=1)
        largest = np.where(beyond, np.inf, units.max(axis=1, initial=0.0))
        for number, (a, b) in enumerate(itertools.pairwise(net.sizes.tolist())):
            if number and net.activation != "relu":
                units = np.minimum(units, 1.0) if net.activation == "tanh" else np.ones_like(units)
            layer = np.abs(net.weights[at : at + (a + 1) * b].reshape(a + 1, b))
            units, error = units @ layer[:-1] + layer[-1], error @ layer[:-1]
            error += (a + 4) * self.half * units
            largest = np.maximum(largest, units.max(axis=1))
            at += (a + 1) * b
        return largest, error[:, 0]

    def behind(
        self, head: Head, values: FloatArray | None, error: FloatArray, scores: FloatArray
    ) -> FloatArray:
        """Return how far a score may be off whose raw outputs are."""
        if values is None:
            return error if head.kind != "exp" else np.abs(scores) * (np.expm1(error) + 4 * self.half)
        own = (len(values) + 4) * self.half * float(np.abs(values).max())
        steep = 1.0
        if head.odds is not None:
            # Log-odds of a mean of chances move no faster than theirs (x(1 - x) is concave), and a sigmoid
            # of them no faster than a chance; logarithms are of 2^-20 and more, so below 14.
            kept = head.odds.learned
            steep = kept + (1 - kept) * float(head.odds.slopes.max())
            own += steep * 32 * self.half * float(np.abs(values).max())
        if head.kind == "cumulative":  # a sigmoid is nowhere steeper than 1/4
            return float(np.abs(np.diff(values)).sum()) / 4 * steep * error + own
        # A mean of T moves no faster than half the range of T. The score of a class is a sum of its pairs,
        # where outputs are those.
        pairs = 2 * (len(values) - 1) if head.kind == "base-pairs" else 1
        return float(values.max() - values.min()) / 2 * pairs * steep * error + own


def _scaled(scaling: Scaling, X: FeatureArray) -> FloatArray:
    """Sizes of the two terms of each scaled value, added up: the value and the shift."""
    size = np.abs(X.astype(np.float64))
    size = np.log1p(size) if scaling.kind == "log" else size
    found = (size + np.abs(scaling.shift)) * scaling.factor
    return np.where(np.isnan(found), np.abs(scaling.fill) + np.abs(scaling.shift) * scaling.factor, found)


def _unscaled(scaling: Scaling, scaled: FloatArray) -> FloatArray:
    """The same sizes before they are scaled; 0 of features that say nothing."""
    return np.divide(scaled, scaling.factor, out=np.zeros_like(scaled), where=scaling.factor > 0)
