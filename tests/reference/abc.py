"""Naive twin of adaptive base class boosting: every formula written out, every candidate's trees grown."""

from __future__ import annotations

import numpy as np

from tests.reference.boost import Tree
from tests.reference.losses import softmax


def residuals(scores, classes, base):
    """r and h of every class but the base (K - 1 x rows)."""
    p = softmax(scores)
    g = (classes == np.arange(len(scores))[:, None]) - p
    others = [k for k in range(len(scores)) if k != base]
    r = np.array([g[k] - g[base] for k in others])
    h = np.array([p[k] * (1 - p[k]) + p[base] * (1 - p[base]) + 2 * p[k] * p[base] for k in others])
    return r, h


def losses(scores, classes, weight):
    """-w log p[y], summed by class."""
    p = softmax(scores)[classes, np.arange(len(classes))]
    return np.bincount(classes, -weight * np.log(p), minlength=len(scores))


def moved(scores, moves, base):
    """Scores after the moves of the classes other than the base, which moves by minus their sum."""
    out = scores.copy()
    out[[k for k in range(len(scores)) if k != base]] += moves
    out[base] -= moves.sum(axis=0)
    return out


def boost(
    X, classes, n_classes, rounds, *, num_leaves, min_rows, rate, search, gap, newton=False, weight=None
):
    """Scores (classes x rows) and the base of every round."""
    weight = np.ones(len(X)) if weight is None else weight
    scores = np.zeros((n_classes, len(X)))
    bases = []
    for number in range(rounds):
        candidates = bases[-1:]
        if number % (gap + 1) == 0:
            candidates = np.argsort(-losses(scores, classes, weight), kind="stable")[:search].tolist()
        found = []
        for base in candidates:
            r, h = residuals(scores, classes, base)
            moves = np.zeros_like(r)
            for j in range(n_classes - 1):
                mass = weight * h[j] if newton else weight
                for rows in Tree(X, weight * r[j], mass, num_leaves, min_rows).leaves():
                    moves[j, rows] = rate * (weight * r[j])[rows].sum() / (weight * h[j])[rows].sum()
            after = moved(scores, moves, base)
            found.append((losses(after, classes, weight).sum(), base, after))
        _, base, scores = min(found, key=lambda f: f[0])
        bases.append(base)
    return scores, bases
