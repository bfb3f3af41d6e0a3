"""Why one row is above another: what each feature makes of the difference, and what would swap them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from mcrank.arrays import BoolArray, FeatureArray
from mcrank.data.categories import Categories
from mcrank.explain.changes import TIED, Change, Company, Passing, in_few_digits, smallest_changes
from mcrank.explain.codes import coded_features
from mcrank.explain.contributions import Setting, score_contributions
from mcrank.scorers.base import Scorer
from mcrank.scorers.heads import Head
from mcrank.texts import printable

Value = float | str  # a number, or the name of a category
V = TypeVar("V", float, Value)
_NAMED = 3  # features a sentence names
_MOST_DIGITS = 17  # no two numbers agree in more


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
        Values of A and B; NaN is a missing value. A category that has no name, in models of other libraries,
        is told by its code: ``"category 3"``.
    changes : tuple of Change
        For each feature of A and of B that can do it alone, the smallest change that swaps them; smallest
        first. Empty if they are tied.
    unit : str
        What the score is measured in: ``"grades"`` or ``"score"``.
    about : float, str or None
        What the sentence says in place of the first change's ``after``: a value of few digits, further away
        by at most a hundredth of the change, with which the rows are swapped too.

    Examples
    --------
    >>> import mcrank
    >>> ranker = mcrank.BestFeature().fit([[5.0, 1.0], [4.0, 2.0], [6.0, 3.0]], [2, 1, 0], qid=[1, 1, 1])
    >>> why = ranker.explain_pair([5.0, 1.0], [6.0, 3.0])
    >>> why.contributions
    {'f2': 2.0, 'f1': 0.0}
    >>> print(why.sentence())
    A is above B by 2 (score -1 against -3): f2 (1 against 3) adds 2. B would be above A if its f2 fell \
from 3 to 0.99.
    """

    scores: tuple[float, float]
    contributions: dict[str, float]
    values: dict[str, tuple[Value, Value]]
    changes: tuple[Change, ...]
    unit: str = "score"
    names: tuple[str, str] = field(default=("A", "B"))
    about: Value | None = None

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
            text = f"{a} and {b} are tied: both have score {_number(self.scores[0])}"
            if not any(self.contributions.values()):
                return f"{text}, and no feature makes a difference."
            return f"{text}. What features add and take away cancels out: {self._reasons(1.0)}."
        sign = 1.0 if self.difference > 0.0 else -1.0
        above, below = (a, b) if sign > 0 else (b, a)
        high, low = _apart(max(self.scores), min(self.scores), _number)
        gap = _number(abs(self.difference))
        if self.unit == "grades":
            by = f"{gap} grade{'' if gap == '1' else 's'} ({high} against {low})"
        else:
            by = f"{gap} (score {high} against {low})"
        return f"{above} is above {below} by {by}: {self._reasons(sign)}. {self._swap(above, below)}"

    def _reasons(self, sign: float) -> str:
        """What features add, what the strongest of the others takes away, and the rest in one number."""
        parts = {name: sign * value for name, value in self.contributions.items() if value != 0.0}
        pro = [name for name in parts if parts[name] > 0][:_NAMED]
        con = [name for name in parts if parts[name] < 0][:1]
        adds = [f"{self._values(name, sign)} adds {_number(parts[name])}" for name in pro]
        takes = [f"{self._values(name, sign)} takes away {_number(-parts[name])}" for name in con]
        text = ", while ".join([*([_listed(adds)] if adds else []), *takes])
        rest = [value for name, value in parts.items() if name not in {*pro, *con}]
        if rest:
            verb, total = ("add", sum(rest)) if sum(rest) >= 0.0 else ("take away", -sum(rest))
            who = f"{len(rest)} others together {verb}" if len(rest) > 1 else f"one other {_third(verb)}"
            text += f"; {who} {_number(total)}"
        return text

    def _values(self, name: str, sign: float) -> str:
        ours, theirs = self.values[name] if sign > 0 else self.values[name][::-1]
        mine, other = _apart(ours, theirs, _short)
        return f"{printable(name)} ({mine} against {other})"

    def _swap(self, above: str, below: str) -> str:
        change = self.smallest_change
        if change is None:
            return "No change of a single feature would swap them."
        changed = printable(self.names[0 if change.row == "a" else 1])
        whose = "its" if changed == below else f"{changed}'s"
        feature, before, after = printable(change.feature), change.before, self.about
        after = change.after if after is None else after
        if isinstance(before, str) or isinstance(after, str):
            return (
                f"{below} would be above {above} if {whose} {feature} were {value_text(after)} instead of "
                f"{value_text(before)}."
            )
        was, will = _short(before), value_text(after).removesuffix(".0")
        if was == will or (float(was) - after) * (before - after) <= 0.0:  # rounded past the other
            was = value_text(before)
        verb = "rose" if after > before else "fell"
        return f"{below} would be above {above} if {whose} {feature} {verb} from {was} to {will}."

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


