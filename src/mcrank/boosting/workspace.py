"""What a tree is grown on, by which rules, and in which memory: the arrays that kernels take together."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FloatArray, IntArray
from mcrank.boosting.binning import LINE, BinnedDataset
from mcrank.boosting.drafts import Drafts
from mcrank.boosting.eights import GROUP
from mcrank.boosting.gathering import GATHERED, WORDS
from mcrank.boosting.histogram import LINES
from mcrank.boosting.limits import NO_LIMITS, Limits
from mcrank.boosting.nodes import NODE
from mcrank.boosting.packing import Packing
from mcrank.boosting.partition import NUMBERED_ROWS, LeafRows
from mcrank.boosting.rules import Rules
from mcrank.boosting.wide import WORD
from mcrank.kernels.memory import aligned

# Items of a lot that each thread may expect: who is done first then waits for a small part of the whole.
_ITEMS_PER_THREAD = 8
_PARTS_PER_THREAD = 4


class BinnedArrays(NamedTuple):
    """Binned rows and their bins, as the kernels take them."""

    columns: npt.NDArray[np.uint8]
    wide_columns: npt.NDArray[np.uint16]
    lines: npt.NDArray[np.uint64]
    bin_start: IntArray
    n_bins: IntArray
    missing: npt.NDArray[np.uint8]
    lowest: npt.NDArray[np.float32]
    highest: npt.NDArray[np.float32]
    value_start: IntArray
    categorical: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, binned: BinnedDataset) -> BinnedArrays:
        """Return the arrays of a binned dataset."""
        bins = binned.bins
        counts = bins.counts
        # 8-bit features get 256 counters each, so that a kernel knows their places at compile time.
        width = -(-counts // WORD) * WORD if bins.wide else np.full(bins.n_features, 256)
        return cls(
            binned.columns,
            binned.wide_columns,
            binned.lines,
            np.r_[0, np.cumsum(width)].astype(np.int64),
            counts.astype(np.int64),
            bins.missing,
            bins.lowest,
            bins.highest,
            bins.offsets[:-1] + np.arange(bins.n_features),
            bins.categorical,
        )

    @property
    def wide(self) -> bool:
        """Whether bins have 16 bits."""
        return len(self.wide_columns) > 0

    @property
    def counters(self) -> int:
        """Bins of a histogram, with room for the padding of a last word."""
        return int(self.bin_start[-1]) + (0 if self.wide else 4 * 256)

    @property
    def most_bins(self) -> int:
        """Bins of the feature that has most."""
        return int(self.n_bins.max())


class TreeInput(NamedTuple):
    """What one tree learns from.

    Attributes
    ----------
    gradients : int32[rows of the data]
        Rounded gradients q of this output.
    rows : int64[]
        Rows to grow on, ascending; empty for all.
    weights : int64[]
        Second lane by row; empty when there is none or it is derived from q.
    features : int32[]
        Features that may split, ascending.
    limits : Limits
        Of its splits.
    ready : int
        How many of the workspace's first histograms are there before the tree grows: the root's, and that of
        its smaller child; then ``rows`` must be empty.
    parts : int64[parts, 4]
        The features in parts: low, high, first, last. Of features ``low`` up to ``high`` those of
        ``features[first:last]`` may split.
    """

    gradients: npt.NDArray[np.int32]
    rows: IntArray
    weights: IntArray
    features: npt.NDArray[np.int32]
    limits: Limits
    ready: int
    parts: IntArray

    @classmethod
    def of(
        cls,
        binned: BinnedArrays,
        gradients: npt.NDArray[np.int32],
        rows: IntArray,
        weights: IntArray,
        features: npt.NDArray[np.int32],
        ready: int,
        threads: int = 1,
        limits: Limits = NO_LIMITS,
    ) -> TreeInput:
        """Return the input of a tree, the features in parts for this many threads."""
        parts = _parts(_cuts(len(binned.n_bins), binned.wide, threads), features)
        return cls(gradients, rows, weights, features, limits, int(ready), parts)


@lru_cache(
    maxsize=64
)  # every tree of a training asks for the same: on small data this was a tenth of the time
def _cuts(n: int, wide: bool, threads: int) -> bytes:
    """Where ``n`` features are cut into parts (int64)."""
    # Wide ones singly: a feature is counted, subtracted and searched while it is in the caches. Of others
    # each thread may expect some, so that who is done first waits for a small part of the whole.
    size = 1 if wide else max(8, min(LINE, n // (_PARTS_PER_THREAD * threads) // 8 * 8))
    return bytes(np.r_[np.arange(0, n, size), n].tobytes())


def _parts(cuts: bytes, features: npt.NDArray[np.int32]) -> IntArray:
    return _parts_of(cuts, features.tobytes())


@lru_cache(maxsize=64)
def _parts_of(cuts: bytes, features: bytes) -> IntArray:
    at = np.frombuffer(cuts, dtype=np.int64)
    first = np.searchsorted(np.frombuffer(features, dtype=np.int32), (at[:-1], at[1:]))
    return np.column_stack((at[:-1], at[1:], *first))


class Scratch(NamedTuple):
    """Memory one thread needs for a node: prefix sums of a feature, gains of cuts, their bins where some are
    left out, counters of a chunk (open: how many rows are in them, whether they are added to others
    afterwards, and whether counters of a bin lie side by side; turned: room to sort out those of eight
    features), bins in an order (and room to sort them); of the rows under way entries, what they add to
    counters, and words of their bins; and which bins of a split go left.
    """

    sums: IntArray
    gains: FloatArray
    bins: IntArray
    chunk: IntArray
    open: IntArray
    turned: IntArray
    order: IntArray
    entries: IntArray
    packs: IntArray
    words: npt.NDArray[np.uint64]
    table: npt.NDArray[np.uint8]

    @classmethod
    def allocate(cls, binned: BinnedArrays, packing: Packing) -> Scratch:
        """Return memory for nodes on these rows."""
        lanes, rows = packing.pack_lanes, 0 if binned.wide else GATHERED
        longest = -(-binned.most_bins // 8) * 8
        padded = -(-len(binned.n_bins) // 8) * 8
        return cls(
            aligned(3, longest),
            np.empty(longest),
            np.empty(longest if binned.wide else 0, dtype=np.int64),
            aligned(min(LINES * LINE, padded) * 256 * lanes if packing.chunk_bits else 0),
            np.zeros(3, dtype=np.int64),
            aligned(GROUP),
            aligned(2, longest),
            aligned(2, rows),
            aligned(rows * lanes),
            aligned(WORDS * rows, dtype=np.uint64),
            np.zeros(256, dtype=np.uint8),
        )


class Workspace(NamedTuple):
    """Memory one growing tree needs, whoever grows it.

    Attributes
    ----------
    nodes : NODE[]
        Records of the nodes.
    rows : LeafRows
        Where the rows of each node are.
    hists : int64[slots, counters]
        Histograms.
    packs : int64[]
        Of rows in bins of 16 bits, what those of the node under way add to counters.
    rounded : int32[rows]
        What entries of the rows hold, where that is not the gradients.
    left_table : uint8[bins]
        Of the split under way, which bins go left.
    chunk_places : int64[chunks, 3]
        Of a partition under way, by chunk of rows: where its left rows go, its right ones, and how many left.
    partial_hists : int64[threads - 1, counters]
        What each helper has counted of a node whose rows are cut into chunks.
    started : int64[threads]
        Whether a thread has counted any.
    found : NODE[parts, 2]
        Best splits of each part of the features, for two siblings.
    drafts : Drafts
        Of leaves divided before their turn.
    """

    nodes: npt.NDArray[Any]
    rows: LeafRows
    hists: IntArray
    packs: IntArray
    rounded: npt.NDArray[np.int32]
    left_table: npt.NDArray[np.uint8]
    chunk_places: IntArray
    partial_hists: IntArray
    started: IntArray
    found: npt.NDArray[Any]
    drafts: Drafts

    @classmethod
    def allocate(cls, binned: BinnedArrays, rows: int, rules: Rules, threads: int = 1) -> Workspace:
        """Return memory for trees on ``rows`` rows that so many threads may share."""
        packing = rules.packing
        counters = binned.counters * packing.lanes
        bits = binned.counters // WORD if binned.wide else 0
        parts = len(_cuts(len(binned.n_bins), binned.wide, threads)) // 8 - 1
        items = _ITEMS_PER_THREAD * threads if threads > 1 else 1
        drafts = Drafts.allocate(rules.num_leaves, 1 if binned.wide else threads)
        where = LeafRows.allocate(rules.num_leaves, rows, binned.wide or rows < NUMBERED_ROWS)
        return cls(
            np.zeros(2 * rules.num_leaves - 1, dtype=NODE),
            where,
            aligned(max(1, rules.num_leaves - 1) + drafts.slots, counters + bits),
            np.empty(packing.pack_lanes * rows if binned.wide else 0, dtype=np.int64),
            np.empty(len(where.numbers) if packing.lane_drop else 0, dtype=np.int32),
            np.zeros(max(256, binned.most_bins), dtype=np.uint8),
            np.zeros((items, 3), dtype=np.int64),
            aligned(0 if binned.wide else threads - 1, counters),
            np.zeros(threads, dtype=np.int64),
            aligned(parts * 2 * NODE.itemsize // 8).view(NODE).reshape(parts, 2),
            drafts,
        )
