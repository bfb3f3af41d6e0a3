"""Lambda gradients (LambdaRank, Burges et al. 2006; LambdaMART): pairwise logistic x change of the measure.

For a better row i and a worse row j of a query, at least one of them within the first ranks, with
rho = 1 / (1 + e^(sigma (s_i - s_j))) and change = |change of the measure when the two swap ranks|:

    lambda_i += sigma rho change        lambda_j -= sigma rho change
    w_i, w_j += sigma^2 rho (1 - rho) change

Which row is better is what the measure says: it is worth more (gain, relevance, chance to satisfy). A query
whose value no swap can change (empty, or short under a dialect that gives it 0) has no gradient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from mcrank.arrays import FloatArray, IntArray, RowArray
from mcrank.errors import MeasureError
from mcrank.kernels import kernel
from mcrank.losses.discounted import NEAR, fill_discounted
from mcrank.losses.pair_limit import refuse_pairs
from mcrank.losses.pairs import (
    Space,
    add_pairs,
    gather,
    make_space,
    rank_query,
    scatter,
    sum_in_lanes,
    weigh_pairs,
)
from mcrank.losses.pairwise import QueryLoss, count_pairs
from mcrank.losses.widened import widened
from mcrank.metrics.best import BestGrade
from mcrank.metrics.cascade import Cascade
from mcrank.metrics.dcg import DiscountedSum, ideal_sums
from mcrank.metrics.kendall import KendallTau
from mcrank.metrics.precision import AveragePrecision
from mcrank.metrics.prepared import PreparedMeasure
from mcrank.metrics.swaps import (
    average_precision_row,
    best_grade_row,
    cascade_row,
    discounted_row,
    kendall_row,
    kendall_start,
)
from mcrank.sums import ALONE, Sums, count_all

# Forms a measure may have, by the kernel that knows its swaps.
_FORMS: dict[type[Any], int] = {
    DiscountedSum: 0,
    AveragePrecision: 1,
    Cascade: 2,
    BestGrade: 3,
    KendallTau: 4,
}
_DISCOUNTED, _PRECISION, _CASCADE, _BEST, _KENDALL = range(5)
MOST_PAIRS = 100_000_000  # of one query that rankers take on unless told otherwise: about a second a round
_DISCOUNT_STEPS = 2.0**32  # to which the leading digits of a discount are rounded


class MeasureArrays(NamedTuple):
    """A measure on a data set as arrays for kernels; made by `measure_arrays`."""

    form: int
    worth: FloatArray  # by row; for Kendall's tau, which asks for no more, its place among those of its query
    discount: FloatArray  # by rank and as long as the longest query, or by row with own_discount
    own_discount: bool
    norm: FloatArray  # by query: 1 / ideal (1 / scale), 0 where no swap changes the value
    depth: int  # ranks that matter
    top: int  # pairs need a row within so many ranks
    single: bool  # scores are compared as float32
    falling: bool  # a sum over ranks whose discounts never rise
    base: RowArray  # places in its query of the rows in the order ties stand in; empty: as they are
    starts: IntArray
    ends: IntArray
    longest: int


def measure_arrays(prepared: PreparedMeasure, truncation: int | None = None) -> MeasureArrays:
    """Return what lambda kernels need of a measure.

    Parameters
    ----------
    prepared : PreparedMeasure
        The measure on the training data, from `Measure.on`.
    truncation : int, optional
        Only pairs with a row within so many ranks; by default all that the measure looks at. If it is more,
        ``dcg@k`` and ``ndcg@k`` get this cut-off: see `widened`.

    Examples
    --------
    >>> from mcrank import NDCG, Dataset
    >>> from mcrank.losses.lambdas import measure_arrays
    >>> data = Dataset([[0.0]] * 3, y=[0, 1, 2], qid=[1, 1, 1])
    >>> arrays = measure_arrays(NDCG(k=2).on(data))
    >>> arrays.worth.tolist(), arrays.top, arrays.discount.round(3).tolist()
    ([0.0, 1.0, 3.0], 2, [1.0, 0.631, 0.0])
    """
    if type(prepared.form) not in _FORMS:
        raise MeasureError(f"{prepared.measure.name} has no compiled swap changes; choose another measure.")
    counts = prepared.norm > 0.0
    prepared = widened(prepared, truncation)
    layout, form = prepared.layout, prepared.form
    longest = max(layout.longest, 1)
    own_discount = isinstance(form, DiscountedSum) and form.own_discount
    # Own discounts are laid out like the rows of all queries.
    depth = longest if own_discount else min(form.depth, longest)
    discount, norm = _discount_and_norm(prepared)
    norm = np.where(counts, norm, 0.0)
    if not own_discount:
        discount = np.pad(discount, (0, longest - len(discount)))
    by_rank = isinstance(form, DiscountedSum) and not own_discount
    worth = np.take(form.worth, layout.levels)
    if isinstance(form, KendallTau):
        worth, scale = _places_and_scale(worth, layout.starts, layout.ends - layout.starts)
        norm = np.divide(norm, scale, out=np.zeros_like(norm), where=scale > 0.0)
    return MeasureArrays(
        form=_FORMS[type(form)],
        worth=worth,
        discount=discount,
        own_discount=own_discount,
        norm=norm,
        depth=depth,
        top=depth if truncation is None else min(truncation, depth),
        single=prepared.precision == "float32",
        falling=by_rank and bool((np.diff(discount) <= 0.0).all()),
        base=_tie_order(prepared),
        starts=layout.starts,
        ends=layout.ends,
        longest=longest,
    )


def _discount_and_norm(prepared: PreparedMeasure) -> tuple[FloatArray, FloatArray]:
    """Discount (weight) by rank, and norm by query.

    A normalised sum does not depend on the unit of its discounts. Measuring them by the first one, and
    rounding what the logarithms of two bases leave different, makes dialects that mean the same train to the
    same model.
    """
    form = prepared.form
    if not (isinstance(form, DiscountedSum) and prepared.arithmetic.normalized and not form.own_discount):
        return getattr(form, "discount", getattr(form, "weight", np.empty(0))), prepared.norm
    fraction, exponent = np.frexp(form.discount / form.discount[:1])
    discount = np.ldexp(np.rint(fraction * _DISCOUNT_STEPS), exponent) / _DISCOUNT_STEPS
    ideal = ideal_sums(prepared.layout, form.worth, discount)
    counts = (prepared.norm > 0.0) & (ideal > 0.0)
    return discount, np.divide(1.0, ideal, out=np.zeros_like(ideal), where=counts)


def _places_and_scale(worth: FloatArray, starts: IntArray, sizes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Place of each row among the different worths of its query, from the lowest, 0; and of each query
    the root of (pairs * pairs untied in worth).
    """
    queries = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((worth, queries))
    new = np.append(True, (np.diff(worth[order]) > 0) | (np.diff(queries[order]) > 0))
    count = np.cumsum(new) - 1
    out = np.empty(len(worth))
    out[order] = count - count[starts][queries]
    every = sizes * (sizes - 1.0) / 2.0
    return out, np.sqrt(every * count_pairs(worth[order], queries, sizes))


