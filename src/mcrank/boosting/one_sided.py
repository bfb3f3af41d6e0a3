"""Gradient-based one-side sampling (GOSS, Ke et al. 2017), by a rule of integers.

A round sees the rows with the largest gradients, and a few of the others, each of which stands for several:
its gradient and curvature count so many times. The size of a row's gradient is the sum over outputs of its
rounded gradients' sizes, an integer; which of the rows equal at the cut, and which of the others, says the
hash of (seed, round, query id, place in the query). So the sample is the same for any number of threads and
any order of the queries. As in LightGBM, the first 1 / learning_rate rounds see all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcrank.arrays import BoolArray, FloatArray, IntArray
from mcrank.boosting.sampling import AllRows, Keys, everyones, lots, parted, row_keys
from mcrank.data.dataset import Dataset
from mcrank.losses.base import LeafRule, Loss
from mcrank.losses.quantize import LANE_BITS, Gradients, Run

_EQUALS, _OTHERS = 1, 2  # what lots are drawn for: a part of their context
_ONE = 1.0 / (1 << LANE_BITS)  # unit of a lane whose largest value is 1


def one_sided(
    sizes: IntArray, keys: Keys, top_rate: float, other_rate: float, seed: int, number: int
) -> tuple[BoolArray, BoolArray, float]:
    """Return which rows a round sees, which of them stand for others, and for how many each.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.boosting.one_sided import one_sided
    >>> keys = np.arange(10, dtype=np.uint64)
    >>> chosen, few, factor = one_sided(np.arange(10), keys, 0.2, 0.4, seed=0, number=1)
    >>> chosen[-2:].tolist(), int(few.sum()), factor
    ([True, True], 4, 2.0)
    """
    n = len(sizes)
    top = max(1, round(top_rate * n))
    others = min(max(1, round(other_rate * n)), n - top)
    if others == 0:
        return np.ones(n, dtype=bool), np.zeros(n, dtype=bool), 1.0
    cut = np.partition(sizes, n - top)[n - top]
    chosen = sizes > cut
    _take(chosen, np.flatnonzero(sizes == cut), top - int(chosen.sum()), keys, seed, number, _EQUALS)
    few = np.zeros(n, dtype=bool)
    _take(few, np.flatnonzero(~chosen), others, keys, seed, number, _OTHERS)
    return chosen | few, few, (n - top) / others


def _take(into: BoolArray, rows: IntArray, count: int, keys: Keys, *context: int) -> None:
    """Mark ``count`` of the rows, those with the lowest lots."""
    drawn = lots(keys[rows], *context)
    into[rows[np.argpartition(drawn, count - 1)[:count]] if count < len(rows) else rows] = True


class Leaves:
    """What `leaf_values` asks of a loss, where rows stand for several: what to divide by is always given."""

    def __init__(self, loss: Loss) -> None:
        self.leaf_factor, self.sums, self.residuals = loss.leaf_factor, loss.sums, loss.residuals
        self.least_curvature = loss.least_curvature
        self.rule = loss.rule if loss.rule is LeafRule.MEDIAN else LeafRule.CURVATURE


class OneSided(AllRows):
    """The rows with the largest gradients, and a few of the others.

    Parameters
    ----------
    rates : (float, float)
        Shares of the rows: those with the largest gradients, and those drawn from the others.
    seed : int
        Of what is drawn.
    first : int
        Rounds that see all rows.
    """

    def __init__(
        self, data: Dataset, loss: Loss, split: str, rates: tuple[float, float], seed: int, first: int
    ) -> None:
        super().__init__(data, loss, split)
        self.leaves: Any = Leaves(loss)
        self._derived = split == "newton" and loss.derived_curvature
        self._rates, self._seed, self._first = rates, seed, first
        self._own, self._keys = everyones(row_keys(data), loss.sums)
        self._plain, shape = self.gradients, self.gradients.q.shape
        self.gradients = Gradients(np.empty(shape, dtype=np.int32))
        self.gradients.weights = np.empty(shape, dtype=np.int64)
        self.gradients.curvature = np.empty(shape)

    def fill(self, scores: FloatArray, number: int, run: Run) -> tuple[IntArray, IntArray]:
        """Fill the gradients of a round; return the rows it sees, and the others (none: all)."""
        plain, gradients = self._plain, self.gradients
        self.loss.fill(scores, plain, run)
        everyone = np.ones(self.data.n_rows, dtype=bool)
        chosen, few, factor = everyone, everyone, 1.0
        if number > self._first:
            size = np.abs(plain.q).sum(axis=0, dtype=np.int64)
            found = one_sided(
                np.concatenate(self.loss.sums.gather(size)), self._keys, *self._rates, self._seed, number
            )
            chosen, few, factor = found[0][self._own], found[1][self._own], found[2]
        # A row that stands for others keeps its integers; those of the rest are divided, and so the sums fit.
        lane, step = self._units()
        gradients.unit = plain.unit * factor
        gradients.lane_unit, gradients.curvature_unit = lane * factor, step * factor
        run(lambda k: self._weigh(k, few, factor, lane), range(len(plain.q)))
        rows, rest = parted(chosen)
        return (rest, rest) if len(rest) == 0 else (rows, rest)

    def _units(self) -> tuple[float, float]:
        """Units of the second lane and of curvatures, where nothing is multiplied."""
        plain = self._plain
        lane = plain.lane_unit if len(plain.weights) else _ONE
        return lane, plain.curvature_unit if len(plain.curvature) else _ONE

    def _weigh(self, k: int, few: BoolArray, factor: float, lane_unit: float) -> None:
        plain, gradients = self._plain, self.gradients
        size = np.abs(plain.q[k] * plain.unit)
        derived = size * (1 - size)
        curve: Any = plain.curvature_of(k) if len(plain.curvature) else 1.0
        if self.loss.rule is LeafRule.BERNOULLI:
            curve = derived
        mass: Any = plain.weights_of(k) * lane_unit if len(plain.weights) else 1.0
        if self._derived:
            mass = derived
        share = np.where(few, 1.0, 1.0 / factor)
        gradients.q[k] = np.rint(plain.q[k] * share)
        gradients.weights[k] = np.rint(mass * share / lane_unit)
        gradients.curvature[k] = curve * (share * factor)
