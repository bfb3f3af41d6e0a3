"""What pairs of documents are worth to systems that disagree on them, by loops."""

from __future__ import annotations

import itertools

import numpy as np


def worth_of_pairs(place, grades, near_top, taken):
    """Worth of each (better, worse) to pairs of systems that none of the pairs taken so far divides."""

    def ahead(s, i, j):
        return place[s][i] < place[s][j]

    def won(s, i, j):
        discounts = [1.0 / np.log2(place[s][k] + 2.0) for k in (i, j)]
        return (2.0 ** grades[i] - 2.0 ** grades[j]) * (discounts[0] - discounts[1])

    found = {}
    for i, j in itertools.permutations(np.flatnonzero(near_top).tolist(), 2):
        if grades[i] <= grades[j]:
            continue
        found[i, j] = 0.0
        for s, t in itertools.permutations(range(len(place)), 2):
            together = all(ahead(s, *pair) == ahead(t, *pair) for pair in taken)
            if together and ahead(s, i, j) and not ahead(t, i, j):
                found[i, j] += won(s, i, j) - won(t, i, j)
    return found
