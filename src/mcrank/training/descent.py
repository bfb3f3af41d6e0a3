"""Gradient descent of a net over batches of queries: scores, the loss's slopes, back-propagation, a step.

Ranks and slopes are those of the weights at the time a query is met. A batch is three compiled calls: one for
a whole pass would have to hold the loss, and be compiled once for each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from mcrank.arrays import FeatureArray, FloatArray, IntArray
from mcrank.data.dataset import Dataset
from mcrank.kernels import kernel
from mcrank.losses.lambdas import LambdaLoss
from mcrank.losses.pairs import make_space
from mcrank.losses.pairwise import PairwiseLogistic
from mcrank.scorers.net import ACTIVATIONS, forward, len_units
from mcrank.training.backpropagation import backward, first_weights

OPTIMIZERS = ("adam", "sgd")
LARGEST_WEIGHT = 1e6  # beyond it descent has left the ground: no scaled input needs such a weight
_MEAN_DECAY, _SQUARE_DECAY, _TINY = 0.9, 0.999, 1e-8  # of Adam, as published


class Course(NamedTuple):
    """Everything a pass over the queries reads and writes, as arrays for kernels."""

    X: FeatureArray  # scaled rows
    offsets: IntArray
    row_weight: FloatArray  # empty: all 1
    sizes: IntArray  # units of each layer
    kind: int  # activation
    weights: FloatArray
    mean: FloatArray  # running mean of the gradient (Adam)
    square: FloatArray  # running mean of its square (Adam)
    gradient: FloatArray
    units: FloatArray  # of the rows of a batch
    deltas: FloatArray  # derivatives by them
    scores: FloatArray  # of all rows, when last met
    slopes: FloatArray  # how much the loss falls as a score rises
    curves: FloatArray


class Steps(NamedTuple):
    """How steps are taken."""

    adam: bool
    rate: float
    decay: float  # share of every weight that goes with a step of rate 1
    batch: int  # queries of a step


@kernel()
def score_queries(course, queries):  # type: ignore[no-untyped-def]
    """Score the rows of some queries, keeping every unit for back-propagation."""
    # IN: course, queries  OUT: course.units, scores
    n_features = course.sizes[0]
    n = np.int64(0)
    for q in queries:
        for row in range(course.offsets[q], course.offsets[q + 1]):
            for f in range(n_features):
                course.units[n * n_features + f] = course.X[row, f]
            n += 1
    at = forward(n, course.sizes, course.weights, course.kind, course.units)
    for q in queries:
        for row in range(course.offsets[q], course.offsets[q + 1]):
            course.scores[row] = course.units[at]
            at += 1


@njit(inline="always")
def find_gradient(course, queries):  # type: ignore[no-untyped-def]
    """Turn slopes by scores into the gradient of the mean loss of some queries by every weight."""
    # IN: course.units as score_queries left them, slopes, queries  OUT: course.deltas, gradient
    n = np.int64(0)
    for q in queries:
        n += course.offsets[q + 1] - course.offsets[q]
    at = len_units(n, course.sizes) - n
    for q in queries:
        for row in range(course.offsets[q], course.offsets[q + 1]):
            slope = course.slopes[row] / len(queries)
            course.deltas[at] = -slope if len(course.row_weight) == 0 else -slope * course.row_weight[row]
            at += 1
    for w in range(len(course.gradient)):
        course.gradient[w] = 0.0
    backward(n, course.sizes, course.weights, course.kind, course.units, course.deltas, course.gradient)


@njit(inline="always")
def take_step(course, steps, number):  # type: ignore[no-untyped-def]
    """One step along the gradient, with weight decay apart from it; False when a weight has run away."""
    # IN: course.gradient, steps, number of this step from 1  OUT: course.weights, mean, square
    weights, gradient, mean, square = course.weights, course.gradient, course.mean, course.square
    mean_left = 1.0 - _MEAN_DECAY**number
    square_left = 1.0 - _SQUARE_DECAY**number
    sound = True
    for w in range(len(weights)):
        g = gradient[w]
        if steps.adam:
            mean[w] = _MEAN_DECAY * mean[w] + (1.0 - _MEAN_DECAY) * g
            square[w] = _SQUARE_DECAY * square[w] + (1.0 - _SQUARE_DECAY) * g * g
            g = mean[w] / mean_left / (np.sqrt(square[w] / square_left) + _TINY)
        weights[w] -= steps.rate * (g + steps.decay * weights[w])
        sound &= abs(weights[w]) <= LARGEST_WEIGHT
    return sound


@kernel(allocates=True)
def step_down(course, queries, steps, number):  # type: ignore[no-untyped-def]
    """Turn slopes of the scores of some queries into a step; False when a weight has run away."""
    # IN: course as `score_queries` and the loss left it, queries, steps, number from 1  OUT: course
    find_gradient(course, queries)
    return take_step(course, steps, number)


class Descent:
    """The weights of a net on their way down.

    Parameters
    ----------
    data : Dataset
        Training data; only the bounds of its queries are used.
    X : ndarray of float32
        Its rows, scaled.
    loss : PairwiseLogistic or LambdaLoss
        What is made small.
    sizes : ndarray of int64
        Units of each layer.
    options : dict
        Checked options of the ranker.

    Attributes
    ----------
    course : Course
        ``weights`` as they are now, ``scores`` of the training rows when their queries were last met, and
        scratch.
    rate : float
        Length of the next steps.
    """

    def __init__(
        self,
        data: Dataset,
        X: FeatureArray,
        loss: PairwiseLogistic | LambdaLoss,
        sizes: IntArray,
        options: dict[str, Any],
    ) -> None:
        self._stream = np.random.Generator(np.random.PCG64(options["random_state"]))
        weights = first_weights(sizes, options["activation"], self._stream)
        # A batch has at most as many rows as the longest queries together.
        most = int(np.sort(data.sizes)[::-1][: options["batch_queries"]].sum())
        self.course = Course(
            X,
            np.array(data.offsets),
            np.empty(0) if loss.weight is None else loss.weight,
            sizes,
            ACTIVATIONS[options["activation"]],
            weights,
            *np.zeros((3, len(weights))),
            *np.zeros((2, most * int(sizes.sum()))),
            *np.zeros((3, data.n_rows)),
        )
        self._loss, self._space, self._options = loss, make_space(loss.longest), options
        self._done = 0
        self.rate: float = options["learning_rate"]

    def epoch(self) -> bool:
        """Meet every query once, in random order.

        When the weights run away they are put back, the rate is halved and the answer is False.
        """
        course, loss = self.course, self._loss
        before = course.weights.copy()
        order = self._stream.permutation(len(course.offsets) - 1)
        steps = Steps(
            self._options["optimizer"] == "adam",
            self.rate,
            self._options["l2"],
            self._options["batch_queries"],
        )
        for start in range(0, len(order), steps.batch):
            queries = order[start : start + steps.batch]
            score_queries(course, queries)
            loss.fill_queries(course.scores, queries, self._space, course.slopes, course.curves)
            self._done += 1
            if not step_down(course, queries, steps, self._done):
                break
        else:
            return True
        course.weights[:] = before
        course.mean[:] = 0.0
        course.square[:] = 0.0
        self._done = 0
        self.rate /= 2
        return False
