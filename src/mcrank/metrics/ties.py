"""Ranking: sort the rows of every query by score, and say what happens among equal scores.

Every tie rule but ``expected`` is a stable sort of rows that first stand in some *base order*: file order,
document id, chance, or the gain itself (worst and best).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mcrank.kernels import kernel
from mcrank.metrics.layout import BoolArray, FloatArray, IntArray, Layout, RowArray
from mcrank.metrics.sorting import FILE_ORDER, rank_all, rank_short, rank_top

_FEW = 64  # ranks up to which picking them out is quicker than sorting
_SHORT = 255  # rows up to which queries are sorted side by side
_LANES = 64  # so many at a time


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
    ranking = unranked(layout, scores, depth)
    layout.in_parts(lambda part: rank_part(layout, ranking, part, base))
    return ranking


def unranked(layout: Layout, scores: FloatArray, depth: int) -> Ranking:
    """Return room for a ranking of at least ``depth`` ranks, to be filled by `rank_part`."""
    longest = max(layout.longest, 1)
    few = depth < longest and depth <= _FEW
    return Ranking(scores, np.empty(layout.n_rows, dtype=np.int32), depth if few else longest)


def rank_part(layout: Layout, ranking: Ranking, part: slice, base: RowArray = FILE_ORDER) -> None:
    """Rank the rows of a part of the queries."""
    starts, ends = layout.starts[part], layout.ends[part]
    scores, order, longest = ranking.scores, ranking.order, max(layout.longest, 1)
    few = ranking.depth < longest
    keys = (np.empty(longest, dtype=np.float64), np.empty(longest, dtype=np.float64))
    rows = (np.empty(longest, dtype=np.int32), np.empty(longest, dtype=np.int32))
    if not few and longest <= _SHORT and len(base) == 0:
        number = np.empty(longest, dtype=np.int32)
        by_size = _by_size(starts, ends)
        bounds = (starts[by_size], ends[by_size])
        rank_short(scores, *bounds, _LANES, _table(longest), number, *keys, *rows, order)
        return
    place = np.empty(longest, dtype=np.uint32)
    bucket = np.empty(2 * longest + 1, dtype=np.uint32)
    if few:
        rank_top(scores, base, starts, ends, max(ranking.depth, 1), keys[0], place, bucket, order)
    else:
        rank_all(scores, base, starts, ends, *keys, *rows, place, bucket, order)


def _by_size(starts: IntArray, ends: IntArray) -> npt.NDArray[np.intp]:
    """Return queries of at most 255 rows by size: those sorted side by side should have like sizes."""
    return np.argsort((ends - starts).astype(np.uint8), kind="stable")


def _table(longest: int) -> RowArray:
    """Return room for the numbers of queries sorted side by side, where vectors do not cross cache lines."""
    line = 64
    room = np.empty(longest * _LANES + line // 4, dtype=np.int32)
    first = -room.ctypes.data % line // 4
    return room[first : first + longest * _LANES]


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
