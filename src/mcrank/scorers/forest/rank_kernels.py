"""Ranking: each value of a block of rows becomes one byte, how many thresholds of its table lie below it.

A search for each value would be most of the time of scoring. So the range of a table's thresholds is cut into
`BUCKETS` of equal width, on the values or, where they crowd near zero, on their bits: a value's bucket is one
subtraction and one multiplication, and says how many thresholds are below for sure; those in the same bucket
(`Tables.steps` at most, mostly one or two) are compared. All of it is done for 16 rows at a time. Rounding
does no harm: it never puts the larger of two numbers into the lower bucket. A table whose thresholds crowd
anyhow is searched: of 16 runs of 16 thresholds one, and there the place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from mcrank.arrays import Array
from mcrank.kernels.vectors import count_below, rank_lanes

TABLE = 256  # places for the thresholds of one table: 16 runs of 16, the last place always +inf
RUN = 16
BUCKETS = 512
MOST_STEPS = 10  # beyond, searching is as quick
RANKED = 16  # rows at a time
# Ranks are kept minus 128, because the comparison of signed bytes is the one processors have.
RANKED_LEFT, RANKED_RIGHT = np.int8(-128), np.int8(127)

_count_below = count_below(RUN)
_rank_lanes = rank_lanes(RANKED, BUCKETS)


class Tables(NamedTuple):
    """The thresholds rows are ranked by.

    Per table its feature, the places of its two columns among the ranks (``low``: NaN goes left, ``high``:
    NaN goes right), how values become buckets (``by_bits``, ``line``: origin and scale), the thresholds to be
    compared then (0: they are searched instead), the last threshold of each run, the thresholds, and how many
    of them are below each bucket. Then for each set of categories the feature, the number of the set, the
    side of NaN, and the place of its column.
    """

    feature: Array
    low: Array
    high: Array
    by_bits: Array
    line: Array
    steps: Array
    runs: Array
    thresholds: Array
    first: Array
    set_feature: Array
    set_number: Array
    set_missing: Array
    set_column: Array


@njit(inline="always")
def rank_rows(X: Array, start: int, rows: int, places: Array, tables: Tables, ranks: Array) -> None:
    """Rank the values of a block of rows, column by column.

    IN: ``X`` flat; where its first row begins there, and each row from there, the last of them again and
    again where there are fewer than the block has lanes; tables. OUT: ``ranks``, int8.
    """
    run = np.uint64(4)  # log2 of RUN
    runs, thresholds = tables.runs, tables.thresholds
    for table in range(np.uint64(tables.feature.shape[0])):
        column = np.uint64(start) + np.uint64(tables.feature[table])
        low, high = tables.low[table], tables.high[table]
        steps = tables.steps[table]
        if steps > np.uint64(0):
            line = (tables.line[table, 0], tables.line[table, 1])
            buckets, first = table * np.uint64(BUCKETS), table << np.uint64(8)
            for i in range(np.uint64(0), np.uint64(rows), np.uint64(RANKED)):
                numbers = (i, column, tables.by_bits[table], steps, buckets, first, low, high)
                _rank_lanes(X, places, numbers, line, tables.first, thresholds, ranks)
            continue
        for i in range(np.uint64(rows)):
            x = X[column + np.uint64(places[i])]
            skipped = _count_below(runs, table << run, x) << run
            below = skipped + _count_below(thresholds, (table << np.uint64(8)) + skipped, x)
            rank = np.int8(np.uint8(below) ^ np.uint8(128))
            ranks[low + i] = rank
            ranks[high + i] = rank if x == x else RANKED_RIGHT