def _tie_order(prepared: PreparedMeasure) -> RowArray:
    """Places in their query of rows in the order in which equal scores stand; empty for file order."""
    layout = prepared.layout
    if prepared.rule.startswith("id-"):
        prepared.ranking(np.zeros(layout.n_rows))  # scores are equal at first: says so where ids are missing
    order = prepared.tie_order
    return np.asarray(order - np.repeat(layout.starts, layout.sizes)[: len(order)], dtype=np.int32)


@njit(inline="always")
def fill_change(measure, i, n, discount, space):  # type: ignore[no-untyped-def]
    """Change of the measure, before its norm, when rank ``i`` swaps with each lower rank."""
    # IN: measure, i, n, discount by rank, space.worth  OUT: space.change
    worth, change = space.worth[:n], space.change[:n]
    if measure.form == _DISCOUNTED:
        discounted_row(i, worth, discount, change)
    elif measure.form == _PRECISION:
        average_precision_row(i, worth, measure.depth, change)
    elif measure.form == _CASCADE:
        cascade_row(i, worth, discount, change)
    elif measure.form == _BEST:
        best_grade_row(i, worth, measure.depth, change)
    else:
        kendall_row(i, worth, space.key_b[:n], change)  # no ranking is under way: its keys are free


@njit(inline="always")
def lambda_query(measure, q, scores, sigma, norm, space, slopes, curves):  # type: ignore[no-untyped-def]
    """Lambdas and their curvatures of one query, into its part of ``slopes`` and ``curves``.

    ``scores``, ``slopes`` and ``curves`` have all rows of the data set. With ``norm``, LightGBM's: changes
    are divided by 0.01 + the distance of the scores, and the query is scaled by log2(1 + S) / S, S being the
    sum of its |lambda|.
    """
    # IN: measure, q, scores, sigma, norm  OUT: space, slopes, curves
    start, end = measure.starts[q], measure.ends[q]
    n = end - start
    own_slopes, own_curves = slopes[start:end], curves[start:end]
    if measure.norm[q] == 0.0 or n < 2:
        for k in range(n):
            own_slopes[k] = 0.0
            own_curves[k] = 0.0
        return
    own_scores = scores[start:end]
    used = space.used[:n]
    for k in range(n):
        used[k] = np.float64(np.float32(own_scores[k])) if measure.single else own_scores[k]
    base = measure.base[start:end] if len(measure.base) > 0 else measure.base
    rank_query(used, base, min(measure.depth, n), space)
    order = space.order[:n]
    far = gather(order, own_scores, measure.worth[start:end], sigma, space)
    discount = measure.discount[start:end] if measure.own_discount else measure.discount[:n]
    factor = measure.norm[q]
    if measure.form == _KENDALL:
        kendall_start(space.worth[:n], space.key_a[:n], space.key_b[:n])
    total = 0.0
    score = space.score[:n]
    divide = False
    if norm:
        for k in range(n):
            divide |= score[k] != score[0]
    for i in range(min(measure.top, n - 1)):
        fill_change(measure, i, n, discount, space)
        if divide:
            own, others, change = score[i], score[i + 1 :], space.change[i + 1 : n]
            for j in range(len(change)):
                change[j] /= NEAR + abs(own - others[j])
        weigh_pairs(i, i + 1, n, far, sigma, space)
        add_pairs(i, i + 1, n, space)
        if norm:
            pair = space.pair[i + 1 : n]
            for j in range(len(pair)):
                pair[j] = abs(pair[j])
            total += sum_in_lanes(pair, space.lane)
    if norm:
        total *= 2.0 * factor * sigma
        factor *= np.log2(1.0 + total) / total if total > 0.0 else 1.0
    scatter(order, factor * sigma, factor * sigma * sigma, space, own_slopes, own_curves)


