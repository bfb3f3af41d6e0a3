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
_RUN = 8  # rows sorted by insertion before merging starts


@njit(nogil=True, cache=True)
def rank_all(scores, base, starts, ends, key_a, key_b, row_a, row_b, order):  # type: ignore[no-untyped-def]
    """Sort the rows of each query by score: a stable merge sort whose inner step has no branch."""
    # IN: scores, base (empty: file order), starts, ends  OUT: key_*, row_* (scratch), order (row by rank)
    for q in range(starts.shape[0]):
        s = starts[q]
        n = ends[q] - s
        for i in range(n):
            row = base[s + i] if base.shape[0] > 0 else np.int32(s + i)
            key = scores[row]
            j = i
            low = i - i % _RUN
            while j > low and key_a[j - 1] < key:
                key_a[j] = key_a[j - 1]
                row_a[j] = row_a[j - 1]
                j -= 1
            key_a[j] = key
            row_a[j] = row
        from_key, to_key, from_row, to_row = key_a, key_b, row_a, row_b
        width = _RUN
        while width < n:
            for low in range(0, n, 2 * width):
                mid = min(low + width, n)
                high = min(low + 2 * width, n)
                i, j, o = low, mid, low
                while i < mid and j < high:
                    left, right = from_key[i], from_key[j]
                    later = right > left
                    to_key[o] = right if later else left
                    to_row[o] = from_row[j] if later else from_row[i]
                    j += later
                    i += not later
                    o += 1
                while i < mid:
                    to_key[o], to_row[o] = from_key[i], from_row[i]
                    i += 1
                    o += 1
                while j < high:
                    to_key[o], to_row[o] = from_key[j], from_row[j]
                    j += 1
                    o += 1
            from_key, to_key = to_key, from_key
            from_row, to_row = to_row, from_row
            width *= 2
        for i in range(n):
            order[s + i] = from_row[i]


@njit(nogil=True, cache=True)
def rank_top(scores, base, starts, ends, depth, key, order):  # type: ignore[no-untyped-def]
    """Find the first ``depth`` rows of each query in one pass; most rows fail the first comparison."""
    # IN: scores, base, starts, ends, depth  OUT: key (scratch), order (rows of the first ranks)
    for q in range(starts.shape[0]):
        s = starts[q]
        kept = 0
        for i in range(s, ends[q]):
            row = base[i] if base.shape[0] > 0 else np.int32(i)
            score = scores[row]
            if kept == depth:
                if score <= key[depth - 1]:
                    continue
                j = depth - 1
            else:
                j = kept
                kept += 1
            while j > 0 and key[j - 1] < score:
                key[j] = key[j - 1]
                order[s + j] = order[s + j - 1]
                j -= 1
            key[j] = score
            order[s + j] = row


@njit(nogil=True, cache=True)
def find_ties(scores, order, starts, ends, depth, tied, tied_at_cut):  # type: ignore[no-untyped-def]
    """Find queries with equal scores within the first ``depth`` ranks, and across that cut."""
    # IN: scores, order, starts, ends, depth  OUT: tied (either), tied_at_cut
    for q in range(starts.shape[0]):
        s = starts[q]
        n = ends[q] - s
        deep = min(depth, n)
        tied[q] = False
        tied_at_cut[q] = False
        if deep == 0:
            continue
        for r in range(1, deep):
            if scores[order[s + r]] == scores[order[s + r - 1]]:
                tied[q] = True
        if deep < n:
            last = scores[order[s + deep - 1]]
            reaching = 0
            for i in range(s, ends[q]):
                reaching += scores[i] >= last
            if reaching > deep:
                tied[q] = True
                tied_at_cut[q] = True


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
    if depth < longest and depth <= 64:
        key = np.empty(max(depth, 1), dtype=np.float64)
        rank_top(scores, base, layout.starts, layout.ends, max(depth, 1), key, order)
        return Ranking(scores, order, depth)
    keys = np.empty((2, longest), dtype=np.float64)
    rows = np.empty((2, longest), dtype=np.int32)
    rank_all(scores, base, layout.starts, layout.ends, keys[0], keys[1], rows[0], rows[1], order)
    return Ranking(scores, order, longest)


def ties_of(layout: Layout, ranking: Ranking, depth: int) -> tuple[BoolArray, BoolArray]:
    """Return which queries have equal scores within ``depth`` ranks, and which across that cut."""
    tied = np.empty(layout.n_queries, dtype=np.bool_)
    at_cut = np.empty(layout.n_queries, dtype=np.bool_)
    find_ties(ranking.scores, ranking.order, layout.starts, layout.ends, depth, tied, at_cut)
    return tied, at_cut


def base_order(layout: Layout, rule: str, seed: int, gain: FloatArray) -> RowArray:
    """Return the order in which rows of equal score are to stand, under a tie rule."""
    order: npt.NDArray[np.int64]
    if rule == "random":
        chance = np.random.default_rng(seed).permutation(layout.n_rows)
        order = np.lexsort((chance, layout.queries))
    elif rule == "worst":
        order = np.lexsort((gain, layout.queries))
    elif rule == "best":
        order = np.lexsort((-gain, layout.queries))
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
