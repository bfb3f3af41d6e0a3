"""Odds of grades at a score, row by row as the words say it."""

import math
from itertools import pairwise


def log_odds(above, grades):
    """Log-odds of the way from the lowest grade to the highest that the expected grade has gone."""
    gone = sum((high - low) * p for (low, high), p in zip(pairwise(grades), above, strict=True))
    share = min(max(gone / (grades[-1] - grades[0]), 2**-20), 1 - 2**-20)
    return math.log(share / (1 - share))


def line(odds, slopes, knots):
    """A line that has the first slope up to the first knot, the next up to the next, and so on."""
    made = slopes[0] * min([odds, *knots[:1]])
    for k, knot in enumerate(knots):
        end = min([odds, *knots[k + 1 : k + 2]])
        made += slopes[k + 1] * max(end - knot, 0.0)
    return made


def distribution(odds, slopes, cuts, stray, knots=()):
    """Probability of each grade at these log-odds; rows stray to each grade with these probabilities."""
    bent = line(odds, slopes, knots)
    higher = [1 / (1 + math.exp(-(bent + cut))) for cut in cuts]
    stays = 1 - sum(stray)
    return [stays * (a - b) + s for a, b, s in zip([1.0, *higher], [*higher, 0.0], stray, strict=True)]


def loss(odds, classes, weights, slopes, knots, cuts, share, pull, bent, usual, said):
    """Log loss of the grades, where a share of the rows strays. Rows that nobody has seen are added: one in
    the middle that may have any grade, one that pulls slopes to 1, some that pull them together, some that
    stray as is usual. The middle is where the line has its mean.
    """
    n = len(cuts) + 1
    of_grades = [sum(w for w, c in zip(weights, classes, strict=True) if c == k) + pull / n for k in range(n)]
    stray = [share * w / sum(of_grades) for w in of_grades]
    mean = sum(w * o for w, o in zip(weights, odds, strict=True)) / sum(weights)
    spread = sum(w * (o - mean) ** 2 for w, o in zip(weights, odds, strict=True)) / sum(weights)
    total = pull / 2 * spread * sum((slope - 1) ** 2 for slope in slopes) / len(slopes)
    total += pull / 2 * spread * bent * sum((b - a) ** 2 for a, b in pairwise(slopes))
    for one, k, weight in zip(odds, classes, weights, strict=True):
        total -= weight * math.log(distribution(one, slopes, cuts, stray, knots)[k])
    middle = sum(w * line(o, slopes, knots) for w, o in zip(weights, odds, strict=True)) / sum(weights)
    total -= pull / n * sum(map(math.log, distribution(middle, [1.0], cuts, [0.0] * n)))
    return total - said * (usual * math.log(share) + (1 - usual) * math.log(1 - share))
