"""Regression ranking (section 5 of the McRank paper, after Cossock and Zhang): boost trees on the gain 2^y
- 1.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mcrank.boosting.place import place_of
from mcrank.data.dataset import Dataset
from mcrank.errors import DataError, OptionError
from mcrank.losses.base import Loss
from mcrank.losses.regression import RegressionLoss
from mcrank.options import Options, option
from mcrank.rankers.base import Card
from mcrank.rankers.presets import BEST_GRADED, FAST, PAPER, preset_option
from mcrank.rankers.shared_options import choice_option
from mcrank.rankers.trees import TreeRanker
from mcrank.training.weights import relative_weight

LARGEST_TARGET = 1e100  # its square is still a number


class RegressionRanker(TreeRanker):
    """Boosted regression of grades, or of gains 2^grade - 1 (Algorithm 2 of the paper); the prediction itself
    is the score.

    Gains let the few rows of the highest grades decide every split: regression of grades ranked better on
    seven of eight sets (docs/results/defaults.md). ``preset="paper"`` regresses on gains.

    Examples
    --------
    >>> import mcrank
    >>> train, valid, test = mcrank.make_artificial(n_train=40, n_valid=20, n_test=20, seed=1)
    >>> ranker = mcrank.RegressionRanker(n_estimators=50).fit(train)
    >>> bool(ranker.score(test) > 0.4)
    True
    """

    name: ClassVar[str] = "regression"
    card: ClassVar[Card] = Card("pointwise", "squared or absolute error of the grade or gain", "trees", False)

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": PAPER | {"loss": "l2", "target": "gain"},
        "fast": FAST,
        "best": BEST_GRADED,
    }

    preset: str | None = preset_option("paper", "fast", "best")
    loss: str = option(default="l2", choices=("l2", "lad"), help="least squares, or least absolute deviation")
    target: str = choice_option("grade", ("gain", "grade"), "regress on 2^grade - 1, or on the grade itself")

    def _check_together(self, options: Options) -> None:
        super()._check_together(options)
        if options["loss"] == "lad" and (options["l1"] > 0 or options["l2"] > 0):
            raise OptionError(
                "l1 and l2 of RegressionRanker must be 0 with loss='lad', whose leaves are medians."
            )

    def _loss(self, data: Dataset, options: dict[str, Any]) -> Loss | None:
        with np.errstate(over="ignore"):
            target = np.exp2(data.y) - 1 if options["target"] == "gain" else data.y
        if target.max() > LARGEST_TARGET:
            raise DataError(
                f"y of {type(self).__name__} has grade {data.y.max():g}, whose target {target.max():g} is "
                f"beyond {LARGEST_TARGET:g}; map such grades to smaller numbers."
            )
        sums = place_of(options).sums
        return RegressionLoss(target, options["loss"], relative_weight(data, sums), sums)
