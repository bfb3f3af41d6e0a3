"""`Bound`: a measure made ready for one data set, to be asked again and again for its value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from mcrank.data.checks import check_numbers
from mcrank.errors import DataError, MeasureError
from mcrank.exact import exact_sum
from mcrank.metrics.dcg import DiscountedSum, refuse_fractions
from mcrank.metrics.layout import BoolArray, FloatArray, Layout, RowArray, at_row
from mcrank.metrics.sorting import FILE_ORDER
from mcrank.metrics.sums import count_nan
from mcrank.metrics.ties import Ranking, base_order, fill_cut_ties, rank, rank_part, ties_of, unranked

if TYPE_CHECKING:
    from mcrank.metrics.measure import Measure


class Form(Protocol):
    """The arithmetic of a measure on one data set: how it turns a ranking into a value per query."""

    @property
    def worth(self) -> FloatArray:
        """What each level is worth; decides the worst and the best order of ties."""

    @property
    def depth(self) -> int:
        """Ranks that matter."""

    def fill(self, layout: Layout, ranking: Ranking, expected: bool, part: slice, out: FloatArray) -> None:
        """Fill ``out`` with the value of every query of a part."""

    def fill_swaps(self, layout: Layout, ranking: Ranking, query: int, out: FloatArray) -> None:
        """Fill ``out[i, j]`` with the change when ranks i and j of one query swap."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A form, and the queries whose value is decided without ranking."""

    form: Form
    empty: BoolArray
    empty_value: float = 0.0
    short: BoolArray | None = None
    short_value: float = 0.0
    normalized: bool = False
    weighted: bool = True


@dataclass(frozen=True, eq=False)
class TrainingArrays:
    """What a LambdaRank-style trainer needs of a discounted measure, as plain arrays for its own kernel.

    The change when rows i and j of query q swap ranks a and b is
    ``norm[q] * |gain[i] - gain[j]| * |discount[a] - discount[b]|``; ranks beyond ``cut`` have discount 0.
    """

    gain: FloatArray
    discount: FloatArray
    norm: FloatArray
    cut: int


