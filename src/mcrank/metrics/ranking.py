"""Ranking: sort the rows of every query by score, and say what happens among equal scores.

Every tie rule but ``expected`` is a stable sort of rows that first stand in some *base order*: file order,
document id, chance, or the gain itself (worst and best).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import uint64

from mcrank.arrays import BoolArray, FloatArray, IntArray, RowArray
from mcrank.kernels import kernel, step
from mcrank.kernels.largest import LOWEST, count_before, ordered_bits, whole_vectors
from mcrank.kernels.memory import aligned
from mcrank.kernels.sort import SortSpace, insert_rows, merge_rows, sort_columns
from mcrank.metrics.layout import Layout, LevelArray

_FEW = 64  # ranks up to which picking them out is quicker than sorting
_SHORT = 255  # rows up to which queries are sorted side by side
_PER_RANK = 8  # rows for each wanted rank up to which that is quicker than picking them out, too
_LANES = 64  # so many at a time
_CROWD = 32  # about so many rows in one bucket: merge sort instead
_BUCKETS = 1 << 23  # of a short query: a bucket and a row's place, one byte, make a positive 32-bit number
_COUNTED = 32  # rows up to which counting who stands above is quicker than inserting them
_FALLEN = 16  # one row in so many below its successor: merge sort instead
FILE_ORDER = np.empty(0, dtype=np.int32)


@step(fastmath={"nnan", "nsz"})
def ends_of(score):  # type: ignore[no-untyped-def]
    """Lowest and highest score of a query."""
    # IN: score
    low, high = np.inf, -np.inf
    for i in range(score.shape[0]):
        high = score[i] if score[i] > high else high
        low = score[i] if score[i] < low else low
    return low, high


@step(fastmath={"nnan", "nsz"})
def spread_rows(score, buckets, place, bucket):  # type: ignore[no-untyped-def]
    """Spread the rows of a query over buckets, evenly from the highest score to the lowest; False where the
    scores lie too near or too far for that.
    """
    # IN: score, buckets (how many)  OUT: place (bucket of each row), bucket (rows in each)
    low, high = ends_of(score)
    # The limits leave room for rounding, and none for a division that overflows.
    if not 1e-250 < high - low < 1e250:
        return False
    scale = (buckets - 1) / (high - low)
    for b in range(buckets):
        bucket[b] = 0
    for i in range(score.shape[0]):
        place[i] = np.uint32(np.int32((high - score[i]) * scale))
    for i in range(score.shape[0]):
        bucket[place[i]] += np.uint32(1)
    return True


# In the kernels below, the views of one query and the unsigned scratch are there for speed: an index that
# may be negative costs a comparison at every access.
@kernel(fastmath={"nnan", "nsz"})
def rank_all(scores, base, starts, ends, space, bucket, order):  # type: ignore[no-untyped-def]
    """Sort the rows of each query by score, equal scores in base order.

    Rows are spread over twice as many buckets as there are rows, evenly between the lowest and the highest
    score; that leaves little for the insertion sort that ends it. Where scores crowd in few buckets, or are
    infinite, the query is merge sorted instead.
    """
    # IN: scores, base (empty: file order), starts, ends
    # OUT: space, bucket (scratch), order
    key, place = space.key_a, space.place
    one = np.uint32(1)
    for q in range(starts.shape[0]):
        s = starts[q]
        n = ends[q] - s
        score = scores[s : s + n]
        ranked = order[s : s + n]
        crowd = np.uint32(_CROWD + 1)
        if spread_rows(score, 2 * n, place, bucket):
            crowd = np.uint32(0)
            total = np.uint32(0)
            for b in range(2 * n):
                count = bucket[b]
                crowd = max(crowd, count)
                bucket[b] = total
                total += count
        if crowd > _CROWD:
            merge_rows(scores, base, s, n, space, order)
            continue
        if base.shape[0] > 0:
            for i in range(n):
                row = base[s + i]
                at = bucket[place[row - s]]
                bucket[place[row - s]] = at + one
                key[at] = scores[row]
                ranked[at] = row
        else:
            for i in range(n):
                at = bucket[place[i]]
                bucket[place[i]] = at + one
                key[at] = score[i]
                ranked[at] = np.int32(s + i)
        insert_rows(key, ranked)


@step(fastmath={"nnan", "nsz"})
def number_rows(score, number):  # type: ignore[no-untyped-def]
    """Number the rows of a query so that a higher score, then an earlier place, is a smaller number."""
    # IN: score  OUT: number (bucket of score, and place in the last byte)
    n = score.shape[0]
    low, high = ends_of(score)
    # The limits leave room for rounding, and none for a division that overflows.
    if high < np.inf and low > -np.inf and 1e-250 < high - low < 1e250:
        scale = (_BUCKETS - 1) / (high - low)
        for i in range(n):
            number[i] = (np.int32((high - score[i]) * scale) << np.int32(8)) | np.int32(i)
    else:
        for i in range(n):
            number[i] = i


@kernel(fastmath={"nnan", "nsz"})
def rank_short(scores, starts, ends, lanes, table, number, space, order):  # type: ignore[no-untyped-def]
    """As `rank_all`, in file order, where no query has more than 256 rows.

    Queries, best of like size, are sorted ``lanes`` at a time, a column each. Where two scores share one of
    the fine buckets the rows are compared again.
    """
    # IN: scores, starts, ends, lanes  OUT: table, number, space (scratch), order
    key = space.key_a
    step = np.uint64(lanes)
    for group in range(0, starts.shape[0], lanes):
        held = min(lanes, starts.shape[0] - group)
        longest = 1
        for lane in range(held):
            longest = max(longest, ends[group + lane] - starts[group + lane])
        for lane in range(held):
            s = starts[group + lane]
            n = ends[group + lane] - s
            number_rows(scores[s : s + n], number)
            at = np.uint64(lane)
            for i in range(n):
                table[at] = number[i]
                at += step
            for _ in range(n, longest):
                table[at] = np.int32(0x7FFFFFFF)
                at += step
        sort_columns(table, np.uint64(longest), step)
        for lane in range(held):
            s = starts[group + lane]
            n = ends[group + lane] - s
            ranked = order[s : s + n]
            at = np.uint64(lane)
            for i in range(n):
                ranked[i] = table[at]
                at += step
            shared = False
            for i in range(n - 1):
                shared |= (ranked[i] ^ ranked[i + 1]) < 256
            for i in range(n):
                ranked[i] = np.int32(s) + (ranked[i] & np.int32(255))
            if shared:
                fallen = 0
                for i in range(n):
                    key[i] = scores[ranked[i]]
                for i in range(n - 1):
                    fallen += key[i] < key[i + 1]
                if fallen * _FALLEN > n:
                    # Nothing stands for file order; of this type, or all would be compiled again.
                    merge_rows(scores, space.row_a[:0], s, n, space, order)
                elif fallen > 0:
                    insert_rows(key, ranked)


@kernel(fastmath={"nnan", "nsz"})
def rank_top(scores, base, starts, ends, depth, space, bucket, order):  # type: ignore[no-untyped-def]
    """Find the first ``depth`` rows of each query, equal scores in base order.

    Counting rows in buckets of score tells which buckets the first ranks come from; only their rows are
    compared with each other. A few are compared with all the others, on vectors; more are inserted.
    """
    # IN: scores, base (empty: file order), starts, ends, depth
    # OUT: space, bucket (scratch), order (rows of the first ranks)
    key, keys, place, found = space.key_a, space.bits, space.place, space.row_a
    one = np.uint32(1)
    for q in range(starts.shape[0]):
        s = starts[q]
        n = ends[q] - s
        score = scores[s : s + n]
        ranked = order[s : s + n]
        last = np.uint32(0)
        for i in range(n):
            place[i] = 0
        if n > 2 * depth and spread_rows(score, n, place, bucket):
            reached = bucket[0]
            while reached < depth:
                last += one
                reached += bucket[last]
        # Written without asking, and kept by moving on: which rows stay cannot be foreseen.
        kept = uint64(0)
        for i in range(n):
            at = base[s + i] - s if base.shape[0] > 0 else np.int32(i)
            found[kept] = at
            kept += uint64(place[at] <= last)
        if kept <= uint64(_COUNTED):
            for k in range(kept):
                keys[k] = ordered_bits(score[found[k]])
            for k in range(kept, whole_vectors(kept)):
                keys[k] = LOWEST
            for k in range(kept):
                above = count_before(keys, k, kept)
                if above < uint64(depth):
                    ranked[above] = np.int32(s) + found[k]
            continue
        held = 0
        for k in range(kept):
            value = score[found[k]]
            if held == depth:
                if value <= key[depth - 1]:
                    continue
                j = depth - 1
            else:
                j = held
                held += 1
            # Written out: a step of its own takes twice as long on short lists.
            while j > 0 and key[j - 1] < value:
                key[j] = key[j - 1]
                ranked[j] = ranked[j - 1]
                j -= 1
            key[j] = value
            ranked[j] = np.int32(s) + found[k]


@kernel()
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


@kernel()
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

    def rows(self, layout: Layout, part: slice) -> RankedRows:
        """Return the rows of a part of the queries as the kernels of measures take them."""
        return RankedRows(self.scores, self.order, layout.starts[part], layout.ends[part], layout.levels)


class RankedRows(NamedTuple):
    """Rows of some queries: ``order[starts[q] + r]`` is the row at rank r (from 0) of query q."""

    scores: FloatArray
    order: RowArray
    starts: IntArray
    ends: IntArray
    levels: LevelArray


def rank(layout: Layout, scores: FloatArray, depth: int, base: RowArray = FILE_ORDER) -> Ranking:
    """Rank rows by score, highest first; equal scores stay in base order.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank import Dataset
    >>> from mcrank.metrics.layout import Layout
    >>> from mcrank.metrics.ranking import rank
    >>> layout = Layout.of(Dataset([[0.0]] * 3, y=[0, 1, 2], qid=[1, 1, 1]))
    >>> rank(layout, np.array([0.5, 0.9, 0.5]), depth=3).order.tolist()
    [1, 0, 2]
    """
    ranking = unranked(layout, scores, depth, base)
    layout.in_parts(lambda part: rank_part(layout, ranking, part, base))
    return ranking


def unranked(layout: Layout, scores: FloatArray, depth: int, base: RowArray = FILE_ORDER) -> Ranking:
    """Return room for a ranking of at least ``depth`` ranks, to be filled by `rank_part`."""
    longest = max(layout.longest, 1)
    side_by_side = longest <= min(_SHORT, _PER_RANK * depth) and len(base) == 0
    few = depth < longest and depth <= _FEW and not side_by_side
    return Ranking(scores, np.empty(layout.n_rows, dtype=np.int32), depth if few else longest)


def rank_part(layout: Layout, ranking: Ranking, part: slice, base: RowArray = FILE_ORDER) -> None:
    """Rank the rows of a part of the queries."""
    starts, ends = layout.starts[part], layout.ends[part]
    scores, order, longest = ranking.scores, ranking.order, max(layout.longest, 1)
    few = ranking.depth < longest
    space = SortSpace.allocate(longest)
    if not few and longest <= _SHORT and len(base) == 0:
        number = np.empty(longest, dtype=np.int32)
        by_size = _by_size(starts, ends)
        bounds = (starts[by_size], ends[by_size])
        table = aligned(longest * _LANES, dtype=np.int32)
        rank_short(scores, *bounds, _LANES, table, number, space, order)
        return
    bucket = np.empty(2 * longest + 1, dtype=np.uint32)
    if few:
        rank_top(scores, base, starts, ends, max(ranking.depth, 1), space, bucket, order)
    else:
        rank_all(scores, base, starts, ends, space, bucket, order)


def _by_size(starts: IntArray, ends: IntArray) -> npt.NDArray[np.intp]:
    """Return queries of at most 255 rows by size: those sorted side by side should have like sizes."""
    return np.argsort((ends - starts).astype(np.uint8), kind="stable")


def ties_of(layout: Layout, ranking: Ranking, depth: int) -> tuple[BoolArray, BoolArray]:
    """Return which queries have equal scores within ``depth`` ranks, and which across that cut."""
    tied = np.empty(layout.n_queries, dtype=np.bool_)
    at_cut = np.empty(layout.n_queries, dtype=np.bool_)

    def find_part(part: slice) -> None:
        bounds = (layout.starts[part], layout.ends[part])
        find_ties(ranking.scores, ranking.order, *bounds, ranking.depth, depth, tied[part], at_cut[part])

    layout.in_parts(find_part)
    return tied, at_cut


def fill_cut_ties(layout: Layout, ranking: Ranking, depth: int, part: slice, out: BoolArray) -> None:
    """Fill ``out`` with which queries of a part have equal scores across the cut at ``depth`` ranks."""
    bounds = (layout.starts[part], layout.ends[part])
    if 0 < depth < ranking.depth:
        find_cut_ties(ranking.scores, ranking.order, *bounds, depth, out[part])
    else:
        tied = np.empty_like(out[part])
        find_ties(ranking.scores, ranking.order, *bounds, ranking.depth, depth, tied, out[part])


def base_order(layout: Layout, rule: str, seed: int, worth: FloatArray) -> RowArray:
    """Return the order in which rows of equal score are to stand, under a tie rule and by their worth."""
    order: IntArray
    if rule == "random":
        chance = np.random.default_rng(seed).permutation(layout.n_rows)
        order = np.lexsort((chance, layout.queries))
    elif rule == "worst":
        order = np.lexsort((worth, layout.queries))
    elif rule == "best":
        order = np.lexsort((-worth, layout.queries))
    elif rule == "id-ascending":
        order = layout.id_order
    else:
        order = np.lexsort((-layout.id_codes, layout.queries))
    return _ranked_first(layout, order).astype(np.int32)


def _ranked_first(layout: Layout, order: IntArray) -> IntArray:
    """Keep rows without a rank behind the ranked rows of their query."""
    if layout.ends is layout.stops:
        return order
    queries = layout.queries[order]
    behind = order >= layout.ends[queries]
    return order[np.lexsort((behind, queries))]
