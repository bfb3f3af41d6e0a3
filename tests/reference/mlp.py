"""Nets by matrices, one query at a time: twin of scorers/net.py and training/descent.py."""

from __future__ import annotations

import itertools

import numpy as np


def layers(sizes, weights):
    """Matrix and bias of each layer, from the flat array."""
    out, at = [], 0
    for a, b in itertools.pairwise(sizes):
        out.append((weights[at : at + a * b].reshape(a, b), weights[at + a * b : at + a * b + b]))
        at += (a + 1) * b
    return out


ACTIVATION = {
    "tanh": (np.tanh, lambda u: 1 - u**2),
    "sigmoid": (lambda x: (1 + np.tanh(x / 2)) / 2, lambda u: u * (1 - u)),
    "relu": (lambda x: np.maximum(x, 0), lambda u: (u > 0).astype(float)),
}


def units(X, sizes, weights, activation):
    """Units of every layer, the inputs first."""
    out = [np.asarray(X, dtype=float)]
    net = layers(sizes, weights)
    for number, (matrix, bias) in enumerate(net):
        sums = out[-1] @ matrix + bias
        out.append(sums if number == len(net) - 1 else ACTIVATION[activation][0](sums))
    return out


def scores(X, sizes, weights, activation):
    return units(X, sizes, weights, activation)[-1][:, 0]


def gradient(X, sizes, weights, activation, by_score):
    """Gradient by every weight of a loss whose derivatives by the scores are given."""
    net, values = layers(sizes, weights), units(X, sizes, weights, activation)
    delta = np.asarray(by_score, dtype=float)[:, None]
    parts = []
    for number in range(len(net) - 1, -1, -1):
        below = values[number]
        parts = [(below.T @ delta).ravel(), delta.sum(axis=0), *parts]
        if number:
            delta = (delta @ net[number][0].T) * ACTIVATION[activation][1](below)
    return np.concatenate(parts)


def logistic_loss(scores, grades, sigma):
    """Loss of all pairs of one query."""
    total = 0.0
    for i in range(len(scores)):
        for j in range(len(scores)):
            if grades[i] > grades[j]:
                total += np.log1p(np.exp(-sigma * (scores[i] - scores[j])))
    return total


def logistic_slopes(scores, grades, sigma):
    """How much the loss of one query falls as each score rises."""
    slopes = np.zeros(len(scores))
    for i in range(len(scores)):
        for j in range(len(scores)):
            if grades[i] > grades[j]:
                slope = sigma / (1 + np.exp(sigma * (scores[i] - scores[j])))
                slopes[i] += slope
                slopes[j] -= slope
    return slopes


def adam(gradients, weights, rate, decay):
    """Weights after a step along each gradient, which may depend on the weights."""
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for number, gradient_at in enumerate(gradients, start=1):
        g = gradient_at(weights)
        mean = 0.9 * mean + 0.1 * g
        square = 0.999 * square + 0.001 * g**2
        step = (mean / (1 - 0.9**number)) / (np.sqrt(square / (1 - 0.999**number)) + 1e-8)
        weights = weights - rate * (step + decay * weights)
    return weights


def plain(gradients, weights, rate, decay):
    """As `adam`, with plain steps."""
    for gradient_at in gradients:
        weights = weights - rate * (gradient_at(weights) + decay * weights)
    return weights
