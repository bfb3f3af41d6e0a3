"""Adaptive base class boosting (ABC-boost; Li 2009, 2010, and its fast search of 2022).

Scores of a row sum to zero over the classes, so one class, the *base*, needs no tree of its own: it moves by
minus what the others move. For a class k other than the base b

    r = (1[y = k] - p[k]) - (1[y = b] - p[b]),    h = p[k](1 - p[k]) + p[b](1 - p[b]) + 2 p[k] p[b]

and a leaf adds Σr / Σh. Which class is the base decides what the trees can say, so from time to time a few
candidates are grown and the one that leaves the smallest training loss is kept.

A tree of class k with base b adds to F[k] and takes from F[b]. The forest has one output for every such pair,
K (K - 1) of them, so that no tree is stored twice; `class_scores` adds the pairs up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import int32, types

from mcrank.arrays import FloatArray, RowArray
from mcrank.kernels import kernel
from mcrank.kernels.exp import ROUND, exp_negative
from mcrank.kernels.memory import float_to_bits
from mcrank.losses.base import Loss
from mcrank.losses.classes import SMALLEST_SHARE
from mcrank.losses.multiclass import CHUNK, fill_powers
from mcrank.losses.quantize import GRADIENT_BITS, LANE_BITS, READ_ONLY, ROWS_PER_TASK, Gradients, Run, starts
from mcrank.sums import ALONE, Sums, exact_sum, exact_sums_by

MOST_CLASSES = 16  # 240 outputs; every row scored has a number for each
_NO_WEIGHT = np.empty(0)

_RESIDUALS = types.void(
    types.float64[:, ::1], types.int32[::1], READ_ONLY, types.int64,
    types.UniTuple(types.int64, 2),  # type: ignore[no-untyped-call]
    types.float64, types.int32[:, ::1], types.float64[:, ::1],
)  # fmt: skip


@kernel(_RESIDUALS, error_model="numpy", allocates=True)
def base_residuals(scores, classes, weight, base, rows, unit, q, curvature):  # type: ignore[no-untyped-def]
    """``q = rint(w r / unit)`` and ``w h`` of every class but the base, for ``rows`` (from, to)."""
    # IN: scores, classes, weight (empty: all 1), base, rows, unit  OUT: q, curvature (K - 1 rows)
    n_classes = scores.shape[0]
    powers = np.empty((n_classes, CHUNK))
    top, total, mass = np.empty((3, CHUNK))
    mass[:] = 1.0
    for low in range(rows[0], rows[1], CHUNK):
        n = min(CHUNK, rows[1] - low)
        own = classes[low : low + n]
        fill_powers(scores, low, n, top, powers, total)
        if weight.shape[0] > 0:
            given = weight[low : low + n]
            for i in range(n):
                mass[i] = given[i]
        at_base = powers[base]
        for i in range(n):
            at_base[i] /= total[i]
        for j in range(n_classes - 1):
            k = j + (j >= base)
            power, out, curve = powers[k], q[j, low : low + n], curvature[j, low : low + n]
            for i in range(n):
                here, there = power[i] / total[i], at_base[i]
                residual = (1.0 if own[i] == k else 0.0) - here
                base_residual = (1.0 if own[i] == base else 0.0) - there
                out[i] = int32(float_to_bits(mass[i] * (residual - base_residual) / unit + ROUND))
                curve[i] = mass[i] * (here * (1 - here) + there * (1 - there) + 2 * here * there)


_LOSSES = types.void(
    types.float64[:, ::1], types.float64[:, ::1], types.int64, types.int32[::1], READ_ONLY, types.int64,
    types.int64, types.float64[::1],
)  # fmt: skip


@kernel(_LOSSES, error_model="numpy", allocates=True)
def row_losses(scores, moves, base, classes, weight, start, end, out):  # type: ignore[no-untyped-def]
    """-w log p[y] of every row, after ``moves`` of the classes other than ``base`` (none: as it is)."""
    # IN: scores, moves (K - 1 rows; no columns: none), base, classes, weight, start, end  OUT: out
    n_classes = scores.shape[0]
    f = np.empty(n_classes)
    for i in range(start, end):
        for k in range(n_classes):
            f[k] = scores[k, i]
        if moves.shape[1] > 0:
            for j in range(n_classes - 1):
                f[j + (j >= base)] += moves[j, i]
                f[base] -= moves[j, i]
        top = f[0]
        for k in range(1, n_classes):
            top = max(top, f[k])
        total = 0.0
        for k in range(n_classes):
            total += exp_negative(f[k] - top)
        w = weight[i] if weight.shape[0] > 0 else 1.0
        out[i] = w * (np.log(total) - (f[classes[i]] - top))


class AdaptiveLoss(Loss):
    """Softmax loss of class codes 0..K-1 (K at least 3) with an adaptive base class.

    Parameters
    ----------
    classes : ndarray of int32
        Class of each row.
    n_classes : int
        K.
    weight : ndarray, optional
        Row weights, the largest being 1.
    search : int
        Candidates tried (s): the classes with the largest loss. 1 is the worst class, K all of them.
    gap : int
        Rounds between searches (g); the base is kept meanwhile.

    Attributes
    ----------
    base_class : int
        The base in force.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.abc import AdaptiveLoss
    >>> loss = AdaptiveLoss(np.array([0, 1, 2], dtype=np.int32), 3)
    >>> loss.n_outputs, loss.trees_per_round
    (6, 2)
    """

    adaptive = True

    def __init__(
        self,
        classes: RowArray,
        n_classes: int,
        weight: FloatArray | None = None,
        search: int = 2,
        gap: int = 5,
        sums: Sums = ALONE,
    ) -> None:
        self.classes, self.n_classes, self.weight, self.sums = classes, n_classes, weight, sums
        self.search, self.gap = search, gap
        self.base_class = 0
        self.base = np.zeros(n_classes * (n_classes - 1))

    @property
    def trees_per_round(self) -> int:
        """One tree for every class but the base."""
        return self.n_classes - 1

    def start_from_prior(self) -> None:
        """Start from the logarithms of the shares, moved to sum to zero; written as if class 0 were base."""
        counts = exact_sums_by(self.classes, self.n_classes, self.weight, self.sums)
        logs = np.log(np.maximum(counts / exact_sum(counts), SMALLEST_SHARE))
        for k in range(1, self.n_classes):
            self.base[self.output_of(k, 0)] = logs[k] - logs.mean()

    def output_of(self, k: int, base: int) -> int:
        """Output of the forest that trees of class ``k`` with this base add to."""
        return k * (self.n_classes - 1) + base - (base > k)

    def trained_class(self, tree: int) -> int:
        """Class of a round's tree: the classes in order, without the base."""
        return tree + (tree >= self.base_class)

    @property
    def n_scores(self) -> int:
        """One score a class."""
        return self.n_classes

    def raw_of(self, scores: FloatArray) -> FloatArray:
        """Pairs that make class scores, moved to sum to zero; written as if class 0 were base."""
        raw = np.zeros((self.n_outputs, scores.shape[1]))
        raw[[self.output_of(k, 0) for k in range(1, self.n_classes)]] = (scores - scores.mean(axis=0))[1:]
        return raw

    def scores_of(self, raw: FloatArray) -> FloatArray:
        """Class scores."""
        return class_scores(raw)

    def begin_round(self, outputs: Sequence[int]) -> None:
        """Take over the base class."""
        k, place = divmod(outputs[0], self.n_classes - 1)
        self.base_class = place + (place >= k)

    def add_moves(self, tree: int, moves: FloatArray, scores: FloatArray) -> None:
        """Move a class, and the base the other way."""
        scores[self.trained_class(tree)] += moves
        scores[self.base_class] -= moves

    def allocate(self, split: str) -> Gradients:
        """Return the arrays `fill` writes."""
        gradients = Gradients(np.empty((self.trees_per_round, len(self.classes)), dtype=np.int32))
        gradients.begin_lane(split, 1.0 / (1 << LANE_BITS), self.weight)  # neither h nor a weight passes 1
        return gradients

    def fill(self, scores: FloatArray, gradients: Gradients, run: Run) -> None:
        """Write the gradients of every row and class but the base, of class scores (K x rows)."""
        n = len(self.classes)
        gradients.unit = 2.0 / (1 << GRADIENT_BITS)  # |r| may reach 2

        def part(start: int) -> None:
            base_residuals(
                scores, self.classes, self._weight, self.base_class, (start, min(start + ROWS_PER_TASK, n)),
                gradients.unit, gradients.q, gradients.curvature,
            )  # fmt: skip

        run(part, starts(n))
        gradients.round_curvature(run)

    def losses(self, scores: FloatArray, run: Run, moves: FloatArray | None = None) -> FloatArray:
        """Training loss by class, after what a round's trees would move; the same for any order of rows."""
        n = len(self.classes)
        moved = np.empty((self.trees_per_round, 0)) if moves is None else moves
        rows = np.empty(n)

        def part(start: int) -> None:
            row_losses(
                scores, moved, self.base_class, self.classes, self._weight, start,
                min(start + ROWS_PER_TASK, n), rows,
            )  # fmt: skip

        run(part, starts(n))
        return exact_sums_by(self.classes, self.n_classes, rows, self.sums)

    @property
    def _weight(self) -> FloatArray:
        return _NO_WEIGHT if self.weight is None else self.weight


def class_scores(raw: FloatArray) -> FloatArray:
    """Class scores (K x rows) of a forest's outputs (K (K - 1) x rows): what was added less what was taken.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.abc import class_scores
    >>> class_scores(np.array([[0.0], [0.0], [1.0], [0.0], [3.0], [0.0]])).ravel().tolist()
    [-4.0, 1.0, 3.0]
    """
    n_classes = round((1 + (1 + 4 * len(raw)) ** 0.5) / 2)
    pairs = raw.reshape(n_classes, n_classes - 1, -1)
    out = pairs[:, 0].copy()
    for j in range(1, n_classes - 1):  # in this order, whatever lies beside a row
        out += pairs[:, j]
    for k in range(n_classes):
        for j in range(n_classes - 1):
            out[j + (j >= k)] -= pairs[k, j]
    return np.asarray(out)
