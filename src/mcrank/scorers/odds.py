"""Probabilities of grades that rows with such a score had: one slope, and a cut for each boundary.

Boundaries between grades are learned apart. Each may be right by itself, but the probability of a grade is
the difference of two of them, and what one says too much and the other too little adds up: grades in the
middle come out too sure. The score, a mean of all of them, has less of that noise, and rows that were held
out tell how grades are spread around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.errors import ModelFileError
from mcrank.scorers.heads import sigmoid

LEAST_SHARE = 2.0**-20  # of the way from the lowest to the highest grade: scores beyond are as good as there
LARGEST = 1e6  # of a slope or a cut


@dataclass(frozen=True, eq=False)
class Odds:
    """Log-odds of being above each grade but the highest: ``slope`` times the log-odds of the score's share
    of the way from the lowest grade to the highest, plus ``cuts``, which fall: McCullagh's proportional odds.

    Attributes
    ----------
    slope : float
        Above 0: a higher score never means a lower grade.
    cuts : ndarray of shape (grades - 1,)
        Falling.
    steps : ndarray of shape (grades - 1,)
        Share of that way which lies between a grade and the next.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.odds import Odds
    >>> odds = Odds.of(1.0, np.array([1.0, -1.0]), np.arange(3.0))
    >>> odds.proba(np.array([[0.5], [0.5]])).round(3).ravel().tolist()  # in the middle between 0 and 2
    [0.269, 0.462, 0.269]
    """

    slope: float
    cuts: FloatArray
    steps: FloatArray

    @classmethod
    def of(cls, slope: float, cuts: FloatArray, grades: FloatArray) -> Odds:
        """Return the odds of scores that are expected grades."""
        return cls(slope, cuts, np.diff(grades) / (grades[-1] - grades[0]))

    def log_odds(self, above: FloatArray) -> FloatArray:
        """Log-odds of the score's share, of probabilities of being above each grade (boundaries x rows)."""
        share = np.zeros(above.shape[1])
        for step, chance in zip(self.steps.tolist(), above, strict=True):  # row by row the same sum
            share += step * chance
        share = np.clip(share, LEAST_SHARE, 1 - LEAST_SHARE)
        return np.asarray(np.log(share / (1 - share)))

    def proba(self, above: FloatArray) -> FloatArray:
        """Return the probability of each grade (grades x rows) of rows whose boundaries say ``above``."""
        made = sigmoid(self.slope * self.log_odds(above) + self.cuts[:, None])
        ones, zeros = np.ones((1, made.shape[1])), np.zeros((1, made.shape[1]))
        return -np.diff(np.concatenate([ones, made, zeros]), axis=0)

    def to_json(self) -> dict[str, Any]:
        """Return what the header of a model file says."""
        return {"slope": self.slope, "cuts": self.cuts.tolist()}

    @classmethod
    def from_json(cls, said: Any, grades: FloatArray) -> Odds:
        """Return what `to_json` described; anything else is a `ModelFileError`."""
        given: dict[str, Any] = said if isinstance(said, dict) else {}
        slope, cuts = given.get("slope"), given.get("cuts")
        numbers = [slope, *cuts] if isinstance(cuts, list) else []
        fits = len(numbers) == len(grades) and all(type(n) is float and abs(n) <= LARGEST for n in numbers)
        if not fits or numbers[0] <= 0 or any(a <= b for a, b in pairwise(numbers[1:])):
            raise ModelFileError(
                f"odds must be a slope above 0 and {len(grades) - 1} falling cuts, none beyond {LARGEST:g}."
            )
        return cls.of(numbers[0], np.array(numbers[1:]), grades)
