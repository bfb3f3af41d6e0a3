"""`PreparedMeasure`: a measure made ready for one data set, to be asked again and again for its value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mcrank.arrays import Array, BoolArray, FloatArray, RowArray
from mcrank.data.checks import check_numbers
from mcrank.errors import DataError, MeasureError
from mcrank.lazy import lazy
from mcrank.metrics.dcg import DiscountedSum, refuse_fractions
from mcrank.metrics.layout import Layout, at_row, count_nan
from mcrank.metrics.measure import Measure
from mcrank.metrics.ranking import (
    FILE_ORDER,
    Ranking,
    base_order,
    fill_cut_ties,
    rank,
    rank_part,
    ties_of,
    unranked,
)
from mcrank.sums import exact_sum

_LEAST = 0.00001  # of a value in a geometric mean, as in trec_eval


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


class PreparedMeasure:
    """A measure on one data set; made by `Measure.on`.

    Examples
    --------
    >>> from mcrank import NDCG, Dataset
    >>> data = Dataset([[0.0]] * 3, y=[0, 1, 2], qid=[1, 1, 1])
    >>> prepared = NDCG(k=10).on(data)
    >>> round(prepared.mean([0.1, 0.2, 0.3]), 4)
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
        self.arithmetic = measure.prepare(layout)
        self.form = self.arithmetic.form
        self.rule, self._seed = dialect.tie_rule
        self.precision = dialect.score
        self._skipped = self._find_skipped()

    def _find_skipped(self) -> BoolArray:
        dialect, layout = self.measure.switches, self.layout
        skipped = np.zeros(layout.n_queries, dtype=np.bool_)
        if dialect.empty == "skip":
            skipped |= self.arithmetic.empty
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
        if self.rule.startswith("id-") and self.layout.doc_ids is None:
            query = self.layout.qids[int(np.argmax(tied))]
            instead = f"[{self.measure.switches.but(ties='file').name}]"
            raise MeasureError(
                f"{self.measure.name} breaks ties by document id: query {query} has tied scores and the "
                f"data no doc_ids; give doc_ids, or take file order with {instead}."
            )
        return rank(self.layout, scores, self.form.depth, self.tie_order)

    @lazy
    def tie_order(self) -> RowArray:
        """Rows in the order in which equal scores stand; empty for file order."""
        if self.rule in ("file", "expected"):
            return FILE_ORDER
        if self.rule in ("worst", "best") and (where := getattr(self.form, "no_worst", "")):
            raise MeasureError(
                f"{self.measure.name} has no worst and no best order of ties that is known {where}; choose "
                "another rule, such as ties=file."
            )
        worth = getattr(self.form, "row_worth", None)
        if worth is None:
            worth = np.take(self.form.worth, self.layout.levels)
        return base_order(self.layout, self.rule, self._seed, worth)

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
        self.form.fill(ranking.rows(self.layout, part), self.rule == "expected", part, out)

    def settled(self, out: FloatArray) -> FloatArray:
        """Return filled values with those that no ranking decides: of empty, short and skipped queries."""
        arithmetic = self.arithmetic
        if arithmetic.normalized:
            np.minimum(out, 1.0, out=out)  # a sum in another order may round one unit above its ideal
        out[arithmetic.empty] = arithmetic.empty_value
        if arithmetic.short is not None:
            out[arithmetic.short] = arithmetic.short_value
        out[self._skipped] = np.nan
        return out

    def mean(self, scores: npt.ArrayLike) -> float:
        """Return the dialect's mean over queries, weighted where the data has query weights."""
        return self.mean_of(self.per_query(scores))

    def mean_of(self, values: FloatArray, queries: BoolArray | None = None) -> float:
        """Return the dialect's mean of values per query, the same for any order of the queries.

        ``queries`` marks those to take the mean of, as if there were no others; all by default.
        """
        inside = ~self._skipped if queries is None else queries & ~self._skipped
        weight, one = self.query_weight, 1.0
        if weight is not None:
            # By a power of two, which changes no digit, so that no sum of large weights overflows.
            exponent = max(int(np.frexp(weight[inside].max(initial=0.0))[1]), 0)
            weight, one = np.ldexp(weight, -exponent), math.ldexp(1.0, -exponent)
        if self.arithmetic.summary == "sum":
            return exact_sum(values[inside])
        total = float(inside.sum() if weight is None else exact_sum(weight[inside]))
        if total <= 0.0:
            return 0.0 if self.measure.switches.nothing == "zero" else float("nan")
        counted = np.where(np.isnan(values), 0.0, values)  # as in `counted`; those skipped are not summed
        if self.arithmetic.summary == "geometric":
            counted = np.log(np.maximum(counted, _LEAST))
        if weight is not None:
            counted *= self._factor(weight, one)
        mean = exact_sum(counted[inside]) / total
        return math.exp(mean) if self.arithmetic.summary == "geometric" else mean

    def counted(self, values: FloatArray) -> FloatArray:
        """Return values per query (last axis) as the mean counts them: NaN only where a query is left out.

        A value that is missing without its query being skipped counts 0 (LETOR 3.0, short queries).
        """
        return np.where(self._skipped, np.nan, np.where(np.isnan(values), 0.0, values))

    def evened(self, values: FloatArray, queries: BoolArray | None = None) -> FloatArray:
        """Return values per query that count alike: their plain mean is that of `mean_of`, and their spread
        is what another draw of queries makes of it. NaN where a query is left out.

        Without weights they are the values themselves. With weights they are no values of the measure any
        more, but the weighted mean as each query moves it (to first order): for intervals and tests of it.

        Examples
        --------
        >>> import numpy as np
        >>> from mcrank import Grades, parse_measure
        >>> data = Grades([0, 1, 1], qid=[1, 1, 2], query_weight=[1.0, 3.0])
        >>> prepared = parse_measure("map").on(data)
        >>> prepared.evened(np.array([1.0, 0.5])).tolist(), prepared.mean_of(np.array([1.0, 0.5]))
        ([0.8125, 0.4375], 0.625)
        """
        counted = self.counted(values)
        inside = ~np.isnan(counted) if queries is None else queries & ~np.isnan(counted)
        counted = np.where(inside, counted, np.nan)
        weight = self.query_weight
        if weight is None or self.arithmetic.summary != "mean" or not weight[inside].max(initial=0.0) > 0.0:
            return counted
        exponent = int(np.frexp(weight[inside].max())[1])  # so that no sum of large weights overflows
        weight, one = np.ldexp(weight, -exponent), math.ldexp(1.0, -exponent)
        each, mean = float(weight[inside].mean()), self.mean_of(values, queries)
        return mean + (counted * self._factor(weight, one) - mean * weight) / each

    def _factor(self, weight: FloatArray, one: float) -> FloatArray:
        """What the mean multiplies values by; LightGBM and XGBoost count an empty query once in NDCG."""
        ones = self.measure.switches.empty_weight == "one" and self.arithmetic.normalized
        return np.where(self.arithmetic.empty, one, weight) if ones else weight

    @property
    def query_weight(self) -> FloatArray | None:
        """Weights of queries in the mean; None where the data has none or the dialect does not take them."""
        return self.layout.query_weight if self.arithmetic.weighted else None

    @property
    def weights(self) -> FloatArray:
        """Weight of each query in the mean, 1 where `query_weight` has none: what a trainer weighs by.

        Examples
        --------
        >>> from mcrank import Grades, parse_measure
        >>> data = Grades([0, 1, 1], qid=[1, 1, 2], query_weight=[1.0, 3.0])
        >>> [parse_measure(m).on(data).weights.tolist() for m in ("map", "map[catboost]")]
        [[1.0, 3.0], [1.0, 1.0]]
        """
        return np.ones(self.layout.n_queries) if self.query_weight is None else self.query_weight

    @property
    def decided(self) -> BoolArray:
        """Whether each query has one value, or none, whatever its ranking: it is empty, short or skipped."""
        decided = self.arithmetic.empty | self._skipped
        return decided if self.arithmetic.short is None else decided | self.arithmetic.short

    @property
    def norm(self) -> FloatArray:
        """Query norm: 1/ideal DCG (1/divisor), or 0 where no swap can change the value."""
        form = self.form
        divisor = getattr(form, "divisor", np.ones(self.layout.n_queries))
        norm = np.divide(1.0, divisor, out=np.zeros_like(divisor), where=divisor > 0.0)
        norm[self.decided] = 0.0
        return norm

    def training(self) -> TrainingArrays:
        """Return gain by row, discount by rank and norm by query; only for discounted sums (NDCG, DCG...)."""
        if not isinstance(self.form, DiscountedSum) or self.form.own_discount:
            raise MeasureError(
                f"{self.measure.name} is not a plain discounted sum; choose one, such as ndcg or precision."
            )
        return TrainingArrays(
            np.take(self.form.worth, self.layout.levels), self.form.discount, self.norm, self.form.depth
        )


