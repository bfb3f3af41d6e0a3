"""A small feed-forward net: its weights as one flat array, scores of rows, and the gradient by
back-propagation.

Layer ``l`` maps ``sizes[l]`` units to ``sizes[l + 1]``; its weights (inputs x outputs) and then its biases
lie one behind the other in the flat array. Hidden units are tanh, relu or sigmoid, the one output is linear.
Sums run in a fixed order and the exponential is our own, so that a net is the same to the last bit for any
number of threads.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from mcrank.errors import OptionError
from mcrank.kernels import kernel, step
from mcrank.kernels.exp import exp_negative
from mcrank.threads import run_all

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

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


def first_weights(sizes: IntArray, activation: str, stream: np.random.Generator) -> FloatArray:
    """Random weights of the usual size (Glorot's for tanh and sigmoid, He's for relu); biases are 0."""
    parts = []
    for a, b in itertools.pairwise(sizes.tolist()):
        spread = np.sqrt(2.0 / a) if activation == "relu" and b > 1 else np.sqrt(2.0 / (a + b))
        parts += [spread * stream.standard_normal(a * b), np.zeros(b)]
    return np.concatenate(parts)


@njit(nogil=True)
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
            x0, x1, x2, x3 = inputs[i, f], inputs[i, f + 1], inputs[i, f + 2], inputs[i, f + 3]
            for h in range(b):
                out[i, h] += (
                    (x0 * weights[f, h] + x1 * weights[f + 1, h])
                    + x2 * weights[f + 2, h]
                    + x3 * weights[f + 3, h]
                )
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
def times_slope(kind, units, deltas):  # type: ignore[no-untyped-def]
    """Multiply the derivatives of hidden units by the slope of their activation, in place."""
    n, b = units.shape
    for i in range(n):
        for h in range(b):
            u = units[i, h]
            if kind == TANH:
                deltas[i, h] *= 1.0 - u * u
            elif kind == SIGMOID:
                deltas[i, h] *= u * (1.0 - u)
            elif u <= 0.0:
                deltas[i, h] = 0.0


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


@njit(inline="always")
def add_outer(  # type: ignore[no-untyped-def]
    inputs,  # IN  (n, a)
    deltas,  # IN  (n, b)
    slope,  # OUT flat, a x b and then b: added to
):
    """Add the gradient of one layer's weights (inputs' @ deltas) and biases, four rows at a time."""
    n, a = inputs.shape
    b = deltas.shape[1]
    matrix = slope[: a * b].reshape((a, b))
    bias = slope[a * b : a * b + b]
    i = 0
    while i + 4 <= n:
        for f in range(a):
            x0, x1, x2, x3 = inputs[i, f], inputs[i + 1, f], inputs[i + 2, f], inputs[i + 3, f]
            for h in range(b):
                matrix[f, h] += (
                    (x0 * deltas[i, h] + x1 * deltas[i + 1, h])
                    + x2 * deltas[i + 2, h]
                    + x3 * deltas[i + 3, h]
                )
        i += 4
    while i < n:
        for f in range(a):
            x0 = inputs[i, f]
            for h in range(b):
                matrix[f, h] += x0 * deltas[i, h]
        i += 1
    for i in range(n):
        for h in range(b):
            bias[h] += deltas[i, h]


@njit(inline="always")
def backward(  # type: ignore[no-untyped-def]
    n,  # IN  rows
    sizes,  # IN  units of each layer
    weights,  # IN  flat
    kind,  # IN  activation
    units,  # IN  as `forward` left them
    deltas,  # IN  derivatives, each where its unit lies in units: of the scores; OUT of the hidden units
    slope,  # OUT gradient, flat as the weights: added to
):
    """Add the gradient of every weight, from the top layer down."""
    w = len(weights)
    at = len_units(n, sizes) - n
    for layer in range(len(sizes) - 2, -1, -1):
        a, b = sizes[layer], sizes[layer + 1]
        w -= (a + 1) * b
        above = deltas[at : at + n * b].reshape((n, b))
        at -= n * a
        below = units[at : at + n * a].reshape((n, a))
        add_outer(below, above, slope[w : w + (a + 1) * b])
        if layer > 0:
            turned = np.empty((b, a))  # so that the units of the layer below lie side by side
            for f in range(a):
                for h in range(b):
                    turned[h, f] = weights[w + f * b + h]
            down = deltas[at : at + n * a].reshape((n, a))
            down[:] = 0.0
            add_products(above, turned, down)
            times_slope(kind, below, down)


@kernel()
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


def net_scores(
    scale: Callable[[npt.NDArray[np.float32]], npt.NDArray[Any]],
    X: npt.NDArray[np.float32],
    sizes: IntArray,
    weights: FloatArray,
    activation: str,
    n_jobs: int,
) -> FloatArray:
    """Return the net's score of every row of ``X``, which ``scale`` makes ready a part at a time."""
    out = np.empty(len(X))

    def part(start: int) -> None:
        rows = slice(start, start + _TASK_ROWS)
        score_rows(scale(X[rows]), sizes, weights, ACTIVATIONS[activation], out[rows])

    run_all(part, range(0, len(X), _TASK_ROWS), n_jobs)
    return out


def net_reach(reach: FloatArray, sizes: IntArray, weights: FloatArray) -> float:
    """Return a bound of the size of any score, given one of the size of each input."""
    at = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for a, b in itertools.pairwise(sizes.tolist()):
            layer = np.abs(weights[at : at + (a + 1) * b].reshape(a + 1, b))
            reach = reach @ layer[:-1] + layer[-1] + 1.0  # no unit is larger than its sum plus 1
            at += (a + 1) * b
    return float(reach[0])
