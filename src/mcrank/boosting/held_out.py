"""Data held out from training: the scores of its rows, which the trees of each round move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.boosting.binning import Bins
from mcrank.boosting.routing import PART, BinColumns, TreeNodes, route
from mcrank.boosting.start import Start, Tree, walk
from mcrank.data.dataset import Dataset
from mcrank.losses.base import Loss
from mcrank.metrics.measure import Measure
from mcrank.sums import ALONE, Sums
from mcrank.threads import run_all


@dataclass
class Validation:
    """Data held out, the measure to watch on it, and how raw scores become ranking scores."""

    data: Dataset
    measure: Measure
    rank: Callable[[FloatArray], FloatArray]
    sums: Sums = ALONE  # who adds up, where each place has some of the data held out


class HeldOut:
    """Raw scores of the validation rows, which the trees of each round move."""

    def __init__(self, valid: Validation, loss: Loss, start: Start) -> None:
        self._valid = valid
        base = np.repeat(loss.base[:, None], valid.data.n_rows, axis=1)
        if start.valid_scores is not None:
            base += loss.raw_of(start.valid_scores)
        self._base, self._raw = base, base
        self._rows: BinColumns | None = None
        self.begin()

    def begin(self) -> None:
        """Forget all trees: those to come are added up in the order in which a forest adds them."""
        self._raw = self._base.copy()

    def after(self, trees: list[tuple[int, Tree]], bins: Bins, n_jobs: int) -> FloatArray:
        """Return the ranking scores after these trees, which were grown on these bins."""
        if self._rows is None:
            self._rows = BinColumns.of(self._valid.data, bins, n_jobs)
        rows, n = self._rows, self._valid.data.n_rows
        scores, nodes = np.empty(n), [TreeNodes.of(tree) for _, tree in trees]

        def move(start: int) -> None:
            # The same parts for any number of threads: a row's score is the same to the last bit.
            end = min(start + PART, n)
            for (output, tree), routed in zip(trees, nodes, strict=True):
                raw = self._raw[output, start:end]
                if not route(rows, routed, start, np.empty(PART, np.uint8), raw):
                    walk(self._valid.data.X[start:end], tree, raw)
            scores[start:end] = self._valid.rank(self._raw[:, start:end])

        run_all(move, range(0, n, PART), n_jobs)
        return scores
