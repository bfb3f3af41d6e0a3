"""The net: a small feed-forward one whose weights are one flat array.

Layer ``l`` maps ``sizes[l]`` units to ``sizes[l + 1]``; its weights (inputs x outputs) and then its biases
lie one behind the other in the flat array. Hidden units are tanh, relu or sigmoid, the one output is linear.
Sums run in a fixed order and the exponential is our own, so that a net is the same to the last bit for any
number of threads.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numba import njit

from mcrank.arrays import Arrays, FeatureArray, FloatArray, IntArray
from mcrank.errors import ModelFileError, OptionError
from mcrank.kernels import kernel, step
from mcrank.kernels.exp import exp_negative
from mcrank.scorers.scaling import Scaling
from mcrank.threads import run_all

TANH, RELU, SIGMOID = 0, 1, 2
ACTIVATIONS = {"tanh": TANH, "relu": RELU, "sigmoid": SIGMOID}
MOST_LAYERS, MOST_UNITS = 3, 4096
_TASK_ROWS = 8192  # scaled and scored by one thread at a time
_BLOCK_ROWS = 256  # scored at a time: their units stay in the cache


def layer_sizes(n_features: int, hidden: str, where: str) -> IntArray:
    """Return the units of each layer, inputs and the one output included.

    Examples
    --------
    >>> from mcrank.scorers.net import layer_sizes
    >>> layer_sizes(136, "64,32", "hidden").tolist()
    [136, 64, 32, 1]
    >>> layer_sizes(136, "many", "hidden of RankNet")
    Traceback (most recent call last):
    mcrank.errors.OptionError: hidden of RankNet must be 1 to 3 layer sizes from 1 to 4096, such as '32' or \
