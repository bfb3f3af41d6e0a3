"""Shares of the grades that rows not seen yet will have: what held-out queries say, with training queries'.

Twelve held-out queries say little about how frequent a grade is; the training queries say it better, if both
come from the same place. So both are taken together, as far as they do not contradict each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcrank.arrays import FloatArray, IntArray, RowArray
from mcrank.sums import Sums, count_all, exact_sum

ELSEWHERE = 0.15  # chance that held-out queries are of another place, before anything is known of them
_BLOCK = 4096  # queries looked at in one go: rows may lie on disk


class Shares(NamedTuple):
    """Shares of the grades among some rows, and how far other queries would have given others.

    Attributes
    ----------
    share : ndarray of shape (grades,)
        They add up to 1.
    varies : ndarray of shape (grades, grades)
        Covariance of the shares, with the queries as what was drawn.
    queries : int
        Queries that have a say.
    """

    share: FloatArray
    varies: FloatArray
    queries: int


def grade_shares(
    classes: RowArray, n_grades: int, weight: FloatArray | None, offsets: IntArray, sums: Sums
) -> Shares | None:
    """Return the shares of the classes among rows, by query; negative classes take no part. None without any.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.sums import ALONE
    >>> from mcrank.training.shares import grade_shares
    >>> classes, offsets = np.array([0, 0, 0, 1], dtype=np.int32), np.array([0, 2, 4])
    >>> found = grade_shares(classes, 2, None, offsets, ALONE)
    >>> found.share.tolist(), found.queries
    ([0.75, 0.25], 2)
    """
    by_query = np.zeros((len(offsets) - 1, n_grades))
    for first in range(0, len(by_query), _BLOCK):
        ends = offsets[first : first + _BLOCK + 1]
        rows = slice(int(ends[0]), int(ends[-1]))
        query = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        used = classes[rows] >= 0
        place = query[used] * n_grades + classes[rows][used]
        own = None if weight is None else weight[rows][used]
        by_query[first : first + _BLOCK] = np.bincount(
            place, weights=own, minlength=n_grades * (len(ends) - 1)
        ).reshape(-1, n_grades)
    counts = by_query.sum(axis=1)
    queries = count_all(int((counts > 0).sum()), sums)
    total = exact_sum(counts, sums)
    if not total > 0:
        return None
    share = np.array([exact_sum(column, sums) for column in by_query.T]) / total
    off = by_query - counts[:, None] * share
    varies = np.array([[exact_sum(a * b, sums) for b in off.T] for a in off.T])
    return Shares(share, varies * queries / max(queries - 1, 1) / total**2, queries)


def by_chance(size: float, directions: int, queries: int) -> float:
    """Probability of so large a difference, or a larger one, where all queries are of one place (Hotelling's
    test). ``size`` is its square, in units of how much it would vary with other queries.

    Examples
    --------
    >>> from mcrank.training.shares import by_chance
    >>> round(by_chance(4.0, 1, 100), 3), round(by_chance(4.0, 4, 100), 3)
    (0.048, 0.428)
    """
    from scipy.special import fdtrc  # late: nothing else of training needs it

    free = queries - directions - 1
    if directions < 1 or free < 1 or not size > 0:
        return 1.0  # so few queries tell of no difference
    return float(fdtrc(directions, free, size * free / (directions * (queries - 2))))


def agreement(size: float, directions: int, queries: int) -> float:
    """Share of a difference that is believed: how much more probable it makes it, of what there is to 1, that
    held-out queries are of another place than `ELSEWHERE` says. Arguments as in `by_chance`.

    What chance gives with probability p is at most 1 / (-e p log p) times as probable elsewhere, and no more
    probable where p is above 1 / e (Sellke, Bayarri and Berger, 2001); that bound is taken. So the same p is
    believed as much, whatever the number of grades. One place is the rule: who follows what is merely more
    than the mean of chance follows, some of the way, every draw that looks different by luck.

    Examples
    --------
    >>> from mcrank.training.shares import agreement
    >>> [round(agreement(errors**2, 1, 100), 2) for errors in (0.5, 1, 2, 3, 5)]
    [0.0, 0.0, 0.19, 0.73, 1.0]
    """
    p = by_chance(size, directions, queries)
    if p <= 0:
        return 1.0  # less than any number
    same = -np.e * p * np.log(p) if p < np.exp(-1) else 1.0
    return float(ELSEWHERE * (1 - same) / (ELSEWHERE + (1 - ELSEWHERE) * same))


def likely_shares(held_out: Shares, training: Shares) -> FloatArray:
    """Return the shares that other rows will have: those of all queries together, and more of those held out
    the less chance explains that both differ. How much queries vary is told by all of them, too: a dozen
    held-out ones do not know.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.training.shares import Shares, likely_shares
    >>> near, far = (Shares(np.array([1 - p, p]), np.eye(2) * 1e-3, 10) for p in (0.22, 0.6))
    >>> training = Shares(np.array([0.8, 0.2]), np.eye(2) * 1e-4, 90)
    >>> likely_shares(near, training).round(3).tolist(), likely_shares(far, training).round(2).tolist()
    ([0.798, 0.202], [0.4, 0.6])
    """
    if training.queries < 2:
        return held_out.share  # how much queries vary is not known
    queries = held_out.queries + training.queries
    both = (held_out.queries * held_out.share + training.queries * training.share) / queries
    if held_out.queries < 2:
        return np.asarray(both)
    each = (held_out.queries**2 * held_out.varies + training.queries**2 * training.varies) / queries
    varies = each * (1 / held_out.queries + 1 / training.queries)
    spread = float(np.trace(varies))
    if not spread > 0:
        return held_out.share
    apart = held_out.share - training.share
    rank = int(np.linalg.matrix_rank(varies, tol=1e-9 * spread))
    size = float(apart @ np.linalg.pinv(varies, rcond=1e-9) @ apart)
    return np.asarray(both + agreement(size, rank, queries) * (held_out.share - both))
