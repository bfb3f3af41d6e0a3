"""Measures of graded relevance: DCG, NDCG, MeanNDCG, the best grade, Kendall's tau."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mcrank.errors import MeasureError
from mcrank.metrics.dialects import Dialect
from mcrank.metrics.layout import BoolArray, Layout
from mcrank.metrics.value import Measure

if TYPE_CHECKING:
    from mcrank.metrics.bound import Prepared


@dataclass(frozen=True)
class DCG(Measure):
    """Discounted cumulative gain.

    Examples
    --------
    >>> from mcrank import DCG, Dataset
    >>> data = Dataset([[0.0]] * 2, y=[2, 1], qid=[1, 1])
    >>> round(DCG(k=1).on(data).mean([1.0, 0.0]), 4)
    3.0
    """

    label: ClassVar[str] = "dcg"

    def prepare(self, layout: Layout) -> Prepared:
        """Return DCG as a discounted sum."""
        from mcrank.metrics import dcg
        from mcrank.metrics.bound import Prepared

        gain = dcg.gains(self.switches, layout, self.name)
        discount = dcg.discounts(self.switches, self._depth(layout, self.switches.ndcg_default))
        ones = np.ones(layout.n_queries)
        empty = dcg.ideal_sums(layout, gain, discount) <= 0.0
        short, short_value = self._short(layout)
        return Prepared(dcg.DiscountedSum(gain, discount, ones), empty, short=short, short_value=short_value)

    def _short(self, layout: Layout) -> tuple[BoolArray | None, float]:
        rule = self.switches.short
        short = layout.shorter_than(self.k) if self.k is not None and rule != "cut" else None
        return short, float("nan") if rule == "missing" else 0.0

    def _gain_words(self) -> str:
        gain = self.switches.gain
        named = {"exp": "gain 2^grade - 1", "exp/16": "gain (2^grade - 1)/16", "linear": "gain = grade"}
        return named[gain] if isinstance(gain, str) else f"gain {'/'.join(f'{g:g}' for g in gain)} by grade"

    def _discount_words(self) -> str:
        return {
            "log2": "discount 1/log2(1 + rank)",
            "ln": "discount 1/ln(1 + rank)",
            "letor": "discount 1, 1, then 1/log2(rank)",
            "position": "discount 1/rank",
        }[self.switches.discount]

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        cut = self._cut_words(self.switches.ndcg_default)
        return f"sum over {cut}: {self._gain_words()}, {self._discount_words()}; {self._tie_words()}"


@dataclass(frozen=True)
class NDCG(DCG):
    """Normalized discounted cumulative gain: DCG over the DCG of the ideal order.

    Examples
    --------
    >>> from mcrank import NDCG, Dataset
    >>> data = Dataset([[0.0]] * 2, y=[0, 1], qid=[1, 1])
    >>> round(NDCG(k=10).on(data).mean([1.0, 0.0]), 4)
    0.6309
    >>> NDCG(k=10, dialect="letor4;short=cut").on(data).mean([1.0, 0.0])
    1.0
    """

    label: ClassVar[str] = "ndcg"

    def prepare(self, layout: Layout) -> Prepared:
        """Return NDCG as a discounted sum over the ideal."""
        from mcrank.metrics import dcg
        from mcrank.metrics.bound import Prepared

        gain = dcg.gains(self.switches, layout, self.name)
        discount = dcg.discounts(self.switches, self._depth(layout, self.switches.ndcg_default))
        ideal = dcg.ideal_sums(layout, gain, discount)
        short, short_value = self._short(layout)
        return Prepared(
            dcg.DiscountedSum(gain, discount, ideal),
            empty=ideal <= 0.0,
            empty_value=_empty_value(self.switches),
            short=short,
            short_value=short_value,
            normalized=True,
        )

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        empty = self.switches.empty
        words = "is left out" if empty == "skip" else f"scores {empty:g}"
        short = {"cut": "", "zero": "; shorter than k scores 0", "missing": "; shorter than k counts 0"}
        return f"DCG/ideal, {DCG.definition.fget(self)}; empty query {words}{short[self.switches.short]}"  # type: ignore[attr-defined]


def _empty_value(dialect: Dialect) -> float:
    return 0.0 if isinstance(dialect.empty, str) else float(dialect.empty)


@dataclass(frozen=True)
class MeanNDCG(DCG):
    """Mean of NDCG@1 to NDCG@n of each query, as LETOR 4.0 and the MSLR script print it.

    Examples
    --------
    >>> from mcrank import Dataset, MeanNDCG
    >>> data = Dataset([[0.0]] * 2, y=[0, 1], qid=[1, 1])
    >>> MeanNDCG(dialect="letor4").on(data).mean([1.0, 0.0])
    0.5
    """

    label: ClassVar[str] = "meanndcg"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is not None:
            raise MeasureError(f"MeanNDCG runs over every cut-off and takes no k, got {self.k!r}.")

    def prepare(self, layout: Layout) -> Prepared:
        """Return MeanNDCG as a discounted sum with discounts of each query's own."""
        from mcrank.metrics import dcg
        from mcrank.metrics.bound import Prepared

        gain = dcg.gains(self.switches, layout, self.name)
        form, ideal = dcg.mean_ndcg_form(layout, gain, dcg.discounts(self.switches, layout.longest))
        return Prepared(form, ideal <= 0.0, _empty_value(self.switches), normalized=True)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        return f"mean of NDCG@1..NDCG@n: {self._gain_words()}, {self._discount_words()}; {self._tie_words()}"


@dataclass(frozen=True)
class Best(Measure):
    """Highest grade among the first k, as RankLib prints it.

    Examples
    --------
    >>> from mcrank import Best, Dataset
    >>> data = Dataset([[0.0]] * 2, y=[1, 2], qid=[1, 1])
    >>> Best(k=1).on(data).mean([2.0, 1.0])
    1.0
    """

    label: ClassVar[str] = "best"

    def prepare(self, layout: Layout) -> Prepared:
        """Return the best grade within reach."""
        from mcrank.metrics.binary import BestGrade
        from mcrank.metrics.bound import Prepared

        grade = layout.level_grades
        if self.switches.grades == "truncate":
            grade = np.floor(grade)
        return Prepared(BestGrade(grade, self._depth(layout)), layout.query_sums(grade) <= 0.0)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        return f"highest grade in {self._cut_words()}; {self._tie_words()}"


@dataclass(frozen=True)
class Kendall(Measure):
    """Kendall's tau-b between scores and grades; 0 where all scores or all grades are equal.

    Examples
    --------
    >>> from mcrank import Dataset, Kendall
    >>> data = Dataset([[0.0]] * 3, y=[0, 1, 2], qid=[1, 1, 1])
    >>> Kendall().on(data).mean([1.0, 2.0, 3.0])
    1.0
    """

    label: ClassVar[str] = "kendall"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is not None:
            raise MeasureError(f"Kendall compares whole lists and takes no k, got {self.k!r}.")

    def prepare(self, layout: Layout) -> Prepared:
        """Return Kendall's tau."""
        from mcrank.metrics.bound import Prepared
        from mcrank.metrics.kendall import KendallTau

        form = KendallTau(layout.level_grades, layout.longest)
        return Prepared(form, np.zeros(layout.n_queries, dtype=np.bool_))

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        return "(concordant - discordant)/sqrt(pairs untied in score * pairs untied in grade)"
