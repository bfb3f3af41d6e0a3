"""Sums over all pairs of a query, as matrices of pairs."""

from __future__ import annotations

import numpy as np

from mcrank.losses.boxes import FIDELITY, LOGISTIC


def functions(kind, d):
    """The two functions of a pair whose better row leads by d."""
    with np.errstate(over="ignore"):
        right, wrong = 1 / (1 + np.exp(-d)), 1 / (1 + np.exp(d))
    if kind == LOGISTIC:
        return wrong, right * wrong
    root = np.sqrt(right)
    if kind == FIDELITY:
        return root * wrong / 2, root * wrong * (1 + right) / 4
    return root * wrong, wrong / (1 + root)


def pair_sums(order, worth, scores, weight, kind):
    """Both functions summed over pairs with worse rows, then over pairs with better rows, by ``order``."""
    worth, scores, weight = worth[order], scores[order], weight[order]
    pairs = (worth[:, None] > worth) * weight[:, None] * weight
    first, second = functions(kind, scores[:, None] - scores)
    return np.array([(pairs * f).sum(axis=axis) for axis in (1, 0) for f in (first, second)])
