"""RankSVM (Herbrich and others 2000, Joachims 2002) in the primal, after Chapelle and Keerthi: a linear
scorer and the hinge loss of pairs.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mcrank.arrays import Arrays, FloatArray
from mcrank.data.dataset import Dataset
from mcrank.errors import ModelFileError
from mcrank.options import Options, fitted, option
from mcrank.ranges import Between
from mcrank.rankers.base import Card, Trained
from mcrank.rankers.linear import LinearRanker, scaling_of
from mcrank.rankers.shared_options import choice_option
from mcrank.rounds import Callback, Rounds
from mcrank.scorers.linear import Linear
from mcrank.scorers.scaling import Scaling
from mcrank.training.hinge import PairedRows
from mcrank.training.products import centred_rows, gradient_of, scores_of

PATH = tuple(10.0**power for power in range(-6, 5))  # C of the path, as in the apples-to-apples paper
_NARROWER = 0.25  # each smoothing of the plain hinge is so much narrower than the one before
_NARROWEST = 1e-9
_LITTLE = 0.05  # a step that gains less than this share of the tolerance is the last


class RankSVM(LinearRanker):
    """Linear RankSVM: half the squared length of the weights, plus C times the hinge loss of all pairs.

    Pairs are never made: gradients and second derivatives come from sorted scores, in O(n log n).

    Attributes
    ----------
    C_ : float
        Cost of the model kept.

    Examples
    --------
    >>> import mcrank
    >>> train, valid, test = mcrank.make_artificial(n_train=40, n_valid=20, n_test=20, seed=1)
    >>> ranker = mcrank.RankSVM().fit(train, valid=valid)
    >>> bool(ranker.score(test) > 0.3)
    True
    """

    name: ClassVar[str] = "ranksvm"
    card: ClassVar[Card] = Card("pairwise", "hinge, squared or plain", "linear", False)

    C: float | None = option(
        default=None,
        low=0,
        high=1e12,
        open_low=True,
        search=Between(1e-6, 1e4, log=True),
        help="cost of a pair; None: the best of 1e-6 to 1e4 on validation data, and without any the cost at "
        "which the pairs of a query weigh 1 on average",
    )
    loss: str = option(
        default="squared", choices=("squared", "plain"), help="squared hinge, or plain as in SVM-rank"
    )
    pairs: str = choice_option(
        "pair", ("pair", "query"), "every pair weighs 1, or all pairs of a query together"
    )
    tol: float = option(
        default=1e-3, low=0, high=1, open_low=True, help="stop this close to the least objective, as a share"
    )
    max_iter: int = option(default=1000, low=1, high=2**31 - 1, help="most Newton steps for one C")
    C_: float = fitted()

    def _fit(self, data: Dataset, valid: Dataset | None, options: Options, callback: Callback) -> Trained:
        scaling = scaling_of(data, options)
        paired = PairedRows.of(data, options["pairs"] == "query")
        problem = None if paired is None else Problem(data, scaling, paired)
        path = (options["C"],) if options["C"] is not None else PATH
        if options["C"] is None and valid is None:
            path = (1.0 if problem is None else len(problem.paired.rows.n_levels) / problem.paired.total,)
        held_out = None if valid is None else scaling.apply(valid.X)
        rounds = Rounds(valid, options["measure"], len(path), callback)
        weights = np.zeros(data.n_features)
        solved: list[FloatArray] = []
        with rounds.until_interrupted():
            for C in path:
                objective = 0.0
                if problem is not None:
                    weights, objective = problem.solve(C, weights, options)
                scores = None if held_out is None else np.einsum("ij,j->i", held_out, weights)
                solved.append(weights)
                if rounds.after(scores, C=C, objective=objective) or problem is None:
                    break
        self.C_ = path[rounds.best_round - 1]
        return Trained(Linear(solved[rounds.best_round - 1], scaling), rounds)

    def _own_state(self) -> tuple[dict[str, Any], Arrays]:
        return {"C": self.C_}, {}

    def _restore(self, meta: dict[str, Any], arrays: Arrays) -> None:
        C = meta["C"]
        if not isinstance(C, float) or not C > 0:
            raise ModelFileError(f"C must be a number > 0, got {C!r}.")
        self.C_ = C


class Problem:
    """The objective of RankSVM on one data set, for any C."""

    def __init__(self, data: Dataset, scaling: Scaling, paired: PairedRows) -> None:
        self.paired = paired
        chosen = data if paired.queries.all() else data.select(paired.queries)
        self.X = centred_rows(chosen, scaling)

    def solve(self, C: float, start: FloatArray, options: dict[str, Any]) -> tuple[FloatArray, float]:
        """Return the weights for one C, and the objective there.

        The plain hinge has no second derivative; it is replaced by smooth ones, below it by at most half
        their width, that get narrower until the two objectives differ by less than the tolerance.
        """
        tol, squared = options["tol"], options["loss"] == "squared"
        if squared:
            return Newton(self, C, np.inf, 1.0).least(start, tol, options["max_iter"])
        weights, width = start, 1.0
        while True:
            smooth = Newton(self, C, width, 0.5 / width)
            # A quarter of the tolerance is for the smooth problem, the rest for its distance.
            weights, below = smooth.least(weights, 0.25 * tol, options["max_iter"])
            objective = Newton(self, C, _NARROWEST, 0.5 / _NARROWEST).value(weights)[0]
            if objective - below <= 0.75 * tol * objective or width <= _NARROWEST:
                return weights, objective
            width *= _NARROWER


class Newton:
    """One smooth objective, and its least value by a trust-region Newton method.

    Everything is divided by the objective at 0, so that tolerances mean the same for every C.
    """

    def __init__(self, problem: Problem, C: float, width: float, curve: float) -> None:
        self.X, self.paired = problem.X, problem.paired
        self.C, self.width, self.curve = C, width, curve
        at_zero = curve if width >= 1.0 else 1.0 - 0.5 * width
        self.unit = C * at_zero * self.paired.total
        self._at: FloatArray | None = None

    def value(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient."""
        self._move(weights)
        return self._value, self._gradient

    def _move(self, weights: FloatArray) -> None:
        if self._at is not None and np.array_equal(self._at, weights):
            return
        scores = scores_of(self.X, weights)
        self._order = self.paired.order(scores)
        loss, push = self.paired.loss(self._order, scores, self.width, self.curve)
        self._at, self._scores = weights.copy(), scores
        self._value = 0.5 * float(weights @ weights) + self.C * loss
        self._gradient = weights + self.C * gradient_of(self.X, push)

    def _curvature(self, weights: FloatArray, direction: FloatArray) -> FloatArray:
        self._move(weights)
        moved = scores_of(self.X, direction)
        bent = self.paired.curvature(self._order, self._scores, self.width, self.curve, moved)
        return np.asarray((direction + self.C * gradient_of(self.X, bent)) / self.unit)

    def least(self, start: FloatArray, tol: float, max_iter: int) -> tuple[FloatArray, float]:
        """Return the weights where the objective is least, to a share ``tol`` of it, and its value.

        The objective curves at least as much as half the squared length of the weights does, so half the
        squared length of the gradient bounds what is left to gain. Where C is large that asks too much, and
        a Newton step that gains next to nothing is the sign: the next would gain less.
        """
        from scipy.optimize import minimize

        self._move(start)
        last, last_value = start, self._value

        def near() -> bool:
            return bool(0.5 * (self._gradient @ self._gradient) <= tol * self._value)

        def scaled(weights: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = self.value(weights)
            return value / self.unit, gradient / self.unit

        def stop_when_near(intermediate_result: Any) -> None:
            nonlocal last, last_value
            if np.array_equal(intermediate_result.x, last):
                return  # a step not taken
            self._move(intermediate_result.x)
            gained = last_value - self._value
            last, last_value = intermediate_result.x.copy(), self._value
            if near() or gained <= _LITTLE * tol * self._value:
                raise StopIteration

        if near():
            return start, self._value
        found = minimize(
            scaled,
            start,
            jac=True,
            hessp=self._curvature,
            method="trust-ncg",
            callback=stop_when_near,
            options={
                "gtol": 1e-14,
                "maxiter": max_iter,
                "initial_trust_radius": max(1.0, float(np.linalg.norm(start))),
                "max_trust_radius": 1e100,
            },
        )
        self._move(found.x)
        return found.x, self._value