def change_text(change: Change, changed: str) -> str:
    """Say a change in a few words, its values in all their digits.

    Examples
    --------
    >>> from mcrank.explain.changes import Change
    >>> from mcrank.explain.pair import change_text
    >>> change_text(Change("a", "price", 9.5, 7.25, 0.1, True), "row 3"), change_text(
    ...     Change("b", "shop", "birch", "elm", 1.0, True), "row 5")
    ('price of row 3 falls from 9.5 to 7.25', 'shop of row 5 becomes elm instead of birch')
    """
    whose, before, after = f"{printable(change.feature)} of {changed}", change.before, change.after
    if isinstance(before, str) or isinstance(after, str):
        return f"{whose} becomes {value_text(after)} instead of {value_text(before)}"
    verb = "rises" if after > before else "falls"
    return f"{whose} {verb} from {value_text(before)} to {value_text(after)}"


def value_text(value: Value) -> str:
    """Return a feature's value as it is said, in as many digits as tell it apart; NaN is missing."""
    if isinstance(value, str):
        return printable(value)
    return "missing" if math.isnan(value) else str(np.float32(value))


def _number(value: float, more: int = 0) -> str:
    return f"{value:.{more}f}" if 1000 <= abs(value) < 1e15 else f"{value:.{3 + more}g}"


def _short(value: Value, more: int = 0) -> str:
    return value_text(value) if isinstance(value, str) or math.isnan(value) else f"{value:.{4 + more}g}"


def _apart(a: V, b: V, write: Callable[[V, int], str]) -> tuple[str, str]:
    """Two values in few digits, or in as many more as tell them apart."""
    texts = [(write(a, more), write(b, more)) for more in range(_MOST_DIGITS)]
    return next((both for both in texts if both[0] != both[1]), texts[0])


def _listed(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _third(verb: str) -> str:
    return {"add": "adds", "take away": "takes away"}[verb]


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

    codes = coded_features(scorer) | {f: np.arange(len(known)) for f, known in categories.items()}

    def told(f: int, value: float) -> Value:
        if f not in codes or math.isnan(value):
            return value
        return categories[f][int(value)] if f in categories else f"category {value:g}"

    rows = np.stack([a, b])
    mine, other = head.rank(scorer.raw(rows)).tolist()
    parts = score_contributions(scorer, head, rows[:1], Setting(reference=b)).values[0, 0]
    if mine < other:  # computed one way only, so that the two directions are each other's negatives
        parts = -score_contributions(scorer, head, rows[1:], Setting(reference=a)).values[0, 0]
    parts = parts + 0.0  # no -0.0
    order = np.argsort(-np.abs(parts), kind="stable").tolist()
    changes: list[Change] = []
    swaps: dict[str, Callable[[FeatureArray], BoolArray]] = {}
    if abs(mine - other) > TIED * max(abs(mine), abs(other)):
        for word, row, rises, bound in (("a", a, mine < other, other), ("b", b, other < mine, mine)):
            score = None if company is None else company.score("ab".index(word), bound)
            passing = Passing(scorer, head, bound, rises, score)
            swaps[word] = passing.rows
            changes += [
                Change(word, feature_names[f], told(f, float(row[f])), told(f, after), size, exact)
                for f, after, size, exact in smallest_changes(passing, row, codes)
            ]
    lower = "b" if mine > other else "a"
    changes.sort(key=lambda change: (change.size, change.row != lower))
    about = None
    if changes:
        first = changes[0]
        row, f = a if first.row == "a" else b, feature_names.index(first.feature)
        about = first.after if f in codes else in_few_digits(row, f, first, swaps[first.row])
    return PairExplanation(
        (mine, other),
        {feature_names[f]: float(parts[f]) for f in order},
        {feature_names[f]: (told(f, float(a[f])), told(f, float(b[f]))) for f in order},
        tuple(changes),
        "score" if head.values is None else "grades",
        names,
        about,
    )
