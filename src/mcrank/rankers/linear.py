"""Rankers whose scorer is linear: one weight per scaled feature."""

from __future__ import annotations

from mcrank.arrays import Arrays, FloatArray
from mcrank.options import fitted, option
from mcrank.rankers.base import Ranker
from mcrank.scorers.linear import Linear
from mcrank.scorers.scaling import SCALINGS, Scaling


class LinearRanker(Ranker):
    """A ranker whose score is a weighted sum of scaled features; a subclass writes ``_fit``.

    Attributes
    ----------
    weights_ : ndarray of shape (features,)
        Weight of each feature after scaling.
    scaling_ : Scaling
        How features were scaled, learned from the training rows.
    """

    scaling: str = option(
        default="zscore",
        choices=SCALINGS,
        help="how features are scaled: not, to variance 1, to 0..1, or log(1 + |x|) to variance 1",
    )
    scorer_: Linear = fitted()

    @property
    def weights_(self) -> FloatArray:
        """Weight of each feature after scaling."""
        return self.scorer_.weights

    @property
    def scaling_(self) -> Scaling:
        """How features were scaled, learned from the training rows."""
        return self.scorer_.scaling

    def _scorer_of(self, arrays: Arrays) -> Linear:
        return Linear.from_arrays(arrays, self.options_["scaling"], self.n_features_in_)
