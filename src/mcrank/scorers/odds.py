"""Probabilities of grades that rows with such a score had: one slope, and a cut for each boundary.

Boundaries between grades are learned apart. Each may be right by itself, but the probability of a grade is
the difference of two of them, and what one says too much and the other too little adds up: grades in the
middle come out too sure. The score, a mean of all of them, has less of that noise, and rows that were held
out tell how grades are spread around it.

Classes of a softmax are learned together, and know something that the score does not: that a row is of the
lowest grade or the highest, say, but of none between. Some of their probabilities is kept.
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

    Some rows stray: whatever their score, their grades are anybody's. Without them, the one grade that was
    given by mistake would make all others look unsure.

    Attributes
    ----------
    slope : float
        Above 0: a higher score never means a lower grade.
    cuts : ndarray of shape (grades - 1,)
        Falling.
    stray : ndarray of shape (grades,)
        Probability that a row strays and has this grade.
    steps : ndarray of shape (grades - 1,)
        Share of that way which lies between a grade and the next.
    learned : float
        Share that the probabilities which were learned keep; what goes by the score is the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.odds import Odds
    >>> odds = Odds.of(1.0, np.array([1.0, -1.0]), np.zeros(3), np.arange(3.0))
    >>> odds.proba(np.array([[0.5], [0.5]])).round(3).ravel().tolist()  # in the middle between 0 and 2
    [0.269, 0.462, 0.269]
    """

    slope: float
    cuts: FloatArray
    stray: FloatArray
    steps: FloatArray
    learned: float = 0.0

    @classmethod
    def of(
        cls, slope: float, cuts: FloatArray, stray: FloatArray, grades: FloatArray, learned: float = 0.0
    ) -> Odds:
        """Return the odds of scores that are expected grades."""
        return cls(slope, cuts, stray, np.diff(grades) / (grades[-1] - grades[0]), learned)

    def log_odds(self, above: FloatArray) -> FloatArray:
        """Log-odds of the score's share, of probabilities of being above each grade (boundaries x rows)."""
        share = np.zeros(above.shape[1])
        for step, chance in zip(self.steps.tolist(), above, strict=True):  # row by row the same sum
            share += step * chance
        share = np.clip(share, LEAST_SHARE, 1 - LEAST_SHARE)
        return np.asarray(np.log(share / (1 - share)))

    def above(self, above: FloatArray) -> FloatArray:
        """Return how likely rows are to be above each grade whose boundaries say ``above``."""
        made = sigmoid(self.slope * self.log_odds(above) + self.cuts[:, None])
        strayed = self.strayed
        return np.asarray((1 - strayed[0]) * made + strayed[1:, None])

    @property
    def strayed(self) -> FloatArray:
        """Probability of straying, and of straying above each grade but the highest."""
        return np.cumsum(self.stray[::-1])[::-1]

    def proba(self, above: FloatArray) -> FloatArray:
        """Return the probability of each grade (grades x rows) of rows whose boundaries say ``above``, by
        the score alone.
        """
        made = self.above(above)
        ones, zeros = np.ones((1, made.shape[1])), np.zeros((1, made.shape[1]))
        return -np.diff(np.concatenate([ones, made, zeros]), axis=0)

    def to_json(self) -> dict[str, Any]:
        """Return what the header of a model file says."""
        said = {"slope": self.slope, "cuts": self.cuts.tolist(), "stray": self.stray.tolist()}
        return said | ({"learned": self.learned} if self.learned else {})

    @classmethod
    def from_json(cls, said: Any, grades: FloatArray) -> Odds:
        """Return what `to_json` described; anything else is a `ModelFileError`."""
        given: dict[str, Any] = said if isinstance(said, dict) else {}
        slope: Any = given.get("slope")
        cuts: Any = given.get("cuts")
        stray: Any = given.get("stray")
        learned: Any = given.get("learned", 0.0)
        fits = all(
            isinstance(numbers, list)
            and len(numbers) == wanted
            and all(type(number) is float and abs(number) <= LARGEST for number in numbers)
            for numbers, wanted in (([slope, learned], 2), (cuts, len(grades) - 1), (stray, len(grades)))
        )
        if (
            not fits
            or slope <= 0
            or any(a <= b for a, b in pairwise(cuts))
            or min(stray) < 0
            or sum(stray) >= 1
            or not 0 <= learned < 1
        ):
            raise ModelFileError(
                f"odds must be a slope above 0, {len(grades) - 1} falling cuts, none beyond {LARGEST:g}, "
                f"{len(grades)} chances of straying that are below 1 together, and a share of what was "
                "learned from 0 to below 1."
            )
        return cls.of(slope, np.array(cuts), np.array(stray), grades, learned)
