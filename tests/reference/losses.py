"""Naive twins of `mcrank.losses`: probabilities, gradients, curvatures and leaf values in float64 NumPy."""

from __future__ import annotations

import numpy as np


def softmax(scores):
    """Class probabilities of scores (classes x rows)."""
    powers = np.exp(scores - scores.max(axis=0))
    return powers / powers.sum(axis=0)


def sigmoid(scores):
    """1 / (1 + exp(-x))."""
    return np.where(scores >= 0, 1 / (1 + np.exp(-np.abs(scores))), 1 - 1 / (1 + np.exp(-np.abs(scores))))


def multiclass(scores, classes):
    """1[y = k] - p[k] and p(1 - p) of every class and row."""
    p = softmax(scores)
    return (classes == np.arange(len(scores))[:, None]) - p, p * (1 - p)


def ordinal(scores, classes):
    """1[y > k] - p[k] and p(1 - p) of every boundary and row."""
    p = sigmoid(scores)
    return (classes > np.arange(len(scores))[:, None]) - p, p * (1 - p)


def weighted_median(values, weight):
    """Value at which half of the weight is reached; the middle of two when the first has exactly half."""
    pairs = sorted(zip(values, weight, strict=True))
    half = sum(weight) / 2
    reached = 0.0
    for i, (value, w) in enumerate(pairs):
        reached += w
        if reached == half:
            later = [v for v, u in pairs[i + 1 :] if u > 0]
            return (value + later[0]) / 2
        if reached > half:
            return value
    raise ValueError("no weight")
