"""The mean of several scorers of one kind, as one scorer of that kind: it is scored, exported and explained
like any other.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.boosting.start import tree_of
from mcrank.errors import OptionError
from mcrank.scorers.base import Scorer
from mcrank.scorers.forest.forest import Forest, ForestBuilder
from mcrank.scorers.linear import Linear
from mcrank.scorers.net import MOST_UNITS, Net


def average(scorers: Sequence[Scorer], rounds: int) -> Scorer:
    """Return the scorer whose raw outputs are the mean of those of others.

    Parameters
    ----------
    scorers : sequence of Scorer
        Forests; or linear maps or nets of one scaling and shape.
    rounds : int
        Rounds of the forests: trees of the first round of all come first, then those of the second.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.rankers.average import average
    >>> from mcrank.scorers.linear import Linear
    >>> from mcrank.scorers.scaling import Scaling
    >>> X = np.array([[1.0], [3.0]], dtype=np.float32)
    >>> scaling = Scaling.fit(X, "none")
    >>> average([Linear(np.array([2.0]), scaling), Linear(np.array([4.0]), scaling)], 0).raw(X).tolist()
    [[3.0, 9.0]]
    """
    forests = [scorer for scorer in scorers if isinstance(scorer, Forest)]
    if len(forests) == len(scorers):
        return average_forest(forests, rounds)
    linear = [scorer for scorer in scorers if isinstance(scorer, Linear)]
    if len(linear) == len(scorers):
        return Linear(np.mean([scorer.weights for scorer in linear], axis=0), linear[0].scaling)
    nets = [scorer for scorer in scorers if isinstance(scorer, Net)]
    if len(nets) == len(scorers):
        return _average_net(nets)
    raise OptionError(f"there is no mean of scorers of the kind {type(scorers[0]).__name__}.")


def average_forest(forests: Sequence[Forest], rounds: int) -> Forest:
    """Return one forest with the trees of all, their leaves divided by the number of forests.

    Examples
    --------
    >>> from mcrank.rankers.average import average_forest
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> average_forest([ForestBuilder(1, [value]).build() for value in (1.0, 4.0)], 0).base.tolist()
    [2.5]
    """
    share = 1.0 / len(forests)
    base = np.sum([forest.base for forest in forests], axis=0) * share
    builder = ForestBuilder(forests[0].n_features, base)
    for at in range(rounds):
        for forest in forests:
            for t in range(_begin(forest, at, rounds), _begin(forest, at + 1, rounds)):
                tree = tree_of(forest, t)
                tree["value"] = tree["value"] * share
                builder.append(output=int(forest.tree_output[t]), **tree)
    return builder.build()


def fold_of(forest: Forest, number: int, folds: int, rounds: int) -> Forest:
    """Return the trees that one of ``folds`` forests gave to their `average_forest`, with their own leaves
    (to the last bit where ``folds`` is a power of two) and the base of all.
    """
    per_round = max(forest.n_trees // max(folds * rounds, 1), 1)
    builder = ForestBuilder(forest.n_features, forest.base)
    for t in range(forest.n_trees):
        if (t // per_round) % folds == number:
            tree = tree_of(forest, t)
            tree["value"] = tree["value"] * folds
            builder.append(output=int(forest.tree_output[t]), **tree)
    return builder.build()


def _begin(forest: Forest, at: int, rounds: int) -> int:
    return at * forest.n_trees // rounds


def _average_net(nets: Sequence[Net]) -> Net:
    """Nets side by side: layers between hidden units in blocks, the outputs averaged."""
    sizes = nets[0].sizes.copy()
    sizes[1:-1] *= len(nets)
    if sizes[1:-1].max() > MOST_UNITS:
        raise OptionError(
            f"the mean of {len(nets)} nets has {sizes[1:-1].max()} units in a layer, and a net at most "
            f"{MOST_UNITS}; choose fewer folds, or smaller hidden layers."
        )
    layers = [_layers(net) for net in nets]
    parts: list[FloatArray] = []
    for number in range(len(sizes) - 1):
        weights = [layer[number][0] for layer in layers]
        biases = [layer[number][1] for layer in layers]
        last = number == len(sizes) - 2
        if number == 0:
            joined = np.concatenate(weights, axis=1)
        elif last:
            joined = np.concatenate(weights) / len(nets)
        else:
            joined = _blocks(weights)
        bias = np.mean(biases, axis=0) if last else np.concatenate(biases)
        parts += [joined.ravel(), bias]
    return Net(sizes, nets[0].activation, np.concatenate(parts), nets[0].scaling)


def _layers(net: Net) -> list[tuple[FloatArray, FloatArray]]:
    """Weights (inputs x outputs) and biases of each layer."""
    found, at = [], 0
    for a, b in itertools.pairwise(net.sizes.tolist()):
        found.append((net.weights[at : at + a * b].reshape(a, b), net.weights[at + a * b : at + (a + 1) * b]))
        at += (a + 1) * b
    return found


def _blocks(parts: Sequence[FloatArray]) -> FloatArray:
    rows, columns = np.array([part.shape for part in parts]).sum(axis=0)
    out = np.zeros((rows, columns))
    row = column = 0
    for part in parts:
        out[row : row + part.shape[0], column : column + part.shape[1]] = part
        row, column = row + part.shape[0], column + part.shape[1]
    return out
