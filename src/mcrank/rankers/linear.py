"""Rankers whose scorer is linear: one weight per scaled feature."""

from __future__ import annotations

from typing import Any

from mcrank.arrays import Arrays, FloatArray
from mcrank.data.dataset import Dataset
from mcrank.options import Options, fitted, option
from mcrank.ranges import OneOf
from mcrank.rankers.base import Ranker
from mcrank.scorers.linear import Linear
from mcrank.scorers.scaling import SCALINGS, Scaling


def scaling_option(default: str) -> Any:
    """Declare ``scaling``, which linear rankers and nets share."""
    return option(
        default=default,
        choices=SCALINGS,
        search=OneOf("zscore", "minmax", "log"),
        help="how features are scaled: not, to variance 1, to 0..1, or log(1 + |x|) to variance 1",
    )


def scaling_of(data: Dataset, options: Options) -> Scaling:
    """Return the scaling of the features: that of this data, or what fits on parts of it agreed in."""
    agreed: Scaling | None = options.get("agreed_scaling")
    return Scaling.fit(data.X, options["scaling"]) if agreed is None else agreed


class WeightedRanker(Ranker):
    """A ranker whose scorer has weights, of scaled features."""

    scorer_: Any = fitted()

    def _agreed(self, data: Dataset, options: Options) -> Options:
        return {"agreed_scaling": Scaling.fit(data.X, options["scaling"])}

    @property
    def weights_(self) -> FloatArray:
        """Weights of the scorer, as it keeps them."""
        weights: FloatArray = self.scorer_.weights
        return weights

    @property
    def scaling_(self) -> Scaling:
        """How features were scaled, learned from the training rows."""
        scaling: Scaling = self.scorer_.scaling
        return scaling


class LinearRanker(WeightedRanker):
    """A ranker whose score is a weighted sum of scaled features; a subclass writes ``_fit``.

    Attributes
    ----------
    weights_ : ndarray of shape (features,)
        Weight of each feature after scaling.
    scaling_ : Scaling
        How features were scaled, learned from the training rows.
    """

    scaling: str = scaling_option("zscore")
    scorer_: Linear = fitted()

    def _scorer_of(self, arrays: Arrays) -> Linear:
        return Linear.from_arrays(arrays, self.options_["scaling"], self.n_features_in_)
