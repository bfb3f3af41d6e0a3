"""Boosting with an adaptive base class: rounds of K - 1 trees, and the search for the base (ABC-boost)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.boosting.boost import Booster
from mcrank.boosting.start import Start
from mcrank.losses.abc import AdaptiveLoss
from mcrank.sums import exact_sum


class AdaptiveBooster(Booster):
    """Training with an `AdaptiveLoss`.

    Class scores (`totals`) wait until the base is chosen; `scores` are what the trees of one candidate move.
    """

    loss: AdaptiveLoss

    def _begin(self, start: Start) -> FloatArray:
        self.totals = super()._begin(start)
        self._moves = [np.empty((self.loss.trees_per_round, self.data.n_rows)) for _ in range(2)]
        return self._moves[0]

    def round(self, number: int) -> list[tuple[int, dict[str, Any]]]:
        """Grow the trees of each candidate; keep and apply those of the base with the smallest loss."""
        loss = self.loss
        candidates = self._candidates(number)
        smallest = np.inf
        base, kept = candidates[0], []
        for candidate in candidates:
            loss.base_class = candidate
            trees = self._grow(number)
            if len(candidates) > 1:
                left = exact_sum(loss.losses(self.totals, self.run, self.scores))
                if left >= smallest:
                    continue
                smallest = left
            base, kept = candidate, trees
            self._moves.reverse()  # the next candidate moves the other array
        loss.base_class = base
        self._apply(self._moves[1])
        outputs = [loss.output_of(loss.trained_class(tree), base) for tree in range(loss.trees_per_round)]
        return self._keep(list(zip(outputs, kept, strict=True)))

    def _candidates(self, number: int) -> list[int]:
        """Classes to try as base: those of the largest loss where a search is due, else the base in force."""
        loss = self.loss
        if (number - 1) % (loss.gap + 1):
            return [loss.base_class]
        worst_first = np.argsort(-loss.losses(self.totals, self.run), kind="stable")
        return [int(k) for k in worst_first[: loss.search]]

    def _grow(self, number: int) -> list[Any]:
        self.scores = self._moves[0]
        self.scores[:] = 0.0
        return self._trees(number, *self.sampling.fill(self.totals, number, self.run))

    def _apply(self, moves: FloatArray) -> None:
        for tree in range(self.loss.trees_per_round):
            self.loss.add_moves(tree, moves[tree], self.totals)
