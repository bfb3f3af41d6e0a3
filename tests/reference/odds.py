"""Odds of grades at a score, row by row as the words say it."""

import math
from itertools import pairwise


def log_odds(above, grades):
    """Log-odds of the way from the lowest grade to the highest that the expected grade has gone."""
    gone = sum((high - low) * p for (low, high), p in zip(pairwise(grades), above, strict=True))
    share = min(max(gone / (grades[-1] - grades[0]), 2**-20), 1 - 2**-20)
    return math.log(share / (1 - share))


def distribution(odds, slope, cuts):
    """Probability of each grade at these log-odds."""
    higher = [1 / (1 + math.exp(-(slope * odds + cut))) for cut in cuts]
    return [a - b for a, b in zip([1.0, *higher], [*higher, 0.0], strict=True)]


def loss(odds, classes, weights, slope, cuts, pull):
    """Log loss of the grades, and of a row in the middle that may have any; the slope is pulled to 1."""
    mean = sum(w * o for w, o in zip(weights, odds, strict=True)) / sum(weights)
    spread = sum(w * (o - mean) ** 2 for w, o in zip(weights, odds, strict=True)) / sum(weights)
    total = pull / 2 * spread * (slope - 1) ** 2
    for one, k, weight in zip(odds, classes, weights, strict=True):
        total -= weight * math.log(distribution(one, slope, cuts)[k])
    any_grade = distribution(mean, slope, cuts)
    return total - pull / len(any_grade) * sum(map(math.log, any_grade))
