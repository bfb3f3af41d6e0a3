"""Measures of a reader who stops when satisfied: ERR and PFound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mcrank.metrics.layout import Layout
from mcrank.metrics.value import Measure, checked_number

if TYPE_CHECKING:
    from mcrank.metrics.bound import Prepared


@dataclass(frozen=True)
class ERR(Measure):
    """Expected reciprocal rank; ``max_grade`` is the grade of a perfect document.

    Examples
    --------
    >>> from mcrank import ERR, Dataset
    >>> data = Dataset([[0.0]] * 2, y=[0, 4], qid=[1, 1])
    >>> ERR(k=10).on(data).mean([1.0, 2.0])
    0.9375
    """

    max_grade: float = 4

    label: ClassVar[str] = "err"
    parameter: ClassVar[str | None] = "max_grade"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "max_grade", checked_number(self.max_grade, "max_grade of ERR", 0.0, 1000.0))

    def prepare(self, layout: Layout) -> Prepared:
        """Return ERR as a cascade."""
        from mcrank.metrics.bound import Prepared
        from mcrank.metrics.cascade import Cascade, satisfaction

        chance = satisfaction(self.switches, layout, self.max_grade, self.name)
        weight = 1.0 / np.arange(1, self._depth(layout) + 1)
        return Prepared(Cascade(chance, weight, self.switches.err_rest), layout.query_sums(chance) <= 0.0)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        if self.switches.err == "grade":
            chance = "the grade itself"
        else:
            chance = f"(2^grade - 1)/{2.0**self.max_grade:g}"
        over = f"over {self._cut_words()}; P(satisfied) = {chance}"
        return f"sum of 1/rank * P(stop there) {over}; {self._tie_words()}"


@dataclass(frozen=True)
class PFound(Measure):
    """Probability that a reader who leaves with chance 1 - ``decay`` after each document is satisfied.

    The grade itself is the probability of satisfaction, as in CatBoost.

    Examples
    --------
    >>> from mcrank import Dataset, PFound
    >>> data = Dataset([[0.0]] * 2, y=[0.0, 0.5], qid=[1, 1])
    >>> PFound().on(data).mean([2.0, 1.0])
    0.425
    """

    decay: float = 0.85

    label: ClassVar[str] = "pfound"
    parameter: ClassVar[str | None] = "decay"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "decay", checked_number(self.decay, "decay of PFound", 0.0, 1.0))

    def prepare(self, layout: Layout) -> Prepared:
        """Return PFound as a cascade."""
        from mcrank.metrics.bound import Prepared
        from mcrank.metrics.cascade import Cascade, satisfaction

        chance = satisfaction(self.switches.but(err="grade"), layout, 4, self.name)
        weight = self.decay ** np.arange(self._depth(layout), dtype=np.float64)
        return Prepared(Cascade(chance, weight), layout.query_sums(chance) <= 0.0)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        return (
            f"sum of {self.decay:g}^(rank - 1) * P(stop there) over {self._cut_words()}; "
            f"P(satisfied) = the grade itself; {self._tie_words()}"
        )
