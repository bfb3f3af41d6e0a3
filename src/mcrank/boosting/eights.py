"""Eight features counted in one pass over rows: their counters are what the L1 cache holds.

Where many rows are counted the counters of a bin of all eight features lie side by side, in one line of the
cache: a row that has the same bin of several features, as rows full of zeros have, writes to one line for all
of them, which takes less time (docs/engineering/engine.md). Afterwards they are put where those of each
feature lie behind one another. Sums of integers are the same either way.
"""

from __future__ import annotations

from numba import njit, uint64

from mcrank.boosting.gathering import fetch_some
from mcrank.kernels import step
from mcrank.kernels.turned import turn
from mcrank.kernels.vectors import vector_add2

GROUP = 8 * 256  # counters of eight features
_FEWEST = 4  # features of a word that are counted as eight; there is room for what the others would count

_turn_bins = turn(8, 256)


@njit(inline="always")
def is_eight(held):  # type: ignore[no-untyped-def]
    """Whether a word with so many features is counted as eight."""
    return held >= _FEWEST


@njit(inline="always")
def counters_of(features):  # type: ignore[no-untyped-def]
    """Counters of so many features of one lane, with those of a padded last word."""
    last = features % 8
    return (features + (8 - last if is_eight(last) else 0)) * 256


@njit(inline="always")
def _count(word, pack, hist):  # type: ignore[no-untyped-def]
    for j in range(uint64(8)):
        hist[(j << uint64(8)) + ((word >> (j << uint64(3))) & uint64(255))] += pack


@njit(inline="always")
def _count_side_by_side(word, pack, hist):  # type: ignore[no-untyped-def]
    for j in range(uint64(8)):
        hist[(((word >> (j << uint64(3))) & uint64(255)) << uint64(3)) + j] += pack


@step()
def count_eight(words, packs, n, asked, hist):  # type: ignore[no-untyped-def]
    """Count eight features of ``n`` rows of one lane, each with counters of its own."""
    # IN: words, packs, n, asked  OUT: hist
    eights = uint64(n) >> uint64(3)
    for e in range(eights):
        fetch_some(asked, e)
        i = e << uint64(3)
        for k in range(uint64(8)):
            _count(words[i + k], packs[i + k], hist)
    for rest in range(eights << uint64(3), uint64(n)):
        _count(words[rest], packs[rest], hist)


@step()
def count_side_by_side(words, packs, n, asked, hist):  # type: ignore[no-untyped-def]
    """Count eight features of ``n`` rows of one lane, the counters of a bin side by side."""
    # IN: words, packs, n, asked  OUT: hist
    eights = uint64(n) >> uint64(3)
    for e in range(eights):
        fetch_some(asked, e)
        i = e << uint64(3)
        for k in range(uint64(8)):
            _count_side_by_side(words[i + k], packs[i + k], hist)
    for rest in range(eights << uint64(3), uint64(n)):
        _count_side_by_side(words[rest], packs[rest], hist)


@njit(inline="always")
def _count_two_lanes(word, packs, i, hist):  # type: ignore[no-untyped-def]
    for j in range(uint64(8)):
        place = (j << uint64(8)) + ((word >> (j << uint64(3))) & uint64(255))
        vector_add2((hist,), (place << uint64(1),), packs, i << uint64(1))


@step()
def count_two_lanes(words, packs, n, asked, hist):  # type: ignore[no-untyped-def]
    """Count eight features of ``n`` rows of two lanes."""
    # IN: words, packs, n, asked  OUT: hist
    eights = uint64(n) >> uint64(3)
    for e in range(eights):
        fetch_some(asked, e)
        i = e << uint64(3)
        for k in range(uint64(8)):
            _count_two_lanes(words[i + k], packs, i + k, hist)
    for rest in range(eights << uint64(3), uint64(n)):
        _count_two_lanes(words[rest], packs, rest, hist)


@step()
def by_feature(group, room):  # type: ignore[no-untyped-def]
    """Take the counters of eight features, side by side in ``group``, to ``room``, feature after feature."""
    # IN: group  OUT: room
    for b in range(uint64(0), uint64(256), uint64(8)):
        at = b << uint64(3)
        places = (
            at,
            at + uint64(8),
            at + uint64(16),
            at + uint64(24),
            at + uint64(32),
            at + uint64(40),
            at + uint64(48),
            at + uint64(56),
        )
        _turn_bins(group, places, room, b)


@step()
def sort_out(counters, features, room):  # type: ignore[no-untyped-def]
    """Put counters that lie side by side, of so many features, where those of each lie behind one another."""
    # IN: features  OUT: counters, room
    f = 0
    while is_eight(features - f):
        group = counters[f * 256 : f * 256 + GROUP]
        by_feature(group, room)
        for i in range(uint64(GROUP)):
            group[i] = room[i]
        f += 8
