"""Ranking: sort the rows of every query by score, and say what happens among equal scores.

Every tie rule but ``expected`` is a stable sort of rows that first stand in some *base order*: file order,
document id, chance, or the gain itself (worst and best).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from mcrank.metrics.layout import BoolArray, FloatArray, Layout, RowArray

FILE_ORDER = np.empty(0, dtype=np.int32)
_CROWD = 32  # about so many rows in one bucket: merge sort instead
_SPREAD = 6  # buckets per row of a short query
_FEW = 64  # ranks up to which picking them out is quicker than sorting


@njit(nogil=True, cache=True)
def merge_rows(scores, base, s, n, key_a, key_b, row_a, row_b, order):  # type: ignore[no-untyped-def]
    """Sort ``n`` rows of one query by score: a stable merge sort whose inner step has no branch."""
    # IN: scores, base (empty: file order), s, n  OUT: key_*, row_* (scratch), order[s:s + n]
    for i in range(n):
        row_a[i] = base[s + i] if base.shape[0] > 0 else s + i
        key_a[i] = scores[row_a[i]]
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            mid = min(low + width, n)
            high = min(low + 2 * width, n)
            i, j = low, mid
            for o in range(low, high):
                # Beyond an end the other side is taken; in between a tie keeps the left row first.
                left = key_a[min(i, n - 1)]
                right = key_a[min(j, n - 1)]
                later = j < high and (i >= mid or right > left)
                key_b[o] = right if later else left
                row_b[o] = row_a[min(j, n - 1)] if later else row_a[min(i, n - 1)]
                j += later
                i += not later
        key_a, key_b = key_b, key_a
        row_a, row_b = row_b, row_a
        width *= 2
    for i in range(n):
        order[s + i] = row_a[i]


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})
def insert_rows(key, ranked):  # type: ignore[no-untyped-def]
    """Sort the rows of one query by insertion, which is quick where few are out of place; stable."""
    # IN and OUT: key (from its start), ranked
    last = key[0]
    for i in range(1, ranked.shape[0]):
        value = key[i]
        if last < value:
            row = ranked[i]
            j = i
            while j > 0 and key[j - 1] < value:
                key[j] = key[j - 1]
                ranked[j] = ranked[j - 1]
                j -= 1
            key[j] = value
            ranked[j] = row
        else:
            last = value


# In the kernels below, the views of one query and the unsigned scratch are there for speed: an index that
# may be negative costs a comparison at every access.
@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})
def rank_all(scores, base, starts, ends, key_a, key_b, row_a, row_b, place, bucket, order):  # type: ignore[no-untyped-def]
    """Sort the rows of each query by score, equal scores in base order.

    Rows are spread over twice as many buckets as there are rows, evenly between the lowest and the highest
    score; that leaves little for the insertion sort that ends it. Where scores crowd in few buckets, or are
    infinite, the query is merge sorted instead.
    """
    # IN: scores, base (empty: file order), starts, ends
    # OUT: key_*, row_*, place, bucket (scratch), order
    one = np.uint32(1)
    for q in range(starts.shape[0]):
        s = starts[q]
        n = ends[q] - s
        score = scores[s : s + n]
        ranked = order[s : s + n]
        high = -np.inf
        low = np.inf
        for i in range(n):
            high = score[i] if score[i] > high else high
            low = score[i] if score[i] < low else low
        # The limits leave room for rounding, and none for a division that overflows.
        scale = (2 * n - 1) / (high - low) if 1e-250 < high - low < 1e250 else 0.0
        crowd = np.uint32(_CROWD + 1)
        if scale > 0.0:
            crowd = np.uint32(0)
            for b in range(2 * n):
                bucket[b] = 0
            for i in range(n):
                place[i] = np.uint32(np.int32((high - score[i]) * scale))
            for i in range(n):
                bucket[place[i]] += one
            total = np.uint32(0)
            for b in range(2 * n):
                count = bucket[b]
                crowd = max(crowd, count)
                bucket[b] = total
                total += count
        if crowd > _CROWD:
            merge_rows(scores, base, s, n, key_a, key_b, row_a, row_b, order)
            continue
        if base.shape[0] > 0:
            for i in range(n):
                row = base[s + i]
                at = bucket[place[row - s]]
                bucket[place[row - s]] = at + one
                key_a[at] = scores[row]
                ranked[at] = row
        else:
            for i in range(n):
                at = bucket[place[i]]
                bucket[place[i]] = at + one
                key_a[at] = score[i]
                ranked[at] = np.int32(s + i)
        insert_rows(key_a, ranked)


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})
def rank_short(scores, starts, ends, key_a, key_b, row_a, row_b, place, bucket, eight, order):  # type: ignore[no-untyped-def]
    """As `rank_all`, in file order, where no query has more than 255 rows.

    A bucket is a byte, and a product with 0x0101010101010101 is the running sum of eight: more buckets can be
    had for less, and fewer rows share one.
    """
    # IN: scores, starts, ends
    # OUT: key_*, row_*, place, bucket, eight (scratch; eight is bucket seen as little-endian words), order
    one = np.uint8(1)
    ones = np.uint64(0x0101010101010101)
    for q in range(starts.shape[0]):
        s = starts[q]
        n = ends[q] - s
        score = scores[s : s + n]
        ranked = order[s : s + n]
        high = -np.inf
        low = np.inf
        for i in range(n):
            high = score[i] if score[i] > high else high
            low = score[i] if score[i] < low else low
        scale = (_SPREAD * n - 1) / (high - low) if 1e-250 < high - low < 1e250 else 0.0
        crowd = ones * np.uint64(_CROWD)
        if scale > 0.0:
            crowd = np.uint64(0)
            words = (_SPREAD * n + 7) // 8
            for w in range(words):
                eight[w] = 0
            for i in range(n):
                place[i] = np.uint32(np.int32((high - score[i]) * scale))
            for i in range(n):
                bucket[place[i]] += one
            total = np.uint64(0)
            for w in range(words):
                count = eight[w]
                crowd |= count
                running = count * ones
                eight[w] = (running << np.uint64(8)) + total * ones
                total += running >> np.uint64(56)
        if crowd & (ones * np.uint64(256 - _CROWD)):  # a bucket holds _CROWD rows (a power of 2) or more
            merge_rows(scores, FILE_ORDER, s, n, key_a, key_b, row_a, row_b, order)
            continue
        for i in range(n):
            at = bucket[place[i]]
            bucket[place[i]] = at + one
            key_a[at] = score[i]
            ranked[at] = np.int32(s + i)
        insert_rows(key_a, ranked)


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})
def rank_top(scores, base, starts, ends, depth, key, place, bucket, order):  # type: ignore[no-untyped-def]
    """Find the first ``depth`` rows of each query, equal scores in base order.

    Counting rows in buckets of score tells which buckets the first ranks come from; only their rows are
    compared with each other.
    """
    # IN: scores, base (empty: file order), starts, ends, depth
    # OUT: key[depth], place, bucket (scratch), order (rows of the first ranks)
    one = np.uint32(1)
    for q in range(starts.shape[0]):
        s = starts[q]
        n = ends[q] - s
        score = scores[s : s + n]
        ranked = order[s : s + n]
        last = np.uint32(0)
        for i in range(n):
            place[i] = 0
        if n > 2 * depth:
            high = -np.inf
            low = np.inf
            for i in range(n):
                high = score[i] if score[i] > high else high
                low = score[i] if score[i] < low else low
            if 1e-250 < high - low < 1e250:
                scale = (n - 1) / (high - low)
                for b in range(n + 1):
                    bucket[b] = 0
                for i in range(n):
                    place[i] = np.uint32(np.int32((high - score[i]) * scale))
                for i in range(n):
                    bucket[place[i]] += one
                reached = bucket[0]
                while reached < depth:
                    last += one
                    reached += bucket[last]
        kept = 0
        for i in range(n):
            at = base[s + i] - s if base.shape[0] > 0 else i
            if place[at] > last:
                continue
            value = score[at]
            if kept == depth:
                if value <= key[depth - 1]:
                    continue
                j = depth - 1
            else:
                j = kept
                kept += 1
            while j > 0 and key[j - 1] < value:
                key[j] = key[j - 1]
                ranked[j] = ranked[j - 1]
                j -= 1
            key[j] = value
            ranked[j] = np.int32(s + at)


@njit(nogil=True, cache=True)
def find_ties(scores, order, starts, ends, ranked, depth, tied, tied_at_cut):  # type: ignore[no-untyped-def]
    """Find queries with equal scores within the first ``depth`` ranks, and across that cut."""
    # IN: scores, order, starts, ends, ranked (ranks that order holds), depth  OUT: tied (either), tied_at_cut
    for q in range(starts.shape[0]):
        s = starts[q]
        n = ends[q] - s
        deep = min(depth, n)
        tied[q] = False
        tied_at_cut[q] = False
        if deep == 0:
            continue
        last = scores[order[s]]
        for r in range(1, deep):
            above = last
            last = scores[order[s + r]]
            if last == above:
                tied[q] = True
        if deep < n:
            if ranked > deep:
                tied_at_cut[q] = scores[order[s + deep]] == last
            else:
                reaching = 0
                for i in range(s, ends[q]):
                    reaching += scores[i] >= last
                tied_at_cut[q] = reaching > deep
            tied[q] |= tied_at_cut[q]


@njit(nogil=True, cache=True)
def find_cut_ties(scores, order, starts, ends, depth, out):  # type: ignore[no-untyped-def]
    """As `find_ties`, only across the cut, where the order goes deeper than that."""
    # IN: scores, order (more than depth ranks), starts, ends, depth (above 0)  OUT: out
    for q in range(starts.shape[0]):
        cut = starts[q] + depth
        out[q] = cut < ends[q] and scores[order[cut]] == scores[order[cut - 1]]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Rows of every query in ranked order, down to ``depth`` ranks."""

    scores: FloatArray
    order: RowArray
    depth: int


