"""RankNet (Burges et al. 2005) and LambdaRank (Burges et al. 2006): a small net times the logistic loss of
pairs, plain or weighted by the change of a measure.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from mcrank.arrays import Arrays, FloatArray, IntArray
from mcrank.data.dataset import Dataset
from mcrank.errors import OptionError
from mcrank.losses.lambdas import MOST_PAIRS, LambdaLoss
from mcrank.losses.pairwise import PairwiseLogistic
from mcrank.metrics.kendall import Kendall
from mcrank.metrics.measure import Measure
from mcrank.options import Options, fitted, option
from mcrank.ranges import Between, OneOf
from mcrank.rankers.base import Card, Trained
from mcrank.rankers.linear import WeightedRanker, scaling_of, scaling_option
from mcrank.rankers.shared_options import choice_option, pairs_option, rounds_option, stopping_option
from mcrank.rounds import Callback, Rounds
from mcrank.scorers.net import ACTIVATIONS, Net, layer_sizes, n_weights
from mcrank.training.descent import OPTIMIZERS, Descent
from mcrank.training.weights import relative_weight

_MOST_HALVINGS = 30  # of the rate before training gives up


class NetRanker(WeightedRanker):
    """A ranker whose scorer is a net with one to three hidden layers and one linear output.

    A subclass says which loss (`_loss`) and which measure of the training scores tells a step that was too
    long (`_watched`).

    Attributes
    ----------
    weights_ : ndarray
        Weights and biases of all layers, one behind the other; see `mcrank.scorers.net`.
    scaling_ : Scaling
        How features were scaled, learned from the training rows.
    """

    # Defaults by validation parts. On MQ2008 rates of 1e-4 and 1e-3, 10, 32 and 100 units, tanh and relu lie
    # within chance of each other; 1e-2 is worse. On the artificial data of the papers eight queries a step
    # end higher than one. Where features are counts (MSLR) "log" gains 0.02 to 0.03 over "zscore"; elsewhere
    # the two lie within chance of each other.
    hidden: str = option(
        default="32",
        search=OneOf("16", "32", "64", "64,32"),
        help="units of each hidden layer, such as 32 or 64,32; up to 3 layers",
    )
    activation: str = choice_option("tanh", tuple(ACTIVATIONS), "what a hidden unit computes")
    epochs: int = rounds_option(200, "passes over the training queries")
    early_stopping_rounds: int | None = stopping_option(20, "epochs")
    optimizer: str = option(
        default="adam", choices=OPTIMIZERS, help="Adam, or plain steps halved when the training error rises"
    )
    learning_rate: float = option(
        default=0.001,
        low=0,
        high=10,
        open_low=True,
        search=Between(1e-4, 1e-2, log=True),
        help="length of a step",
    )
    batch_queries: int = option(
        default=8, low=1, high=2**31 - 1, search=Between(2, 64, log=True), help="queries of each step"
    )
    l2: float = option(
        default=0.03,
        low=0,
        high=1,
        search=Between(1e-3, 1.0, log=True),
        help="share of the weights lost with a step of rate 1",
    )
    scaling: str = scaling_option("log")
    sigma: float = option(
        default=1.0, low=0, high=1e6, open_low=True, help="steepness of the logistic curve of a pair"
    )
    random_state: int = option(
        default=0, low=0, high=2**63 - 1, help="seed of first weights and of shuffling"
    )
    scorer_: Net = fitted()

    @abstractmethod
    def _loss(self, data: Dataset, options: dict[str, Any]) -> PairwiseLogistic | LambdaLoss | None:
        """Return the loss on this data; None when no pair of rows says anything."""

    @abstractmethod
    def _watched(self, options: dict[str, Any]) -> Measure:
        """Return the measure of the training scores whose fall halves plain steps."""

    def _fit(self, data: Dataset, valid: Dataset | None, options: Options, callback: Callback) -> Trained:
        sizes = self._sizes(options, data.n_features)
        scaling = scaling_of(data, options)
        net = Net(sizes, options["activation"], np.zeros(n_weights(sizes)), scaling)
        loss = self._loss(data, options)
        if loss is None:
            return Trained(net, Rounds(None, None, 0))  # every row has the score 0
        rounds = Rounds(
            valid, options["measure"], options["epochs"], callback, options["early_stopping_rounds"]
        )
        descent = Descent(data, scaling.apply(data.X, np.float32), loss, sizes, options)
        kept = [net]
        with rounds.until_interrupted():
            self._descend(descent, data, valid, options, rounds, kept)
        return Trained(kept[-1], rounds)

    def _descend(
        self,
        descent: Descent,
        data: Dataset,
        valid: Dataset | None,
        options: dict[str, Any],
        rounds: Rounds,
        kept: list[Net],
    ) -> None:
        """Descend epoch by epoch; the best net so far is kept in the place of the one before."""
        watched = self._watched(options)
        prepared = watched.on(data)
        last = -np.inf
        halvings = 0
        while rounds.n_rounds < options["epochs"]:
            if not descent.epoch():
                halvings += 1
                if halvings > _MOST_HALVINGS:
                    raise OptionError(
                        f"learning_rate of {type(self).__name__} is {options['learning_rate']:g}: the "
                        f"weights ran away however often it was halved; lower it, or choose another scaling."
                    )
                continue
            value = float(prepared.mean(descent.course.scores))
            if value < last and options["optimizer"] == "sgd":
                descent.rate /= 2
            last = value
            net = replace(kept[-1], weights=descent.course.weights.copy())
            scores = None if valid is None else net.raw(valid.X, options["n_jobs"])[0]
            try:
                stop = rounds.after(scores, **{f"training {watched.name}": value})
            finally:  # also when Ctrl-C reaches the callback
                if rounds.improved:
                    kept[-1] = net
            if stop:
                return

    def _joined(
        self, twins: list[Self], trained: list[Trained], joined: Trained, data: Dataset, *rest: Any
    ) -> tuple[Trained, FloatArray]:
        joined, raw = super()._joined(twins, trained, joined, data, *rest)
        # Nets side by side are one wider net, and a model file says its own width.
        rest[-1]["hidden"] = ",".join(map(str, joined.scorer.sizes[1:-1]))  # type: ignore[attr-defined]
        return joined, raw

    def _sizes(self, options: dict[str, Any], n_features: int) -> IntArray:
        return layer_sizes(n_features, options["hidden"], f"hidden of {type(self).__name__}")

    def _restore(self, meta: dict[str, Any], arrays: Arrays) -> None:
        # Fitted again it trains nets of the width it was asked for, not of the width of their mean.
        folds = self.provenance_.get("cross_fitting", {}).get("folds")
        units = self._sizes(self.options_, self.n_features_in_)[1:-1].tolist()
        if type(folds) is int and folds > 1 and not any(size % folds for size in units):
            self.hidden = ",".join(str(size // folds) for size in units)

    def _scorer_of(self, arrays: Arrays) -> Net:
        sizes = self._sizes(self.options_, self.n_features_in_)
        return Net.from_arrays(arrays, self.options_["scaling"], sizes, self.options_["activation"])


class RankNet(NetRanker):
    """A net that makes the logistic loss of all pairs of different grades small; the measure only picks the
    epoch.

    Examples
    --------
    >>> import mcrank
    >>> train, valid, test = mcrank.make_artificial(n_train=40, n_valid=20, n_test=20, seed=1)
    >>> ranker = mcrank.RankNet(epochs=30).fit(train, valid=valid)
    >>> bool(ranker.score(test) > 0.4)
    True
    """

    name: ClassVar[str] = "ranknet"
    card: ClassVar[Card] = Card("pairwise", "logistic loss of pairs", "net", trains_on_measure=False)

    pairs: str = option(
        default="pair",
        choices=("pair", "query"),
        help="every pair weighs 1, or all pairs of a query together",
    )

    def _loss(self, data: Dataset, options: dict[str, Any]) -> PairwiseLogistic | LambdaLoss | None:
        per_query, weight = options["pairs"] == "query", relative_weight(data)
        loss = PairwiseLogistic(data.y, data.offsets, options["sigma"], per_query, weight)
        return None if loss.is_empty else loss

    def _watched(self, options: dict[str, Any]) -> Measure:
        return Kendall()


class LambdaRank(NetRanker):
    """A net driven by lambdas: the logistic slope of every pair times the change of the measure when its two
    rows swap ranks, found anew each time a query is met.

    Examples
    --------
    >>> import mcrank
    >>> train, valid, test = mcrank.make_artificial(n_train=40, n_valid=20, n_test=20, seed=1)
    >>> ranker = mcrank.LambdaRank(measure="map", epochs=30).fit(train, valid=valid)
    >>> bool(ranker.score(test) > 0.4)
    True
    """

    name: ClassVar[str] = "lambdarank"
    card: ClassVar[Card] = Card(
        "listwise", "logistic loss of pairs x change of the measure", "net", trains_on_measure=True
    )

    truncation: int | None = option(
        default=None,
        low=1,
        high=2**31 - 1,
        help="only pairs with a row within so many ranks; None for all the measure looks at",
    )
    max_pairs: int = pairs_option(MOST_PAIRS, "pairs an epoch weighs")

    def _loss(self, data: Dataset, options: dict[str, Any]) -> PairwiseLogistic | LambdaLoss | None:
        prepared = options["measure"].on(data)
        weight = relative_weight(data)
        loss = LambdaLoss(
            prepared,
            options["sigma"],
            options["truncation"],
            weight=weight,
            most=options["max_pairs"],
            owner=type(self).__name__,
        )
        return None if loss.is_empty else loss

    def _watched(self, options: dict[str, Any]) -> Measure:
        measure: Measure = options["measure"]
        return measure
