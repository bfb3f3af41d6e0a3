"""Are predicted probabilities of grades right? Reliability curves, calibration errors, proper scores.

A ranker that says "grade 2 with probability 0.3" is reliable when about 30% of such rows have grade 2.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.arrays import BoolArray, FloatArray, IntArray

BINS = 10
LEAST = 1e-12  # probability of a grade that occurred, in log losses: nothing is called impossible
_SURE = 1.959963984540054  # of a normal variable 95% lie within so many deviations


@dataclass(frozen=True, eq=False)
class Curve:
    """Mean prediction and observed mean in each bin of predictions that has rows.

    Attributes
    ----------
    predicted, observed : ndarray
        Mean of what was predicted and of what was observed, in each bin.
    counts : ndarray of int64
        Rows of each bin.
    low, high : ndarray
        95% interval of what is observed: Wilson's, for shares; by the normal law, for means. Rows count as
        independent, which rows of one query are not quite.
    error : float
        Expected calibration error: mean of ``|observed - predicted|`` over the bins, weighted by their rows.
    noise : float
        Calibration error that rows of a perfect ranker would show by chance.
    """

    predicted: FloatArray
    observed: FloatArray
    counts: IntArray
    low: FloatArray
    high: FloatArray
    error: float
    noise: float


@dataclass(frozen=True, eq=False)
class GradeReliability(Curve):
    """The curve of one grade."""

    grade: float


@dataclass(frozen=True, eq=False)
class Reliability:
    """Every grade, and the expected calibration error: the mean of the grades' own.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.metrics.calibration import reliability
    >>> sure = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> reliability(sure, np.array([0.0, 1.0]), np.array([0.0, 1.0])).error
    0.0
    """

    grades: tuple[GradeReliability, ...]
    error: float


@dataclass(frozen=True, eq=False)
class GradeCalibration:
    """How right probabilities of grades are on some rows, in numbers.

    Attributes
    ----------
    rows : int
        Rows looked at.
    reliability : Reliability
        Each grade for itself; ``reliability.error`` is the class-wise error.
    top : Curve
        Whether the most probable grade is the true one, against its probability: top-label calibration.
    expected : Curve
        True grade against expected grade; its bins hold equal numbers of rows.
    mean_expected, mean_grade : float
        Means over all rows.
    log_loss, brier : float
        Mean of -log of the true grade's probability, and of the squared distance from the true grade's
        distribution.
    constant_log_loss, constant_brier : float
        What the best constant guess has: the shares of the grades in these very rows.
    unknown : dict
        Rows of each grade that no probability is for; they count as called impossible.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.metrics.calibration import calibration
    >>> found = calibration(np.tile([0.5, 0.5], (4, 1)), np.array([0.0, 1.0]), np.array([0.0, 1.0, 1.0, 1.0]))
    >>> found.mean_expected, found.mean_grade, round(found.log_loss, 3), round(found.constant_log_loss, 3)
    (0.5, 0.75, 0.693, 0.562)
    """

    rows: int
    reliability: Reliability
    top: Curve
    expected: Curve
    mean_expected: float
    mean_grade: float
    log_loss: float
    brier: float
    constant_log_loss: float
    constant_brier: float
    unknown: dict[float, int]

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers, as JSON takes them."""
        curves = {f"grade {one.grade:g}": one for one in self.reliability.grades}
        return {
            "rows": self.rows,
            "class_error": self.reliability.error,
            "top_label_error": self.top.error,
            "top_label_noise": self.top.noise,
            "expected_grade_error": self.expected.error,
            "expected_grade_noise": self.expected.noise,
            "mean_expected_grade": self.mean_expected,
            "mean_grade": self.mean_grade,
            "log_loss": self.log_loss,
            "constant_log_loss": self.constant_log_loss,
            "brier": self.brier,
            "constant_brier": self.constant_brier,
            "unknown_rows": sum(self.unknown.values()),
            "curves": {
                name: {key: getattr(curve, key).tolist() for key in ("predicted", "observed", "low", "high")}
                | {"rows": curve.counts.tolist(), "error": curve.error}
                for name, curve in {"top label": self.top, "expected grade": self.expected, **curves}.items()
            },
        }

    def __str__(self) -> str:
        lines = [
            f"{'rows':<24}{self.rows}",
            f"{'mean expected grade':<24}{self.mean_expected:.4f}  (true {self.mean_grade:.4f})",
            f"{'log loss':<24}{self.log_loss:.4f}  (best constant guess {self.constant_log_loss:.4f})",
            f"{'Brier score':<24}{self.brier:.4f}  (best constant guess {self.constant_brier:.4f})",
            f"{'top-label error':<24}{self.top.error:.4f}  (by chance alone {self.top.noise:.4f})",
            f"{'class-wise error':<24}{self.reliability.error:.4f}",
            f"{'expected-grade error':<24}{self.expected.error:.4f}  (by chance alone "
            f"{self.expected.noise:.4f})",
            *([f"{'unknown grades':<24}{_in_words(self.unknown)}"] if self.unknown else ()),
            "",
            f"{'expected grade':>14} {'true':>8} {'from':>8} {'to':>8} {'rows':>8}",
        ]
        curve = self.expected
        columns = (curve.predicted, curve.observed, curve.low, curve.high)
        for *values, rows in zip(*columns, curve.counts, strict=True):
            shown = " ".join(f"{value:>8.4f}" for value in values)
            lines.append(f"{'':>6}{shown} {rows:>8}")
        return "\n".join(lines)