class PreparedMeasures:
    """Measures made ready for one data set when they are first asked for, each once.

    Examples
    --------
    >>> from mcrank import Grades, parse_measure
    >>> from mcrank.metrics.layout import Layout
    >>> from mcrank.metrics.prepared import PreparedMeasures
    >>> ready = PreparedMeasures(Layout.of(Grades([0, 1], qid=[1, 1])))
    >>> ready[parse_measure("map")] is ready[parse_measure("map")]
    True
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._ready: dict[Measure, PreparedMeasure | MeasureError] = {}

    def __getitem__(self, measure: Measure) -> PreparedMeasure:
        """Return the measure made ready; `MeasureError` where its dialect refuses the data."""
        if measure not in self._ready:
            try:
                self._ready[measure] = PreparedMeasure(measure, self.layout)
            except MeasureError as error:
                self._ready[measure] = error
        found = self._ready[measure]
        if isinstance(found, MeasureError):
            raise found.with_traceback(None)
        return found


def checked_scores(scores: npt.ArrayLike, layout: Layout) -> FloatArray:
    """Return scores as contiguous float64, or raise `DataError`: one score per row, none of them NaN."""
    values = score_column(scores, layout)
    refuse_nan(values, layout, slice(0, layout.n_queries))
    return values


def score_array(scores: npt.ArrayLike) -> Array:
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
    measures: Sequence[PreparedMeasure], scores: FloatArray, cuts: Sequence[int]
) -> tuple[list[FloatArray], dict[int, BoolArray]]:
    """Return the values of every measure on the same scores, and which queries are tied across each cut.

    ``scores`` may have NaN, which is refused. Rows are ranked once per precision of scores; ties are those of
    the first measure's precision.
    """
    layout = measures[0].layout
    values = [np.empty(layout.n_queries, dtype=np.float64) for _ in measures]
    tied = {k: np.empty(layout.n_queries, dtype=np.bool_) for k in cuts}
    wanted = tied
    for precision in dict.fromkeys(measure.precision for measure in measures):
        those = [pair for pair in zip(measures, values, strict=True) if pair[0].precision == precision]
        _measure_ranked(those, those[0][0].rounded(scores), wanted)
        wanted = {}
    return values, tied


def _measure_ranked(
    those: Sequence[tuple[PreparedMeasure, FloatArray]], scores: FloatArray, tied: Mapping[int, BoolArray]
) -> None:
    layout = those[0][0].layout
    full = any(measure.rule == "expected" for measure, _ in those)
    depth = layout.longest if full else max(measure.form.depth for measure, _ in those)
    ranking = unranked(layout, scores, depth)
    plain = [(measure, out) for measure, out in those if measure.rule in ("file", "expected")]

    def measure_part(part: slice) -> None:
        # All of it on one thread while the order of its queries is near: threads are woken up once.
        refuse_nan(scores, layout, part)
        rank_part(layout, ranking, part)
        for measure, out in plain:
            measure.fill(ranking, part, out)
        for k, at_cut in tied.items():
            fill_cut_ties(layout, ranking, min(k, ranking.depth), part, at_cut)

    layout.in_parts(measure_part)
    for measure, out in those:
        if measure.rule in ("file", "expected"):
            measure.settled(out)
        else:
            out[:] = measure.values(measure.ranking(scores, ranking))
