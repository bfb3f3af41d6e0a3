"""LambdaMART (Burges 2010; Wu et al. 2010): boosted trees on lambda gradients."""

from __future__ import annotations

from typing import Any, ClassVar

from mcrank.boosting.place import place_of
from mcrank.data.dataset import Dataset
from mcrank.losses.base import Loss
from mcrank.losses.lambdas import MOST_PAIRS, LambdaLoss
from mcrank.losses.widened import wide_enough
from mcrank.options import option
from mcrank.ranges import OneOf
from mcrank.rankers.base import Card
from mcrank.rankers.presets import BEST, FAST, preset_option
from mcrank.rankers.shared_options import pairs_option, rate_option, split_option
from mcrank.rankers.trees import TreeRanker
from mcrank.training.weights import relative_weight


class LambdaMART(TreeRanker):
    """Boosted trees whose gradients are pairwise logistic, times what a swap of the pair changes the measure.

    Any measure in any dialect can be trained on. A query whose value no ranking can change (no relevant
    document; fewer than k documents under the LETOR dialects) gives no gradient.

    Defaults follow validation data: second-order splits gave .02 more NDCG@10 than least squares on
    artificial and web-like data after 200 rounds, and the same on MQ2008. Lambdas are LightGBM's: of
    ``ndcg@k`` and ``dcg@k`` they look at 30 ranks if k is less, and have its ``norm``. Where few queries
    choose the round, that was .015 ahead of the lambdas of the measure itself, ``truncation=k, norm=False``,
    on 15 of 16 sets (docs/results/lambdas.md).

    Examples
    --------
    >>> import mcrank
    >>> train, valid, test = mcrank.make_artificial(n_train=40, n_valid=20, n_test=20, seed=1)
    >>> ranker = mcrank.LambdaMART(n_estimators=50, measure="ndcg@10").fit(train, valid=valid)
    >>> bool(ranker.score(test) > 0.4)
    True
    """

    name: ClassVar[str] = "lambdamart"
    card: ClassVar[Card] = Card("listwise", "pairwise logistic x change of the measure", "trees", True)

    presets: ClassVar[dict[str, dict[str, Any]]] = {"fast": FAST, "best": BEST}

    preset: str | None = preset_option("fast", "best")
    learning_rate: float = rate_option(0.1)
    split: str = split_option("newton")
    sigma: float = option(
        default=1.0, low=0, high=1000, open_low=True, help="steepness of the logistic curve of a pair"
    )
    truncation: int | None = option(
        default=None,
        low=1,
        high=2**31 - 1,
        help="only pairs with a row within so many ranks; None for all that the measure looks at, and for 30 "
        "with ndcg@k and dcg@k of a smaller k; more than k: as if k were so many",
    )
    norm: bool = option(
        default=True,
        search=OneOf(False, True),
        help="divide by the distance of the scores and scale each query, as LightGBM does",
    )

    max_pairs: int = pairs_option(MOST_PAIRS, "pairs a round weighs")

    def _loss(self, data: Dataset, options: dict[str, Any]) -> Loss | None:
        sums = place_of(options).sums
        measure = options["measure"]
        loss = LambdaLoss(
            measure.on(data),
            options["sigma"],
            wide_enough(measure, options["truncation"]),
            options["norm"],
            relative_weight(data, sums),
            options["max_pairs"],
            type(self).__name__,
            sums,
        )
        return None if loss.is_empty else loss
