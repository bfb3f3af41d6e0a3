"""Coordinate ascent (Metzler and Croft 2007): a linear scorer, searched directly for the highest measure."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.data.dataset import Dataset
from mcrank.options import Options, option
from mcrank.ranges import Between
from mcrank.rankers.base import Card, Trained
from mcrank.rankers.linear import LinearRanker, scaling_of
from mcrank.rankers.shared_options import choice_option, pairs_option
from mcrank.rounds import Callback, Rounds
from mcrank.scorers.linear import Linear
from mcrank.threads import InOrder
from mcrank.training.ascent import MOST_PAIRS, ascend, line_search


class CoordinateAscent(LinearRanker):
    """Linear ranker whose weights are moved one by one to where the training measure is highest.

    Along one weight the measure is a step function, and the exact search finds its highest step; RankLib
    tries a few points instead (``search="grid"``), which is also the way for measures that are not discounted
    sums.
    The best of several restarts is kept, judged on the validation data or else on the training data.

    Examples
    --------
    >>> import mcrank
    >>> train, valid, test = mcrank.make_artificial(n_train=40, n_valid=20, n_test=20, seed=1)
    >>> ranker = mcrank.CoordinateAscent(restarts=2).fit(train, valid=valid)
    >>> bool(ranker.score(test) > 0.3)
    True
    """

    name: ClassVar[str] = "coordinate-ascent"
    card: ClassVar[Card] = Card("listwise", "the measure itself", "linear", True)

    restarts: int = option(default=30, low=1, high=2**31 - 1, help="searches; the best one is kept")
    init: str = choice_option("uniform", ("uniform", "random"), "all weights equal at first, or random")
    search: str = option(
        default="exact",
        choices=("exact", "grid"),
        help="best step of a line, or the best of a grid (always for measures that are not discounted sums)",
    )
    doublings: int = option(default=25, low=1, high=60, help="steps tried in each direction by the grid")
    tol: float = option(
        default=1e-3,
        low=0,
        high=1,
        search=Between(1e-4, 1e-2, log=True),
        help="a restart ends when all weights together gain less than this",
    )
    max_sweeps: int = option(default=100, low=1, high=2**31 - 1, help="most passes over all weights")
    random_state: int = option(default=0, low=0, high=2**63 - 1, help="seed of orders and of random weights")
    max_pairs: int = pairs_option(MOST_PAIRS, "pairs of rows the exact search compares along a line")

    def _fit(self, data: Dataset, valid: Dataset | None, options: Options, callback: Callback) -> Trained:
        scaling = scaling_of(data, options)
        search = line_search(
            options["measure"], data, options["search"], options["doublings"], options["max_pairs"],
            type(self).__name__,
        )  # fmt: skip
        columns = np.ascontiguousarray(scaling.apply(data.X[search.rows]).T)
        held_out = None if valid is None else scaling.apply(valid.X)
        rounds = Rounds(valid, options["measure"], options["restarts"], callback)
        train = f"train {options['measure'].name}"
        prepared = options["measure"].on(data)
        stop = threading.Event()

        def restart(number: int) -> tuple[FloatArray, Any]:
            stream = np.random.default_rng([options["random_state"], number])
            weights = np.ones(data.n_features)
            if options["init"] == "random":
                weights = stream.uniform(-1.0, 1.0, data.n_features)
            return ascend(
                search, columns, weights, stream, options["tol"], options["max_sweeps"], stop.is_set
            )

        found: list[tuple[FloatArray, Any]] = []
        with InOrder[tuple[FloatArray, Any]](options["n_jobs"]) as work:
            try:
                with rounds.until_interrupted():
                    for number in range(options["restarts"]):
                        work.add(partial(restart, number))
                    while len(work):
                        weights, value = work.take()
                        found.append((weights, value))
                        scores = None if held_out is None else np.einsum("ij,j->i", held_out, weights)
                        measured = float(prepared.mean(scaling.scores(data.X, weights)))
                        if rounds.after(scores, **{train: measured}):
                            break
            finally:
                stop.set()
        if valid is None:
            values = [value for _, value in found[: rounds.n_rounds]]
            rounds.best_round = values.index(max(values)) + 1
        return Trained(Linear(found[rounds.best_round - 1][0], scaling), rounds)
