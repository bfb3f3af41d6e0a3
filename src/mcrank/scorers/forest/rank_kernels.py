"""Ranking: each value of a block of rows becomes one byte, how many thresholds of its table lie below it.

A search for each value would be most of the time of scoring. Columns that lie beside each other are turned
first, so that values of one column are loaded many at a time. Then, by how many thresholds there are:

* Few are searched by picking them from registers; how many those are is up to the processor
  (`mcrank.kernels.search`).
* Of more, the range is cut into `BUCKETS` of equal width, on the values or, where they crowd near zero, on
  their bits: a value's bucket is one subtraction and one multiplication, and says how many thresholds are
  below for sure; those in the same bucket (`Tables.steps` at most, mostly one or two) are compared. Rounding
  does no harm: it never puts the larger of two numbers into the lower bucket.
* A table whose thresholds crowd anyhow is searched: of 16 runs of 16 thresholds one, and there the place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from mcrank.arrays import Array
from mcrank.kernels import step
from mcrank.kernels.search import TURNED, search_rows, turn_rows
from mcrank.kernels.vectors import count_below, rank_lanes

LANES = 128  # rows of a block: two AVX-512 registers of bytes, or four of AVX2
TABLE = 256  # places for the thresholds of one table: 16 runs of 16, the last place always +inf
RUN = 16
BUCKETS = 512
MOST_STEPS = 10  # beyond, searching is as quick
RANKED = 16  # rows at a time
TURN_FROM = 3  # columns within `TURNED` that make turning them all cheaper than to copy each
# Ranks are kept minus 128, because the comparison of signed bytes is the one processors have.
RANKED_LEFT, RANKED_RIGHT = np.int8(-128), np.int8(127)

_count_below = count_below(RUN)
_rank_lanes = rank_lanes(RANKED, BUCKETS)
_turn_rows = turn_rows(LANES)
_search, _search_block = search_rows(RANKED), search_rows(LANES)


class Tables(NamedTuple):
    """The thresholds rows are ranked by.

    Per table its feature, the places of its two columns among the ranks (``low``: NaN goes left, ``high``:
    NaN goes right), how values become buckets (``by_bits``, ``line``: origin and scale), the thresholds to be
    compared then (0: they are searched instead), the last threshold of each run, the thresholds, and how many
    of them are below each bucket; or, where there are few enough, how they are searched (``part``, else 0)
    and the thresholds in the order for that. Per piece, up to `TURNED` columns beside each other, the
    first one, whether all are turned, and the first table (one more than there are pieces). ``nobody`` is the
    place of a column that no node reads. Then for each set of categories the feature, the number of the set,
    the side of NaN, and the place of its column.
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
    part: Array
    searched: Array
    piece_feature: Array
    piece_turned: Array
    piece_table: Array
    nobody: Any
    set_feature: Array
    set_number: Array
    set_missing: Array
    set_column: Array


@njit(inline="always")
def has_infinite(X: Array, start: int, end: int) -> Any:
    """Whether some of the numbers from ``start`` to ``end`` are infinite.

    Asked of a block just before it is ranked, this saves more time than it takes: it reads in the order of
    memory, which processors foresee, and ranking, which does not, then finds all numbers in the cache.
    """
    found = False
    for i in range(np.uint64(start), np.uint64(end)):
        found |= abs(X[i]) == np.float32(np.inf)
    return found


@step()
def rank_rows(
    X: Array, start: int, rows: int, places: Array, tables: Tables, values: Array, ranks: Array
) -> None:
    """Rank the values of a block of rows, column by column.

    IN: ``X`` flat; where its first row begins there, and each row from there, the last of them again and
    again where there are fewer than the block has lanes; tables. OUT: ``values`` of some columns, ``ranks``,
    int8.
    """
    # All in one function: to hand on so many arrays for every column would take as long as to rank it.
    feature, part, steps_of, by_bits = tables.feature, tables.part, tables.steps, tables.by_bits
    runs, thresholds, searched, line_of = tables.runs, tables.thresholds, tables.searched, tables.line
    low_of, high_of, first_of, nobody = tables.low, tables.high, tables.first, tables.nobody
    piece_feature, piece_turned, piece_table = tables.piece_feature, tables.piece_turned, tables.piece_table
    ranked = np.uint64((rows + RANKED - 1) // RANKED * RANKED)
    run = np.uint64(4)  # log2 of RUN
    for piece in range(np.uint64(piece_feature.shape[0])):
        column = np.uint64(start) + piece_feature[piece]
        turned = piece_turned[piece]
        if turned:
            for i in range(np.uint64(0), ranked, np.uint64(TURNED)):
                _turn_rows(X, column, places, i, values)
        for table in range(piece_table[piece], piece_table[piece + np.uint64(1)]):
            offset = np.uint64(feature[table]) - piece_feature[piece]
            at = offset * np.uint64(LANES)
            if not turned:
                for i in range(ranked):
                    values[at + i] = X[column + offset + np.uint64(places[i])]
            low, high, size, steps = low_of[table], high_of[table], part[table], steps_of[table]
            first = table << np.uint64(8)
            if size > np.uint64(0):
                given = (at, first, size, low, high, nobody)
                if ranked > np.uint64(LANES // 2):
                    _search_block(values, searched, ranks, (np.uint64(0), ranked, *given))
                else:
                    _search(values, searched, ranks, (np.uint64(0), ranked, *given))
            elif steps > np.uint64(0):
                line = (line_of[table, 0], line_of[table, 1])
                for i in range(np.uint64(0), ranked, np.uint64(RANKED)):
                    numbers = (i, at, by_bits[table], steps, table * np.uint64(BUCKETS), first, low, high)
                    _rank_lanes(values, numbers, line, first_of, thresholds, ranks)
            else:
                for i in range(ranked):
                    x = values[at + i]
                    skipped = _count_below(runs, table << run, x) << run
                    below = skipped + _count_below(thresholds, first + skipped, x)
                    rank = np.int8(np.uint8(below) ^ np.uint8(128))
                    ranks[low + i] = rank
                    ranks[high + i] = rank if x == x else RANKED_RIGHT
