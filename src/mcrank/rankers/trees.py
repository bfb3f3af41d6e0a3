"""Rankers whose scorer is a forest: boosted trees with the options of the engine, or stumps."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from mcrank.arrays import Array, Arrays, FeatureArray, IntArray
from mcrank.boosting.binning import BINNINGS
from mcrank.boosting.boost import Boosted, BoostOptions, Validation, boost
from mcrank.data.dataset import Dataset
from mcrank.errors import DataError, ModelFileError
from mcrank.losses.base import Loss
from mcrank.losses.quantize import MOST_ROWS
from mcrank.options import Options, fitted, option
from mcrank.rankers.base import Ranker, Trained, stopping_option
from mcrank.rounds import Callback, Rounds
from mcrank.scorers.forest.forest import Forest, ForestBuilder
from mcrank.scorers.heads import Head


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

    def _scorer_of(self, arrays: Arrays) -> Forest:
        return Forest.from_arrays(arrays)


class TreeRanker(ForestRanker):
    """A ranker whose forest is boosted: trees times a loss.

    A subclass says which loss (`_loss`) and, with several outputs, how they become ranking scores
    (`_head`).
    """

    n_estimators: int = option(default=1000, low=1, high=2**31 - 1, help="boosting rounds (M of the paper)")
    num_leaves: int = option(default=10, low=2, high=2**31 - 1, help="leaves of each tree (J)")
    learning_rate: float = option(
        default=0.05, low=0, high=10, open_low=True, help="shrinkage of each tree (nu)"
    )
    max_bins: int = option(
        default=256, low=2, high=65536, help="most bins of a feature (B); above 256 they take 16 bits"
    )
    binning: str = option(default="adaptive", choices=BINNINGS, help="how features are cut into bins")
    min_samples_leaf: int = option(default=10, low=1, high=2**31 - 1, help="fewest rows in a leaf")
    split: str = option(
        default="mse", choices=("mse", "newton"), help="split gain: least squares, or robust LogitBoost"
    )
    subsample: float = option(
        default=1.0, low=0, high=1, open_low=True, help="share of the queries each round sees"
    )
    colsample: float = option(
        default=1.0, low=0, high=1, open_low=True, help="share of the features each tree sees"
    )
    early_stopping_rounds: int | None = stopping_option()
    max_leaf_value: float = option(
        default=1e4,
        low=0,
        high=1e9,
        open_low=True,
        help="largest value of a leaf before shrinkage, against near-certain leaves",
    )
    bin_edges_: FeatureArray = fitted()
    bin_offsets_: IntArray = fitted()

    random_state: int = option(default=0, low=0, high=2**63 - 1, help="seed of all sampling")

    @abstractmethod
    def _loss(self, data: Dataset, options: dict[str, Any]) -> Loss | None:
        """Return the loss on this data; None when there is nothing to learn."""

    def _head(self, data: Dataset, options: dict[str, Any]) -> Head:
        """Return how the outputs of the loss become ranking scores."""
        return Head()

    def _fit(self, data: Dataset, valid: Dataset | None, options: Options, callback: Callback) -> Trained:
        if data.n_rows > MOST_ROWS:
            raise DataError(f"The training data has {data.n_rows} rows; trees take at most {MOST_ROWS}.")
        loss, head = self._loss(data, options), self._head(data, options)
        if loss is None:
            empty = ForestBuilder(data.n_features, [0.0]).build()
            return self._trained(Boosted(empty, None, Rounds(None, None, 0)), head)
        names = BoostOptions.__dataclass_fields__
        settings = BoostOptions(**{name: options[name] for name in names})
        watch = None if valid is None else Validation(valid, options["measure"], head.rank)
        boosted = boost(data, loss, settings, watch, callback, sequential=options.get("sequential", False))
        return self._trained(boosted, head)

    def _trained(self, boosted: Boosted, head: Head) -> Trained:
        bins = boosted.bins
        self.bin_edges_ = np.empty(0, dtype=np.float32) if bins is None else bins.edges
        self.bin_offsets_ = (
            np.zeros(boosted.forest.n_features + 1, dtype=np.int64) if bins is None else bins.offsets
        )
        return Trained(boosted.forest, boosted.rounds, head)

    def _own_state(self) -> tuple[dict[str, Any], Arrays]:
        return {}, {"bin_edges": self.bin_edges_, "bin_offsets": self.bin_offsets_}

    def _restore(self, meta: dict[str, Any], arrays: Arrays) -> None:
        self.bin_edges_, self.bin_offsets_ = _checked_edges(
            arrays["bin_edges"], arrays["bin_offsets"], self.n_features_in_
        )


def _checked_edges(edges: Array, offsets: Array, n_features: int) -> tuple[FeatureArray, IntArray]:
    good = (
        edges.dtype == np.float32
        and offsets.dtype == np.int64
        and offsets.shape == (n_features + 1,)
        and edges.ndim == 1
        and offsets[0] == 0
        and offsets[-1] == len(edges)
        and bool((offsets[1:] >= offsets[:-1]).all())
    )
    if not good:
        raise ModelFileError("bin_edges and bin_offsets do not fit together.")
    inside = np.ones(max(len(edges) - 1, 0), dtype=bool)
    ends = offsets[1:-1]
    inside[ends[(ends > 0) & (ends < len(edges))] - 1] = False  # between two features edges may fall
    if not (np.diff(edges)[inside] > 0).all():
        raise ModelFileError("bin_edges of a feature must rise.")
    return edges, offsets
