"""Random ground for trees to grow on, and what the naive twin takes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from mcrank import Dataset
from mcrank.boosting.binning import BinnedDataset, bin_dataset, find_bins
from mcrank.boosting.grow import grow
from mcrank.boosting.packing import Packing
from mcrank.boosting.partition import LeafRows
from mcrank.boosting.plain import plain_bins, plain_tree
from mcrank.boosting.rules import Rules
from mcrank.boosting.tickets import new_board
from mcrank.boosting.workspace import BinnedArrays, Scratch, TreeInput, Workspace
from mcrank.losses.quantize import GRADIENT_BITS
from tests.reference.packing import narrow, rounded

NONE = np.empty(0, dtype=np.int64)


@dataclass
class Plot:
    """Binned rows with gradients, and perhaps a second lane."""

    X: np.ndarray
    binned: BinnedDataset
    arrays: BinnedArrays
    q: np.ndarray
    lane: np.ndarray
    rounded: bool = False  # whether the lane may be, to share a counter

    @property
    def rows(self) -> int:
        return len(self.q)

    def rules(self, num_leaves: int, min_rows: int, derived: bool = False, many: bool = False) -> Rules:
        return Rules(num_leaves, min_rows, self.packing(derived, many))

    def packing(self, derived: bool = False, many: bool = False) -> Packing:
        """Layout of counters, or with ``many`` that of more rows than there are: counts in their own lane."""
        wide = self.binned.bins.wide
        rows = 10**9 if many else self.rows
        given = len(self.lane) > 0
        return Packing.of(rows, given=given, derived=derived, wide=wide, rounded=self.rounded)

    def derived(self) -> tuple[np.ndarray, np.ndarray]:
        """Gradients and curvatures as the Newton gain takes them, by the naive twin."""
        packing = self.packing(True)
        if self.rounded:
            return rounded(self.q, self.lane, packing.drop, packing.lane_drop)
        return narrow(self.q, GRADIENT_BITS, packing.bits)

    def grow(
        self,
        num_leaves: int,
        min_rows: int = 1,
        *,
        derived: bool = False,
        many: bool = False,
        rows: np.ndarray = NONE,
        features: Any = None,
        listed: bool = False,
    ) -> tuple[np.ndarray, Workspace, Rules]:
        """Grow a tree: its nodes, the workspace it was grown in, and the rules."""
        rules = self.rules(num_leaves, min_rows, derived, many)
        ws = Workspace.allocate(self.arrays, self.rows, rules)
        where = LeafRows.allocate(num_leaves, self.rows, listed or self.arrays.wide)
        rounded = len(where.numbers) if rules.packing.lane_drop else 0
        ws = ws._replace(rows=where, rounded=np.empty(rounded, dtype=np.int32))
        n = self.grow_in(ws, rules, self.input(rows, features))
        return ws.nodes[:n], ws, rules

    def grow_in(self, ws: Workspace, rules: Rules, tree: TreeInput) -> int:
        scratch = Scratch.allocate(self.arrays, rules.packing)
        general = grow(self.arrays, rules, tree, ws, scratch, new_board(), 1)
        bins, plain = self.simplest(tree)
        if plain is tree or tree.ready:  # the histogram of a ready root is gone by now
            return general
        nodes = ws.nodes[:general].copy()
        n = grow(bins, rules, plain, ws, scratch, new_board(), 1)
        assert np.array_equal(ws.nodes[:n], nodes)
        return n

    def simplest(self, tree: TreeInput) -> tuple[BinnedArrays, TreeInput]:
        """Bins and a tree as the kernel of plain trees takes them, where it can."""
        bins, plain = plain_bins(self.arrays), plain_tree(tree)
        return (self.arrays, tree) if bins is None or plain is None else (bins, plain)

    def input(
        self, rows: np.ndarray = NONE, features: Any = None, ready: bool = False, threads: int = 1
    ) -> TreeInput:
        return TreeInput.of(self.arrays, self.q, rows, self.lane, self.chosen(features), ready, threads)

    def chosen(self, features: Any = None) -> np.ndarray:
        every = np.arange(self.X.shape[1]) if features is None else np.asarray(features)
        return every.astype(np.int32)


def rows_of(ws: Workspace, at: int) -> np.ndarray:
    """Rows of a leaf."""
    return ws.rows.of(at)


def rows_under(nodes: np.ndarray, ws: Workspace, at: int) -> list[int]:
    """Rows of a node in ascending order, from its leaves: an inner node's own entries are gone."""
    node = nodes[at]
    if node["left"] < 0:
        return rows_of(ws, at).tolist()
    return sorted(rows_under(nodes, ws, node["left"]) + rows_under(nodes, ws, node["right"]))


def plot(X, q, lane=None, max_bins=256, binning="adaptive") -> Plot:
    X = np.ascontiguousarray(X, dtype=np.float32)
    data = Dataset(X, np.zeros(len(X)), np.zeros(len(X)))
    binned = bin_dataset(data, find_bins(data.X, max_bins, binning))
    lane = NONE if lane is None else np.asarray(lane, dtype=np.int64)
    return Plot(data.X, binned, BinnedArrays.of(binned), np.asarray(q, dtype=np.int32), lane)


def random_plot(seed, rows, features, values=6, missing=0.0, lane=False, max_bins=256, grain=None) -> Plot:
    """Features of few values (missing with some probability) and gradients; ``grain`` makes ties likely.

    With an odd seed values are evenly spaced, so that the middle of a gap is often a value itself.
    """
    stream = np.random.default_rng(seed)
    X = stream.integers(0, values, (rows, features)).astype(np.float32)
    if seed % 2 == 0:
        X = X**2 / 3
    X[stream.random(X.shape) < missing] = np.nan
    one = 1 << GRADIENT_BITS
    q = stream.integers(-one, one + 1, rows) if grain is None else stream.integers(-grain, grain + 1, rows)
    weights = stream.integers(0, 1 << 30, rows) * (stream.random(rows) > 0.2) if lane else None
    return plot(X, q, weights, max_bins)


# seed, rows, features, values per feature, share missing: small enough for the naive twin.
CASES = st.tuples(
    st.integers(0, 10**6),
    st.integers(1, 60),
    st.integers(1, 5),
    st.integers(1, 9),
    st.sampled_from([0.0, 0.0, 0.2, 0.9]),
)
