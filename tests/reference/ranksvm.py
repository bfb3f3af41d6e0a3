"""RankSVM as its definition says it, with explicit pairs."""

from __future__ import annotations

import numpy as np


def pairs(y, qid, weight=None, query_weight=None, by_query=False):
    """Rows (better, worse) of all pairs, and their weights; ``query_weight`` is by query id."""
    y, qid = np.asarray(y, dtype=float), np.asarray(qid)
    weight = np.ones(len(y)) if weight is None else weight
    better, worse, weights = [], [], []
    for q in dict.fromkeys(qid.tolist()):
        rows = np.flatnonzero(qid == q)
        found = [(i, j) for i in rows for j in rows if y[i] > y[j]]
        own = np.array([weight[i] * weight[j] for i, j in found])
        if by_query and own.sum() > 0:
            own = own / own.sum()
        better += [i for i, _ in found]
        worse += [j for _, j in found]
        weights += (own * (1.0 if query_weight is None else query_weight[q])).tolist()
    return np.array(better, dtype=int), np.array(worse, dtype=int), np.array(weights)


def smooth_hinge(margin, width, curve):
    """Loss, first and second derivative of a pair by its margin."""
    short = 1.0 - margin
    inside = (short > 0) & (short < width)
    beyond = short >= width
    reach = width if np.isfinite(width) else 0.0
    loss = np.where(inside, curve * short**2, 0.0)
    loss += np.where(beyond, curve * reach**2 + 2 * curve * reach * (short - reach), 0.0)
    slope = np.where(inside, -2 * curve * short, 0.0) + np.where(beyond, -2 * curve * reach, 0.0)
    return loss, slope, np.where(inside, 2 * curve, 0.0)


def hinge_loss(scores, better, worse, weights, width, curve):
    """Loss of all pairs, gradient by score, and the matrix of second derivatives."""
    loss, slope, bend = smooth_hinge(scores[better] - scores[worse], width, curve)
    n = len(scores)
    gradient, second = np.zeros(n), np.zeros((n, n))
    for i, j, v, s, b in zip(better, worse, weights, slope, bend, strict=True):
        gradient[i] += v * s
        gradient[j] -= v * s
        second[i, i] += v * b
        second[j, j] += v * b
        second[i, j] -= v * b
        second[j, i] -= v * b
    return float(loss @ weights), gradient, second


def objective(X, better, worse, weights, w, C, power):
    """Half the squared length of the weights plus C times the hinge loss to the power 1 or 2."""
    short = np.maximum(0.0, 1.0 - (X[better] - X[worse]) @ w)
    return 0.5 * float(w @ w) + C * float(weights @ short**power)
