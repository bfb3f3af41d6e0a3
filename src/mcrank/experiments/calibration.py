"""Are predicted grade probabilities right? Reliability of each grade, and expected relevance by position.

A ranker that says "grade 2 with probability 0.3" is reliable when about 30% of such rows have grade 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison


@dataclass(frozen=True, eq=False)
class GradeReliability:
    """One grade: mean predicted probability and observed share in each bin of probability that has rows."""

    grade: float
    predicted: FloatArray
    observed: FloatArray
    counts: IntArray
    error: float


@dataclass(frozen=True, eq=False)
class Reliability:
    """Every grade, and the expected calibration error: the mean of the grades' own.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.experiments.calibration import reliability
    >>> sure = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> reliability(sure, np.array([0.0, 1.0]), np.array([0.0, 1.0])).error
    0.0
    """

    grades: tuple[GradeReliability, ...]
    error: float


def reliability(
    probabilities: npt.NDArray[np.floating], columns: FloatArray, grades: FloatArray, bins: int = 10
) -> Reliability:
    """Compare predicted probabilities with what was observed.

    Parameters
    ----------
    probabilities : ndarray of shape (rows, grades)
        Predicted probability of each grade.
    columns : ndarray of shape (grades,)
        Grade each column stands for.
    grades : ndarray of shape (rows,)
        True grades.
    bins : int
        Bins of equal width between 0 and 1.

    Returns
    -------
    Reliability
        For each grade, bins with their mean prediction and observed share; its error is the mean of
        ``|observed - predicted|`` over the bins, weighted by their rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.experiments.calibration import reliability
    >>> always = np.tile([0.5, 0.5], (4, 1))
    >>> found = reliability(always, np.array([0.0, 1.0]), np.array([0.0, 1.0, 1.0, 1.0]))
    >>> found.error, found.grades[1].observed.tolist()
    (0.25, [0.75])
    """
    found = []
    for column, grade in enumerate(columns.tolist()):
        predicted = probabilities[:, column].astype(np.float64)
        place = np.minimum((predicted * bins).astype(np.int64), bins - 1)
        counts = np.bincount(place, minlength=bins)
        used = counts > 0
        rows = counts[used]
        mean = np.bincount(place, weights=predicted, minlength=bins)[used] / rows
        hits = np.bincount(place, weights=(grades == grade).astype(np.float64), minlength=bins)[used] / rows
        error = float((rows * np.abs(hits - mean)).sum() / max(len(predicted), 1))
        found.append(GradeReliability(grade, mean, hits, rows, error))
    return Reliability(tuple(found), float(np.mean([grade.error for grade in found])))


def positions(scores: FloatArray, offsets: IntArray) -> IntArray:
    """Return the position (from 0) of each row in its query by falling score, ties in file order.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.experiments.calibration import positions
    >>> positions(np.array([0.1, 0.9, 0.9]), np.array([0, 3])).tolist()
    [2, 0, 1]
    """
    sizes = np.diff(offsets)
    query = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((-scores, query))
    place = np.empty(len(scores), dtype=np.int64)
    place[order] = np.arange(len(scores)) - np.repeat(offsets[:-1], sizes)
    return place


@dataclass(frozen=True, eq=False)
class ByPosition:
    """Mean predicted and mean true grade at each position, over the queries that are long enough."""

    predicted: FloatArray
    true: FloatArray
    queries: IntArray


def relevance_by_position(
    expected: FloatArray, grades: FloatArray, scores: FloatArray, offsets: IntArray, depth: int = 10
) -> ByPosition:
    """Return mean expected and true grade at positions 1, 2, ... of the ranking by ``scores``.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.experiments.calibration import relevance_by_position
    >>> expected, grades = np.array([0.5, 1.5]), np.array([0.0, 2.0])
    >>> relevance_by_position(expected, grades, expected, np.array([0, 2])).true.tolist()
    [2.0, 0.0]
    """
    place = positions(scores, offsets)
    depth = min(depth, int(np.diff(offsets).max(initial=0)))
    shown = place < depth
    queries = np.bincount(place[shown], minlength=depth)
    means = [
        np.bincount(place[shown], values[shown], minlength=depth) / queries for values in (expected, grades)
    ]
    return ByPosition(means[0], means[1], queries)


class Calibration(NamedTuple):
    """How right the probabilities of one system are: by grade, and by position of its ranking."""

    reliability: Reliability
    by_position: ByPosition


def calibrations(comparison: Comparison) -> dict[str, Calibration]:
    """Reliability and relevance by position of every system that predicts probabilities."""
    found = {}
    for key, probabilities in comparison.probabilities.items():
        expected = probabilities.astype(np.float64) @ comparison.levels
        scores = comparison.scores[comparison.place(key)]
        found[key] = Calibration(
            reliability(probabilities, comparison.levels, comparison.grades),
            relevance_by_position(expected, comparison.grades, scores, comparison.offsets),
        )
    return found