@kernel()
def fill_general(measure, scores, queries, sigma, norm, space, slopes, curves):  # type: ignore[no-untyped-def]
    """`lambda_query` for some queries."""
    # IN: measure, scores, queries, sigma, norm  OUT: space, slopes, curves
    for q in queries:
        lambda_query(measure, q, scores, sigma, norm, space, slopes, curves)


def fill_lambdas(
    measure: MeasureArrays,
    scores: FloatArray,
    queries: IntArray,
    sigma: float,
    norm: bool,
    space: Space,
    slopes: FloatArray,
    curves: FloatArray,
) -> None:
    """Write the lambdas and curvatures of some queries: of falling sums the quick way, of all others, and of
    queries whose scores lie far apart, the general one. Who needs one compiles only that.
    """
    if measure.falling:
        far = np.empty(len(queries), dtype=np.int64)
        given = (float(sigma), bool(norm))
        queries = far[: fill_discounted(measure, scores, queries, given, space, slopes, curves, far)]
    if len(queries):
        fill_general(measure, scores, queries, sigma, norm, space, slopes, curves)


def lambda_gradients(
    prepared: PreparedMeasure,
    scores: FloatArray,
    sigma: float = 1.0,
    truncation: int | None = None,
    norm: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Return the lambdas and their curvatures of every row, in the data's grouped order.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank import NDCG, Dataset
    >>> from mcrank.losses.lambdas import lambda_gradients
    >>> data = Dataset([[0.0]] * 2, y=[0, 1], qid=[1, 1])
    >>> lambdas, weights = lambda_gradients(NDCG().on(data), np.zeros(2))
    >>> lambdas.round(4).tolist()  # half of what a swap changes, 1 - 1/log2(3)
    [-0.1845, 0.1845]
    """
    measure = measure_arrays(prepared, truncation)
    lambdas, weights = np.zeros(len(scores)), np.zeros(len(scores))
    fill_lambdas(
        measure, np.asarray(scores, dtype=np.float64), np.arange(len(measure.starts)), float(sigma), norm,
        make_space(measure.longest), lambdas, weights,
    )  # fmt: skip
    return lambdas, weights


class LambdaLoss(QueryLoss):
    """Lambda gradients of one measure on one data set.

    Parameters
    ----------
    prepared : PreparedMeasure
        The measure on the training data.
    sigma : float
        Steepness of the logistic curve.
    truncation : int or None
        Only pairs with a row within so many ranks; None for all that the measure looks at; see `widened`.
    norm : bool
        Normalise as LightGBM does; see `lambda_query`.
    weight : ndarray or None
        Row weights.
    most : int or None
        Pairs of one query beyond which it is refused (`refuse_pairs`); None for no limit.
    owner : str
        Who trains on it, for that.

    Examples
    --------
    >>> from mcrank import NDCG, Dataset
    >>> from mcrank.losses.lambdas import LambdaLoss
    >>> data = Dataset([[0.0]] * 2, y=[0, 1], qid=[1, 1])
    >>> LambdaLoss(NDCG(k=10).on(data)).is_empty
    False
    """

    rounded_curvature = True

    def __init__(
        self,
        prepared: PreparedMeasure,
        sigma: float = 1.0,
        truncation: int | None = None,
        norm: bool = False,
        weight: FloatArray | None = None,
        most: int | None = None,
        owner: str = "A lambda loss",
        sums: Sums = ALONE,
    ) -> None:
        self.measure = measure_arrays(prepared, truncation)
        # Two ways differ in last digits: all places take the same one, whatever their longest query.
        rising = count_all(int(not self.measure.falling), sums)
        self.measure = self.measure._replace(falling=rising == 0)
        if most is not None:
            self._refuse(prepared, most, owner)
        self.sigma = float(sigma)
        self.norm = bool(norm)
        super().__init__(self.measure.ends, self.measure.longest, weight, sums)

    def _refuse(self, prepared: PreparedMeasure, most: int, owner: str) -> None:
        measure = self.measure
        sizes = np.where(measure.norm > 0.0, measure.ends - measure.starts, 0)
        top = np.minimum(measure.top, np.maximum(sizes - 1, 0))
        refuse_pairs(
            owner,
            f"weighs every pair of ranks that {prepared.measure.name} looks at, each round",
            "take a measure with a cut-off (such as ndcg@10), set truncation",
            top * sizes - top * (top + 1) // 2,
            sizes,
            prepared.layout.qids,
            most,
        )

    @property
    def is_empty(self) -> bool:
        """Whether no swap in any query changes the measure."""
        worth, measure = self.measure.worth, self.measure
        highest = np.maximum.reduceat(worth, measure.starts)
        lowest = np.minimum.reduceat(worth, measure.starts)
        return count_all(int(((highest > lowest) & (measure.norm > 0.0)).any()), self.sums) == 0

    def fill_queries(
        self, scores: FloatArray, queries: IntArray, space: Space, slopes: FloatArray, curves: FloatArray
    ) -> None:
        """Write the lambdas and curvatures of some queries."""
        fill_lambdas(self.measure, scores, queries, self.sigma, self.norm, space, slopes, curves)
