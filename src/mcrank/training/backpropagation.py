"""Back-propagation through a net of `mcrank.scorers.net`: the gradient of every weight, and first weights."""

from __future__ import annotations

import itertools

import numpy as np
from numba import njit

from mcrank.arrays import FloatArray, IntArray
from mcrank.scorers.net import SIGMOID, TANH, add_four, add_products, len_units


def first_weights(sizes: IntArray, activation: str, stream: np.random.Generator) -> FloatArray:
    """Random weights of the usual size (Glorot's for tanh and sigmoid, He's for relu); biases are 0."""
    parts = []
    for a, b in itertools.pairwise(sizes.tolist()):
        spread = np.sqrt(2.0 / a) if activation == "relu" and b > 1 else np.sqrt(2.0 / (a + b))
        parts += [spread * stream.standard_normal(a * b), np.zeros(b)]
    return np.concatenate(parts)


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
            add_four(
                inputs[i, f], inputs[i + 1, f], inputs[i + 2, f], inputs[i + 3, f], deltas, i, matrix[f]
            )  # fmt: skip
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
