"""A learning curve drawn on: only where it foretold what is already known, and only to twice the queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mcrank.arrays import FloatArray

_EXPONENTS = np.linspace(0.1, 1.5, 57)
_FARTHEST = 2.0  # times the queries there are
_DRAWS = 500


class Forecast(NamedTuple):
    """What so many training queries would give, by ceiling - slope * queries ** -exponent.

    Attributes
    ----------
    queries : float
        Training queries asked about.
    mean, low, high : float
        The measure, and where 95 % of the curves through other draws of the points lie.
    ceiling, slope, exponent : float
        Of the curve through the means.
    """

    queries: float
    mean: float
    low: float
    high: float
    ceiling: float
    slope: float
    exponent: float


def forecast(points: Sequence[tuple[float, float, float, float]]) -> tuple[Forecast | None, str]:
    """Return what twice the queries would give, and a sentence; None where the curve cannot be trusted.

    Parameters
    ----------
    points : sequence of (queries, mean, low, high)
        The learning curve with its 95 % intervals.

    Examples
    --------
    >>> from mcrank.tuning.power_law import forecast
    >>> points = [(n, 0.6 - 0.5 * n ** -0.5, 0.599 - 0.5 * n ** -0.5, 0.601 - 0.5 * n ** -0.5)
    ...           for n in (50, 100, 200, 400)]
    >>> found, words = forecast(points)
    >>> round(found.mean, 3)
    0.582
    """
    if len(points) < 4:
        return None, "Fewer than four shares draw no curve to go on from."
    n, mean, low, high = np.array(points, dtype=np.float64).T
    width = np.maximum((high - low) / 2, 1e-9)
    draws = np.random.default_rng(0).normal(mean, width / 1.96, size=(_DRAWS, len(n)))
    known = _ahead(n[:-1], np.vstack((mean[:-1], draws[:, :-1])), width[:-1], n[-1])
    foretold, room = float(known[0, 0]), float(np.hypot(width[-1], 1.96 * known[1:, 0].std()))
    if abs(foretold - mean[-1]) > room:
        return None, (
            f"The curve through all points but the last foretells {foretold:.4f} for it, which was "
            f"{mean[-1]:.4f}, farther off than {room:.4f}; so it is not drawn on."
        )
    wanted = _FARTHEST * float(n[-1])
    curves = _ahead(n, np.vstack((mean, draws)), width, wanted)
    ends = np.quantile(curves[1:, 0], [0.025, 0.975]).tolist()
    if ends[1] - ends[0] > 2 * (mean.max() - mean.min()):
        return None, "The curve is too uncertain to be drawn on: more repeats, or more data, may help."
    found = Forecast(wanted, float(curves[0, 0]), *ends, *curves[0, 1:].tolist())
    words = (
        f"Twice as many queries would give about {found.mean:.4f} [{found.low:.4f}, {found.high:.4f}], by a "
        f"curve that foretold its last point from the others ({foretold:.4f} for {mean[-1]:.4f})."
    )
    return found, words


def _ahead(n: FloatArray, means: FloatArray, width: FloatArray, wanted: float) -> FloatArray:
    """Value at ``wanted``, ceiling, slope and exponent of the best curve through each row of means.

    Weighted least squares, linear for each exponent; a curve never falls with more queries.
    """
    weight = 1.0 / width**2
    weight /= weight.sum()
    best = np.full(len(means), np.inf)
    found = np.empty((len(means), 4))
    for exponent in _EXPONENTS.tolist():
        x = -(n**-exponent)
        away = x - weight @ x
        slope = np.maximum(0.0, means @ (weight * away) / (weight @ away**2))
        ceiling = means @ weight - slope * (weight @ x)
        error = (means - ceiling[:, None] - slope[:, None] * x) ** 2 @ weight
        value = ceiling - slope * wanted**-exponent
        better = error < best
        best[better] = error[better]
        found[better] = np.column_stack((value, ceiling, slope, np.full(len(means), exponent)))[better]
    return found
