"""What each feature adds to a score, for whatever a scorer and a head are: forests, linear maps, nets, sums.

Without a background, rows are compared with what training left in the model: a forest with the shares of
training rows that took each branch, a linear map and a net with the mean of the training rows. With a
background, every row is compared with each row of it, and the mean is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mcrank.arrays import FeatureArray, FloatArray, IntArray
from mcrank.errors import DataError
from mcrank.explain.between import forest_between
from mcrank.explain.forest import forest_baseline, forest_contributions
from mcrank.explain.gradients import net_baseline, net_contributions
from mcrank.explain.heads import line_weights
from mcrank.scorers.base import Scorer
from mcrank.scorers.blend import Standard, WeightedSum
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.heads import Head
from mcrank.scorers.linear import Linear
from mcrank.scorers.net import Net


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each feature adds to the score of each row; a row's values and the baseline add up to its score.

    Attributes
    ----------
    baseline : ndarray
        The score of a row of which nothing is known. It has a shape that broadcasts against the sums of
        values: () as a rule, (outputs, 1) for raw outputs where there are several, and (rows,) for a blend
        that is standardised anew in each query.
    values : ndarray of shape (rows, features), or (outputs, rows, features)
        What each feature adds; three dimensions for raw outputs where there are several.
    feature_names : tuple of str
        One name per feature.

    Examples
    --------
    >>> import mcrank
    >>> ranker = mcrank.BestFeature().fit([[5.0, 1.0], [4.0, 2.0], [6.0, 3.0]], [2, 1, 0], qid=[1, 1, 1])
    >>> found = ranker.contributions([[5.0, 1.0]])
    >>> float(found.baseline), found.values.tolist(), found.scores.tolist()
    (-2.0, [[0.0, 1.0]], [-1.0])
    """

    baseline: FloatArray
    values: FloatArray
    feature_names: tuple[str, ...]

    @property
    def scores(self) -> FloatArray:
        """Baseline and values added up."""
        return np.asarray(self.baseline + self.values.sum(axis=-1))

    def __len__(self) -> int:
        """Rows."""
        return int(self.values.shape[-2])


class Explained(NamedTuple):
    """Baseline (outputs, or outputs x rows) and values (outputs, rows, features)."""

    baseline: FloatArray
    values: FloatArray


class Setting(NamedTuple):
    """What contributions depend on beside the rows: a reference row, queries, threads."""

    reference: FeatureArray | None = None
    offsets: IntArray | None = None
    n_jobs: int = 1


def raw_contributions(
    scorer: Scorer, X: FeatureArray, setting: Setting, weights: FloatArray | None = None
) -> Explained:
    """Return contributions to raw outputs, or with ``weights`` (outputs x rows) to their weighted sum.

    The baseline is that of the outputs in either case.
    """
    reference, n_jobs = setting.reference, setting.n_jobs
    if isinstance(scorer, Forest):
        if reference is None:
            return Explained(
                forest_baseline(scorer)[:, None], forest_contributions(scorer, X, weights, n_jobs)
            )
        between = forest_between(scorer, X, reference)
        if weights is not None:
            between = np.einsum("or,orf->rf", weights, between)[None]
        return Explained(scorer.raw(reference[None]), between)
    if isinstance(scorer, Linear):
        scaling = scorer.scaling
        start = scaling.fill if reference is None else scaling.apply(reference[None])[0]
        explained = Explained(
            np.array([[start @ scorer.weights]]), ((scaling.apply(X) - start) * scorer.weights)[None]
        )
    elif isinstance(scorer, Net):
        explained = Explained(
            net_baseline(scorer, reference), net_contributions(scorer, X, reference, n_jobs)[None]
        )
    elif isinstance(scorer, WeightedSum):
        explained = _sum_contributions(scorer, X, setting)
    else:
        raise DataError(
            f"{type(scorer).__name__} gives scores and nothing else: what features add to them is not known."
        )
    return explained if weights is None else explained._replace(values=explained.values * weights[..., None])


