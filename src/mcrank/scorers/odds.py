"""Probabilities of grades that rows with such a score had: a rising bent line, and a cut for each boundary.

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
import numpy.typing as npt

from mcrank.arrays import FloatArray
from mcrank.errors import ModelFileError
from mcrank.lazy import lazy
from mcrank.scorers.heads import between, sigmoid, weighted

LEAST_SHARE = 2.0**-20  # of the way from the lowest to the highest grade: scores beyond are as good as there
LARGEST = 1e6  # of a slope, a knot or a cut
MOST_KNOTS = 20


@dataclass(frozen=True, eq=False)
class Odds:
    """Log-odds of being above each grade but the highest: a line through the log-odds of the score's share of
    the way from the lowest grade to the highest, bent at ``knots``, plus ``cuts``, which fall: McCullagh's
    proportional odds.

    Some rows stray: whatever their score, their grades are anybody's. Without them, the one grade that was
    given by mistake would make all others look unsure.

    Attributes
    ----------
    slopes : ndarray of shape (knots + 1,)
        Of the line before the first knot, between them, and behind the last. Above 0: a higher score never
        means a lower grade.
    knots : ndarray
        Rising log-odds of the share.
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

    slopes: FloatArray
    knots: FloatArray
    cuts: FloatArray
    stray: FloatArray
    steps: FloatArray
    learned: float = 0.0

    @classmethod
    def of(
        cls,
        slopes: npt.ArrayLike,
        cuts: FloatArray,
        stray: FloatArray,
        grades: FloatArray,
        learned: float = 0.0,
        knots: npt.ArrayLike = (),
    ) -> Odds:
        """Return the odds of scores that are expected grades."""
        steps = np.diff(grades) / (grades[-1] - grades[0])
        bent = np.asarray(knots, dtype=np.float64)
        return cls(np.atleast_1d(np.asarray(slopes, dtype=np.float64)), bent, cuts, stray, steps, learned)

    def log_odds(self, above: FloatArray) -> FloatArray:
        """Log-odds of the score's share, of probabilities of being above each grade (boundaries x rows)."""
        share = np.clip(weighted(self.steps, above), LEAST_SHARE, 1 - LEAST_SHARE)
        return np.asarray(np.log(share / (1 - share)))

    def above(self, above: FloatArray) -> FloatArray:
        """Return how likely rows are to be above each grade that were learned to be with chances ``above``:
        what rows of such a score were, and what was learned, each by its share.
        """
        made = sigmoid(self.line(self.log_odds(above)) + self.cuts[:, None])
        strayed = self.strayed
        made *= 1 - strayed[0]
        made += strayed[1:, None]
        if self.learned > 0:
            made *= 1 - self.learned
            made += self.learned * above
        return made

    def line(self, z: FloatArray) -> FloatArray:
        """Return the bent line at these log-odds of the share."""
        made = self.slopes[0] * z
        for knot, bend in zip(self.knots.tolist(), self.bends.tolist(), strict=True):
            made += bend * np.maximum(z - knot, 0.0)
        return np.asarray(made)

    @lazy
    def bends(self) -> FloatArray:
        """By how much the slope changes at each knot."""
        return np.diff(self.slopes)

    @lazy
    def strayed(self) -> FloatArray:
        """Probability of straying, and of straying above each grade but the highest."""
        return np.cumsum(self.stray[::-1])[::-1]

    def proba(self, above: FloatArray) -> FloatArray:
        """Return the probability of each grade (grades x rows) of rows that were learned to be above grades
        with chances ``above``.
        """
        return between(self.above(above))

    def to_json(self) -> dict[str, Any]:
        """Return what the header of a model file says."""
        said: dict[str, Any] = {"cuts": self.cuts.tolist(), "stray": self.stray.tolist()}
        if len(self.knots):
            said |= {"slopes": self.slopes.tolist(), "knots": self.knots.tolist()}
        else:
            said["slope"] = float(self.slopes[0])
        return said | ({"learned": self.learned} if self.learned else {})

    @classmethod
    def from_json(cls, said: Any, grades: FloatArray) -> Odds:
        """Return what `to_json` described; anything else is a `ModelFileError`."""
        given: dict[str, Any] = said if isinstance(said, dict) else {}
        knots: Any = given.get("knots", [])
        count = len(knots) if isinstance(knots, list) and len(knots) <= MOST_KNOTS else -1
        slopes: Any = given.get("slopes") if count else [given.get("slope")]
        cuts: Any = given.get("cuts")
        stray: Any = given.get("stray")
        learned: Any = given.get("learned", 0.0)
        wanted = ((knots, count), (slopes, count + 1), (cuts, len(grades) - 1), (stray, len(grades)))
        fits = all(
            isinstance(numbers, list)
            and len(numbers) == length
            and all(type(number) is float and abs(number) <= LARGEST for number in numbers)
            for numbers, length in (*wanted, ([learned], 1))
        )
        if (
            not fits
            or min(slopes) <= 0
            or any(a >= b for a, b in pairwise(knots))
            or any(a <= b for a, b in pairwise(cuts))
            or min(stray) < 0
            or sum(stray) >= 1
            or not 0 <= learned < 1
        ):
            raise ModelFileError(
                f"odds must be slopes above 0 between at most {MOST_KNOTS} rising knots, {len(grades) - 1} "
                f"falling cuts, none beyond {LARGEST:g}, {len(grades)} chances of straying that are below 1 "
                "together, and a share of what was learned from 0 to below 1."
            )
        return cls.of(slopes, np.array(cuts), np.array(stray), grades, learned, knots)