class Bound:
    """A measure on one data set; made by `Measure.on`.

    Examples
    --------
    >>> from mcrank import NDCG, Dataset
    >>> data = Dataset([[0.0]] * 3, y=[0, 1, 2], qid=[1, 1, 1])
    >>> bound = NDCG(k=10).on(data)
    >>> round(bound.mean([0.1, 0.2, 0.3]), 4)
    1.0
    """

    def __init__(self, measure: Measure, layout: Layout) -> None:
        dialect = measure.switches
        if dialect.grade_precision == "float32":
            layout = layout.in_float32
        self.measure = measure
        self.layout = layout
        if dialect.ids == "unique":
            layout.check_ids(measure.name)
        if dialect.grades == "integer":
            refuse_fractions(layout, measure.name)
        self.prepared = measure.prepare(layout)
        self.form = self.prepared.form
        self.rule, self._seed = dialect.tie_rule
        self.precision = dialect.score
        self._skipped = self._find_skipped()
        self._base: RowArray | None = None

    def _find_skipped(self) -> BoolArray:
        dialect, layout = self.measure.switches, self.layout
        skipped = np.zeros(layout.n_queries, dtype=np.bool_)
        if dialect.empty == "skip":
            skipped |= self.prepared.empty
        self._refuse(layout.missing, dialect.missing, "is judged but missing from the run", "missing=zero")
        if layout.missing is not None and dialect.missing == "skip":
            skipped |= layout.missing
        self._refuse(layout.unjudged, dialect.unjudged, "has no judgment of 0 or above", "unjudged=zero")
        single = layout.stops - layout.starts == 1
        self._refuse(single, dialect.single, "has one document, which the tool refuses", "single=skip")
        if dialect.single == "skip":
            skipped |= single
        return skipped

    def _refuse(self, marked: BoolArray | None, rule: str, what: str, instead: str) -> None:
        if rule == "error" and marked is not None and marked.any():
            query = self.layout.qids[int(np.argmax(marked))]
            raise MeasureError(f"{self.measure.name}: query {query} {what}; to go on, say {instead}.")

    def scores_of(self, scores: npt.ArrayLike) -> FloatArray:
        """Return scores as the dialect compares them (some tools round them to float32)."""
        return self.rounded(checked_scores(scores, self.layout))

    def rounded(self, scores: FloatArray) -> FloatArray:
        """Return checked scores in the precision of the dialect."""
        if self.precision == "float32":
            with np.errstate(over="ignore"):
                return scores.astype(np.float32).astype(np.float64)
        return scores

    def ranking(self, scores: FloatArray, shared: Ranking | None = None) -> Ranking:
        """Rank rows under the dialect's tie rule; ``shared`` is a file-order ranking of the same scores."""
        depth = self.layout.longest if self.rule == "expected" else self.form.depth
        plain = shared if shared is not None else rank(self.layout, scores, depth)
        if self.rule in ("file", "expected"):
            return plain
        tied, _ = ties_of(self.layout, plain, min(self.form.depth, plain.depth))
        if not tied.any():
            return plain
        if self._base is None:
            if self.rule.startswith("id-") and self.layout.doc_ids is None:
                query = self.layout.qids[int(np.argmax(tied))]
                instead = f"[{self.measure.switches.but(ties='file').name}]"
                raise MeasureError(
                    f"{self.measure.name} breaks ties by document id: query {query} has tied scores and the "
                    f"data no doc_ids; give doc_ids, or take file order with {instead}."
                )
            self._base = base_order(self.layout, self.rule, self._seed, self.form.worth)
        return rank(self.layout, scores, self.form.depth, self._base)

    def per_query(self, scores: npt.ArrayLike) -> FloatArray:
        """Return the value of every query; NaN where the dialect gives none.

        ``scores`` has one value per row, in the data's grouped row order.
        """
        used = self.scores_of(scores)
        return self.values(self.ranking(used))

    def values(self, ranking: Ranking) -> FloatArray:
        """Return the value of every query for rows already ranked."""
        out = np.empty(self.layout.n_queries, dtype=np.float64)
        depth = min(self.form.depth, self.layout.longest)
        self.layout.in_parts(lambda part: self.fill(ranking, part, out), self.layout.n_queries * depth)
        return self.settled(out)

    def fill(self, ranking: Ranking, part: slice, out: FloatArray) -> None:
        """Fill ``out`` with what the ranking makes of every query of a part."""
        self.form.fill(self.layout, ranking, self.rule == "expected", part, out)

    def settled(self, out: FloatArray) -> FloatArray:
        """Return filled values with those that no ranking decides: of empty, short and skipped queries."""
        prepared = self.prepared
        if prepared.normalized:
            np.minimum(out, 1.0, out=out)  # a sum in another order may round one unit above its ideal
        out[prepared.empty] = prepared.empty_value
        if prepared.short is not None:
            out[prepared.short] = prepared.short_value
        out[self._skipped] = np.nan
        return out

    def mean(self, scores: npt.ArrayLike) -> float:
        """Return the dialect's mean over queries, weighted where the data has query weights."""
        return self.mean_of(self.per_query(scores))

    def mean_of(self, values: FloatArray) -> float:
        """Return the dialect's mean of values per query, the same for any order of the queries."""
        inside = ~self._skipped
        weight, one = self.query_weight, 1.0
        if weight is not None:
            # By a power of two, which changes no digit, so that no sum of large weights overflows.
            exponent = max(int(np.frexp(weight.max())[1]), 0)
            weight, one = np.ldexp(weight, -exponent), math.ldexp(1.0, -exponent)
        total = float(inside.sum() if weight is None else exact_sum(weight[inside]))
        if total <= 0.0:
            return 0.0 if self.measure.switches.nothing == "zero" else float("nan")
        counted = np.where(np.isnan(values), 0.0, values)  # as in `counted`; those skipped are not summed
        if weight is not None:
            # LightGBM and XGBoost do so for NDCG, not for MAP.
            ones = self.measure.switches.empty_weight == "one" and self.prepared.normalized
            counted *= np.where(self.prepared.empty, one, weight) if ones else weight
        return exact_sum(counted[inside]) / total

    def counted(self, values: FloatArray) -> FloatArray:
        """Return values per query (last axis) as the mean counts them: NaN only where a query is left out.

        A value that is missing without its query being skipped counts 0 (LETOR 3.0, short queries).
        """
        return np.where(self._skipped, np.nan, np.where(np.isnan(values), 0.0, values))

    @property
    def query_weight(self) -> FloatArray | None:
        """Weights of queries in the mean; None where the data has none or the dialect does not take them."""
        return self.layout.query_weight if self.prepared.weighted else None

    @property
    def norm(self) -> FloatArray:
        """Query norm: 1/ideal DCG (1/divisor), or 0 where no swap can change the value."""
        form = self.form
        divisor = getattr(form, "divisor", np.ones(self.layout.n_queries))
        norm = np.divide(1.0, divisor, out=np.zeros_like(divisor), where=divisor > 0.0)
        norm[self.prepared.empty | self._skipped] = 0.0
        if self.prepared.short is not None:
            norm[self.prepared.short] = 0.0
        return norm

    def training(self) -> TrainingArrays:
        """Return gain by row, discount by rank and norm by query; only for discounted sums (NDCG, DCG...).

        Other measures answer `swap_changes`.
        """
        if not isinstance(self.form, DiscountedSum) or self.form.own_discount:
            raise MeasureError(
                f"{self.measure.name} is not a plain discounted sum; a trainer must ask swap_changes for it."
            )
        return TrainingArrays(
            np.take(self.form.worth, self.layout.levels), self.form.discount, self.norm, self.form.depth
        )

    def swaps(self, scores: npt.ArrayLike) -> Swaps:
        """Rank every query once, to be asked for the change of any swap; what a trainer calls each round."""
        return Swaps(self, scores)

    def swap_changes(self, scores: npt.ArrayLike, query: int) -> tuple[RowArray, FloatArray]:
        """Return one query's rows in ranked order, and the absolute change when ranks i and j swap.

        For many queries of the same scores ask `swaps` once instead.

        Examples
        --------
        >>> from mcrank import MRR, Dataset
        >>> data = Dataset([[0.0]] * 3, y=[0, 1, 0], qid=[1, 1, 1])
        >>> rows, change = MRR().on(data).swap_changes([3.0, 2.0, 1.0], 0)
        >>> change[0].tolist()
        [0.0, 0.5, 0.0]
        """
        swaps = self.swaps(scores)
        return swaps.rows(query).copy(), swaps.changes(query)


