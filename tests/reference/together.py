"""Naive twin of vector-leaf boosting: softmax trees whose splits are those of the largest summed gain."""

from __future__ import annotations

import numpy as np


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def gain(left, right, g, h):
    """Σ over outputs of G_L²/H_L + G_R²/H_R - G²/H."""

    def terms(rows):
        return (g[rows].sum(axis=0) ** 2 / h[rows].sum(axis=0)).sum()

    return terms(left) + terms(right) - terms(np.concatenate([left, right]))


def best_split(X, rows, g, h, min_rows):
    """The best cut of a node's rows, between two of its values: gain, left rows, right rows; or None."""
    best = None
    for f in range(X.shape[1]):
        for value in np.unique(X[rows, f])[:-1]:
            goes = X[rows, f] <= value
            left, right = rows[goes], rows[~goes]
            if min(len(left), len(right)) >= min_rows:
                found = gain(left, right, g, h)
                if found > 1e-9 and (best is None or found > best[0] + 1e-9):
                    best = found, left, right
    return best


def boost(X, y, rounds, num_leaves, min_rows, rate, newton):
    """Raw scores after some rounds, and the leaves (as sets of rows) of each."""
    classes = int(y.max()) + 1
    scores, leaves = np.zeros((len(y), classes)), []
    for _ in range(rounds):
        p = softmax(scores)
        g = np.eye(classes)[y] - p
        h = p * (1 - p) if newton else np.ones_like(p)
        nodes = [np.arange(len(y))]
        while len(nodes) < num_leaves:
            found = [best_split(X, rows, g, h, min_rows) for rows in nodes]
            gains = [-1.0 if f is None else f[0] for f in found]
            if max(gains) <= 0:
                break
            at = int(np.argmax(gains))
            nodes[at : at + 1] = found[at][1:]
        for rows in nodes:
            step = g[rows].sum(axis=0) / (p[rows] * (1 - p[rows])).sum(axis=0)
            scores[rows] += rate * (classes - 1) / classes * step
        leaves.append({frozenset(rows.tolist()) for rows in nodes})
    return scores, leaves