'64,32', got 'many'.
    """
    words = [word.strip() for word in hidden.split(",")]
    units = [int(word) for word in words if word.isascii() and word.isdigit() and len(word) <= 4]
    if len(units) < len(words) or len(units) > MOST_LAYERS or not all(1 <= u <= MOST_UNITS for u in units):
        raise OptionError(
            f"{where} must be 1 to {MOST_LAYERS} layer sizes from 1 to {MOST_UNITS}, such as '32' or "
            f"'64,32', got {hidden!r}."
        )
    return np.array([n_features, *units, 1], dtype=np.int64)


def n_weights(sizes: IntArray) -> int:
    """Weights and biases of a net with layers of these sizes."""
    return int(sum((a + 1) * b for a, b in itertools.pairwise(sizes.tolist())))


@njit(inline="always")
def add_four(x0, x1, x2, x3, rows, at, out):  # type: ignore[no-untyped-def]
    """Add four rows, those from ``at`` on, each times a number."""
    # IN: x0, x1, x2, x3, rows, at  OUT: out, added to
    for h in range(len(out)):
        out[h] += (x0 * rows[at, h] + x1 * rows[at + 1, h]) + x2 * rows[at + 2, h] + x3 * rows[at + 3, h]


@step()
def add_products(  # type: ignore[no-untyped-def]
    inputs,  # IN  (n, a)
    weights,  # IN  (a, b)
    out,  # OUT (n, b), added to
):
    """out += inputs @ weights, four inputs at a time; units of a row lie side by side, so this runs on
    vectors without changing the order of any sum.
    """
    n, a = inputs.shape
    b = weights.shape[1]
    for i in range(n):
        f = 0
        while f + 4 <= a:
            add_four(
                inputs[i, f], inputs[i, f + 1], inputs[i, f + 2], inputs[i, f + 3], weights, f, out[i]
            )  # fmt: skip
            f += 4
        while f < a:
            x0 = inputs[i, f]
            for h in range(b):
                out[i, h] += x0 * weights[f, h]
            f += 1


@njit(inline="always")
def activate(kind, units):  # type: ignore[no-untyped-def]
    """Turn the sums of a hidden layer into its activations, in place."""
    flat = units.reshape(units.size)
    if kind == RELU:
        for i in range(len(flat)):
            flat[i] = max(flat[i], 0.0)
        return
    scale = 2.0 if kind == TANH else 1.0
    for i in range(len(flat)):
        x = flat[i]
        e = exp_negative(-scale * abs(x))
        if kind == TANH:
            t = (1.0 - e) / (1.0 + e)
            flat[i] = t if x >= 0.0 else -t
        else:
            flat[i] = (1.0 if x >= 0.0 else e) / (1.0 + e)


@njit(inline="always")
def len_units(n, sizes):  # type: ignore[no-untyped-def]
    """Units of ``n`` rows in all layers."""
    total = 0
    for layer in range(len(sizes)):
        total += n * sizes[layer]
    return total


@step()
def forward(  # type: ignore[no-untyped-def]
    n,  # IN  rows
    sizes,  # IN  units of each layer
    weights,  # IN  flat
    kind,  # IN  activation
    units,  # IN  flat: scaled rows (n x inputs); OUT behind them, layer by layer, up to the n scores
):
    """Fill the units of every layer above the inputs; return where the scores begin."""
    w = 0
    at = 0
    for layer in range(len(sizes) - 1):
        a, b = sizes[layer], sizes[layer + 1]
        below = units[at : at + n * a].reshape((n, a))
        at += n * a
        sums = units[at : at + n * b].reshape((n, b))
        bias = weights[w + a * b : w + a * b + b]
        for i in range(n):
            for h in range(b):
                sums[i, h] = bias[h]
        add_products(below, weights[w : w + a * b].reshape((a, b)), sums)
        if layer < len(sizes) - 2:
            activate(kind, sums)
        w += (a + 1) * b
    return at


@kernel(allocates=True)
def score_rows(  # type: ignore[no-untyped-def]
    X,  # IN  scaled rows, float64
    sizes,  # IN
    weights,  # IN
    kind,  # IN
    out,  # OUT score of each row
):
    """Score rows, a block at a time."""
    units = np.empty(len_units(_BLOCK_ROWS, sizes))
    for start in range(0, len(out), _BLOCK_ROWS):
        n = min(_BLOCK_ROWS, len(out) - start)
        for i in range(n):
            for f in range(sizes[0]):
                units[i * sizes[0] + f] = X[start + i, f]
        at = forward(n, sizes, weights, kind, units)
        for i in range(n):
            out[start + i] = units[at + i]


@dataclass(frozen=True, eq=False)
class Net:
    """A net of one to three hidden layers and one linear output, over scaled features.

    Attributes
    ----------
    sizes : ndarray of int64
        Units of each layer, inputs and the one output included.
    activation : str
        What a hidden unit computes: one of `ACTIVATIONS`.
    weights : ndarray
        Weights and biases of all layers, one behind the other.
    scaling : Scaling
        How features are scaled.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.net import Net, layer_sizes
    >>> from mcrank.scorers.scaling import Scaling
    >>> X = np.array([[2.0], [-3.0]], dtype=np.float32)
    >>> weights = np.array([1.0, 0.5, 10.0, 1.0])  # of the input, its bias, of the hidden unit, its bias
    >>> Net(layer_sizes(1, "1", "hidden"), "relu", weights, Scaling.fit(X, "none")).raw(X).tolist()
    [[26.0, 1.0]]
    """

    sizes: IntArray
    activation: str
    weights: FloatArray
    scaling: Scaling
    n_outputs: ClassVar[int] = 1
    by_query: ClassVar[bool] = False

    @property
    def n_features(self) -> int:
        """Columns of the matrices it scores."""
        return int(self.sizes[0])

    def raw(self, X: FeatureArray, n_jobs: int = 1, offsets: IntArray | None = None) -> FloatArray:
        """Return the score of each row, as an array of one output."""
        out = np.empty((1, len(X)))
        kind = ACTIVATIONS[self.activation]

        def part(start: int) -> None:
            rows = slice(start, start + _TASK_ROWS)
            score_rows(self.scaling.apply(X[rows]), self.sizes, self.weights, kind, out[0, rows])

        run_all(part, range(0, len(X), _TASK_ROWS), n_jobs)
        return out

    def importances(self) -> None:
        """Return None: what a feature adds depends on all the others."""
        return

    def reach(self, inputs: FloatArray) -> float:
        """Return a bound of the size of any score, given one of the size of each scaled feature."""
        at, reach = 0, inputs
        with np.errstate(over="ignore", invalid="ignore"):
            for a, b in itertools.pairwise(self.sizes.tolist()):
                layer = np.abs(self.weights[at : at + (a + 1) * b].reshape(a + 1, b))
                reach = reach @ layer[:-1] + layer[-1] + 1.0  # no unit is larger than its sum plus 1
                at += (a + 1) * b
        return float(reach[0])

    def to_arrays(self) -> Arrays:
        """Return the arrays a model file keeps; layers, activation and scaling are options of the ranker."""
        return {"net_weights": self.weights, **self.scaling.to_arrays()}

    @classmethod
    def from_arrays(cls, arrays: Arrays, scaling: str, sizes: IntArray, activation: str) -> Self:
        """Return what `to_arrays` described, for these layers; anything wrong is a `ModelFileError`."""
        scaled = Scaling.from_arrays(scaling, arrays, int(sizes[0]))
        weights = arrays["net_weights"]
        if weights.dtype != np.float64 or weights.shape != (n_weights(sizes),):
            raise ModelFileError(f"net_weights must be {n_weights(sizes)} float64 numbers.")
        net = cls(sizes, activation, weights, scaled)
        if not np.isfinite(net.reach(scaled.reach)):
            raise ModelFileError("net_weights are so large that scores are not finite.")
        return net
