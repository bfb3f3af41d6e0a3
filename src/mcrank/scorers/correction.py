"""Corrections of raw outputs that make probabilities of grades honest: a slope and a shift for each grade.

A correction is a straight line, so it goes into the leaves and the base of a forest, and the head stays what
it is: whatever scores, explains or exports a corrected forest needs to know nothing of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.errors import ModelFileError
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.heads import Head
from mcrank.scorers.odds import LARGEST, Odds


@dataclass(frozen=True, eq=False)
class Correction:
    """Raw outputs times ``slopes``, plus ``shifts``: one of each for every grade (of a cumulative head:
    boundary). Pairs with a base grade have one slope. ``odds``, if any, make probabilities of the score that
    comes out: they are for the head, and change no score.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.correction import Correction
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> from mcrank.scorers.heads import Head
    >>> forest = ForestBuilder(n_features=1, base=[1.0]).build()
    >>> correction = Correction(np.array([2.0]), np.array([0.5]))
    >>> correction.of(forest, Head("cumulative", np.array([0.0, 1.0]))).base.tolist()
    [2.5]
    """

    slopes: FloatArray
    shifts: FloatArray
    odds: Odds | None = None

    def head(self, head: Head) -> Head:
        """Return the head of corrected outputs."""
        return replace(head, odds=self.odds)

    def of(self, forest: Forest, head: Head) -> Forest:
        """Return the forest whose raw outputs are those of another, corrected."""
        slopes = self._slopes(head)
        of_nodes = np.repeat(slopes[forest.tree_output], np.diff(forest.tree_offsets))
        with np.errstate(over="ignore"):
            value, base = forest.value * of_nodes, forest.base * slopes + self._spread(head)
            reach = float(np.abs(value).sum() + np.abs(base).sum())
        if not math.isfinite(reach):
            raise ModelFileError("its correction makes leaves so large that their sums are not finite.")
        return replace(forest, value=value, base=base)

    def applied(self, raw: FloatArray, head: Head) -> FloatArray:
        """Return raw outputs (outputs x rows) corrected."""
        return np.asarray(raw * self._slopes(head)[:, None] + self._spread(head)[:, None])

    def _slopes(self, head: Head) -> FloatArray:
        """Slope of each raw output."""
        return np.repeat(self.slopes, len(self.slopes) - 1 if head.kind == "base-pairs" else 1)

    def _spread(self, head: Head) -> FloatArray:
        """Shift of each raw output."""
        if head.kind != "base-pairs":
            return self.shifts
        # A class gets what its K - 1 pairs add, less what the others take: K times one of them, as Σ = 0.
        centred = self.shifts - self.shifts.mean()
        return np.repeat(centred / len(centred), len(centred) - 1)

    def to_json(self) -> dict[str, Any]:
        """Return what the header of a model file says: ``slope`` where all slopes are one."""
        slopes = self.slopes.tolist()
        said = {"slope": slopes[0]} if len(set(slopes)) == 1 else {"slopes": slopes}
        odds = {} if self.odds is None else {"odds": self.odds.to_json()}
        return {"shifts": self.shifts.tolist(), **said, **odds}

    @classmethod
    def from_json(cls, said: Any, head: Head) -> Correction:
        """Return what `to_json` described, for outputs with this head; anything else is a
        `ModelFileError`.
        """
        wanted = count(head)
        given: dict[str, Any] = said if isinstance(said, dict) else {}
        shifts: Any = given.get("shifts")
        slopes: Any = [given["slope"]] * wanted if "slope" in given else given.get("slopes")
        fits = wanted > 0 and all(
            isinstance(numbers, list)
            and len(numbers) == wanted
            and all(type(number) is float and abs(number) <= LARGEST for number in numbers)
            for numbers in (slopes, shifts)
        )
        if not fits or min(slopes) <= 0 or (head.kind == "base-pairs" and min(slopes) < max(slopes)):
            raise ModelFileError(
                f"correction must be {wanted} slopes above 0 (one for all, of pairs with a base grade) and "
                f"{wanted} shifts, none beyond {LARGEST:g}."
            )
        odds = None
        if "odds" in given:
            if not takes_odds(head) or head.values is None:
                raise ModelFileError("odds are for three grades or more.")
            odds = Odds.from_json(given["odds"], head.values)
        return cls(np.array(slopes), np.array(shifts), odds)


def count(head: Head) -> int:
    """Slopes, and shifts, that a head takes: one for each grade (or boundary between grades), or none.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.correction import count
    >>> from mcrank.scorers.heads import Head
    >>> [count(Head(kind, np.arange(3.0))) for kind in ("softmax", "cumulative", "base-pairs")]
    [3, 2, 3]
    """
    grades = 0 if head.values is None else len(head.values)
    return 0 if grades < 2 else grades - (head.kind == "cumulative")


def takes_odds(head: Head) -> bool:
    """Whether probabilities may go by the score: of two grades they do."""
    return head.values is not None and len(head.values) > 2
