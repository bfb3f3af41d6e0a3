"""Trees for consumers that know thresholds and no sets of categories: the same trees on codes.

A category's code is its place among the names of its feature. A set of codes is a few runs of neighbours, and
a split on it becomes a search among their ends; what hangs below a side is there once for each of its runs.
Every row ends in a leaf of the same value, so raw scores stay the same to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcrank.export.trees import Tree, trees_of
from mcrank.scorers.forest.forest import Forest, ForestBuilder
from mcrank.scorers.forest.sets import set_codes

MOST_NODES = 2_000_000
_HIGHEST = float(np.finfo(np.float32).max)


class _Runs(NamedTuple):
    """Thresholds between runs of codes, rising, and whether each run goes left; they take turns."""

    cuts: list[float]
    left: list[bool]


def on_codes(forest: Forest, negative: bool = False) -> Forest | None:
    """Return a forest without sets that scores rows of codes the same; None where it would be too large.

    Whoever gives names has codes from 0; without names there may be ``negative`` ones, which no set has.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.export.codes import on_codes
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> from mcrank.scorers.forest.sets import packed, words_of
    >>> builder = ForestBuilder(n_features=1, base=[0.0])
    >>> builder.append(feature=[0, -1, -1], left=[1, -1, -1], right=[2, -1, -1], value=[0, 1.0, 2.0],
    ...                category_set=np.array([0, -1, -1]), **packed([words_of([1, 2])]))
    >>> on_codes(builder.build()).threshold.tolist()
    [0.5, 0.0, 2.5, 0.0, 0.0]
    """
    if not forest.has_sets:
        return forest
    runs = [_runs(set_codes(forest, s).tolist(), negative) for s in range(len(forest.set_offsets) - 1)]
    builder = ForestBuilder(forest.n_features, forest.base)
    nodes = 0
    for tree in trees_of(forest):
        made = _Made(tree, runs)
        nodes += len(made.feature)
        if made.too_large or nodes > MOST_NODES:
            return None
        builder.append(
            feature=made.feature, threshold=made.threshold, missing_left=made.missing_left, left=made.left,
            right=made.right, value=made.value, gain=made.gain, rows=made.rows, output=tree.output,
        )  # fmt: skip
    return builder.build()


def _runs(codes: list[int], negative: bool) -> _Runs:
    if not codes:  # only missing values may go left
        return _Runs([-_HIGHEST], [True, False]) if negative else _Runs([-0.5], [True, False])
    inside = set(codes)
    cuts, left = ([-0.5], [False, True]) if negative and 0 in inside else ([], [0 in inside])
    for code in range(1, codes[-1] + 2):
        if (code in inside) != left[-1]:
            cuts.append(code - 0.5)
            left.append(code in inside)
    return _Runs(cuts, left)


class _Made:
    """A tree made again, node by node, children after their parents."""

    def __init__(self, tree: Tree, runs: list[_Runs]) -> None:
        self.feature: list[int] = []
        self.threshold: list[float] = []
        self.missing_left: list[int] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.value: list[float] = []
        self.gain: list[float] = []
        self.rows: list[int] = []
        self.too_large = False
        # What is to be made: a node of the old tree, or runs of its split; and whose child it is.
        waiting: list[tuple[int, int, int, int, bool]] = [(0, -1, -1, -1, False)]
        while waiting and not self.too_large:
            node, first, last, parent, is_left = waiting.pop()
            s = int(tree.category_set[node])
            if s >= 0 and first < 0:
                first, last = 0, len(runs[s].left)
            if s >= 0 and last - first == 1:  # one run: its side
                side = tree.left if runs[s].left[first] else tree.right
                waiting.append((int(side[node]), -1, -1, parent, is_left))
                continue
            at = self._add(tree, node)
            if parent >= 0:
                (self.left if is_left else self.right)[parent] = at
            if s >= 0:
                middle = (first + last) // 2
                self.threshold[at] = runs[s].cuts[middle - 1]
                # A side with a run of the kind that missing values take: every side of two runs has both.
                wanted = bool(tree.missing_left[node])
                self.missing_left[at] = int(wanted in runs[s].left[first:middle])
                waiting += [(node, middle, last, at, False), (node, first, middle, at, True)]
            elif tree.feature[node] >= 0:
                waiting += [
                    (int(tree.right[node]), -1, -1, at, False),
                    (int(tree.left[node]), -1, -1, at, True),
                ]
            self.too_large = len(self.feature) > MOST_NODES

    def _add(self, tree: Tree, node: int) -> int:
        self.feature.append(int(tree.feature[node]))
        self.threshold.append(float(np.float32(tree.threshold[node])))
        self.missing_left.append(int(tree.missing_left[node]))
        self.left.append(-1)
        self.right.append(-1)
        self.value.append(float(tree.value[node]))
        self.gain.append(float(tree.gain[node]))
        self.rows.append(int(tree.rows[node]))
        return len(self.feature) - 1
