"""Where boosting begins: at the loss's own start, at scores that were given, at trees that are there already.

A row's score is a float sum in the order of the trees. Replaying trees in that order gives the scores that
training had, to the last bit, so that rounds trained in two parts are those of one long training.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcrank.arrays import FeatureArray, FloatArray, IntArray
from mcrank.boosting.binning import Bins
from mcrank.boosting.leaves import walk_rows
from mcrank.boosting.routing import TreeNodes
from mcrank.data.dataset import Dataset
from mcrank.losses.base import Loss
from mcrank.losses.quantize import ROWS_PER_TASK, Run, starts
from mcrank.scorers.forest.forest import NODE_DTYPES, Forest
from mcrank.scorers.forest.sets import packed

Tree = dict[str, Any]  # the node arrays of one tree, by name
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Start:
    """What is there before the first new round.

    Attributes
    ----------
    forest : Forest or None
        Rounds of trees to go on from; their base takes the place of the loss's.
    scores, valid_scores : ndarray or None
        Scores (`Loss.n_scores` x rows) of the training and the validation rows beside them. They are no part
        of the forest; with them and no trees the base is 0.
    bins : Bins or None
        Where features are cut, if that is known.
    """

    forest: Forest | None = None
    scores: FloatArray | None = None
    valid_scores: FloatArray | None = None
    bins: Bins | None = None

    def base(self, loss: Loss) -> FloatArray:
        """Score of each output before the first tree."""
        if self.forest is not None:
            return np.array(self.forest.base)
        return loss.base if self.scores is None else np.zeros_like(loss.base)

    def train_scores(self, loss: Loss, data: Dataset, run: Run, n_jobs: int) -> FloatArray:
        """Scores of the training rows as the loss takes them; the loss's base is set."""
        if self.forest is not None and self.scores is None and not loss.adaptive:
            return np.ascontiguousarray(self.forest.raw(data.X, n_jobs))  # the same sums, in the same order
        scores = np.repeat(loss.scores_of(loss.base[:, None]), data.n_rows, axis=1)
        if self.scores is not None:
            scores += self.scores
        if self.forest is not None:
            _replay(loss, self.forest, data.X, scores, run)
        return scores


NOTHING = Start()


def _replay(loss: Loss, forest: Forest, X: FeatureArray, scores: FloatArray, run: Run) -> None:
    per_round = loss.trees_per_round
    for t in range(forest.n_trees):
        if t % per_round == 0:
            loss.begin_round(forest.tree_output[t : t + per_round].tolist())
        moves = np.zeros(len(X))
        walk_all(X, tree_of(forest, t), moves, run)
        loss.add_moves(t % per_round, moves, scores)


def rounds_of(forest: Forest | None, per_round: int) -> Iterator[list[tuple[int, Tree]]]:
    """Yield the trees of each round with their outputs."""
    for first in range(0, 0 if forest is None else forest.n_trees, per_round):
        numbers = range(first, first + per_round)
        yield [(int(forest.tree_output[t]), tree_of(forest, t)) for t in numbers]  # type: ignore[union-attr, arg-type]


def tree_of(forest: Forest, t: int) -> Tree:
    """Return the node arrays of one tree, as its growth gave them."""
    nodes = slice(int(forest.tree_offsets[t]), int(forest.tree_offsets[t + 1]))
    tree: Tree = {name: getattr(forest, name)[nodes].copy() for name in NODE_DTYPES}
    if forest.has_sets:
        used, own = np.unique(np.append(tree["category_set"], -1), return_inverse=True)
        tree["category_set"] = own[:-1].astype(np.int32) - np.int32(1)
        tree |= packed(
            [forest.set_words[forest.set_offsets[s] : forest.set_offsets[s + 1]] for s in used[1:]]
        )
    return tree


def walk(X: FeatureArray, tree: Tree, scores: FloatArray, rows: IntArray = _NONE) -> None:
    """Add to the scores of some rows (none: all) the values of the leaves they fall into."""
    walk_rows(X, rows, TreeNodes.of(tree), scores)


def walk_all(X: FeatureArray, tree: Tree, scores: FloatArray, run: Run) -> None:
    """As `walk`, for all rows, on several threads."""
    step = ROWS_PER_TASK
    run(lambda s: walk(X[s : s + step], tree, scores[s : s + step]), starts(len(X)))
