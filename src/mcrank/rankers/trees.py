"""Rankers of boosted trees, with the options of the engine."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from mcrank.arrays import Arrays, FeatureArray, FloatArray, IntArray
from mcrank.boosting.boost import Boosted, BoostOptions, boost
from mcrank.boosting.cuts import BINNINGS
from mcrank.boosting.held_out import Validation
from mcrank.boosting.place import place_of
from mcrank.boosting.start import NOTHING
from mcrank.data.dataset import Dataset
from mcrank.errors import DataError, OptionError
from mcrank.losses.base import Loss
from mcrank.losses.quantize import MOST_ROWS
from mcrank.options import Options, fitted, option
from mcrank.ranges import Between
from mcrank.rankers.base import Trained
from mcrank.rankers.constraints import (
    categorical_option,
    check_numeric,
    feature_weights_option,
    interaction_option,
    limits_of,
    monotone_option,
    named,
    subset_option,
)
from mcrank.rankers.edges import all_edges, checked_edges
from mcrank.rankers.forests import ForestRanker
from mcrank.rankers.inputs import Given
from mcrank.rankers.presets import least_rows
from mcrank.rankers.shared_options import rate_option, rounds_option, split_option, stopping_option
from mcrank.rounds import Callback, Rounds
from mcrank.scorers.forest.forest import Forest, ForestBuilder
from mcrank.scorers.heads import Head
from mcrank.sums import count_all

if TYPE_CHECKING:
    from mcrank.rankers.start import Beginning
    from mcrank.rankers.stored import Stored


class TreeRanker(ForestRanker):
    """A ranker whose forest is boosted: trees times a loss.

    A subclass says which loss (`_loss`), and how several outputs become ranking scores (`_head`).
    """

    trains_from_disk = True
    n_estimators: int = rounds_option(1000, "boosting rounds (M of the paper)")
    num_leaves: int = option(
        default=10, low=2, high=2**31 - 1, search=Between(4, 64, log=True), help="leaves of each tree (J)"
    )
    learning_rate: float = rate_option(0.05)
    max_bins: int = option(
        default=256, low=2, high=65536, help="most bins of a feature (B); above 256 they take 16 bits"
    )
    binning: str = option(default="adaptive", choices=BINNINGS, help="how features are cut into bins")
    min_samples_leaf: int | None = option(
        default=None,
        low=1,
        high=2**31 - 1,
        search=Between(5, 200, log=True),
        help="fewest rows in a leaf; None for 50, or of fewer than 2000 rows a fortieth, but 10 at least",
    )
    split: str = split_option("mse", "robust LogitBoost")
    subsample: float = option(
        default=1.0,
        low=0,
        high=1,
        open_low=True,
        search=Between(0.5, 1.0),
        help="share of the queries each round sees",
    )
    colsample: float = option(
        default=1.0,
        low=0,
        high=1,
        open_low=True,
        search=Between(0.3, 1.0),
        help="share of the features each tree sees",
    )
    colsample_node: float = option(
        default=1.0, low=0, high=1, open_low=True, tacit=True, help="share of those features each node sees"
    )
    max_depth: int | None = option(
        default=None, low=1, high=2**31 - 1, tacit=True, help="most splits on a path; None for any number"
    )
    l1: float = option(
        default=0.0,
        low=0,
        high=1e9,
        tacit=True,
        help="a leaf's sum of gradients is brought nearer to 0 by this much, in gains and values",
    )
    l2: float = option(
        default=0.0,
        low=0,
        high=1e9,
        tacit=True,
        help="added to what gains and leaf values divide by: rows, weights or curvatures",
    )
    min_sum_hessian: float = option(
        default=0.0,
        low=0,
        high=1e9,
        tacit=True,
        help="least sum in a leaf of what gains divide by: curvatures with split=newton, or rows or weights",
    )
    min_gain: float = option(
        default=0.0, low=0, high=1e9, tacit=True, help="splits must gain more than this, in units of the loss"
    )
    extra_trees: bool = option(
        default=False, tacit=True, help="at each node a feature has one cut, drawn at random"
    )
    feature_weights: dict[Any, float] | list[float] | None = feature_weights_option()
    interaction: list[list[Any]] | None = interaction_option()
    monotone: dict[Any, int] | list[int] | None = monotone_option()
    categorical: list[Any] | None = categorical_option()
    cat_smooth: float = subset_option("cat_smooth")
    cat_l2: float = subset_option("cat_l2")
    max_cat_to_onehot: int = subset_option("max_cat_to_onehot")
    max_cat_threshold: int = subset_option("max_cat_threshold")
    min_data_per_group: int = subset_option("min_data_per_group")
    goss: bool = option(
        default=False,
        tacit=True,
        help="grow trees on the rows with the largest gradients and a few others (top_rate, other_rate)",
    )
    top_rate: float = option(
        default=0.2,
        low=0,
        high=1,
        open_low=True,
        tacit=True,
        help="with goss: share of the rows, those with the largest gradients",
    )
    other_rate: float = option(
        default=0.1,
        low=0,
        high=1,
        open_low=True,
        tacit=True,
        help="with goss: share of the rows drawn from the others, which stand for all of those",
    )
    dart: bool = option(
        default=False,
        tacit=True,
        help="forget some earlier rounds while a round is grown, and shrink them and it in return (DART)",
    )
    drop_rate: float = option(
        default=0.1, low=0, high=1, tacit=True, help="with dart: chance of an earlier round to be dropped"
    )
    skip_drop: float = option(
        default=0.5, low=0, high=1, tacit=True, help="with dart: chance of a round to drop nothing"
    )
    max_drop: int = option(
        default=50, low=1, high=2**31 - 1, tacit=True, help="with dart: most rounds dropped at a time"
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
    warm_start: bool = option(
        default=False,
        scope="python",
        help="fitted again, go on from the trees there are until they are n_estimators rounds",
    )

    def _beginning(
        self, data: Dataset, options: Options, init_model: Any, init_score: Any, valid_init_score: Any
    ) -> Beginning | None:
        from mcrank.rankers.start import Beginning, forest_of

        name = type(self).__name__
        again = options["warm_start"] and self.__sklearn_is_fitted__()
        if again and init_model is not None:
            raise OptionError(f"{name}.fit got init_model, and warm_start=True goes on from its own trees.")
        if again:
            init_model = self
        if init_model is None and init_score is None and valid_init_score is None:
            return None
        model = None if init_model is None else forest_of(init_model, f"init_model of {name}.fit")
        self._check_continued(options, f"{name}.fit")
        if model is not None and model._named and data.named:
            options |= named(options, data, name)  # numbers are those of columns as they were given
        return Beginning(name, model, again, init_score, valid_init_score)

    @classmethod
    def _settled(cls, given: Options) -> set[str]:
        return {"subsample"} if given.get("goss") else set()

    def _check_cluster(self, options: Options) -> None:
        self._check_together(options)

    def _takes_categories(self, options: Options) -> bool:
        return True

    def _check_together(self, options: Options) -> None:
        """Raise `OptionError` where options do not go together."""
        name = type(self).__name__
        if options["goss"] and options["subsample"] < 1:
            raise OptionError(
                f"goss of {name} draws rows and subsample queries (a share of {options['subsample']:g}, as "
                'preset="best" has it): leave goss out, or say subsample=1.'
            )
        if options["goss"] and options["top_rate"] + options["other_rate"] > 1 + 1e-9:
            raise OptionError(
                f"top_rate and other_rate of {name} must add up to at most 1, got {options['top_rate']} and "
                f"{options['other_rate']}."
            )

    def _check_monotone(self, options: Options, head: Head) -> None:
        """Raise `OptionError` where scores would not keep to an order although the trees do."""
        name, beginning = type(self).__name__, options.get("beginning")
        if options["monotone"] is None:
            return
        if head.kind in ("softmax", "base-pairs"):
            raise OptionError(
                f"monotone of {name} must be None with more than two grades: trees of single grades that "
                "keep to an order make no Expected Relevance that does; OrdinalMcRank's boundaries do."
            )
        if beginning is not None and beginning.model is not None:
            before = beginning.model.options_.get("monotone")
            if before != options["monotone"]:
                raise OptionError(
                    f"monotone of {name} must be that of the model it goes on from, {before}, got "
                    f"{options['monotone']}: its trees keep to no other order."
                )

    def _check_dart(self, options: Options, valid: Dataset | None) -> None:
        """Raise `OptionError` where earlier rounds cannot be dropped."""
        name, beginning = type(self).__name__, options.get("beginning")
        if options["dart"] and valid is not None and beginning is not None and beginning.model is not None:
            raise OptionError(
                f"dart of {name} goes on from a model without valid only: the values its trees had after "
                "each earlier round are not in it, so that none of those rounds could be kept."
            )

    def _rate(self, options: Options) -> float:
        """Shrinkage of each tree."""
        return float(options["learning_rate"])

    def _check_continued(self, options: Options, where: str) -> None:
        """Raise `OptionError` where trees trained with these options cannot be gone on from."""

    def _head_after(self, model: Stored, options: Options) -> Head:
        """Return the head of further trees on those of a model, or raise `OptionError`."""
        if model.head_.kind != "identity":
            are = "logs of them" if model.head_.kind == "exp" else "probabilities of grades"
            raise OptionError(
                f"init_model of {type(self).__name__}.fit is of the kind {type(model).__name__}, whose "
                f"outputs are no scores but {are}."
            )
        return model.head_

    def refit(
        self,
        X: Dataset | npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        qid: npt.ArrayLike | None = None,
        weight: npt.ArrayLike | None = None,
        query_weight: npt.ArrayLike | None = None,
        decay: float = 0.9,
        init_score: npt.ArrayLike | None = None,
    ) -> Self:
        """Return a ranker with the same splits and leaf values ``decay`` x old + (1 - decay) x new.

        New values are those training would find, round by round, from the rows that fall into each leaf; a
        leaf no row falls into keeps its value, and so do the start before the first tree, the gains and the
        counts of rows. All rounds are refitted with the options of the last `fit`. ``decay=0`` on the
        training data, of a ranker with one `fit` that sampled nothing, changes nothing. The trees of a
        cross-fitted ranker (``fit(..., folds=)``) are those of several fits: each of them is refitted on all
        rows, and their mean is kept.

        Parameters
        ----------
        X : Dataset or array-like of shape (rows, features)
            A `Dataset`, or a matrix with ``y`` and ``qid`` beside it.
        y, qid, weight, query_weight : array-like
            As in `fit`, when ``X`` is a matrix.
        decay : float
            Share of the old value, from 0 to 1.
        init_score : array-like, optional
            Scores to start from, as in `fit`: needed wherever training had them.

        Examples
        --------
        >>> import mcrank
        >>> train, new, test = mcrank.make_artificial(n_train=20, n_valid=20, n_test=20, seed=1)
        >>> ranker = mcrank.LambdaMART(n_estimators=10).fit(train)
        >>> ranker.refit(new, decay=0.5).forest_.n_trees
        10
        """
        from mcrank.rankers.start import refitted

        self._check_fitted()
        return refitted(self, X, Given(y, qid, weight, query_weight), decay, init_score)

    @abstractmethod
    def _loss(self, data: Dataset, options: Options) -> Loss | None:
        """Return the loss on this data; None when there is nothing to learn."""

    def _head(self, data: Dataset, options: Options) -> Head:
        """Return how the outputs of the loss become ranking scores."""
        return Head()

    def _fit(self, data: Dataset, valid: Dataset | None, options: Options, callback: Callback) -> Trained:
        place = place_of(options)
        rows = count_all(data.n_rows, place.sums)
        if rows > MOST_ROWS:
            raise DataError(f"The training data has {rows} rows; trees take at most {MOST_ROWS}.")
        self._check_together(options)
        self._check_dart(options, valid)
        options |= named(options, data, type(self).__name__)  # as a model file has them
        beginning: Beginning | None = options.get("beginning")
        model = None if beginning is None else beginning.model
        head = self._head(data, options) if model is None else self._head_after(model, options)
        self.head_ = head
        loss = self._loss(data, options)
        if loss is None:
            if beginning is not None:
                beginning.scores(data, valid, 1)  # of no use, and refused if they are wrong
            there = None if beginning is None else beginning.forest(data.categories)
            forest = ForestBuilder(data.n_features, [0.0]).build() if there is None else there
            done = Rounds(None, None, 0)
            for _ in range(0 if model is None else model.best_round_):
                done.replay()
            if place.keeper is not None:
                place.keeper.begin(head, forest.base, 1, None)
            return self._trained(Boosted(forest, None, done), head)
        start = NOTHING if beginning is None else beginning.on(data, valid, loss)
        start = place.resumed(start, loss, data.n_features)
        self._check_monotone(options, head)
        check_numeric(options, data, type(self).__name__)
        names = BoostOptions.__dataclass_fields__
        settings = BoostOptions(
            **{name: options[name] for name in names if name not in ("limits", "memory", "together")}
            | {"learning_rate": self._rate(options), "limits": limits_of(options, data)}
            | {"min_samples_leaf": least_rows(options["min_samples_leaf"], rows)},
            memory=options.get("memory"),
            together=options.get("multi_output") == "tree" and loss.trees_per_round > 1,
        )
        watch = None if valid is None else Validation(valid, options["measure"], head.rank, place.valid_sums)
        sequential, keep = options.get("sequential", False), place.keep(head, loss)
        boosted = boost(data, loss, settings, watch, callback, sequential, start, keep)
        return self._trained(boosted, head)

    def _trained(self, boosted: Boosted, head: Head) -> Trained:
        bins = boosted.bins
        self.bin_edges_ = np.empty(0, dtype=np.float32) if bins is None else bins.edges
        self.bin_offsets_ = (
            np.zeros(boosted.forest.n_features + 1, dtype=np.int64) if bins is None else bins.offsets
        )
        return Trained(boosted.forest, boosted.rounds, head)

    def _corrected(self, learned: Forest) -> Forest:
        return learned

    def _finished(self, trained: Trained, found: dict[str, Any] | None) -> Trained:
        """Return what was trained elsewhere, with what was found when it was done."""
        return trained

    def _agreed(self, data: Dataset, options: Options) -> Options:
        return named(options, data, type(self).__name__)  # as a model file has them

    def _joined(self, twins: list[Self], *rest: Any) -> tuple[Trained, FloatArray]:
        joined = super()._joined(twins, *rest)
        self.bin_edges_, self.bin_offsets_ = all_edges([(t.bin_edges_, t.bin_offsets_) for t in twins])
        return joined

    def _own_state(self) -> tuple[dict[str, Any], Arrays]:
        return {}, {"bin_edges": self.bin_edges_, "bin_offsets": self.bin_offsets_}

    def _restore(self, meta: dict[str, Any], arrays: Arrays) -> None:
        self.bin_edges_, self.bin_offsets_ = checked_edges(
            arrays["bin_edges"], arrays["bin_offsets"], self.n_features_in_
        )
