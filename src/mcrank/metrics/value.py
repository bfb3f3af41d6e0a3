"""`Measure`: a frozen value with a canonical name, bound to data when it is to be computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mcrank.errors import MeasureError
from mcrank.metrics.dialects import DIALECTS, Dialect, find_dialect
from mcrank.metrics.layout import Graded, Layout
from mcrank.metrics.switches import number_text

if TYPE_CHECKING:
    from mcrank.metrics.bound import Bound, Prepared


@dataclass(frozen=True)
class Measure:
    """Base of every measure: a cut-off ``k`` (None: the whole list) and a dialect.

    Examples
    --------
    >>> from mcrank.metrics.measure import MAP, parse_measure
    >>> MAP(k=5, dialect="lightgbm").name
    'map@5[lightgbm]'
    >>> parse_measure("map@5[lightgbm]") == MAP(k=5, dialect="lightgbm")
    True
    """

    k: int | None = None
    dialect: Dialect | str = DIALECTS["standard"]

    label: ClassVar[str] = ""
    parameter: ClassVar[str | None] = None
    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "dialect", find_dialect(self.dialect))
        if self.k is not None:
            k: Any = self.k
            if isinstance(k, (bool, np.bool_)) or not isinstance(k, (int, np.integer)) or k < 1:
                raise MeasureError(f"k of {type(self).__name__} must be an integer >= 1 or None, got {k!r}.")
            object.__setattr__(self, "k", int(k))

    @property
    def switches(self) -> Dialect:
        """The dialect; a name given for it has become its `Dialect`."""
        return find_dialect(self.dialect)

    @property
    def name(self) -> str:
        """Canonical name, e.g. ``ndcg@10[yahoo]``."""
        cut = "" if self.k is None else f"@{self.k}"
        dialect = "" if self.switches == DIALECTS["standard"] else f"[{self.switches.name}]"
        return f"{self.label}{self._parameter_text()}{cut}{dialect}"

    def _parameter_text(self) -> str:
        if self.parameter is None:
            return ""
        value = getattr(self, self.parameter)
        default = type(self).__dataclass_fields__[self.parameter].default
        return "" if value == default and self.label != "rbp" else f"({number_text(value)})"

    def __str__(self) -> str:
        return self.name

    def on(self, data: Graded) -> Bound:
        """Make the measure ready for data: ideal DCG and the like are computed once."""
        from mcrank.metrics.bound import Bound

        return Bound(self, Layout.of(data))

    def prepare(self, layout: Layout) -> Prepared:
        """Return the arithmetic of this measure on laid-out data."""
        raise MeasureError(f"{type(self).__name__} is not a measure that can be computed.")

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        return self.label

    def _cut(self, default: int | None) -> int | None:
        return self.k if self.k is not None else default

    def _depth(self, layout: Layout, default: int | None = None) -> int:
        cut = self._cut(default)
        return layout.longest if cut is None else min(cut, layout.longest)

    def _cut_words(self, default: int | None = None) -> str:
        cut = self._cut(default)
        return "the whole list" if cut is None else f"the first {cut} ranks"

    def _tie_words(self) -> str:
        rule, seed = self.switches.tie_rule
        words = {
            "file": "ties in file order",
            "expected": "mean over tied orders",
            "worst": "ties in the worst order",
            "best": "ties in the best order",
            "random": f"ties in random order (seed {seed})",
        }.get(rule, f"ties by document {rule.replace('id-', 'id ')}")
        halves = {"scores": self.switches.score, "grades": self.switches.grade_precision}
        rounded = " and ".join(what for what, precision in halves.items() if precision == "float32")
        return words + (f", {rounded} rounded to float32" if rounded else "")


def checked_number(value: Any, what: str, low: float, high: float) -> float:
    """Return ``value`` as a float above ``low`` and at most ``high``, or raise `MeasureError`."""
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and low < value <= high:
        return float(value)
    raise MeasureError(f"{what} must be a number > {low:g} and <= {high:g}, got {value!r}.")
