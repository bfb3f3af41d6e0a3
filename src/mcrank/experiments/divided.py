"""Pairs of documents on which systems disagree: some have the better one above, the others the worse one.

A pair of documents divides the systems into two camps. Pairs are taken one after another: each time the one
that is worth most to systems that no pair so far has divided. So a comparison of many systems needs few.
"""

from __future__ import annotations

import numpy as np

from mcrank.arrays import BoolArray, FloatArray, IntArray

PAIRS = 4  # of a query; four divide up to sixteen systems


def dividing_pairs(place: IntArray, grades: FloatArray, near_top: BoolArray, most: int = PAIRS) -> IntArray:
    """Return pairs of documents (better, worse) of a query that divide systems, the costliest first.

    Parameters
    ----------
    place : ndarray of shape (systems, documents)
        Position of each document in the ranking of each system, from 0.
    grades : ndarray of shape (documents,)
        Grades; documents of equal grade make no pair.
    near_top : ndarray of shape (documents,)
        Documents that may be taken.
    most : int, default 4
        Pairs returned at most.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.experiments.divided import dividing_pairs
    >>> place = np.array([[0, 1, 2], [0, 2, 1], [2, 1, 0]])
    >>> dividing_pairs(place, np.array([3.0, 1.0, 0.0]), np.ones(3, dtype=bool)).tolist()
    [[0, 2], [1, 2]]
    """
    rows = np.flatnonzero(near_top)
    ahead = place[:, rows, None] < place[:, None, rows]
    discount = 1.0 / np.log2(place[:, rows] + 2.0)
    gain = np.exp2(np.minimum(grades[rows], 500.0))
    better = np.maximum(gain[:, None] - gain, 0.0)
    # What a system wins by the order it has, or loses: the part of its DCG that the two documents decide.
    worth = better * (discount[:, :, None] - discount[:, None, :])
    camp = np.zeros(len(place), dtype=np.int64)
    found: list[list[int]] = []
    while len(found) < most:
        total = np.zeros(better.shape)
        for one in np.unique(camp).tolist():
            mine, sides = worth[camp == one], ahead[camp == one]
            with_better = sides.sum(axis=0)
            others = len(mine) - with_better
            # The sum of worth(s) - worth(t) over all s that have the better one above and all t that do not.
            total += others * np.where(sides, mine, 0.0).sum(axis=0)
            total -= with_better * np.where(sides, 0.0, mine).sum(axis=0)
        if not total.size or total.max() <= 0.0:
            break
        i, j = np.unravel_index(int(total.argmax()), total.shape)
        found.append([int(rows[i]), int(rows[j])])
        camp = 2 * camp + ahead[:, i, j]
    return np.array(found, dtype=np.int64).reshape(-1, 2)
