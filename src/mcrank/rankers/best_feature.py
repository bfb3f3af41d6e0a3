"""The best single feature: the floor under every comparison."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mcrank.data.dataset import Dataset
from mcrank.errors import MeasureError
from mcrank.options import Options, option
from mcrank.rankers.base import Card, Trained
from mcrank.rankers.linear import LinearRanker, scaling_of
from mcrank.rounds import Callback, Rounds
from mcrank.scorers.linear import Linear
from mcrank.scorers.scaling import SCALINGS
from mcrank.training.one_feature import feature_values


class BestFeature(LinearRanker):
    """Rank by one feature, high or low values first: the one with the best mean measure on the training data.

    The choice is made on the training data alone; validation data are only measured. A row without the
    feature takes its training mean. Features constant in the training rows are no candidates; where all are,
    every row scores 0. Of equals the feature that comes first wins, high values before low ones.
    Query weights count in the mean, row weights have no meaning here.

    Attributes
    ----------
    weights_ : ndarray of shape (features,)
        1 or -1 at the chosen feature, 0 elsewhere.
    history_ : dict of list
        The measure on the validation data, and as ``"train"`` on the training data.

    Examples
    --------
    >>> import mcrank
    >>> ranker = mcrank.BestFeature().fit([[5.0, 1.0], [4.0, 2.0], [6.0, 3.0]], [2, 1, 0], qid=[1, 1, 1])
    >>> ranker.weights_.tolist(), ranker.history_
    ([0.0, -1.0], {'train': [1.0]})
    """

    name: ClassVar[str] = "best-feature"
    card: ClassVar[Card] = Card("baseline", "the measure itself", "one feature", True)

    scaling: str = option(
        default="none", choices=SCALINGS, help="how the feature is scaled; its order stays the same"
    )

    def _fit(self, data: Dataset, valid: Dataset | None, options: Options, callback: Callback) -> Trained:
        prepared = options["measure"].on(data)
        scaling = scaling_of(data, options)
        weights = np.zeros(data.n_features)
        values = feature_values(data, prepared, scaling, True, options["n_jobs"])
        candidates = np.flatnonzero(scaling.factor > 0.0)
        means = np.array([[prepared.mean_of(values[s, f]) for s in (0, 1)] for f in candidates])
        if np.isnan(means).any():
            raise MeasureError(
                f"{prepared.measure.name} has no value on the training data (no query counts); "
                "choose another measure or other data."
            )
        if len(candidates):
            place, sign = divmod(int(np.argmax(means)), 2)
            weights[candidates[place]] = -1.0 if sign else 1.0
        train = float(means.max()) if len(candidates) else prepared.mean(np.zeros(data.n_rows))
        rounds = Rounds(valid, options["measure"], 1, callback)
        rounds.after(None if valid is None else scaling.scores(valid.X, weights), train=train)
        return Trained(Linear(weights, scaling), rounds)