def score_contributions(scorer: Scorer, head: Head, X: FeatureArray, setting: Setting) -> Explained:
    """Return contributions to the ranking score, as of one output; they add up to it to rounding error.

    Through a head that is not linear they are carried by its mean gradient on the straight line between the
    raw outputs of the baseline and of the row.
    """
    raw = scorer.raw(X, setting.n_jobs, setting.offsets)
    if head.kind == "identity":
        explained = raw_contributions(scorer, X, setting)
    else:
        start = _raw_baseline(scorer, setting)
        explained = raw_contributions(scorer, X, setting, line_weights(head, start, raw))
        explained = explained._replace(baseline=head.rank(start)[None])
    values = settled(explained.values[0], head.rank(raw) - explained.baseline[0])
    return Explained(explained.baseline, values[None])


def _raw_baseline(scorer: Scorer, setting: Setting) -> FloatArray:
    if setting.reference is None and isinstance(scorer, Forest):
        return forest_baseline(scorer)[:, None]
    return raw_contributions(scorer, np.empty((0, scorer.n_features), dtype=np.float32), setting).baseline


def _sum_contributions(scorer: WeightedSum, X: FeatureArray, setting: Setting) -> Explained:
    """Weighted sum of the contributions of the members, on the scale their scores are brought to."""
    values, parts = np.zeros((1, *X.shape)), []
    baseline: FloatArray = np.zeros((1, 1))
    places = [np.arange(X.shape[1]) if m.columns is None else m.columns for m in scorer.members]
    for member, columns in zip(scorer.members, places, strict=True):
        reference = None if setting.reference is None else setting.reference[columns]
        own = np.take(X, columns, axis=1)
        parts.append(
            score_contributions(member.scorer, member.head, own, setting._replace(reference=reference))
        )
    scores = np.array([(part.baseline + part.values.sum(axis=-1))[0] for part in parts])
    shift, factor = scorer.standard.scale(scores, setting.offsets)
    weights = scorer.weights.tolist()
    for part, columns, weight, s, f in zip(parts, places, weights, shift, factor, strict=True):
        values[0][:, columns] += (weight * f)[:, None] * part.values[0]
        baseline = baseline + weight * f * (part.baseline - s)
    return Explained(baseline, values)


def settled(values: FloatArray, totals: FloatArray) -> FloatArray:
    """Return values (rows x features) that add up to the totals: rounding goes to the largest of each row."""
    if values.size:
        rows = np.arange(len(values))
        values[rows, np.abs(values).argmax(axis=1)] += totals - values.sum(axis=1)
    return values


def explain_scores(
    scorer: Scorer,
    head: Head,
    X: FeatureArray,
    output: str,
    background: FeatureArray | None,
    setting: Setting,
) -> Explained:
    """Return contributions to the score (``output="score"``) or to raw outputs (``"raw"``) of rows.

    Against a background: the mean over its rows, each taken as the reference.
    """
    references: list[FeatureArray | None] = [None] if background is None else list(background)
    baseline: FloatArray = np.zeros((1, 1))
    values: FloatArray = np.zeros((1, 1, 1))
    for reference in references:
        here = setting._replace(reference=reference)
        if output == "raw":
            part = raw_contributions(scorer, X, here)
        else:
            part = score_contributions(scorer, head, X, here)
        baseline = baseline + part.baseline / len(references)
        values = values + part.values / len(references)
    return Explained(baseline, values)


def with_scale_of(scorer: Scorer, query: FeatureArray) -> Scorer:
    """Return the scorer that gives any row the score it would have among the rows of a query.

    Only a blend that is standardised anew in each query is another one then.
    """
    if not isinstance(scorer, WeightedSum) or scorer.standard.kind == "global":
        return scorer
    offsets = np.array([0, len(query)])
    scores = np.array([member.score(query, 1, offsets) for member in scorer.members])
    shift, factor = scorer.standard.scale(scores, offsets)
    return replace(scorer, standard=Standard("global", shift[:, 0], factor[:, 0]))