class Swaps:
    """A ranking of every query, and how the measure changes when two documents of a query swap ranks.

    Ties stand in the order of the dialect's rule (file order under ``expected``).

    Attributes
    ----------
    order : ndarray of int32
        Row at each rank, query by query: ``order[offsets[q] + r]`` has rank ``r`` (from 0) in query ``q``.
    norm : ndarray of float64
        1/ideal (1/divisor) of each query, 0 where no swap can change the value.

    Examples
    --------
    >>> from mcrank import MAP, Dataset
    >>> data = Dataset([[0.0]] * 4, y=[0, 1, 1, 0], qid=[1, 1, 2, 2])
    >>> swaps = MAP().on(data).swaps([2.0, 1.0, 1.0, 2.0])
    >>> swaps.rows(1).tolist(), swaps.changes(1).tolist()
    ([3, 2], [[0.0, 0.5], [0.5, 0.0]])
    """

    def __init__(self, bound: Bound, scores: npt.ArrayLike) -> None:
        layout = bound.layout
        used = bound.scores_of(scores)
        base = FILE_ORDER
        if bound.rule not in ("file", "expected"):
            bound.ranking(used)  # finds the base order where there are ties
            base = FILE_ORDER if bound._base is None else bound._base
        # Swaps reach every rank, whatever the cut-off.
        self._ranking = rank(layout, used, max(layout.longest, 1), base)
        self._layout, self._form = layout, bound.form
        self.order = self._ranking.order
        self.norm = bound.norm

    def _query(self, query: int) -> tuple[int, int]:
        if not 0 <= query < self._layout.n_queries:
            raise DataError(f"query must be 0 to {self._layout.n_queries - 1}, got {query}.")
        return int(self._layout.starts[query]), int(self._layout.ends[query])

    def rows(self, query: int) -> RowArray:
        """Return the rows of one query in ranked order."""
        start, end = self._query(query)
        return self.order[start:end]

    def changes(self, query: int) -> FloatArray:
        """Return the absolute change when ranks i and j of one query swap, as a matrix."""
        start, end = self._query(query)
        out = np.zeros((end - start, end - start), dtype=np.float64)
        if self.norm[query] > 0.0:
            self._form.fill_swaps(self._layout, self._ranking, query, out)
        return out


