"""What each feature adds to the score of a net: gradients along straight lines (expected gradients).

For a row x and a reference row r, feature i adds (x_i - r_i) times the mean of df/dx_i on the line from r to
x: the method of Aumann and Shapley. Over several reference rows the mean is taken. The mean along a line is
Gauss's quadrature with `POINTS` points; what it misses of the difference of the scores (kinks of relu) is
spread over the features in the proportion of what they add.
"""

from __future__ import annotations

import itertools

import numpy as np

from mcrank.arrays import FeatureArray, FloatArray
from mcrank.scorers.net import Net
from mcrank.threads import run_all

POINTS = 32
_ROWS = 64  # of a block


def net_contributions(
    net: Net, X: FeatureArray, reference: FeatureArray | None = None, n_jobs: int = 1
) -> FloatArray:
    """Return what each feature adds (rows x features), compared with a row: by default the training mean.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.explain.gradients import net_contributions
    >>> from mcrank.scorers.net import Net, layer_sizes
    >>> from mcrank.scorers.scaling import Scaling
    >>> X = np.array([[2.0, 1.0], [4.0, 1.0]], dtype=np.float32)
    >>> weights = np.array([1.0, 0.0, 0.5, 10.0, 1.0])
    >>> net = Net(layer_sizes(2, "1", "hidden"), "relu", weights, Scaling.fit(X, "none"))
    >>> net_contributions(net, X[1:], X[0]).round(9).tolist()
    [[20.0, 0.0]]
    """
    scaled = net.scaling.apply(X)
    start = net.scaling.fill[None] if reference is None else net.scaling.apply(reference[None])
    gap = scaled - start
    points, weights = np.polynomial.legendre.leggauss(POINTS)
    out = np.empty_like(scaled)

    def part(first: int) -> None:
        rows = slice(first, first + _ROWS)
        slope = np.zeros_like(gap[rows])
        for point, weight in zip(points.tolist(), weights.tolist(), strict=True):
            slope += weight / 2.0 * _gradient(net, start + gap[rows] * ((1.0 + point) / 2.0))[1]
        out[rows] = gap[rows] * slope
        missed = _gradient(net, scaled[rows])[0] - _gradient(net, start)[0] - out[rows].sum(axis=1)
        size = np.abs(out[rows]).sum(axis=1, keepdims=True)
        out[rows] += missed[:, None] * np.abs(out[rows]) / np.where(size > 0.0, size, 1.0)

    run_all(part, range(0, len(X), _ROWS), n_jobs)
    return out


def net_baseline(net: Net, reference: FeatureArray | None = None) -> FloatArray:
    """Return the score of the row that others are compared with, as of one output and one row."""
    start = net.scaling.fill[None] if reference is None else net.scaling.apply(reference[None])
    return _gradient(net, start)[0][None]


def _gradient(net: Net, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Score of scaled rows, and its derivative by each input."""
    layers, slopes, at, units = [], [], 0, inputs
    sizes = list(itertools.pairwise(net.sizes.tolist()))
    for number, (a, b) in enumerate(sizes):
        layer = net.weights[at : at + (a + 1) * b].reshape(a + 1, b)
        at += (a + 1) * b
        layers.append(layer[:-1])
        units = np.einsum("na,ab->nb", units, layer[:-1], optimize=False) + layer[-1]
        if number < len(sizes) - 1:
            units, slope = _activated(net.activation, units)
            slopes.append(slope)
    back = np.broadcast_to(layers[-1][:, 0], (len(inputs), len(layers[-1])))
    for layer, slope in zip(layers[-2::-1], slopes[::-1], strict=True):
        back = np.einsum("nb,ab->na", back * slope, layer, optimize=False)
    return units[:, 0], np.asarray(back)


def _activated(kind: str, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    if kind == "relu":
        return np.maximum(sums, 0.0), (sums > 0.0).astype(np.float64)
    if kind == "tanh":
        units = np.tanh(sums)
        return units, 1.0 - units**2
    units = 1.0 / (1.0 + np.exp(-np.clip(sums, -700.0, 700.0)))
    return units, units * (1.0 - units)
