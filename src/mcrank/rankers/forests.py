"""Rankers that score with a forest: its trees, and scores after each round of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mcrank.arrays import Arrays, FloatArray
from mcrank.boosting.start import tree_of, walk_all
from mcrank.data.dataset import Dataset
from mcrank.errors import OptionError
from mcrank.options import checked, fitted
from mcrank.rankers.base import Ranker
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.forest.sets import checked_sets
from mcrank.threads import run_all


class ForestRanker(Ranker):
    """A ranker that scores with a forest; a subclass writes ``_fit``.

    Attributes
    ----------
    forest_ : Forest
        The trees kept.
    """

    scorer_: Forest = fitted()

    @property
    def forest_(self) -> Forest:
        """The trees kept."""
        return self.scorer_

    def staged_predict(self, X: Dataset | npt.ArrayLike) -> Iterator[FloatArray]:
        """Yield the scores of each row after round 1, 2, ... of those kept, as ``predict(X, rounds=r)``
        would return them, at the cost of one prediction in all.

        Parameters
        ----------
        X : Dataset or array-like of shape (rows, features)
            What to score.

        Examples
        --------
        >>> import mcrank
        >>> train, _, test = mcrank.make_artificial(n_train=20, n_valid=1, n_test=10, seed=1)
        >>> ranker = mcrank.LambdaMART(n_estimators=3).fit(train)
        >>> stages = list(ranker.staged_predict(test))
        >>> len(stages), bool((stages[-1] == ranker.predict(test)).all())
        (3, True)
        """
        return (self.head_.rank(raw) for raw in self._staged_raw(X))

    def _staged_raw(self, X: Dataset | npt.ArrayLike) -> Iterator[FloatArray]:
        features, per_round = self._features(X, "staged_predict"), self._trees_per_round()
        forest = self.scorer_
        n_jobs = self._threads()
        scores = np.repeat(forest.base[:, None], len(features), axis=1)
        for t in range(forest.n_trees):
            output = scores[forest.tree_output[t]]
            walk_all(features, tree_of(forest, t), output, lambda task, items: run_all(task, items, n_jobs))
            if (t + 1) % per_round == 0:
                raw = scores.copy()
                yield X.to_caller(raw.T).T if isinstance(X, Dataset) else raw

    def _trees_per_round(self) -> int:
        rounds, trees = self.best_round_, self.scorer_.n_trees
        return trees // rounds if rounds else 1

    def _first_rounds(self, rounds: int, what: str) -> Forest:
        where = f"{type(self).__name__}.{what}"
        checked(rounds, "rounds", where, low=0, high=2**31 - 1)
        if rounds > self.best_round_:
            raise OptionError(
                f"rounds of {where} must be at most {self.best_round_}, the rounds it keeps, got {rounds}."
            )
        return replace(self.scorer_.part(0, rounds * self._trees_per_round()), base=self.scorer_.base)

    def _scorer_of(self, arrays: Arrays) -> Forest:
        return checked_sets(Forest.from_arrays(arrays), self.categories_, self.feature_names_)
