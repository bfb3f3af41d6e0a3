"""Are the probabilities of compared systems right? By grade, and by position of their rankings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mcrank.arrays import FloatArray, IntArray
from mcrank.metrics.calibration import GradeCalibration, calibration

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison


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

    grades: GradeCalibration
    by_position: ByPosition


def calibrations(comparison: Comparison) -> dict[str, Calibration]:
    """Reliability and relevance by position of every system that predicts probabilities."""
    found = {}
    for key, probabilities in comparison.probabilities.items():
        expected = probabilities.astype(np.float64) @ comparison.levels
        scores = comparison.scores[comparison.place(key)]
        found[key] = Calibration(
            calibration(probabilities, comparison.levels, comparison.grades),
            relevance_by_position(expected, comparison.grades, scores, comparison.offsets),
        )
    return found
