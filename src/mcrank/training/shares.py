"""Shares of the grades that rows not seen yet will have: what held-out queries say, with training queries'.

Twelve held-out queries say little about how frequent a grade is; the training queries say it better, if both
come from the same place. So both are taken together, as far as they do not contradict each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcrank.arrays import FloatArray, IntArray, RowArray
from mcrank.sums import Sums, count_all, exact_sum

DOUBT = 2.0  # times what chance gives: smaller differences of held-out and training queries are chance
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


def agreement(size: float, directions: int, queries: int) -> float:
    """Share of a difference that is believed: none of what is less than `DOUBT` times what chance gives it,
    and nearly all of what is many times that. ``size`` is its square, in units of how much it would vary with
    other queries.

    James and Stein's rule begins to believe at once what chance gives; but that both come from one place is
    the rule, and every draw that looks otherwise by chance is then followed some of the way.

    Examples
    --------
    >>> from mcrank.training.shares import agreement
    >>> agreement(2.0, 1, 100), round(agreement(4.0, 1, 100), 2), round(agreement(25.0, 1, 100), 2)
    (0.0, 0.74, 0.99)
    """
    chance = directions * queries / max(queries - directions, 1)
    return max(0.0, 1.0 - (DOUBT * chance / size) ** 2) if size > 0 else 0.0


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
