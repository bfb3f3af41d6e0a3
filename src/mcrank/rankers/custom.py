"""A ranker for a loss of one's own: boosted trees on derivatives that a function gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from mcrank.boosting.place import place_of
from mcrank.data.dataset import Dataset
from mcrank.errors import OptionError
from mcrank.functions import import_function
from mcrank.losses.base import Loss
from mcrank.losses.custom import KNOWN, CustomLoss, loss_name
from mcrank.options import Options, option
from mcrank.rankers.base import Card
from mcrank.rankers.shared_options import rate_option, split_option
from mcrank.rankers.trees import TreeRanker
from mcrank.training.weights import relative_weight


class CustomRanker(TreeRanker):
    """Boosted trees on a function's derivatives, ``loss(scores, grades, offsets) -> (gradient, curvature)``.

    The gradient is the derivative of the loss by a row's score, as in LightGBM and XGBoost (for squared
    error, score minus target), the curvature the second derivative or a bound of it, not negative; query
    ``q`` owns rows ``offsets[q]:offsets[q + 1]``. It is called once a round, plain or compiled, with copies;
    what it returns is checked, and what it raises is a `LossError` that names the round.
    `mcrank.check_gradient` compares it with finite differences. Row weights multiply what it returns.

    A model file has the function's name, not the function: it loads and predicts without it.

    Examples
    --------
    >>> import mcrank, numpy as np
    >>> train, valid, test = mcrank.make_artificial(n_train=40, n_valid=20, n_test=20, seed=1)
    >>> def squared(scores, grades, offsets):
    ...     return scores - grades, np.ones(len(scores))
    >>> ranker = mcrank.CustomRanker(loss=squared, n_estimators=50).fit(train, valid=valid)
    >>> bool(ranker.score(test) > 0.4)
    True
    """

    name: ClassVar[str] = "custom"
    card: ClassVar[Card] = Card("listwise", "a function of yours; by default that of ListNet", "trees", False)

    loss: str | Callable[..., Any] = option(
        default="listnet",
        parse=import_function,
        help="gradient and curvature of the loss: a function of scores, grades and query offsets (on the "
        "command line module:function), or listnet",
    )
    learning_rate: float = rate_option(0.1)
    split: str = split_option("newton")

    def checked_options(self) -> Options:
        """Return every option as a plain value; the loss as it was given."""
        options = super().checked_options()
        if not callable(options["loss"]) and not isinstance(options["loss"], str):
            raise OptionError(
                f"loss of {type(self).__name__} must be a function or 'listnet', got {options['loss']!r}."
            )
        return options

    @classmethod
    def _as_trained(cls, options: Options) -> Options:
        loss = options["loss"]
        return super()._as_trained(options) | {"loss": loss if isinstance(loss, str) else loss_name(loss)}

    def _loss(self, data: Dataset, options: Options) -> Loss:
        loss = options["loss"]
        function = KNOWN.get(loss) if isinstance(loss, str) else loss
        if function is None and callable(self.loss) and loss_name(self.loss) == loss:
            function = self.loss  # options of a fitted ranker have its name
        if function is None:
            raise OptionError(
                f"loss of {type(self).__name__} is {loss!r}, the name of a function, which a model file "
                "keeps; to train or refit, give the function itself: set_params(loss=...)."
            )
        sums = place_of(options).sums
        return CustomLoss(function, data.y, data.offsets, relative_weight(data, sums), sums)
