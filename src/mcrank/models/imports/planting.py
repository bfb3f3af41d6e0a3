"""From loose nodes to a forest: what other libraries write becomes trees whose children follow their parents.

Nodes of a foreign tree may be numbered in any way, and a damaged or hostile file may say anything. So before
the first number is believed: children and features in range, no node with two parents, no cycle, thresholds
that are numbers, leaves with a finite sum. All of it is whole-array work, and a chain of a million nodes
costs no more than a bush: depths are found by doubling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from mcrank.arrays import Array, IntArray
from mcrank.data.categories import MOST
from mcrank.errors import ModelFileError
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.forest.sets import Words, packed, words_of

_HIGHEST = np.finfo(np.float32).max
_MOST_GAIN = 1e100
_MOST_ROWS = 1 << 40
_FIELDS = {
    "feature": np.int64, "threshold": np.float32, "missing_left": np.bool_, "left": np.int64,
    "right": np.int64, "value": np.float64, "gain": np.float64, "rows": np.float64, "category_set": np.int64,
}  # fmt: skip


class LooseTree(NamedTuple):
    """One tree as a file has it: node 0 is the root, ``feature`` is -1 in leaves.

    ``x <= threshold`` goes left; an infinite threshold lets all values go one way, and only a missing one
    take the other. Where ``category_set`` is not -1, the codes of that one of the tree's ``sets`` go left.
    What a field does not say may be a number for all nodes.
    """

    feature: Array
    threshold: Array
    missing_left: Any
    left: Array
    right: Array
    value: Array
    gain: Any = 0.0
    rows: Any = 0.0
    output: int = 0
    category_set: Any = -1
    sets: tuple[IntArray, ...] = ()


def leaf_only(value: float, output: int = 0, rows: float = 0.0) -> LooseTree:
    """Return a tree of one leaf."""
    none = np.array([-1])
    return LooseTree(none, np.zeros(1), 0, none, none, np.array([value]), 0.0, rows, output)


def nearest32(values: npt.ArrayLike) -> Array:
    """Return numbers as float32, those beyond it as infinities: whoever asks sees to them."""
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(np.float32)


def floor32(values: Array) -> Array:
    """Return the largest float32 not above each number: float32 values fall on the same side of both.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.models.imports.planting import floor32
    >>> floor32(np.array([0.1, 1e300, -1e300])).tolist()
    [0.09999999403953552, 3.4028234663852886e+38, -inf]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.asarray(values, dtype=np.float64).astype(np.float32)
        above = rounded.astype(np.float64) > values
        return np.where(above, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def plant(
    trees: Sequence[LooseTree], base: npt.ArrayLike, n_features: int, where: str, *, prune: bool = False
) -> Forest:
    """Return the forest of these trees; what cannot be one is a `ModelFileError`.

    With ``prune``, nodes that cannot be reached from the root are dropped instead of refused: XGBoost leaves
    such behind.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.models.imports.planting import LooseTree, plant
    >>> leaf, inner = -1, 0
    >>> tree = LooseTree(np.array([inner, leaf, leaf]), np.array([0.5, 0, 0]), 1, np.array([2, leaf, leaf]),
    ...                  np.array([1, leaf, leaf]), np.array([0, 5.0, 6.0]))
    >>> plant([tree], [0.0], 1, "m.txt").raw(np.array([[0.0], [1.0]], dtype=np.float32)).tolist()
    [[6.0, 5.0]]
    >>> plant([tree._replace(left=np.array([0, leaf, leaf]))], [0.0], 1, "m.txt")
    Traceback (most recent call last):
    mcrank.errors.ModelFileError: m.txt: node 0 of tree 0: left child must be another node, got 0.
    """
    sizes = np.array([len(tree.feature) for tree in trees], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    nodes: dict[str, Array] = {}
    for name, dtype in _FIELDS.items():
        parts = [np.broadcast_to(getattr(tree, name), (len(tree.feature),)) for tree in trees]
        with np.errstate(over="ignore"):
            nodes[name] = np.concatenate([*parts, np.empty(0, dtype)]).astype(dtype)
    sets, nodes["category_set"] = _joined_sets(trees, sizes, nodes["category_set"], where)
    loose = _Loose(where, offsets, np.repeat(np.arange(len(trees)), sizes), nodes)
    loose.check(n_features)
    order = loose.order(prune)
    outputs = np.array([tree.output for tree in trees], dtype=np.int32)
    return _forest(loose, order, outputs, np.array(base, dtype=np.float64), n_features, sets)


def _joined_sets(
    trees: Sequence[LooseTree], sizes: Array, numbers: Array, where: str
) -> tuple[list[Words], Array]:
    """Return the sets of all trees, each once, and the number of each node's among them."""
    found: dict[bytes, int] = {}
    every: list[Words] = []
    of_own: list[int] = []
    for tree in trees:
        for codes in tree.sets:
            bad = codes[(codes < 0) | (codes >= MOST)]
            if len(bad):
                raise ModelFileError(
                    f"{where} splits on the category {bad[0]}; codes from 0 to {MOST - 1} can be imported."
                )
            words = words_of(codes)
            of_own.append(found.setdefault(words.tobytes(), len(every)))
            if of_own[-1] == len(every):
                every.append(words)
    counts = [len(tree.sets) for tree in trees]
    starts = np.repeat(np.cumsum([0, *counts])[:-1].astype(np.int64), sizes) if counts else numbers
    return every, np.where(numbers >= 0, np.array([*of_own, -1])[starts + numbers], -1)


class _Loose(NamedTuple):
    """The nodes of all trees, one behind the other."""

    where: str
    offsets: Array
    tree: Array
    nodes: Mapping[str, Array]

    def check(self, n_features: int) -> None:
        """Raise `ModelFileError` for the first node that says what cannot be."""
        nodes, size = self.nodes, np.diff(self.offsets)[self.tree]
        inner = nodes["feature"] >= 0
        self.refuse(nodes["feature"] >= n_features, "feature", f"a feature below {n_features}")
        self.refuse(nodes["feature"] < -1, "feature", "a feature, not a negative number")
        at = np.arange(len(inner)) - self.offsets[self.tree]
        for side in ("left", "right"):
            child = nodes[side]
            self.refuse(inner & ((child < 0) | (child >= size)), side, "a node of its tree", " child")
            self.refuse(inner & (child == at), side, "another node", " child")
        numeric = inner & (nodes["category_set"] < 0)
        self.refuse(numeric & np.isnan(nodes["threshold"]), "threshold", "a number")
        self.refuse(~inner & ~np.isfinite(nodes["value"]), "value", "finite")
        with np.errstate(over="ignore"):
            total = np.abs(nodes["value"][~inner]).sum()
        if not np.isfinite(total):
            raise ModelFileError(f"{self.where} has leaves so large that their sums are not finite.")

    def refuse(self, bad: Array, name: str, must: str, more: str = "") -> None:
        """Raise `ModelFileError` for the first bad node, if there is one."""
        if bad.any():
            at = int(np.argmax(bad))
            self.fail(at, f"{name}{more} must be {must}, got {self.nodes[name][at]:g}")

    def fail(self, at: int, words: str) -> NoReturn:
        """Raise `ModelFileError` about one node."""
        tree = self.tree[at]
        raise ModelFileError(f"{self.where}: node {at - self.offsets[tree]} of tree {tree}: {words}.")

    def order(self, prune: bool) -> Array:
        """Return the nodes tree by tree, each behind its parent; cycles and doubles are refused."""
        count = len(self.tree)
        inner = np.flatnonzero(self.nodes["feature"] >= 0)
        start = self.offsets[self.tree[inner]]
        children = np.concatenate([start + self.nodes["left"][inner], start + self.nodes["right"][inner]])
        parents = np.bincount(children, minlength=count)
        roots = self.offsets[:-1]
        twice = parents > 1
        twice[roots] |= parents[roots] > 0
        if twice.any():
            self.fail(int(np.argmax(twice)), "it is a child of more than one node, or of one below it")
        above = np.arange(count)
        above[children] = np.concatenate([inner, inner])
        depth = (above != np.arange(count)).astype(np.int64)
        for _ in range(count.bit_length() + 1):
            depth += depth[above]
            above = above[above]
        reached = above == roots[self.tree]
        if not (prune or reached.all()):
            self.fail(int(np.argmin(reached)), "it cannot be reached from the root")
        kept = np.flatnonzero(reached)
        return kept[np.lexsort((kept, depth[kept], self.tree[kept]))]


def _forest(
    loose: _Loose, order: Array, outputs: Array, base: Array, n_features: int, sets: list[Words]
) -> Forest:
    """Return the forest of nodes in their order."""
    nodes = {name: array[order] for name, array in loose.nodes.items()}
    tree, inner = loose.tree[order], nodes["feature"] >= 0
    offsets = np.concatenate([[0], np.cumsum(np.bincount(tree, minlength=len(outputs)))]).astype(np.int64)
    place = np.zeros(len(loose.tree), dtype=np.int64)
    place[order] = np.arange(len(order)) - offsets[tree]
    start = loose.offsets[tree]
    for side in ("left", "right"):
        child = np.where(inner, nodes[side], 0)
        nodes[side] = np.where(inner, place[start + child], -1)
    # A threshold below all values sends them right. Turned around: all of them go left, missing ones or not.
    category_set = np.where(inner, nodes["category_set"], -1)
    numeric = inner & (category_set < 0)
    mixed = np.intersect1d(nodes["feature"][category_set >= 0], nodes["feature"][numeric])
    if len(mixed):
        raise ModelFileError(f"{loose.where} splits feature {mixed[0]} by categories and by thresholds.")
    turned = numeric & np.isneginf(nodes["threshold"])
    left = np.where(turned, nodes["right"], nodes["left"])
    right = np.where(turned, nodes["left"], nodes["right"])
    missing_left = inner & (nodes["missing_left"] ^ turned)
    threshold = np.where(numeric, np.where(turned, _HIGHEST, np.minimum(nodes["threshold"], _HIGHEST)), 0.0)
    gain = np.where(inner, np.clip(np.nan_to_num(nodes["gain"], nan=0.0), 0.0, _MOST_GAIN), 0.0)
    if not gain.any():  # the file does not say: every split counts the same
        gain = inner.astype(np.float64)
    return Forest(
        tree_offsets=offsets,
        tree_output=outputs,
        feature=nodes["feature"].astype(np.int32),
        threshold=threshold.astype(np.float32),
        missing_left=missing_left.astype(np.uint8),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        value=np.where(inner, 0.0, nodes["value"]),
        gain=gain,
        rows=_rows(nodes["rows"]),
        base=base,
        n_features=n_features,
        category_set=category_set.astype(np.int32),
        **packed(sets),  # type: ignore[arg-type]
    )


def _rows(weights: Array) -> Array:
    """Return rows of nodes from counts, or from sums of weights: those in a unit that keeps their shares."""
    weights = np.clip(np.nan_to_num(weights, nan=0.0), 0.0, _MOST_ROWS)
    if (weights != np.floor(weights)).any():
        weights = np.ldexp(weights, int(np.log2(_MOST_ROWS) - np.log2(weights.max())))
    return np.rint(weights).astype(np.int64)
