"""How contributions to raw outputs become contributions to the score."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.scorers.heads import Head, sigmoid
from mcrank.scorers.odds import LEAST_SHARE, Odds

_POINTS = 16  # of a panel
_PANEL = 4.0  # by how much log-odds may change in one: the quadrature then errs by less than 1e-15
_SAME = 1e-5  # difference of log-odds below which a quotient would lose digits


def line_weights(head: Head, start: FloatArray, end: FloatArray) -> FloatArray:
    """Return the mean gradient of the score along the straight line between raw outputs (outputs x rows).

    With these weights differences of raw outputs add up to the difference of the scores: exactly in closed
    form for cumulative probabilities, by Gauss's quadrature to rounding error for softmax. What goes by the
    score as it was learned (`Odds`) is carried by the slope between the two ends of that score.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.explain.heads import line_weights
    >>> from mcrank.scorers.heads import Head
    >>> head, start, end = Head("softmax", np.array([0.0, 1.0])), np.zeros((2, 1)), np.array([[-1.0], [3.0]])
    >>> weights = line_weights(head, start, end)
    >>> bool(abs((weights * (end - start)).sum() - (head.rank(end) - head.rank(start))[0]) < 1e-15)
    True
    """
    start = np.broadcast_to(start, end.shape)
    if head.values is None:
        return np.ones_like(end) if head.kind == "identity" else _log_slopes(head, start, end)
    if len(head.values) == 1:
        return np.zeros_like(end)
    if head.odds is not None:
        return _through_odds(head, head.odds, start, end)
    if head.kind == "cumulative":
        return np.diff(head.values)[:, None] * _slopes(start, end)
    if head.kind == "base-pairs":
        # Class scores are linear in the outputs: what a unit of an output moves is read off unit vectors.
        from mcrank.losses.abc import class_scores

        moved = class_scores(np.eye(len(end)))  # classes x outputs
        return np.asarray(moved.T @ _mean_gradient(head, class_scores(start), class_scores(end)))
    return _mean_gradient(head, start, end)


def _through_odds(head: Head, odds: Odds, start: FloatArray, end: FloatArray) -> FloatArray:
    """The same of what was learned, and of what rows of such a score were, each by its share."""
    values = np.asarray(head.values)
    by_share = replace(head, values=np.append(0.0, np.cumsum(odds.steps)), odds=None)
    first, last = by_share.learned_above(start), by_share.learned_above(end)
    gap = odds.steps @ last - odds.steps @ first
    near = np.abs(odds.log_odds(last) - odds.log_odds(first)) < _SAME
    alone = replace(odds, learned=0.0)
    rise = np.diff(values) @ (alone.above(last) - alone.above(first))
    middle = _slope_at(odds, np.diff(values), (first + last) / 2.0)
    slope = np.where(near, middle, rise / np.where(near | (gap == 0), 1.0, gap))
    made = (1.0 - odds.learned) * slope * line_weights(by_share, start, end)
    return made if odds.learned == 0 else made + odds.learned * line_weights(head.as_learned, start, end)


def _slope_at(odds: Odds, worth: FloatArray, above: FloatArray) -> FloatArray:
    """Derivative, by the score's share of the way, of what rows of such a score are worth."""
    z, share = odds.log_odds(above), odds.steps @ above
    steep = odds.slopes[np.searchsorted(odds.knots, z)]
    p = sigmoid(odds.line(z) + odds.cuts[:, None])
    made = (1.0 - odds.strayed[0]) * (worth @ (p * (1.0 - p))) * steep
    inside = (share > LEAST_SHARE) & (share < 1.0 - LEAST_SHARE)  # beyond, all scores are as good as there
    return np.asarray(np.where(inside, made / np.where(inside, share * (1.0 - share), 1.0), 0.0))


def _log_slopes(head: Head, start: FloatArray, end: FloatArray) -> FloatArray:
    """The same of scores whose logs are the outputs."""
    gap = end - start
    near = np.abs(gap) < _SAME
    rise = head.rank(end) - head.rank(start)
    return np.where(near, head.rank((start + end) / 2.0), rise / np.where(near, 1.0, gap))


def _slopes(start: FloatArray, end: FloatArray) -> FloatArray:
    """(sigmoid(end) - sigmoid(start)) / (end - start), and the derivative where they are equal."""
    gap = end - start
    near = np.abs(gap) < _SAME
    middle = sigmoid((start + end) / 2.0)
    # Between equals the slope in the middle, whose error is of the order of the squared gap.
    slope = middle * (1.0 - middle)
    return np.where(near, slope, (sigmoid(end) - sigmoid(start)) / np.where(near, 1.0, gap))


def _mean_gradient(head: Head, start: FloatArray, end: FloatArray) -> FloatArray:
    """Mean over the line of the derivative of Σ T(k) p(k) by each output, in as many panels as it needs."""
    values, gap = head.values, end - start
    if values is None:
        raise ValueError("a head without grades")
    if head.kind == "one-each":  # p(k) is the share of sigmoid(k), whose poles are nearer
        panels = 2.0 * np.abs(gap).max(axis=0) / _PANEL
    else:
        panels = (gap.max(axis=0) - gap.min(axis=0)) / _PANEL
    counts = np.maximum(np.ceil(panels), 1.0).astype(np.int64)
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    out = np.zeros_like(end)
    for count in np.unique(counts).tolist():
        rows = np.flatnonzero(counts == count)
        total = np.zeros((len(end), len(rows)))
        for panel in range(count):
            for point, weight in zip(points.tolist(), weights.tolist(), strict=True):
                raw = start[:, rows] + gap[:, rows] * ((panel + (1.0 + point) / 2.0) / count)
                total += weight / 2.0 / count * _gradient(head.kind, values, raw)
        out[:, rows] = total
    return out


def _gradient(kind: str, values: FloatArray, raw: FloatArray) -> FloatArray:
    """d Σ T(k) p(k) / d raw(k) = p(k) (T(k) - Σ T p) for softmax; times 1 - sigmoid(raw(k)) for one-each."""
    if kind == "one-each":
        logs = np.minimum(raw, 0.0) - np.log1p(np.exp(-np.abs(raw)))
        return _gradient("softmax", values, logs) * sigmoid(-raw)
    powers = np.exp(raw - raw.max(axis=0))
    chances = powers / powers.sum(axis=0)
    return np.asarray(chances * (values[:, None] - values @ chances))