def rank(layout: Layout, scores: FloatArray, depth: int, base: RowArray = FILE_ORDER) -> Ranking:
    """Rank rows by score, highest first; equal scores stay in base order.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank import Dataset
    >>> from mcrank.metrics.layout import Layout
    >>> from mcrank.metrics.ties import rank
    >>> layout = Layout.of(Dataset([[0.0]] * 3, y=[0, 1, 2], qid=[1, 1, 1]))
    >>> rank(layout, np.array([0.5, 0.9, 0.5]), depth=3).order.tolist()
    [1, 0, 2]
    """
    order = np.empty(layout.n_rows, dtype=np.int32)
    longest = max(layout.longest, 1)
    few = depth < longest and depth <= _FEW

    def rank_part(part: slice) -> None:
        starts, ends = layout.starts[part], layout.ends[part]
        keys = [np.empty(longest, dtype=np.float64) for _ in range(2)]
        rows = [np.empty(longest, dtype=np.int32) for _ in range(2)]
        place = np.empty(longest, dtype=np.uint32)
        bucket = np.empty(2 * longest + 1, dtype=np.uint32)
        if few:
            rank_top(scores, base, starts, ends, max(depth, 1), keys[0], place, bucket, order)
        else:
            scratch = (keys[0], keys[1], rows[0], rows[1], place)
            if longest <= 255 and len(base) == 0:
                eight = np.empty((_SPREAD * longest + 7) // 8, dtype="<u8")
                rank_short(scores, starts, ends, *scratch, eight.view(np.uint8), eight, order)
            else:
                rank_all(scores, base, starts, ends, *scratch, bucket, order)

    layout.in_parts(rank_part)
    return Ranking(scores, order, depth if few else longest)


def ties_of(layout: Layout, ranking: Ranking, depth: int) -> tuple[BoolArray, BoolArray]:
    """Return which queries have equal scores within ``depth`` ranks, and which across that cut."""
    tied = np.empty(layout.n_queries, dtype=np.bool_)
    at_cut = np.empty(layout.n_queries, dtype=np.bool_)

    def find_part(part: slice) -> None:
        bounds = (layout.starts[part], layout.ends[part])
        find_ties(ranking.scores, ranking.order, *bounds, ranking.depth, depth, tied[part], at_cut[part])

    layout.in_parts(find_part)
    return tied, at_cut


def tied_at_cut(layout: Layout, ranking: Ranking, depth: int) -> BoolArray:
    """Return which queries have equal scores across the cut at ``depth`` ranks."""
    if not 0 < depth < ranking.depth:
        return ties_of(layout, ranking, depth)[1]
    out = np.empty(layout.n_queries, dtype=np.bool_)
    bounds = (layout.starts, layout.ends)
    find_cut_ties(ranking.scores, ranking.order, *bounds, depth, out)
    return out


def base_order(layout: Layout, rule: str, seed: int, worth: FloatArray) -> RowArray:
    """Return the order in which rows of equal score are to stand, under a tie rule."""
    order: npt.NDArray[np.int64]
    if rule == "random":
        chance = np.random.default_rng(seed).permutation(layout.n_rows)
        order = np.lexsort((chance, layout.queries))
    elif rule == "worst":
        order = np.lexsort((worth[layout.levels], layout.queries))
    elif rule == "best":
        order = np.lexsort((-worth[layout.levels], layout.queries))
    elif rule == "id-ascending":
        order = layout.id_order
    else:
        order = np.lexsort((-layout.id_codes, layout.queries))
    return _ranked_first(layout, order).astype(np.int32)


def _ranked_first(layout: Layout, order: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Keep rows without a rank behind the ranked rows of their query."""
    if layout.ends is layout.stops:
        return order
    queries = layout.queries[order]
    behind = order >= layout.ends[queries]
    return order[np.lexsort((behind, queries))]
