"""Counters of four words: a row adds to the sums of four outputs at once.

A vector add of four words takes no longer than an add of one, and outputs that have the same rows count the
same bins. Words of each output are made on their own, on vectors, and then woven: four of a row side by side.

What a word holds may be full before all rows have passed, and has to be spread before. Of most features no
bin has so many rows before some ten thousand have passed; when that is does not depend on gradients, so it is
found out once. The fullest bin of a feature, of zeros perhaps, is left to overflow: what it holds is what all
rows sum to less what the other bins hold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, njit, uint64

from mcrank.arrays import ByteArray, IntArray
from mcrank.kernels import kernel, step
from mcrank.kernels.memory import load_u64
from mcrank.kernels.vectors import vector_add4

CHUNK = 4096  # rows whose words stay in cache while all features pass over them
TURN = 4  # features in turn: rows of a sparse one hit one counter again and again, and would wait for it
WORDS = 4  # of a counter
# What is to be done with a chunk of rows: add it, spread what there is before, or cut it into pieces.
ADD, SPREAD, CUT = range(3)


class Plan(NamedTuple):
    """When counters are spread.

    Attributes
    ----------
    steps : uint8[turns, chunks]
        By turn of features and chunk of rows: what is to be done.
    fullest : int64[features]
        The bin of every feature that has most rows.
    """

    steps: ByteArray
    fullest: IntArray

    @classmethod
    def of(cls, columns: npt.NDArray[np.uint8], counts: IntArray, most: int) -> Plan:
        """Return the plan for rows, ``counts`` of them in every bin, if those of ``most`` fit a counter."""
        features, rows = columns.shape
        turns, chunks = -(-features // TURN), -(-rows // CHUNK)
        plan = cls(np.zeros((turns, chunks), dtype=np.uint8), counts.argmax(axis=1))
        fullest_but_one = np.partition(counts, -2, axis=1)[:, -2] if features else counts
        if fullest_but_one.max(initial=0) > most:  # else nothing is ever full
            fill_plan(columns, most, plan)
        return plan


@kernel(allocates=True)
def fill_plan(columns, most, plan):  # type: ignore[no-untyped-def]
    """Find out when counters of every turn of features are full, of ``most`` rows of a bin."""
    # IN: columns, most, plan.fullest  OUT: plan.steps
    features, rows = columns.shape
    since = np.zeros((TURN, 256), np.int64)
    now = np.zeros((TURN, 256), np.int64)
    for turn in range(plan.steps.shape[0]):
        first, last = TURN * turn, min(TURN * turn + TURN, features)
        since[:] = 0
        for chunk in range(plan.steps.shape[1]):
            now[:] = 0
            alone, together = int64(0), int64(0)
            for f in range(first, last):
                own, before = now[f - first], since[f - first]
                column = columns[f, CHUNK * chunk : min(CHUNK * chunk + CHUNK, rows)]
                for i in range(uint64(len(column))):
                    own[uint64(column[i])] += 1
                own[plan.fullest[f]] = 0
                for b in range(uint64(256)):
                    alone = max(alone, own[b])
                    together = max(together, own[b] + before[b])
            what = CUT if alone > most else SPREAD if together > most else ADD
            plan.steps[turn, chunk] = what
            for f in range(TURN):
                for b in range(uint64(256)):
                    since[f, b] = 0 if what == CUT else now[f, b] + (since[f, b] if what == ADD else 0)


@njit(inline="always")
def weave(words, n, vectors):  # type: ignore[no-untyped-def]
    """Four words of each row side by side: made one word at a time, as that runs on vectors."""
    a, b, c, d = words[0], words[1], words[2], words[3]
    for i in range(n):
        vectors[4 * i] = a[i]
        vectors[4 * i + 1] = b[i]
        vectors[4 * i + 2] = c[i]
        vectors[4 * i + 3] = d[i]


@step()
def add_words(columns, vectors, sums):  # type: ignore[no-untyped-def]
    """Add vectors of four words to the bins of up to four features."""
    # IN: columns, vectors  OUT: sums
    n = len(columns)
    if n == TURN:
        _add_four(columns, vectors, sums)
    elif n >= 2:
        _add_two(columns, vectors, sums)
    if n % 2 == 1:
        column, to = columns[n - 1], sums[n - 1]
        for i in range(uint64(len(column))):
            vector_add4((to,), (uint64(column[i]) << uint64(2),), vectors, i << uint64(2))


@njit(inline="always")
def _add_four(columns, vectors, sums):  # type: ignore[no-untyped-def]
    a, b, c, d = columns[0], columns[1], columns[2], columns[3]
    to = (sums[0], sums[1], sums[2], sums[3])
    n = uint64(len(a))
    whole = n & ~uint64(7)
    for i in range(uint64(0), whole, uint64(8)):
        # Bins of eight rows at a time: a load each would take as long as the adding.
        w, x, y, z = load_u64(a, i), load_u64(b, i), load_u64(c, i), load_u64(d, i)
        for j in range(uint64(8)):
            vector_add4(
                to, (_place(w, j), _place(x, j), _place(y, j), _place(z, j)), vectors, (i + j) << uint64(2)
            )
    for i in range(whole, n):
        bins = (
            uint64(a[i]) << uint64(2), uint64(b[i]) << uint64(2), uint64(c[i]) << uint64(2),
            uint64(d[i]) << uint64(2),
        )  # fmt: skip
        vector_add4(to, bins, vectors, i << uint64(2))


@njit(inline="always")
def _add_two(columns, vectors, sums):  # type: ignore[no-untyped-def]
    a, b, to = columns[0], columns[1], (sums[0], sums[1])
    n = uint64(len(a))
    whole = n & ~uint64(7)
    for i in range(uint64(0), whole, uint64(8)):
        w, x = load_u64(a, i), load_u64(b, i)
        for j in range(uint64(8)):
            vector_add4(to, (_place(w, j), _place(x, j)), vectors, (i + j) << uint64(2))
    for i in range(whole, n):
        bins = (uint64(a[i]) << uint64(2), uint64(b[i]) << uint64(2))
        vector_add4(to, bins, vectors, i << uint64(2))


@njit(inline="always")
def _place(word, j):  # type: ignore[no-untyped-def]
    """Place of the counter of one of eight bins."""
    return ((word >> (j << uint64(3))) & uint64(255)) << uint64(2)