def calibration(
    probabilities: npt.NDArray[np.floating], columns: FloatArray, grades: FloatArray, bins: int = BINS
) -> GradeCalibration:
    """Compare predicted probabilities (rows x grades) with true grades; ``columns`` are the grades' values.

    A true grade that no column stands for counts as one the ranker called impossible, with a warning:
    probability 1e-12.
    """
    p = probabilities.astype(np.float64)
    own = grades[:, None] == columns
    top = p.argmax(axis=1)
    hit = np.take_along_axis(own, top[:, None], axis=1)[:, 0]
    best = np.take_along_axis(p, top[:, None], axis=1)[:, 0]
    expected = p @ columns
    shares = np.unique(grades, return_counts=True)[1] / max(len(grades), 1)
    unknown = ~own.any(axis=1)
    missed = dict(zip(*(v.tolist() for v in np.unique(grades[unknown], return_counts=True)), strict=True))
    if missed:
        warnings.warn(
            f"calibration: {_in_words(missed)} of {len(grades)} rows, of which the probabilities know "
            "nothing: such rows count as called impossible, and outweigh all others in the log loss; leave "
            "them out to judge the rest.",
            stacklevel=3,
        )
    return GradeCalibration(
        rows=len(grades),
        reliability=reliability(p, columns, grades, bins),
        top=_curve(best, hit.astype(np.float64), _even(best, bins), best * (1 - best), shares=True),
        expected=_curve(expected, grades, _equal(expected, bins), p @ columns**2 - expected**2, shares=False),
        mean_expected=float(expected.mean()),
        mean_grade=float(grades.mean()),
        log_loss=float(-np.log(np.maximum((p * own).sum(axis=1), LEAST)).mean()),
        brier=float((((p - own) ** 2).sum(axis=1) + unknown).mean()),
        constant_log_loss=float(-(shares * np.log(shares)).sum()),
        constant_brier=float(1 - (shares**2).sum()),
        unknown=missed,
    )


def _in_words(rows: dict[float, int]) -> str:
    return ", ".join(f"grade {grade:g} has {count}" for grade, count in rows.items())


def reliability(
    probabilities: npt.NDArray[np.floating], columns: FloatArray, grades: FloatArray, bins: int = BINS
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
        A `GradeReliability` for each grade.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.metrics.calibration import reliability
    >>> always = np.tile([0.5, 0.5], (4, 1))
    >>> found = reliability(always, np.array([0.0, 1.0]), np.array([0.0, 1.0, 1.0, 1.0]))
    >>> found.error, found.grades[1].observed.tolist()
    (0.25, [0.75])
    """
    found = []
    for column, grade in enumerate(columns.tolist()):
        p = probabilities[:, column].astype(np.float64)
        own = (grades == grade).astype(np.float64)
        curve = _curve(p, own, _even(p, bins), p * (1 - p), shares=True)
        found.append(GradeReliability(**vars(curve), grade=grade))
    return Reliability(tuple(found), float(np.mean([grade.error for grade in found])))


def _even(values: FloatArray, bins: int) -> IntArray:
    """Bin of each value between 0 and 1, all of one width."""
    return np.minimum((values * bins).astype(np.int64), bins - 1)


def _equal(values: FloatArray, bins: int) -> IntArray:
    """Bin of each value, all of about as many rows; equal values are in one bin."""
    edges = np.quantile(values, np.arange(1, bins) / bins) if len(values) else np.empty(0)
    return np.searchsorted(edges, values, side="left").astype(np.int64)


def _curve(
    predicted: FloatArray, observed: FloatArray, place: IntArray, variance: FloatArray, *, shares: bool
) -> Curve:
    """The curve of rows in these bins; ``variance`` is what a perfect ranker's rows would have."""
    counts = np.bincount(place)
    used: BoolArray = counts > 0
    rows = counts[used]

    def means(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(place, weights=values)[used] / rows)

    mean, hits = means(predicted), means(observed)
    if shares:
        low, high = _wilson(hits, rows)
    else:
        spread = _SURE * np.sqrt(np.maximum(means(observed**2) - hits**2, 0.0) / rows)
        low, high = hits - spread, hits + spread
    total = max(len(predicted), 1)
    # The mean distance of a normal variable from its mean is sqrt(2 / π) deviations.
    chance = np.sqrt(2 / np.pi * np.maximum(means(variance), 0.0) / rows)
    return Curve(
        mean, hits, rows, low, high,
        float((rows * np.abs(hits - mean)).sum() / total), float((rows * chance).sum() / total),
    )  # fmt: skip


def _wilson(share: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
    """Wilson's 95% interval of a share seen in so many rows."""
    squared = _SURE**2
    centre = (share + squared / (2 * rows)) / (1 + squared / rows)
    half = _SURE / (1 + squared / rows) * np.sqrt(share * (1 - share) / rows + squared / (4 * rows**2))
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
