"""Why one row is above another: what each feature makes of the difference, and what would swap them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from mcrank.arrays import FeatureArray
from mcrank.data.categories import Categories
from mcrank.explain.changes import TIED, Change, Company, smallest_changes
from mcrank.explain.contributions import Setting, score_contributions
from mcrank.scorers.base import Scorer
from mcrank.scorers.heads import Head
from mcrank.texts import printable

Value = float | str  # a number, or the name of a category
_NAMED = 3  # features a sentence names


@dataclass(frozen=True, eq=False)
class PairExplanation:
    """Why row A has another score than row B.

    Attributes
    ----------
    scores : tuple of two floats
        Scores of A and B.
    contributions : dict of str to float
        What each feature makes of score A - score B, in units of the score (grades, for rankers whose score
        is an expected grade), largest first; they add up to the difference. Between B and A all features that
        are equal have exactly 0.
    values : dict of str to (float, float), or of (str, str) for categories
        Values of A and B; NaN is a missing value.
    changes : tuple of Change
        For each feature of A and of B that can do it alone, the smallest change that swaps them; smallest
        first. Empty if they are tied.
    unit : str
        What the score is measured in: ``"grades"`` or ``"score"``.

    Examples
    --------
    >>> import mcrank
    >>> ranker = mcrank.BestFeature().fit([[5.0, 1.0], [4.0, 2.0], [6.0, 3.0]], [2, 1, 0], qid=[1, 1, 1])
    >>> why = ranker.explain_pair([5.0, 1.0], [6.0, 3.0])
    >>> why.contributions
    {'f2': 2.0, 'f1': 0.0}
    >>> print(why.sentence())
    A is above B by 2 (score -1 against -3): f2 (1 against 3) adds 2. B would be above A with f2 at \
0.99999994 or less instead of 3.0.
    """

    scores: tuple[float, float]
    contributions: dict[str, float]
    values: dict[str, tuple[Value, Value]]
    changes: tuple[Change, ...]
    unit: str = "score"
    names: tuple[str, str] = field(default=("A", "B"))

    @property
    def difference(self) -> float:
        """Score of A minus score of B."""
        return self.scores[0] - self.scores[1]

    @property
    def tied(self) -> bool:
        """Whether the scores are equal but for rounding."""
        return abs(self.difference) <= TIED * max(map(abs, self.scores))

    @property
    def smallest_change(self) -> Change | None:
        """The smallest of `changes`; None where no feature alone can swap the rows."""
        return self.changes[0] if self.changes else None

    def sentence(self) -> str:
        """Return all of it in a few words."""
        a, b = (printable(name) for name in self.names)
        if self.tied:
            text = f"{a} and {b} are tied: both have score {_number(self.scores[0])}."
            return text if not any(self.contributions.values()) else f"{text} {self._reasons(1.0, b)}"
        sign = 1.0 if self.difference > 0.0 else -1.0
        above, below = (a, b) if sign > 0 else (b, a)
        high, low = sorted(self.scores, reverse=True)
        unit = " grades" if self.unit == "grades" else ""
        text = (
            f"{above} is above {below} by {_number(high - low)}{unit} (score {_number(high)} against "
            f"{_number(low)}): {self._reasons(sign, below)}"
        )
        return f"{text} {self._swap(above, below)}"

    def _reasons(self, sign: float, below: str) -> str:
        parts = {name: sign * value for name, value in self.contributions.items() if value != 0.0}
        pro = [name for name in parts if parts[name] > 0][:_NAMED]
        con = [name for name in parts if parts[name] < 0][:1]
        text = ", ".join(f"{self._values(name, sign)} adds {_number(parts[name])}" for name in pro)
        against = ", ".join(
            f"{self._values(name, sign)} speaks for {below} with {_number(-parts[name])}" for name in con
        )
        return "; ".join(part for part in (text, against) if part) + "."

    def _values(self, name: str, sign: float) -> str:
        ours, theirs = self.values[name] if sign > 0 else self.values[name][::-1]
        ours_text, theirs_text = (
            value_text(v) if isinstance(v, str) or math.isnan(v) else f"{v:.4g}" for v in (ours, theirs)
        )
        return f"{printable(name)} ({ours_text} against {theirs_text})"

    def _swap(self, above: str, below: str) -> str:
        change = self.smallest_change
        if change is None:
            return "No change of a single feature would swap them."
        changed = self.names[0] if change.row == "a" else self.names[1]
        return f"{below} would be above {above} with {change_text(change, printable(changed), below)}."

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON values; a missing value is None."""
        return {
            "above": self.names[0 if self.difference >= 0 else 1],
            "names": list(self.names),
            "scores": list(self.scores),
            "difference": self.difference,
            "unit": self.unit,
            "tied": self.tied,
            "contributions": [
                {"feature": name, "contribution": value, "values": [_known(v) for v in self.values[name]]}
                for name, value in self.contributions.items()
            ],
            "changes": [
                {**change._asdict(), "name": self.names[0 if change.row == "a" else 1]}
                for change in self.changes
            ],
            "sentence": self.sentence(),
        }


