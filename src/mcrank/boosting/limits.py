"""What the split search is told beside sums: penalties, conditions on a split, and which features may split.

A leaf of gradients S and mass M (rows, weights or curvatures: what gains divide by) has the output
T(S) / (M + l2), T(S) = sign(S) max(|S| - l1, 0), and a split gains T(S_L)²/(M_L + l2) + T(S_R)²/(M_R + l2) -
T(S)²/(M + l2). Under a monotone constraint outputs are clipped to the bounds of the node, the gain of a
clipped output o is 2 T(S) o - (M + l2) o², and a split in the wrong order is refused; the middle of the two
outputs bounds the children, as in LightGBM's basic method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from mcrank.arrays import ByteArray, FloatArray
from mcrank.boosting.packing import Packing, mix
from mcrank.boosting.sampling import salt_of
from mcrank.kernels import step
from mcrank.losses.quantize import Gradients

# Gains below this share of the node's own are rounding, not signal.
NOISE = 1e-12
_FEATURES, _CUTS = 5, 6  # what lots are drawn for: a part of their context
_STEP = uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class LimitOptions:
    """Limits in the loss's own units; the defaults limit nothing. Arrays are by feature.

    ``interaction`` has a row for each set of features that may meet on a path.
    """

    l1: float = 0.0
    l2: float = 0.0
    min_sum_hessian: float = 0.0
    min_gain: float = 0.0
    max_depth: int | None = None
    colsample_node: float = 1.0
    extra_trees: bool = False
    feature_weights: FloatArray | None = None
    monotone: npt.NDArray[np.int8] | None = None
    interaction: ByteArray | None = None
    cat_smooth: float = 10.0
    cat_l2: float = 10.0
    max_cat_to_onehot: int = 4
    max_cat_threshold: int = 32
    min_data_per_group: int = 100

    @property
    def plain(self) -> bool:
        """Whether the search needs nothing of them (how deep a tree is, it need not know)."""
        numbers = (self.l1, self.l2, self.min_sum_hessian, self.min_gain, float(self.extra_trees))
        arrays = (self.feature_weights, self.monotone, self.interaction)
        return not any(numbers) and self.colsample_node >= 1 and all(array is None for array in arrays)


UNLIMITED = LimitOptions()


class SubsetRules(NamedTuple):
    """How sets of categories are searched: what is added to masses where categories are put in order, how
    many rows a category needs for it, what is added to masses in gains, up to how many categories one stands
    against the rest, how many go left at most, and rows between two sets tried.
    """

    smooth: float
    rows: float
    l2: float
    onehot: int
    most: int
    group: int


class Limits(NamedTuple):
    """The same as one growing tree takes them: in the units of its integers, with memory by node.

    Attributes
    ----------
    ruled : bool
        Whether anything but the depth is limited.
    l1, l2, min_mass, min_gain : float
        In units of gradients, masses and gains.
    node_features : int
        Features drawn for each node; 0 for all.
    extra : bool
        Whether each feature has one cut, drawn at random.
    salts : uint64[2]
        Of the lots drawn for features, and for cuts.
    weights, monotone, sets : arrays
        By feature: factor of the gain, order, and the sets it is in (sets x features); empty for none.
    allowed, live, bounds : arrays
        By node: features that may split it, sets that hold its path, and bounds of its output; empty where
        nobody asks.
    subsets : SubsetRules
        Of splits on categories.
    """

    ruled: bool
    l1: float
    l2: float
    min_mass: float
    min_gain: float
    node_features: int
    extra: bool
    salts: npt.NDArray[np.uint64]
    weights: FloatArray
    monotone: npt.NDArray[np.int8]
    sets: ByteArray
    allowed: ByteArray
    live: ByteArray
    bounds: FloatArray
    subsets: SubsetRules

    @classmethod
    def of(
        cls,
        options: LimitOptions,
        packing: Packing,
        gradients: Gradients,
        features: npt.NDArray[np.int32],
        shape: tuple[int, int],
        context: tuple[int, ...],
    ) -> Limits:
        """Return the limits of one tree of ``shape`` (most nodes, features of the data).

        ``features`` may split it, and ``context`` is (seed, round, tree).
        """
        ruled, (nodes, width) = not options.plain, shape
        mass, gradient = packing.mass_unit(gradients.lane_unit), packing.gradient_unit(gradients.unit)
        drawn = ruled and options.colsample_node < 1
        sets = _array(options.interaction, np.uint8, (0, 0))
        masked = drawn or len(sets) > 0
        monotone = _array(options.monotone, np.int8, (0,))
        return cls(
            ruled,
            options.l1 / gradient,
            options.l2 / mass,
            options.min_sum_hessian / mass,
            options.min_gain / packing.gain_unit(gradients.unit, gradients.lane_unit),
            max(1, round(options.colsample_node * len(features))) if drawn else 0,
            options.extra_trees,
            np.array([salt_of(*context, kind) for kind in (_FEATURES, _CUTS)], dtype=np.uint64),
            _array(options.feature_weights, np.float64, (0,)),
            monotone,
            sets,
            np.zeros((nodes if masked else 0, width), dtype=np.uint8),
            np.zeros((nodes if len(sets) else 0, len(sets)), dtype=np.uint8),
            np.zeros((nodes if len(monotone) else 0, 2)),
            SubsetRules(
                options.cat_smooth / mass,
                options.cat_smooth,
                options.cat_l2 / mass,
                options.max_cat_to_onehot,
                options.max_cat_threshold,
                options.min_data_per_group,
            ),
        )


def _array(values: Any, kind: Any, empty: tuple[int, ...]) -> Any:
    return np.empty(empty, dtype=kind) if values is None else np.ascontiguousarray(values, dtype=kind)


def in_order(
    nodes: npt.NDArray[Any], values: FloatArray, sums: FloatArray, masses: FloatArray, limits: LimitOptions
) -> FloatArray:
    """Return leaf values that keep to the order of their features, whatever rule they were found by.

    Under a split whose order matters no leaf of one side passes the middle of both sides' outputs, and none
    of the other falls behind it. ``sums`` and ``masses`` are those of the leaves.
    """
    assert limits.monotone is not None
    left, outputs = nodes["left"], np.zeros(len(nodes))
    sums, masses, values = sums.copy(), masses.copy(), values.copy()
    for i in range(len(nodes) - 1, -1, -1):  # children come after their parent
        if left[i] >= 0:
            sums[i], masses[i] = (part[left[i] : left[i] + 2].sum() for part in (sums, masses))
        size = max(abs(sums[i]) - limits.l1, 0.0)
        outputs[i] = np.sign(sums[i]) * size / (masses[i] + limits.l2) if masses[i] > 0 else 0.0
    bounds = np.full((len(nodes), 2), (-np.inf, np.inf))
    for i, first in enumerate(left.tolist()):
        if first < 0:
            values[i] = np.clip(values[i], *bounds[i])
            continue
        bounds[first : first + 2] = bounds[i]
        order = int(limits.monotone[nodes["feature"][i]])
        if order:
            middle = np.clip(outputs[first : first + 2], *bounds[i]).sum() / 2
            lower = first if order > 0 else first + 1
            bounds[lower, 1] = middle
            bounds[2 * first + 1 - lower, 0] = middle
    return values


NO_LIMITS = Limits.of(
    UNLIMITED,
    Packing.of(1),
    Gradients(np.empty((1, 0), dtype=np.int32)),
    np.empty(0, dtype=np.int32),
    (0, 0),
    (),
)


@njit(inline="always")
def lot(salt, node, feature):  # type: ignore[no-untyped-def]
    """Random number of a feature at a node."""
    return mix(uint64(feature) + _STEP + mix(salt + _STEP + uint64(node)))


@njit(inline="always")
def penalised(total, l1):  # type: ignore[no-untyped-def]
    """T(S): a sum of gradients nearer to 0 by l1."""
    return max(total - l1, 0.0) - max(-total - l1, 0.0)


@step()
def is_ruled(limits):  # type: ignore[no-untyped-def]
    """Whether anything is limited; where there are no limits it is known when kernels are compiled."""
    if limits is None:
        return False
    return limits.ruled


@step()
def begin_root(limits, features):  # type: ignore[no-untyped-def]
    """Limits of a root."""
    # IN: features  OUT: limits
    if limits is None:
        return
    if limits.bounds.shape[0] > 0:
        limits.bounds[0, 0], limits.bounds[0, 1] = -np.inf, np.inf
    if limits.live.shape[0] > 0:
        limits.live[0, :] = 1
    if limits.allowed.shape[0] > 0:
        _allow(limits, features, np.int64(0))


@step()
def begin_children(limits, features, packing, node):  # type: ignore[no-untyped-def]
    """Limits of the two children of a node that is split: its record has their numbers and sums."""
    # IN: features, packing, node  OUT: limits
    if limits is None:
        return
    at, left = node.number, node.left
    if limits.bounds.shape[0] > 0:
        _bound(limits, packing, node)
    for child in range(left, left + 2):
        if limits.live.shape[0] > 0:
            for s in range(limits.live.shape[1]):
                limits.live[child, s] = limits.live[at, s] & limits.sets[s, node.feature]
        if limits.allowed.shape[0] > 0:
            _allow(limits, features, child)


@njit(inline="always")
def _bound(limits, packing, node):  # type: ignore[no-untyped-def]
    """Bounds of two children: those of the node, and the middle of both outputs where order matters."""
    low, high = limits.bounds[node.number, 0], limits.bounds[node.number, 1]
    left_mass = float(node.left_weight) if packing.second else float(node.left_count)
    mass = float(node.weight) if packing.second else float(node.count)
    left = output_of(float(node.left_total), left_mass, limits, low, high)
    right = output_of(float(node.total - node.left_total), mass - left_mass, limits, low, high)
    middle = (left + right) / 2
    order = limits.monotone[node.feature]
    for child in range(node.left, node.left + 2):
        lower = (child == node.left) == (order > 0)
        limits.bounds[child, 0] = low if order == 0 or lower else max(low, middle)
        limits.bounds[child, 1] = high if order == 0 or not lower else min(high, middle)


@njit(inline="always")
def output_of(total, mass, limits, low, high):  # type: ignore[no-untyped-def]
    """Output of a leaf, in units of gradient over mass, within bounds."""
    return min(max(penalised(total, limits.l1) / (mass + limits.l2), low), high)


@njit(inline="always")
def _allow(limits, features, at):  # type: ignore[no-untyped-def]
    """Which features may split a node: those that share a set with its whole path, and of them a draw."""
    allowed = limits.allowed[at]
    allowed[:] = 0
    n = np.int64(0)
    for f in features:
        good = limits.live.shape[0] == 0
        for s in range(limits.live.shape[1]):
            good |= (limits.live[at, s] & limits.sets[s, f]) == 1
        allowed[f] = 1 if good else 0
        n += allowed[f]
    wanted = limits.node_features
    if wanted == 0 or n <= wanted:
        return
    # The wanted lowest lots: bit by bit the largest number below which there are not enough.
    below = uint64(0)
    for bit in range(64):
        tried = below | (uint64(1) << uint64(63 - bit))
        found = np.int64(0)
        for f in features:
            if allowed[f] == 1 and lot(limits.salts[0], at, f) < tried:
                found += 1
        if found < wanted:
            below = tried
    for f in features:
        if lot(limits.salts[0], at, f) > below:
            allowed[f] = 0


@njit(inline="always")
def _prefix_at(sums, i, packing):  # type: ignore[no-untyped-def]
    """Gradients, mass and rows up to a bin, of prefix sums as `best_split` has them."""
    rows = sums[2, i]
    if packing.count_bits > 0:
        rows = sums[0, i] & ((np.int64(1) << packing.count_bits) - 1)
    mass = sums[1, i] if packing.second else rows
    return float(sums[0, i] >> packing.count_bits), float(mass), rows


@njit(inline="always")
def own_terms(whole, limits):  # type: ignore[no-untyped-def]
    """Gain terms of a node that is not split."""
    total = penalised(whole[0], limits.l1)
    return total * total / (whole[1] + limits.l2) if whole[1] > 0 else 0.0


@step(error_model="numpy")
def fill_ruled_gains(sums, n, whole, rules, limits, node, feature, gains):  # type: ignore[no-untyped-def]
    """Gain terms of cutting after each of ``n`` bins, from prefix sums; -1 where a cut is refused."""
    # IN: all but gains  OUT: gains
    total, mass, count = whole
    low, high = -np.inf, np.inf
    order = np.int64(0)
    bounded = limits.bounds.shape[0] > 0
    if bounded:
        low, high = limits.bounds[node.number, 0], limits.bounds[node.number, 1]
        order = np.int64(limits.monotone[feature])
    for i in range(n):
        sum_left, left, rows = _prefix_at(sums, i, rules.packing)
        right = mass - left
        good = (rows >= rules.min_rows) & (count - rows >= rules.min_rows) & (left > 0) & (right > 0)
        good &= (left >= limits.min_mass) & (right >= limits.min_mass)
        gains[i] = -1.0
        if good:
            here, there = penalised(sum_left, limits.l1), penalised(total - sum_left, limits.l1)
            left, right = left + limits.l2, right + limits.l2
            if bounded:
                one, other = min(max(here / left, low), high), min(max(there / right, low), high)
                if order * (other - one) >= 0:
                    gains[i] = 2 * here * one - left * one * one + 2 * there * other - right * other * other
            else:
                gains[i] = here * here / left + there * there / right


@step()
def best_ruled(sums, n, about, packing, limits, node, gains):  # type: ignore[no-untyped-def]
    """The largest of gain terms, its excess over the node's own times the feature's weight, and its cut; -1
    where none is worth it.

    ``about`` is the feature, the node's own terms, and rows of missing values: before the first bin, and all
    up to the last.
    """
    # IN: all
    feature, own, known = about
    cut = np.int64(0)
    if limits.extra:
        cut = _random_cut(sums, n, known, packing, limits, node, feature)
        if cut < 0:
            return -1.0, cut
    else:
        for i in range(1, n):
            if gains[i] > gains[cut]:
                cut = np.int64(i)
    if not gains[cut] > own * (1 + NOISE) + limits.min_gain:
        return -1.0, cut
    weight = limits.weights[feature] if limits.weights.shape[0] > 0 else 1.0
    return own + weight * (gains[cut] - own), cut


@njit(inline="always")
def _random_cut(sums, n, known, packing, limits, node, feature):  # type: ignore[no-untyped-def]
    """The one cut of a feature: any of those that part the node's rows with known values, alike; -1: none."""
    first, last = np.int64(0), n - 1
    while first < n and _prefix_at(sums, first, packing)[2] <= known[0]:
        first += 1
    while last >= 0 and _prefix_at(sums, last, packing)[2] >= known[1]:
        last -= 1
    if first > last:
        return np.int64(-1)
    return first + np.int64(lot(limits.salts[1], node.number, feature) % uint64(last - first + 1))
