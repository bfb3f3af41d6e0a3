"""McRank: ranking as multiple classification and as multiple ordinal classification (Li, Burges, Wu 2007).

Both learn the probability of each grade with boosted trees; the score is the Expected Relevance, the sum of
probability times T(grade). T is chosen when predicting: the model knows only probabilities.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from mcrank.arrays import Arrays, FloatArray, RowArray
from mcrank.boosting.place import place_of
from mcrank.data.dataset import Dataset
from mcrank.data.folds import parts_by_id
from mcrank.errors import DataError, OptionError
from mcrank.losses.base import Loss
from mcrank.losses.multiclass import MulticlassLoss
from mcrank.losses.ordinal import OrdinalLoss
from mcrank.options import Options, fitted, option
from mcrank.rankers.base import Card, Trained
from mcrank.rankers.few import few_rows
from mcrank.rankers.graded import GradedRanker
from mcrank.rankers.presets import BEST_GRADED, FAST, PAPER, preset_option
from mcrank.rankers.shared_options import choice_option
from mcrank.rankers.trees import TreeRanker
from mcrank.rounds import Callback
from mcrank.scorers.correction import Correction, count, takes_odds
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.heads import Head
from mcrank.sums import exact_sum
from mcrank.training.correcting import correctable, fit_correction, harmless, mean_spread, with_mean
from mcrank.training.odds import fit_odds
from mcrank.training.shares import Shares, grade_shares
from mcrank.training.weights import relative_weight

if TYPE_CHECKING:
    from mcrank.losses.abc import AdaptiveLoss
    from mcrank.losses.classes import ClassLoss
    from mcrank.rankers.stored import Stored


def _init_option(default: str) -> Any:
    words = "start from score 0, as the paper, or from the shares of the grades, ahead in early rounds"
    return choice_option(default, ("zero", "prior"), words)


class GradeRanker(TreeRanker, GradedRanker):
    """What both kinds share: grades mapped to classes, a loss over classes, and a head of grades.

    Attributes
    ----------
    correction_ : Correction or None
        What ``calibrate`` found on held-out queries: a slope and a shift for each grade or boundary, and of
        three grades or more the odds of grades at a score.
    learned_ : Forest
        The trees as boosting left them; `forest_`, which scores, is the same forest corrected.
    """

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": PAPER | {"init": "zero", "calibrate": False, "multi_output": "output"},
        "fast": FAST,
        "best": BEST_GRADED,
    }

    preset: str | None = preset_option("paper", "fast", "best")
    calibrate: bool = option(
        default=True,
        tacit=True,
        help="correct the probabilities of the round that is kept on held-out queries, where there are any",
    )
    init: str = _init_option("zero")
    multi_output: str = option(
        default="output",
        choices=("output", "tree"),
        tacit=True,
        help="each output its own tree a round, or one structure for all, by the sum of their gains",
    )

    learned_: Forest = fitted()
    correction_: Correction | None = fitted()

    def _check_together(self, options: Options) -> None:
        super()._check_together(options)
        if options["multi_output"] == "output":
            return
        for other, why in (
            ("monotone", "the outputs of a split are in no common order"),
            ("min_sum_hessian", "outputs have curvatures of their own"),
        ):
            if options[other]:
                raise OptionError(
                    f"{other} of {type(self).__name__} is for trees of single outputs: with "
                    f"multi_output='tree' {why}; got {options[other]}."
                )

    @abstractmethod
    def _kind(self, n_grades: int, options: Options) -> str:
        """Return the kind of head for so many grades."""

    def _head(self, data: Dataset, options: Options) -> Head:
        grades = options.get("grades")
        if grades is None:
            grades = np.unique(np.concatenate(place_of(options).sums.gather(np.unique(data.y))))
        return Head(self._kind(len(grades), options), grades)

    def _head_of(self, meta: dict[str, Any]) -> Head:
        grades = np.array(meta["grades"], dtype=np.float64)
        return Head(self._kind(grades.size, self.options_), grades)

    def _head_after(self, model: Stored, options: Options) -> Head:
        name, grades = type(self).__name__, model.head_.values
        kind = None if grades is None else self._kind(len(grades), options)
        if kind != model.head_.kind:
            raise OptionError(
                f"init_model of {name}.fit is a {type(model).__name__} with outputs of the kind "
                f"{model.head_.kind!r}; {name} with these options goes on from {kind or 'grades'!r} only."
            )
        return replace(model.head_, odds=None)  # they are of the round that was kept

    def _loss(self, data: Dataset, options: Options) -> Loss | None:
        grades, classes = self.grades_, self._codes(data.y)
        if (classes < 0).any():
            raise DataError(
                f"y of {type(self).__name__} has grade {data.y[np.argmin(classes)]:g}, which the trees it "
                f"starts from do not know; they have {', '.join(f'{grade:g}' for grade in grades)}."
            )
        if len(grades) == 1:
            return None
        weight = relative_weight(data, place_of(options).sums)
        loss = self._class_loss(classes, len(grades), weight, options)
        if options["init"] == "prior":
            loss.start_from_prior()
        return loss

    @abstractmethod
    def _class_loss(
        self, classes: RowArray, n_classes: int, weight: FloatArray | None, options: Options
    ) -> ClassLoss | AdaptiveLoss:
        """Return the loss on class codes."""

    def _fit(self, data: Dataset, valid: Dataset | None, options: Options, callback: Callback) -> Trained:
        trained = super()._fit(data, valid, options, callback)
        if valid is None or "part" in options:  # of one part, all parts together are corrected
            return self._correct(trained, None, data, options)
        raw = trained.scorer.raw(valid.X, options["n_jobs"])
        return self._correct(trained, raw, valid, options, self._shares(data, options))

    def _shares(self, data: Dataset, options: Options) -> Shares | None:
        """Shares of the grades in training."""
        if not options["calibrate"]:
            return None
        sums = place_of(options).sums
        weight = relative_weight(data, sums)
        return grade_shares(self._codes(data.y), len(self.grades_), weight, data.offsets, sums)

    def _correct(
        self,
        trained: Trained,
        raw: FloatArray | None,
        held_out: Dataset,
        options: Options,
        training: Shares | None = None,
    ) -> Trained:
        """Return what was trained, corrected on raw outputs of held-out rows, if there are any."""
        beginning = options.get("beginning")
        # Scores to start from are no part of the model, which could not correct them.
        alone = beginning is None or beginning.init_score is None
        self.correction_ = None
        if raw is not None and options["calibrate"] and alone and count(trained.head):
            place = place_of(options)
            weight, sums = relative_weight(held_out, place.valid_sums), place.valid_sums
            codes, offsets = self._codes(held_out.y), held_out.offsets
            given = codes, trained.head, weight, offsets, sums, training
            kept: Correction | None
            if takes_odds(trained.head) and trained.head.kind == "cumulative":
                # Odds go by the score, and tell as much of one as it was learned: no row changes places.
                n = len(raw)
                usable = correctable(raw, codes, weight, sums)
                kept = Correction(np.ones(n), np.zeros(n)) if usable else None
            else:
                prepared = options["measure"].on(held_out)
                kept = harmless(fit_correction(raw, *given), raw, trained.head, prepared, sums)
            if kept is not None and takes_odds(trained.head):
                kept = replace(kept, odds=fit_odds(kept.applied(raw, trained.head), *given))
            elif kept is not None:
                kept = with_mean(kept, raw, *given)
            self.correction_ = kept
            if place.keeper is not None and self.correction_ is not None:
                place.keeper.finish(self.correction_.to_json())
            trained.rounds.notes += few_rows(codes, trained.head, sums)
        return self._kept(trained)

    def _finished(self, trained: Trained, found: dict[str, Any] | None) -> Trained:
        self.head_ = trained.head
        self.correction_ = Correction.from_json(found, trained.head) if found else None
        return self._kept(trained)

    def _kept(self, trained: Trained) -> Trained:
        """Return what was trained, with the correction that was found."""
        scorer = self._corrected(trained.scorer)
        head = trained.head if self.correction_ is None else self.correction_.head(trained.head)
        return trained._replace(scorer=scorer, head=head)

    def _agreed(self, data: Dataset, options: Options) -> Options:
        return super()._agreed(data, options) | {"grades": np.unique(data.y)}

    def _joined(
        self,
        twins: list[Self],
        trained: list[Trained],
        joined: Trained,
        data: Dataset,
        raw: FloatArray,
        options: Options,
    ) -> tuple[Trained, FloatArray]:
        joined, raw = super()._joined(twins, trained, joined, data, raw, options)
        self.head_ = joined.head
        if options["calibrate"] and count(joined.head):
            # Held-out rows have the outputs of one fit, rows to be scored their mean.
            own = np.repeat(parts_by_id(data, len(trained)), data.sizes)
            fits = (one.scorer.raw(data.X, options["n_jobs"]) for one in trained)
            spread = mean_spread(fits, own, raw, joined.head)
            means = np.array([exact_sum(row) for row in raw])[:, None] / data.n_rows
            raw = means + spread * (raw - means)
        joined = self._correct(joined, raw, data, options)
        return joined, raw if self.correction_ is None else self.correction_.applied(raw, joined.head)

    def _codes(self, grades: FloatArray) -> RowArray:
        """Number of each grade in `grades_`; -1 where it is none of them."""
        known = self.grades_
        classes = np.minimum(np.searchsorted(known, grades), len(known) - 1)
        return np.where(known[classes] == grades, classes, -1).astype(np.int32)

    def _corrected(self, learned: Any) -> Forest:
        """Keep the forest as it was learned, and return it corrected."""
        self.learned_ = learned
        return learned if self.correction_ is None else self.correction_.of(learned, self.head_)

    def _own_state(self) -> tuple[dict[str, Any], Arrays]:
        meta, arrays = super()._own_state()
        said = {} if self.correction_ is None else {"correction": self.correction_.to_json()}
        return meta | said, arrays | self.learned_.to_arrays()

    def _restore(self, meta: dict[str, Any], arrays: Arrays) -> None:
        super()._restore(meta, arrays)
        said = meta.get("correction")
        self.correction_ = None if said is None else Correction.from_json(said, self.head_)
        if self.correction_ is not None:
            self.head_ = self.correction_.head(self.head_)

    def _scorer_of(self, arrays: Arrays) -> Forest:
        return self._corrected(super()._scorer_of(arrays))


class McRank(GradeRanker):
    """McRank by multiple classification (Algorithm 1 of the paper): softmax boosting, one tree per grade
    and round.

    ``base_class="adaptive"`` is ABC-boost: scores sum to zero, a base grade (chosen by trial, see
    ``base_search`` and ``base_gap``) has no tree, and the others' trees are fitted against it; one tree fewer
    a round. With two grades it is the same model as "none". ``sequential=True`` refreshes the probabilities
    before each class tree, as Algorithm 1 is printed, rather than once a round, as Friedman's algorithm (and
    everyone's implementation) does.

    The score is the Expected Relevance, the mean of the probabilities. Where these were corrected on held-out
    queries, a quarter is as learned, and the rest goes by the grades of held-out rows with such a score.

    Examples
    --------
    >>> import mcrank
    >>> train, valid, test = mcrank.make_artificial(n_train=40, n_valid=20, n_test=20, seed=1)
    >>> ranker = mcrank.McRank(n_estimators=20, num_leaves=6).fit(train, valid=valid)
    >>> ranker.predict_proba(test).shape
    (1000, 5)
    >>> bool(ranker.score(test) > 0.4)
    True
    """

    name: ClassVar[str] = "mcrank"
    card: ClassVar[Card] = Card("pointwise", "multiclass logistic", "trees", False)
    presets: ClassVar[dict[str, dict[str, Any]]] = GradeRanker.presets | {
        "paper": GradeRanker.presets["paper"] | {"sequential": False, "base_class": "none"}
    }

    init: str = _init_option("prior")
    sequential: bool = option(
        default=False, help="refresh probabilities before each class tree, as Algorithm 1 is printed"
    )
    base_class: str = option(
        default="none",
        choices=("none", "adaptive"),
        help="a tree for every grade, or for every grade but an adaptive base one (ABC-boost)",
    )
    base_search: int = option(
        default=2,
        low=1,
        high=2**31 - 1,
        help="grades tried as base: those of the largest loss (s of ABC-boost)",
    )
    base_gap: int = option(
        default=5,
        low=0,
        high=2**31 - 1,
        help="rounds between two searches for the base grade (g of ABC-boost)",
    )

    def _class_loss(
        self, classes: RowArray, n_classes: int, weight: FloatArray | None, options: Options
    ) -> ClassLoss | AdaptiveLoss:
        adaptive = options["base_class"] == "adaptive"
        if adaptive and options["sequential"]:
            raise OptionError(
                "sequential of McRank must be False with base_class='adaptive', whose trees of a round all "
                "start from one base; got True."
            )
        sums = place_of(options).sums
        if n_classes == 2 and not options["sequential"]:
            return OrdinalLoss(classes, 2, weight, sums)  # one tree instead of two mirror images
        if not adaptive:
            return MulticlassLoss(classes, n_classes, weight, sums)
        from mcrank.losses.abc import MOST_CLASSES, AdaptiveLoss

        if n_classes > MOST_CLASSES:
            raise DataError(
                f"The training data has {n_classes} grades; base_class='adaptive' of McRank takes at most "
                f"{MOST_CLASSES}."
            )
        return AdaptiveLoss(classes, n_classes, weight, options["base_search"], options["base_gap"], sums)

    def _check_together(self, options: Options) -> None:
        super()._check_together(options)
        if options["multi_output"] == "tree" and (options["sequential"] or options["base_class"] != "none"):
            raise OptionError(
                "multi_output of McRank must be 'output' with sequential=True or base_class='adaptive', "
                "whose trees of a round do not start from the same scores or have one for every grade."
            )
        if options["dart"] and options["base_class"] == "adaptive":
            raise OptionError(
                "dart of McRank must be False with base_class='adaptive': its base grades were chosen with "
                "the trees that would be dropped."
            )

    def _kind(self, n_grades: int, options: Options) -> str:
        if n_grades == 1 or (n_grades == 2 and not options["sequential"]):
            return "cumulative"
        return "base-pairs" if options["base_class"] == "adaptive" else "softmax"


class OrdinalMcRank(GradeRanker):
    """McRank by multiple ordinal classification (section 4): one binary problem per grade boundary, Pr(y >
    k).

    The boundaries are learned apart, so their probabilities may cross. Scores are made of them as they are
    (Expected Relevance does not mind); `predict_proba` tells what grades held-out rows with such a score had,
    whose mean the score then is, or without any the nearest proper distribution. Rows stay in the order that
    was learned.

    Examples
    --------
    >>> import mcrank
    >>> train, valid, test = mcrank.make_artificial(n_train=40, n_valid=20, n_test=20, seed=1)
    >>> ranker = mcrank.OrdinalMcRank(n_estimators=20, num_leaves=6).fit(train)
    >>> bool(abs(ranker.predict_proba(test).sum(axis=1) - 1).max() < 1e-12)
    True
    """

    name: ClassVar[str] = "ordinal"
    card: ClassVar[Card] = Card("pointwise", "cumulative logistic, one per grade boundary", "trees", False)

    def _class_loss(
        self, classes: RowArray, n_classes: int, weight: FloatArray | None, options: Options
    ) -> ClassLoss:
        return OrdinalLoss(classes, n_classes, weight, place_of(options).sums)

    def _kind(self, n_grades: int, options: Options) -> str:
        return "cumulative"