def change_text(change: Change, changed: str, subject: str) -> str:
    """Say a change in a few words; whose feature it is only where it is not the subject's."""
    whose = "" if changed == subject else f" of {changed}"
    before, after = change.before, change.after
    side = " or less"
    if isinstance(before, str) or isinstance(after, str):
        side = ""
    elif after > before:
        side = " or more"
    return f"{printable(change.feature)}{whose} at {value_text(after)}{side} instead of {value_text(before)}"


def value_text(value: Value) -> str:
    """Return a feature's value as it is said, in as many digits as tell it apart; NaN is missing."""
    if isinstance(value, str):
        return printable(value)
    return "missing" if math.isnan(value) else str(np.float32(value))


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _known(value: Value) -> Value | None:
    return None if isinstance(value, float) and math.isnan(value) else value


def explain_rows(
    scorer: Scorer,
    head: Head,
    a: FeatureArray,
    b: FeatureArray,
    feature_names: tuple[str, ...],
    names: tuple[str, str],
    company: Company | None = None,
    categories: Categories = MappingProxyType({}),
) -> PairExplanation:
    """Explain the difference between two rows of the matrices a scorer takes.

    ``company`` is their query, where a change of one row moves all scores, and ``categories`` are the names
    of what some features hold.
    """

    def told(f: int, value: float) -> Value:
        return categories[f][int(value)] if f in categories and not math.isnan(value) else value

    counts = {f: len(names) for f, names in categories.items()}
    rows = np.stack([a, b])
    mine, other = head.rank(scorer.raw(rows)).tolist()
    parts = score_contributions(scorer, head, rows[:1], Setting(reference=b)).values[0, 0]
    if mine < other:  # computed one way only, so that the two directions are each other's negatives
        parts = -score_contributions(scorer, head, rows[1:], Setting(reference=a)).values[0, 0]
    parts = parts + 0.0  # no -0.0
    order = np.argsort(-np.abs(parts), kind="stable").tolist()
    changes: list[Change] = []
    if abs(mine - other) > TIED * max(abs(mine), abs(other)):
        for word, row, rises, bound in (("a", a, mine < other, other), ("b", b, other < mine, mine)):
            score = None if company is None else company.score("ab".index(word), bound)
            changes += [
                Change(word, feature_names[f], told(f, float(row[f])), told(f, after), size, exact)
                for f, after, size, exact in smallest_changes(scorer, head, row, bound, rises, score, counts)
            ]
    lower = "b" if mine > other else "a"
    changes.sort(key=lambda change: (change.size, change.row != lower))
    return PairExplanation(
        (mine, other),
        {feature_names[f]: float(parts[f]) for f in order},
        {feature_names[f]: (told(f, float(a[f])), told(f, float(b[f]))) for f in order},
        tuple(changes),
        "score" if head.values is None else "grades",
        names,
    )