def checked_scores(scores: npt.ArrayLike, layout: Layout) -> FloatArray:
    """Return scores as contiguous float64, or raise `DataError`: one score per row, none of them NaN."""
    values = score_column(scores, layout)
    refuse_nan(values, layout, slice(0, layout.n_queries))
    return values


def score_array(scores: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return scores as an array, or raise `DataError` for what cannot be scores."""
    return check_numbers(scores, "scores")


def score_column(scores: npt.ArrayLike, layout: Layout) -> FloatArray:
    """Return scores as contiguous float64, one per row, or raise `DataError`."""
    values = np.ascontiguousarray(score_array(scores), dtype=np.float64)
    if values.shape != (layout.n_rows,):
        raise DataError(
            f"scores must have one value per row: {layout.n_rows} rows, got shape {values.shape}."
        )
    return values if values.flags.writeable else values.copy()  # kernels are compiled for writable arrays


def refuse_nan(values: FloatArray, layout: Layout, part: slice) -> None:
    """Raise `DataError` for the first score of all that is NaN, if there is one in a part of the queries."""
    if count_nan(values[layout.rows_of(part)]):
        row = int(np.argmax(np.isnan(values)))
        words = f"scores has NaN at {layout.row_words(row)}; every row needs a score."
        raise at_row(DataError(words), layout.source_row(row))


def measure_together(
    bounds: Sequence[Bound], scores: FloatArray, cuts: Sequence[int]
) -> tuple[list[FloatArray], dict[int, BoolArray]]:
    """Return the values of every bound on the same scores, and which queries are tied across each cut.

    ``scores`` may have NaN, which is refused. Rows are ranked once per precision of scores; ties are those of
    the first bound's precision.
    """
    layout = bounds[0].layout
    values = [np.empty(layout.n_queries, dtype=np.float64) for _ in bounds]
    tied = {k: np.empty(layout.n_queries, dtype=np.bool_) for k in cuts}
    wanted = tied
    for precision in dict.fromkeys(bound.precision for bound in bounds):
        those = [pair for pair in zip(bounds, values, strict=True) if pair[0].precision == precision]
        _measure_ranked(those, those[0][0].rounded(scores), wanted)
        wanted = {}
    return values, tied


def _measure_ranked(
    those: Sequence[tuple[Bound, FloatArray]], scores: FloatArray, tied: Mapping[int, BoolArray]
) -> None:
    layout = those[0][0].layout
    full = any(bound.rule == "expected" for bound, _ in those)
    depth = layout.longest if full else max(bound.form.depth for bound, _ in those)
    ranking = unranked(layout, scores, depth)
    plain = [(bound, out) for bound, out in those if bound.rule in ("file", "expected")]

    def measure_part(part: slice) -> None:
        # All of it on one thread while the order of its queries is near: threads are woken up once.
        refuse_nan(scores, layout, part)
        rank_part(layout, ranking, part)
        for bound, out in plain:
            bound.fill(ranking, part, out)
        for k, at_cut in tied.items():
            fill_cut_ties(layout, ranking, min(k, ranking.depth), part, at_cut)

    layout.in_parts(measure_part)
    for bound, out in those:
        if bound.rule in ("file", "expected"):
            bound.settled(out)
        else:
            out[:] = bound.values(bound.ranking(scores, ranking))
