"""Changes of a measure when one row of a query swaps ranks with each row below it.

Trainers want one rank against all lower ranks at a time, which needs no memory beyond the query's own length.
Each step is given what the rows are worth in ranked order and fills ``change[j]`` for ranks j below i.
"""

from __future__ import annotations

import numpy as np

from mcrank.kernels import step
from mcrank.kernels.fenwick import add_at, sum_upto


@step()
def discounted_row(i, worth, discount, change):  # type: ignore[no-untyped-def]
    """Discounted sums, before the divisor: |gain_i - gain_j| |discount_i - discount_j|."""
    # IN: i, worth by rank, discount by rank (as long as worth)  OUT: change below rank i
    gain, weight = worth[i], discount[i]
    gains, weights, out = worth[i + 1 :], discount[i + 1 :], change[i + 1 :]
    for j in range(len(out)):
        out[j] = abs(gain - gains[j]) * abs(weight - weights[j])


@step()
def average_precision_row(i, relevant, depth, change):  # type: ignore[no-untyped-def]
    """Average precision, before the divisor: the hit moves, and every hit between gains or loses one."""
    # IN: i, relevant (1.0 or 0.0) by rank, depth  OUT: change below rank i
    hits = 0.0
    for r in range(i + 1):
        hits += relevant[r]
    hits_at_i = hits if relevant[i] > 0.0 else hits + 1.0
    upper = hits_at_i / (i + 1) if i < depth else 0.0
    between = 0.0
    for j in range(i + 1, len(relevant)):
        hits += relevant[j]
        lower = hits / (j + 1) if j < depth else 0.0
        change[j] = abs(upper + between - lower) if relevant[i] != relevant[j] else 0.0
        if j < depth:
            between += relevant[j] / (j + 1)


@step()
def cascade_row(i, satisfied, weight, change):  # type: ignore[no-untyped-def]
    """A cascade: reading_i * (x - y) * (between + weight_j * still - weight_i).

    x and y are the probabilities of ranks i and j; ``between`` and ``still`` are the value and the chance to
    read on of the rows strictly between.
    """
    # IN: i, satisfied by rank, weight by rank (as long as satisfied)  OUT: change below rank i
    reading = 1.0
    for r in range(i):
        reading *= 1.0 - satisfied[r]
    between = 0.0
    still = 1.0
    for j in range(i + 1, len(satisfied)):
        y = satisfied[j]
        change[j] = abs(reading * (satisfied[i] - y) * (between + weight[j] * still - weight[i]))
        between += weight[j] * still * y
        still *= 1.0 - y


@step()
def best_grade_row(i, grade, depth, change):  # type: ignore[no-untyped-def]
    """The best grade within ``depth`` ranks."""
    # IN: i, grade by rank, depth  OUT: change below rank i
    deep = min(depth, len(grade))
    best = 0.0
    others = 0.0
    for r in range(deep):
        best = max(best, grade[r])
        others = max(others, grade[r]) if r != i else others
    for j in range(i + 1, len(grade)):
        change[j] = abs(max(others, grade[j]) - best) if i < deep <= j else 0.0


@step()
def kendall_start(place, tree, theirs):  # type: ignore[no-untyped-def]
    """For each rank j, the ranks from 1 up to j of lower grade minus those of higher grade.

    They are counted in a Fenwick tree over the grades of the query.
    """
    # IN: place of each row's grade among those of the query, by rank  OUT: tree (scratch), theirs
    n = len(place)
    for k in range(n):
        tree[k] = 0.0
    for j in range(1, n):
        level = np.int64(place[j])
        lower, upto = sum_upto(tree, level - 1), sum_upto(tree, level)
        theirs[j] = lower - (j - 1 - upto)
        add_at(tree, level, 1.0)


@step()
def kendall_row(i, grade, theirs, change):  # type: ignore[no-untyped-def]
    """Kendall's tau-b, before its scale, where no two rows share a rank; asked for i = 0, 1, ... in turn.

    Equal scores, too, are taken to stand in the order they are ranked in: a swap of two of them would
    otherwise change nothing, and nothing would ever be learned from scores that are all equal.
    """
    # IN: i, grade by rank
    # OUT: theirs (from `kendall_start`; of ranks i + 1 to j: those of lower grade minus those of higher),
    #      change below rank i
    mine = 0.0
    for j in range(i + 1, len(grade)):
        ahead = np.sign(grade[i] - grade[j])
        if i > 0:
            theirs[j] += ahead  # rank i is not between any more
        change[j] = 2.0 * abs(mine - theirs[j] + ahead)
        mine += ahead
