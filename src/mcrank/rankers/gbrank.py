"""GBRank (Zheng et al. 2007): boosted trees on the pairs that are still in the wrong order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from mcrank.boosting.boost import Boosted
from mcrank.boosting.place import place_of
from mcrank.data.dataset import Dataset
from mcrank.errors import OptionError
from mcrank.losses.base import Loss
from mcrank.losses.hinges import SquaredHinge, ViolationTargets
from mcrank.options import Options, option
from mcrank.ranges import Between
from mcrank.rankers.base import Card, Trained
from mcrank.rankers.shared_options import rate_option, split_option
from mcrank.rankers.trees import TreeRanker
from mcrank.scorers.heads import Head
from mcrank.training.weights import relative_weight

_RATES = {"gradient": 0.1, "average": 1.0}


class GBRank(TreeRanker):
    """Boosted trees on violated pairs: a better row that does not lead by the margin.

    ``form="gradient"`` boosts the squared hinge loss of pairs. ``form="average"`` is the published algorithm:
    each tree regresses on the scores that violated pairs ask for, and the ranking function is a running
    average, F_t = (t F_{t-1} + learning_rate g_t) / (t + 1).

    Examples
    --------
    >>> import mcrank
    >>> train, valid, test = mcrank.make_artificial(n_train=40, n_valid=20, n_test=20, seed=1)
    >>> ranker = mcrank.GBRank(n_estimators=50).fit(train, valid=valid)
    >>> bool(ranker.score(test) > 0.4)
    True
    """

    name: ClassVar[str] = "gbrank"
    card: ClassVar[Card] = Card("pairwise", "squared hinge of violated pairs", "trees", False)

    form: str = option(
        default="gradient",
        choices=("gradient", "average"),
        help="boost the squared hinge loss, or average trees as published",
    )
    learning_rate: float | None = rate_option(  # type: ignore[assignment]
        None, "shrinkage of each tree (nu, eta); None for 0.1, or 1 with form=average"
    )
    split: str = split_option("newton", "second order; form=average is least squares either way")
    margin: float = option(
        default=1.0,
        low=0,
        high=1e6,
        open_low=True,
        search=Between(0.1, 10.0, log=True),
        help="lead that a better row must have (tau)",
    )

    def _rate(self, options: Options) -> float:
        rate: float | None = options["learning_rate"]
        return _RATES[options["form"]] if rate is None else rate

    def _check_together(self, options: Options) -> None:
        super()._check_together(options)
        if options["dart"] and options["form"] == "average":
            raise OptionError("dart of GBRank must be False with form='average', which has its own weights.")

    def _check_continued(self, options: Options, where: str) -> None:
        if options["form"] == "average":
            raise OptionError(
                f"{where} with form='average' has no start but nothing: every round divides all that was "
                "there before anew; choose form='gradient'."
            )

    def _loss(self, data: Dataset, options: dict[str, Any]) -> Loss | None:
        sums = place_of(options).sums
        kind = ViolationTargets if options["form"] == "average" else SquaredHinge
        loss = kind(data.y, data.offsets, options["margin"], relative_weight(data, sums), sums)
        return None if loss.is_empty else loss

    def _trained(self, boosted: Boosted, head: Head) -> Trained:
        if self.form == "average":
            # The engine kept the sum (t + 1) F_t; the ranking function is the average.
            forest = boosted.forest
            average = forest.value / (boosted.rounds.best_round + 1)
            boosted = replace(boosted, forest=replace(forest, value=average))
        return super()._trained(boosted, head)
