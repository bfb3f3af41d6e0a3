"""Shapley values of a forest: exact, by the shares of training rows that took each branch.

A feature that is not known to the game is averaged over: at a node that tests it both branches are taken,
each with the share of training rows that went there (path-dependent TreeSHAP). See `mcrank.explain.pieces`
for how trees are cut and `mcrank.explain.tree_kernels` for what is computed.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mcrank.arrays import FeatureArray, FloatArray, IntArray
from mcrank.errors import DataError
from mcrank.explain.pieces import TESTS, Pieces, cut_forest, descend, shares
from mcrank.explain.tree_kernels import (
    LANES,
    Block,
    PieceScratch,
    Plan,
    Quadrature,
    Tables,
    add_pieces,
    fill_tables,
)
from mcrank.scorers.forest.forest import Forest
from mcrank.threads import run_all

_ROWS = 2048  # of a block: the sums of its rows stay in the second cache
_CELLS = 1 << 22  # of the tables that exist at a time: 32 MB
_PARTS = 4  # that tables are cut into for each thread


def forest_baseline(forest: Forest) -> FloatArray:
    """Return the mean of each output over the training rows, as the shares of the branches have it.

    Examples
    --------
    >>> from mcrank.explain.forest import forest_baseline
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> builder = ForestBuilder(n_features=1, base=[0.5])
    >>> builder.append(feature=[0, -1, -1], threshold=[3.0, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
    ...                value=[0, -1.0, 2.0], rows=[8, 6, 2])
    >>> forest_baseline(builder.build()).tolist()
    [0.25]
    """
    check_counts(forest)
    reach, out = np.empty(forest.n_nodes), forest.base.copy()
    descend(forest.arrays, shares(forest), np.empty(forest.n_nodes, dtype=np.int64), reach)
    leaves = np.flatnonzero(forest.feature < 0)
    output = np.repeat(forest.tree_output, np.diff(forest.tree_offsets))[leaves]
    np.add.at(out, output, reach[leaves] * forest.value[leaves])
    return out


def check_counts(forest: Forest) -> None:
    """Raise `DataError` if trees have splits and no counts of training rows at all."""
    roots = forest.tree_offsets[:-1]
    if (forest.feature[roots] >= 0).any() and not forest.rows.any():
        raise DataError(
            "the forest keeps no counts of training rows, which say how often each branch is taken: its "
            "contributions cannot be computed. explain_pair needs no counts."
        )


def forest_contributions(
    forest: Forest, X: FeatureArray, weights: FloatArray | None = None, n_jobs: int = 1
) -> FloatArray:
    """Return the Shapley values of every row: the same bytes for any number of threads and any company.

    Parameters
    ----------
    forest : Forest
        The trees.
    X : ndarray of float32, shape (rows, features)
        Feature values; NaN is a missing value.
    weights : ndarray of shape (outputs, rows), optional
        Weights with which the outputs of a row are added up.
    n_jobs : int, default 1
        Threads.

    Returns
    -------
    ndarray of shape (outputs, rows, features), or (1, rows, features) with weights
        What each feature adds to the baseline.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.explain.forest import forest_contributions
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> builder = ForestBuilder(n_features=2, base=[0.5])
    >>> builder.append(feature=[0, -1, -1], threshold=[3.0, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
    ...                value=[0, -1.0, 2.0], rows=[8, 6, 2])
    >>> forest_contributions(builder.build(), np.array([[1.0, 0.0], [9.0, 0.0]], dtype=np.float32)).tolist()
    [[[-0.75, 0.0], [2.25, 0.0]]]
    """
    check_counts(forest)
    pieces = cut_forest(forest)
    quadrature = quadratures(int(pieces.points.max(initial=0)))
    planes = np.arange(forest.n_outputs) if weights is None else np.zeros(forest.n_outputs, dtype=np.int64)
    if weights is None:
        weights = np.ones((forest.n_outputs, len(X)))
    out = np.zeros((int(planes[-1]) + 1, *X.shape))
    for begin, end in _batches(pieces):
        tables = _tables(begin, end, len(X), pieces)
        cuts = np.linspace(begin, end, _PARTS * n_jobs + 1).astype(np.int64).tolist()

        def fill(part: tuple[int, int], tables: Tables = tables) -> None:
            fill_tables(*part, pieces, quadrature, tables, _scratch(pieces))

        run_all(fill, list(pairwise(cuts)), n_jobs)

        def add(row: int, begin: int = begin, end: int = end, tables: Tables = tables) -> None:
            rows = slice(row, min(row + _ROWS, len(X)))
            count = rows.stop - row
            block = Block(
                X[rows].T.copy(order="C"),
                weights[:, rows].copy(order="C"),
                planes,
                np.zeros(count, dtype=np.int32),
                np.zeros((X.shape[1], count)),
            )
            plan = Plan(forest.arrays, pieces, quadrature, tables)
            add_pieces(begin, end, row, plan, _scratch(pieces), block, out)

        run_all(add, range(0, len(X), _ROWS), n_jobs)
    return out


def quadratures(most: int) -> Quadrature:
    """Return Gauss's points and weights on 0..1 of 1 up to ``most`` points."""
    rules = [np.polynomial.legendre.leggauss(n) for n in range(1, most + 1)]
    points = np.concatenate([np.empty(0), *((1.0 + x) / 2.0 for x, _ in rules)])
    weights = np.concatenate([np.empty(0), *(w / 2.0 for _, w in rules)])
    return Quadrature(points, weights)


def _sizes(pieces: Pieces) -> tuple[IntArray, IntArray]:
    """Cells of the table of each piece by feature, 0 for one too deep; and its features."""
    nodes = np.diff(pieces.node_start)
    return np.where(nodes <= TESTS, 1 << np.minimum(nodes, TESTS), 0), np.diff(pieces.feature_start)


def _batches(pieces: Pieces) -> list[tuple[int, int]]:
    """Cut pieces into runs whose tables exist together; never by the rows, so that sums are the same."""
    cells, features = _sizes(pieces)
    total = np.concatenate(([0], np.cumsum(cells * features)))
    ends = [0]
    while ends[-1] < len(cells):
        last = int(np.searchsorted(total, total[ends[-1]] + _CELLS, side="right")) - 1
        ends.append(max(last, ends[-1] + 1))
    return list(pairwise(ends))


def _tables(begin: int, end: int, rows: int, pieces: Pieces) -> Tables:
    """Return empty tables for the pieces ``begin:end``; for few rows a table costs more than it saves."""
    cells, features = _sizes(pieces)
    size = np.where(cells <= 2 * rows, cells * features, 0)[begin:end]
    ends = np.cumsum(size)
    start = np.full(len(cells), -1, dtype=np.int64)
    start[begin:end] = np.where(size > 0, ends - size, -1)
    return Tables(start, np.empty(int(ends[-1])))


def _scratch(pieces: Pieces) -> PieceScratch:
    def most(ends: IntArray) -> int:
        return int(np.diff(ends).max(initial=0))

    edges, nodes, features = map(most, (pieces.edge_start, pieces.node_start, pieces.feature_start))
    return PieceScratch(
        np.zeros(nodes * LANES, dtype=np.int64),
        np.zeros((edges + 1) * LANES, dtype=np.int64),
        np.zeros((edges + 1) * LANES),
        np.zeros(3 + 6 * edges * int(pieces.points.max(initial=0))),
        np.zeros(features * LANES),
    )
