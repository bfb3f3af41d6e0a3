"""Pairwise losses: every pair of rows of a query with different grades.

- logistic (RankNet, Burges et al. 2005): log(1 + e^(-sigma d)), d = score of the better row minus the worse;
- fidelity (FRank, Tsai et al. 2007): 1 - sqrt(P), P = 1 / (1 + e^(-sigma d)).

The second derivative of fidelity is negative where P < 1/3. Its curvature here is sqrt(P) (1 - P) (1 + P) / 4
instead: positive, and nowhere below the size of the second derivative sqrt(P) (1 - P) (3P - 1) / 4, so that a
Newton step never overshoots.

The pairs of a query are gone through one by one; those of a query of `LONG` rows or more are summed in boxes
(`mcrank.losses.boxes`), whose time does not grow with the square of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, types

from mcrank.arrays import FloatArray, IntArray, RowArray
from mcrank.kernels import kernel
from mcrank.kernels.exp import exp_negative
from mcrank.losses.base import LeafRule, Loss
from mcrank.losses.boxes import FIDELITY, LOGISTIC, LONG, lay_out, pair_sums, pair_tables
from mcrank.losses.pairs import Space, add_pairs, gather, make_space, scatter, weigh_pairs
from mcrank.losses.quantize import (
    GRADIENT_BITS,
    LANE_BITS,
    Gradients,
    Run,
    round_gradients,
    round_lane,
    starts,
)
from mcrank.losses.quantize import ROWS_PER_TASK as STEP
from mcrank.losses.regression import SMALLEST
from mcrank.sums import ALONE, Sums, count_all

_ROWS_PER_BLOCK = 8192  # queries are worked on in blocks of about so many rows


class PairArrays(NamedTuple):
    """The pairs of a data set as arrays for kernels; made by `pair_arrays`."""

    worth: FloatArray  # grade of each row
    order: RowArray  # places in its query of the rows of each query, highest grade first
    starts: IntArray
    ends: IntArray
    factor: FloatArray  # of each query: 1, or 1 / pairs; 0 where all grades are equal
    longest: int


_F, _I = types.float64[::1], types.int64[::1]
PAIRS = types.NamedTuple((_F, types.int32[::1], _I, _I, _F, types.int64), PairArrays)  # type: ignore[no-untyped-call]


def pair_arrays(grades: npt.ArrayLike, offsets: npt.ArrayLike, per_query: bool = False) -> PairArrays:
    """Lay out pairs of rows by query; ``per_query`` gives every query, not every pair, the same weight.

    Examples
    --------
    >>> from mcrank.losses.pairwise import pair_arrays
    >>> pairs = pair_arrays([0.0, 2.0, 1.0, 1.0], [0, 3, 4], per_query=True)
    >>> pairs.order.tolist(), pairs.factor.round(3).tolist()
    ([1, 2, 0, 0], [0.333, 0.0])
    """
    worth = np.array(grades, dtype=np.float64)
    bounds = np.array(offsets, dtype=np.int64)
    sizes = np.diff(bounds)
    queries = np.repeat(np.arange(len(sizes)), sizes)
    by_grade = np.lexsort((-worth, queries))
    order = (by_grade - bounds[:-1][queries]).astype(np.int32)
    pairs = count_pairs(worth[by_grade], queries, sizes)
    weight = 1.0 / np.maximum(pairs, 1.0) if per_query else np.ones(len(sizes))
    factor = np.where(pairs > 0, weight, 0.0)
    return PairArrays(worth, order, bounds[:-1].copy(), bounds[1:].copy(), factor, int(sizes.max(initial=0)))


def count_pairs(worth: FloatArray, queries: IntArray, sizes: IntArray) -> FloatArray:
    """Pairs of different grades of each query, from the runs of equal grades."""
    n = len(worth)
    new = np.ones(n, dtype=bool)
    new[1:] = (worth[1:] != worth[:-1]) | (queries[1:] != queries[:-1])
    runs = np.diff(np.r_[np.flatnonzero(new), n]).astype(np.float64)
    equal = np.bincount(queries[new], weights=runs * (runs - 1) / 2, minlength=len(sizes))
    every = sizes * (sizes - 1.0) / 2
    return np.asarray(every - equal)


@njit(inline="always")
def logistic_query(order, worth, scores, factor, sigma, space, slopes, curves):  # type: ignore[no-untyped-def]
    """Gradients and curvatures of one query under the logistic loss of its pairs.

    All arrays are the query's own part: ``order`` its places by falling worth, from `pair_arrays`. Positive
    slopes say that a score should rise.
    """
    # IN: order, worth, scores, factor, sigma  OUT: space, slopes, curves
    n = len(order)
    far = gather(order, scores, worth, sigma, space)
    change = space.change[:n]
    for k in range(n):
        change[k] = factor
    first = 0
    for i in range(n):
        while first < n and space.worth[first] == space.worth[i]:
            first += 1
        if first == n:
            break
        weigh_pairs(i, first, n, far, sigma, space)
        add_pairs(i, first, n, space)
    scatter(order, sigma, sigma * sigma, space, slopes, curves)


@njit(inline="always")
def fidelity_query(order, worth, scores, factor, sigma, space, slopes, curves):  # type: ignore[no-untyped-def]
    """As `logistic_query`, under the fidelity loss."""
    # IN: order, worth, scores, factor, sigma  OUT: space, slopes, curves
    n = len(order)
    far = gather(order, scores, worth, sigma, space)
    first = 0
    for i in range(n):
        while first < n and space.worth[first] == space.worth[i]:
            first += 1
        if first == n:
            break
        power, score = space.power[first:n], space.score[first:n]
        pair, bend = space.pair[first:n], space.bend[first:n]
        for j in range(len(pair)):  # i is the better row of all these pairs
            if far:
                lead = sigma * (space.score[i] - score[j])
                small = exp_negative(-abs(lead))
                right = (1.0 if lead > 0 else small) / (1.0 + small)
                wrong = (small if lead > 0 else 1.0) / (1.0 + small)
            else:
                right = space.power[i] / (space.power[i] + power[j])
                wrong = power[j] / (space.power[i] + power[j])
            pair[j] = 0.5 * factor * np.sqrt(right) * wrong
            bend[j] = 0.5 * pair[j] * (1.0 + right)
        add_pairs(i, first, n, space)
    scatter(order, sigma, sigma * sigma, space, slopes, curves)


def over_queries(of_query: Any) -> Any:
    """Return the kernel that fills slopes and curvatures of some queries by what does so for one."""

    @kernel()
    def fill(pairs, scores, queries, knob, space, slopes, curves):  # type: ignore[no-untyped-def]
        # IN: pairs, scores, queries, knob (of ``of_query``)  OUT: space, slopes, curves
        for q in queries:
            s, e = pairs.starts[q], pairs.ends[q]
            of_query(
                pairs.order[s:e], pairs.worth[s:e], scores[s:e], pairs.factor[q], knob, space, slopes[s:e],
                curves[s:e],
            )  # fmt: skip

    return fill


fill_logistic, fill_fidelity = over_queries(logistic_query), over_queries(fidelity_query)


class QueryLoss(Loss):
    """A loss whose gradients come query by query, with curvatures beside them.

    A subclass writes `fill_queries`. Row weights multiply a row's gradient and curvature; the second lane is
    the weight (``split="mse"``) or the curvature (``"newton"``).
    """

    leaf_rule: ClassVar[LeafRule] = LeafRule.CURVATURE

    def __init__(
        self, ends: IntArray, longest: int, weight: FloatArray | None = None, sums: Sums = ALONE
    ) -> None:
        self.base = np.zeros(1)
        self.weight = weight
        self.sums = sums
        self.n_rows = int(ends[-1])
        self.longest = longest
        cuts = np.searchsorted(ends, np.arange(_ROWS_PER_BLOCK, self.n_rows, _ROWS_PER_BLOCK), side="right")
        self._cuts = np.unique(np.r_[0, cuts, len(ends)])
        self._rows = np.r_[0, ends][self._cuts]
        self._queries = np.arange(len(ends))
        self._slopes = np.zeros(self.n_rows)
        self._spaces: list[Space] = []

    def fill_queries(
        self, scores: FloatArray, queries: IntArray, space: Space, slopes: FloatArray, curves: FloatArray
    ) -> None:
        """Write the gradients and curvatures of some queries."""
        raise TypeError(f"{type(self).__name__} must say how a query's gradients are found.")

    def allocate(self, split: str) -> Gradients:
        """Return the arrays `fill` writes."""
        gradients = Gradients(np.empty((1, self.n_rows), dtype=np.int32))
        most = 1.0 if self.weight is None else self.sums.most(float(self.weight.max(initial=0.0)))
        gradients.begin_lane(split, most / (1 << LANE_BITS), self.weight)
        return gradients

    def slopes(self, scores: FloatArray, run: Run, slopes: FloatArray, curves: FloatArray) -> None:
        """Write the gradients and curvatures of every row."""
        cuts, queries = self._cuts, self._queries

        def block(b: int) -> None:
            try:
                space = self._spaces.pop()  # one that another block has done with
            except IndexError:
                space = make_space(self.longest)
            self.fill_queries(scores, queries[cuts[b] : cuts[b + 1]], space, slopes, curves)
            self._spaces.append(space)
            if self.weight is not None:
                rows = slice(self._rows[b], self._rows[b + 1])
                slopes[rows] *= self.weight[rows]
                curves[rows] *= self.weight[rows]

        run(block, range(len(cuts) - 1))

    def fill(self, scores: FloatArray, gradients: Gradients, run: Run) -> None:
        """Write the rounded gradients, and curvatures, of every row."""
        slopes, curves = self._slopes, gradients.curvature[0]
        self.slopes(scores[0], run, slopes, curves)
        # Both at once: to call threads and wait for them takes as long as to look at some rows.
        largest, most_curved = self._largest((slopes, curves), run)
        gradients.unit = largest / (1 << GRADIENT_BITS)
        gradients.curvature_unit = most_curved / (1 << LANE_BITS)
        lane = gradients.lane_is_curvature
        if lane:
            gradients.lane_unit = gradients.curvature_unit

        def to_integers(s: int) -> None:
            rows = slice(s, s + STEP)
            round_gradients(slopes[rows], gradients.unit, gradients.q[0, rows])
            if lane:
                round_lane(curves[rows], gradients.lane_unit, gradients.weights[0, rows])

        run(to_integers, starts(len(slopes)))

    def _largest(self, arrays: tuple[FloatArray, ...], run: Run) -> list[float]:
        """Largest size in each of some arrays; 1 where it is too small to divide by: nothing to learn from,
        which rounds to 0.
        """
        found = [[0.0] for _ in arrays]

        def look(s: int) -> None:
            for values, sizes in zip(arrays, found, strict=True):
                part = values[s : s + STEP]
                sizes.append(max(float(part.max()), -float(part.min())))

        run(look, starts(len(arrays[0])))
        largest = [self.sums.most(max(sizes)) for sizes in found]
        return [size if size > SMALLEST else 1.0 for size in largest]


class PairsLoss(QueryLoss):
    """A loss over the pairs of different grades, laid out by `pair_arrays`."""

    def __init__(self, pairs: PairArrays, weight: FloatArray | None, sums: Sums) -> None:
        self.pairs = pairs
        super().__init__(pairs.ends, pairs.longest, weight, sums)

    @property
    def is_empty(self) -> bool:
        """Whether no query has two different grades."""
        return count_all(int(self.pairs.factor.any()), self.sums) == 0


class PairwiseLoss(PairsLoss):
    """Base of losses over all pairs of different grades.

    Parameters
    ----------
    grades, offsets : array-like
        Grade of each row; query ``q`` owns rows ``offsets[q]:offsets[q + 1]``.
    sigma : float
        Steepness of the logistic curve.
    per_query : bool
        Give every query the same weight, rather than every pair.
    weight : ndarray or None
        Row weights.
    """

    kernel: ClassVar[Callable[..., Any]]
    boxes: ClassVar[int]  # the same pair functions in `mcrank.losses.boxes`

    def __init__(
        self,
        grades: npt.ArrayLike,
        offsets: npt.ArrayLike,
        sigma: float = 1.0,
        per_query: bool = False,
        weight: FloatArray | None = None,
        sums: Sums = ALONE,
    ) -> None:
        super().__init__(pair_arrays(grades, offsets, per_query), weight, sums)
        self.sigma = float(sigma)
        self._long = self.pairs.ends - self.pairs.starts >= LONG

    def fill_queries(
        self, scores: FloatArray, queries: IntArray, space: Space, slopes: FloatArray, curves: FloatArray
    ) -> None:
        """Write the gradients and curvatures of some queries."""
        long = self._long[queries]
        if not long.all():
            short = queries[~long] if long.any() else queries
            self.kernel(self.pairs, scores, short, self.sigma, space, slopes, curves)
        for q in queries[long].tolist():
            self._fill_long(q, scores, slopes, curves)

    def _fill_long(self, q: int, scores: FloatArray, slopes: FloatArray, curves: FloatArray) -> None:
        pairs, tables = self.pairs, pair_tables(self.boxes)
        rows = slice(int(pairs.starts[q]), int(pairs.ends[q]))
        order, factor = pairs.order[rows], float(pairs.factor[q])
        if factor == 0.0:
            slopes[rows] = curves[rows] = 0.0
            return
        boxed = lay_out(order, pairs.worth[rows], self.sigma * scores[rows], None, tables)
        slope, curve, slope_back, curve_back = pair_sums(boxed, tables)
        slopes[rows][order] = factor * self.sigma * (slope - slope_back)
        curves[rows][order] = factor * self.sigma**2 * (curve + curve_back)


class PairwiseLogistic(PairwiseLoss):
    """Logistic loss of pairs (RankNet).

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.pairwise import PairwiseLogistic
    >>> loss = PairwiseLogistic([0.0, 1.0], [0, 2])
    >>> slopes, curves = np.zeros(2), np.zeros(2)
    >>> loss.slopes(np.zeros(2), lambda task, items: [task(i) for i in items], slopes, curves)
    >>> slopes.tolist(), curves.tolist()
    ([-0.5, 0.5], [0.25, 0.25])
    """

    kernel = staticmethod(fill_logistic)
    boxes = LOGISTIC


class FidelityLoss(PairwiseLoss):
    """Fidelity loss of pairs (FRank).

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.pairwise import FidelityLoss
    >>> loss = FidelityLoss([0.0, 1.0], [0, 2])
    >>> slopes, curves = np.zeros(2), np.zeros(2)
    >>> loss.slopes(np.zeros(2), lambda task, items: [task(i) for i in items], slopes, curves)
    >>> slopes.round(4).tolist()
    [-0.1768, 0.1768]
    """

    kernel = staticmethod(fill_fidelity)
    boxes = FIDELITY
