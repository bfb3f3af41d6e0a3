"""A fitted ranker beside data, as the analyses see them: aligned features, scores, values per query."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mcrank.arrays import BoolArray, FeatureArray, FloatArray
from mcrank.data.alignment import aligned
from mcrank.data.dataset import Dataset
from mcrank.rankers.base import Ranker
from mcrank.rankers.stored import measure_of
from mcrank.scorers.blend import WeightedSum
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.linear import Linear


class View:
    """A ranker and data whose columns are the ranker's; rows are in grouped order."""

    def __init__(self, ranker: Ranker, data: Dataset) -> None:
        named = hasattr(ranker, "feature_names_in_")
        where = "the data of analyze"
        self.ranker = ranker
        self.data = aligned(
            data, ranker.feature_names_, named, ranker.categories_, where, type(ranker).__name__
        )
        self.names = ranker.feature_names_
        self.n_jobs = ranker._threads()
        self.measure = measure_of(ranker.checked_options())
        self._prepared = self.measure.on(self.data)
        self.scores = self.score(self.data.X)
        self.values = self.per_query(self.scores)
        self.unit = "grades" if ranker.head_.values is not None else "score"

    def score(self, X: FeatureArray) -> FloatArray:
        """Scores of rows that have the queries of the data."""
        return self.ranker.head_.rank(self.ranker.scorer_.raw(X, self.n_jobs, self.data.offsets))

    def score_rows(self, X: FeatureArray) -> FloatArray:
        """Scores of any rows; a blend that is standardised in each query takes the scale of its training."""
        scorer = self.ranker.scorer_
        if isinstance(scorer, WeightedSum):
            scorer = replace(scorer, standard=replace(scorer.standard, kind="global"))
        return self.ranker.head_.rank(scorer.raw(X, self.n_jobs))

    def per_query(self, scores: FloatArray) -> FloatArray:
        """The measure of every query; NaN where it does not count."""
        return self._prepared.counted(self._prepared.per_query(scores))

    def mean_interval(
        self, values: FloatArray, queries: BoolArray | None = None
    ) -> tuple[float, float, float]:
        """Mean of values per query that count, weighted as the measure is, and its 95% interval (normal).

        ``queries`` marks those to take the mean of; all by default.
        """
        even = self._prepared.evened(values, queries)
        known = even[np.isfinite(even)]
        if not len(known):
            return float("nan"), float("nan"), float("nan")
        mean = float(known.mean())
        wide = 1.96 * float(known.std(ddof=1)) / len(known) ** 0.5 if len(known) > 1 else float("nan")
        return mean, mean - wide, mean + wide

    def sample(self, most: int) -> FeatureArray:
        """Rows at equal distances, no more than ``most``."""
        step = -(-self.data.n_rows // most)
        return np.array(self.data.X[::step])

    def used(self) -> BoolArray:
        """Which features the scorer looks at; the others cannot matter."""
        scorer, used = self.ranker.scorer_, np.ones(len(self.names), dtype=bool)
        if isinstance(scorer, Forest):
            used[:] = False
            used[scorer.feature[scorer.feature >= 0]] = True
        elif isinstance(scorer, Linear):
            used = (scorer.weights != 0.0) & (scorer.scaling.factor != 0.0)
        return used
