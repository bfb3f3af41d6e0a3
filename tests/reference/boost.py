"""Naive twin of the boosting loop: exact float64 gradients, one bin per distinct value, no shared work.

Gains within a millionth of each other count as equal here, and the lower feature and value win: the
engine's order of ties, without its roundings.
"""

from __future__ import annotations

import numpy as np

from tests.reference import losses


class Tree:
    """A best-first least-squares tree on raw values; children of node i are ``children[i]``."""

    def __init__(self, X, g, h, num_leaves, min_rows):
        self.tests, self.children, self.rows = [], {}, [np.arange(len(X))]
        splits = [_best(X, g, h, self.rows[0], min_rows)]
        while len(self.children) < num_leaves - 1:
            open_leaves = [i for i, s in enumerate(splits) if s is not None and i not in self.children]
            if not open_leaves:
                break
            at = max(open_leaves, key=lambda i: (splits[i][0], -i))
            _, f, value = splits[at]
            goes = X[self.rows[at], f] <= value
            self.children[at] = (f, value, len(self.rows))
            for part in (self.rows[at][goes], self.rows[at][~goes]):
                self.rows.append(part)
                splits.append(_best(X, g, h, part, min_rows))

    def leaves(self):
        """Rows of every leaf."""
        return [rows for i, rows in enumerate(self.rows) if i not in self.children]


def _best(X, g, h, rows, min_rows):
    """(gain, feature, value) of the best split ``x <= value`` of some rows, or None."""
    best = None
    total, mass = g[rows].sum(), h[rows].sum()
    for f in range(X.shape[1]):
        values, at = np.unique(X[rows, f], return_inverse=True)
        if len(values) == 1:
            continue
        sums = np.cumsum(np.bincount(at, g[rows]))[:-1]
        masses = np.cumsum(np.bincount(at, h[rows]))[:-1]
        counts = np.cumsum(np.bincount(at))[:-1]
        good = (np.minimum(counts, len(rows) - counts) >= min_rows) & (masses > 0) & (masses < mass)
        if not good.any():
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            gains = sums**2 / masses + (total - sums) ** 2 / (mass - masses) - total**2 / mass
        gains = np.where(good, np.maximum(gains, 0.0), -1.0)
        cut = int(np.flatnonzero(gains >= gains.max() * (1 - 1e-6))[0])
        if gains[cut] > 1e-12 * max(total**2 / mass, 1e-300) and (
            best is None or gains[cut] > best[0] * (1 + 1e-6)
        ):
            best = (gains[cut], f, values[cut])
    return best


def _ratio(g, h, rows, factor, rate):
    return rate * factor * g[rows].sum() / h[rows].sum()


def classification(
    X, classes, n_classes, rounds, *, num_leaves, min_rows, rate, sequential=False, newton=False, weight=None
):
    """Scores (classes x rows) of Algorithm 1, K trees a round whatever K is."""
    weight = np.ones(len(X)) if weight is None else weight
    scores = np.zeros((n_classes, len(X)))
    factor = (n_classes - 1) / n_classes
    for _ in range(rounds):
        g, h = losses.multiclass(scores, classes)
        moves = np.zeros_like(scores)
        for k in range(n_classes):
            if sequential:
                g, h = losses.multiclass(scores, classes)
            mass = weight * h[k] if newton else weight
            for rows in Tree(X, weight * g[k], mass, num_leaves, min_rows).leaves():
                moves[k, rows] = _ratio(weight * g[k], weight * h[k], rows, factor, rate)
            if sequential:
                scores[k] += moves[k]
        if not sequential:
            scores += moves
    return scores


def boundaries(X, classes, n_classes, rounds, *, num_leaves, min_rows, rate, newton=False, weight=None):
    """Log-odds of y > k (boundaries x rows): one logistic problem after the other."""
    weight = np.ones(len(X)) if weight is None else weight
    scores = np.zeros((n_classes - 1, len(X)))
    for k in range(n_classes - 1):
        above = (classes > k).astype(int)
        for _ in range(rounds):
            g, h = losses.ordinal(scores[k : k + 1], above)
            mass = weight * h[0] if newton else weight
            tree = Tree(X, weight * g[0], mass, num_leaves, min_rows)
            for rows in tree.leaves():
                scores[k, rows] += _ratio(weight * g[0], weight * h[0], rows, 1.0, rate)
    return scores


def regression(X, target, rounds, *, num_leaves, min_rows, rate, kind="l2", weight=None):
    """Scores of Algorithm 2, or of Friedman's LAD_TreeBoost."""
    plain = weight is None
    weight = np.ones(len(X)) if plain else weight

    def middle(values, w):
        if kind == "l2":
            return (values * w).sum() / w.sum()
        return np.median(values) if plain else losses.weighted_median(values, w)

    scores = np.full(len(X), middle(target, weight))
    for _ in range(rounds):
        residual = target - scores
        g = residual if kind == "l2" else np.sign(residual)
        # Leaf values of plain least squares are whole multiples of 2^-24 of the first power of 2 above the
        # largest residual.
        unit = 2.0 ** (np.floor(np.log2(np.abs(residual).max())) + 1 - 24)
        for rows in Tree(X, weight * g, weight, num_leaves, min_rows).leaves():
            value = rate * middle(residual[rows], weight[rows])
            scores[rows] += np.rint(value / unit) * unit if kind == "l2" and plain else value
    return scores
