"""Distilling: one regression ensemble that follows the scores of another ranker.

For places that know one sum of trees and nothing else. What it costs is measured on a fifth of the queries,
by an ensemble trained on the others; the one that is kept is trained on all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcrank.data.alignment import aligned
from mcrank.data.dataset import Dataset
from mcrank.data.fingerprint import fingerprint
from mcrank.data.tables import Features
from mcrank.metrics.measure import parse_measure
from mcrank.rankers.base import Ranker
from mcrank.rankers.regression import RegressionRanker
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.heads import Relevance
from mcrank.threads import check_jobs

MEASURE = "ndcg@10"
_HELD_OUT = 5  # one query in so many


class Distilled(NamedTuple):
    """What distilling gave.

    Attributes
    ----------
    ranker : RegressionRanker
        The ensemble; its scores are near those of the first ranker.
    queries : int
        Queries on which both were measured.
    held_out : bool
        Whether they were measured by an ensemble trained without them (there were enough queries).
    flattered : bool
        Whether the first ranker was trained on this data, so that its own figure is too high.
    before, after : float
        NDCG@10 of the first ranker and of the ensemble on them; NaN where no query counts.
    error : float
        Root mean square of the differences of scores on them.
    spread : float
        Standard deviation of the scores of the first ranker on them.
    """

    ranker: RegressionRanker
    queries: int
    held_out: bool
    flattered: bool
    before: float
    after: float
    error: float
    spread: float

    @property
    def words(self) -> str:
        """What it cost, in a sentence."""
        of = "queries held out" if self.held_out else "queries, all trained on"
        words = (
            f"distilled into {self.ranker.forest_.n_trees} trees: {MEASURE} {self.before:.4f} -> "
            f"{self.after:.4f} on {self.queries} {of}; scores are off by {self.error:.2g} (they vary by "
            f"{self.spread:.2g})."
        )
        if self.flattered:
            words += (
                " The model itself was trained on them, which flatters the first figure: compare on others."
            )
        return words


def distil(
    ranker: Ranker,
    data: Dataset,
    *,
    relevance: Relevance | None = None,
    n_estimators: int = 300,
    num_leaves: int = 31,
    learning_rate: float = 0.1,
    n_jobs: int | None = None,
) -> Distilled:
    """Train one regression ensemble on the scores that a ranker gives rows.

    Parameters
    ----------
    ranker : Ranker
        What to follow: any fitted ranker.
    data : Dataset
        Rows like those it will score; grades are used to measure alone.
    relevance : {"grade", "gain"} or sequence of numbers, optional
        What a grade is worth in the scores to follow, for rankers with probabilities.
    n_estimators, num_leaves, learning_rate
        Options of the ensemble.
    n_jobs : int, optional
        Threads; None for every core.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.rankers.distil import distil
    >>> train, _, more = mcrank.make_artificial(n_train=40, n_valid=1, n_test=40, seed=1)
    >>> found = distil(mcrank.McRank(n_estimators=5).fit(train), more, n_estimators=50)
    >>> found.queries, found.held_out, found.flattered, abs(found.after - found.before) < 0.1
    (8, True, False, True)
    """
    named = ranker._named
    rows = aligned(
        data, ranker.feature_names_, named, ranker.categories_, "data of distil", type(ranker).__name__
    )
    model = ranker.exportable(relevance)
    raw = model.scorer.raw(rows.X, check_jobs(n_jobs, "distil"), rows.offsets)
    scores = model.head.rank(raw) if model.values is None else model.head.expected(raw, model.values)
    low = float(scores.min())  # grades are not negative
    names = ranker.feature_names_ if named else None
    features = Features(rows.X, names, (), rows.categories)
    copy = Dataset.of_features(features, scores - low, rows.qid, rows.weight, rows.query_weight)
    options = {"n_estimators": n_estimators, "num_leaves": num_leaves, "learning_rate": learning_rate}

    def follow(part: Dataset) -> RegressionRanker:
        student = RegressionRanker(target="grade", n_jobs=n_jobs, **options).fit(part)  # type: ignore[arg-type]
        forest = student.forest_
        student.scorer_ = Forest.from_arrays(forest.to_arrays() | {"base": forest.base + low})
        return student

    student, tried = follow(copy), np.ones(data.n_queries, dtype=bool)
    trial = student
    if held_out := data.n_queries >= _HELD_OUT:
        tried[np.random.default_rng(0).permutation(data.n_queries)[data.n_queries // _HELD_OUT :]] = False
        trial = follow(copy.select(~tried))
    judged = rows.select(tried)
    prepared = parse_measure(MEASURE).on(judged)
    ours, theirs = scores[np.repeat(tried, data.sizes)], trial.predict(judged)
    return Distilled(
        student,
        judged.n_queries,
        held_out,
        fingerprint(data) == ranker.provenance_.get("data", {}).get("fingerprint"),
        float(prepared.mean(ours)),
        float(prepared.mean(theirs)),
        float(np.sqrt(np.mean((ours - theirs) ** 2))),
        float(ours.std()),
    )
