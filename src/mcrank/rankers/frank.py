"""FRank (Tsai, Liu, Qin, Chen and Ma 2007): boosting on the fidelity loss of pairs.

For a pair with grades y_i > y_j and P = 1 / (1 + exp(s_j - s_i)) the loss is 1 - √P: at most 1, whatever the
scores, so that no pair of a noisy query can take over. With the slope ½ √P (1 - P) as its weight, a pair acts
on stumps as in RankBoost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numba import types

from mcrank.arrays import BoolArray, FloatArray, IntArray
from mcrank.boosting.place import place_of
from mcrank.data.dataset import Dataset
from mcrank.errors import OptionError
from mcrank.kernels import kernel
from mcrank.losses.base import Loss
from mcrank.losses.boxes import LONG
from mcrank.losses.pairwise import PAIRS, FidelityLoss
from mcrank.options import Options, option
from mcrank.ranges import Between
from mcrank.rankers.base import Card, Trained
from mcrank.rankers.shared_options import pair_weights_option, rate_option, rounds_option
from mcrank.rankers.trees import TreeRanker
from mcrank.rounds import Callback
from mcrank.scorers.heads import Head
from mcrank.training.boxed_fidelity import LongQuery
from mcrank.training.stumps import NOTHING, ROOTS, Stump, StumpBoosting, boost_stumps, centre, sum_bins
from mcrank.training.weights import relative_weight

_LARGEST = 10.0  # alpha: where no pair is ordered badly the loss falls for ever, though by nothing
_STEPS = 12
_F = types.float64[::1]


class FRank(TreeRanker):
    """Boosting on the fidelity loss of pairs, of stumps as published or of trees.

    A stump 1[x > threshold] that orders pairs of weight W+ well and of weight W- badly is first judged by
    (√W+ - √W-)², as if the loss were exponential with α = ½ ln(W+/W-). The loss itself decides among the best
    few, and Newton's method on it finds the α of the winner.

    Of the options of trees, stumps use ``n_estimators``, ``learning_rate``, ``max_bins``, ``binning`` and
    ``early_stopping_rounds``. A missing value is below the threshold of a stump. Under a stump a pair weighs
    the product of the weights of its rows, times the weight of its query; trees weigh rows.

    Attributes
    ----------
    forest_ : Forest
        The stumps, as trees of two leaves, or trees kept.
    history_ : dict of list
        After each round the measure on the validation data, and with stumps ``loss``, that of the training
        data as a share of the loss before the first round.

    Examples
    --------
    >>> import mcrank
    >>> train, valid, test = mcrank.make_artificial(n_train=40, n_valid=20, n_test=20, seed=1)
    >>> ranker = mcrank.FRank(n_estimators=30).fit(train, valid=valid)
    >>> ranker.forest_.n_trees == ranker.best_round_
    True
    """

    name: ClassVar[str] = "frank"
    card: ClassVar[Card] = Card("pairwise", "fidelity of pairs", "stumps", False)

    scorer: str = option(default="stumps", choices=("stumps", "trees"), help="what is boosted")
    pairs: str = pair_weights_option("query")
    candidates: int = option(
        default=8,
        low=1,
        high=2**31 - 1,
        search=Between(1, 32, log=True),
        help="stumps, each the best of its feature, the loss decides among",
    )
    n_estimators: int = rounds_option(500, "rounds, each adding a stump or tree")
    learning_rate: float = rate_option(0.1, "shrinkage of each stump or tree; 1 as published")

    def _takes_categories(self, options: Options) -> bool:
        return bool(options["scorer"] == "trees")

    def _check_continued(self, options: dict[str, Any], where: str) -> None:
        if options["scorer"] == "stumps":
            raise OptionError(f"{where} with scorer='stumps' starts from nothing; choose scorer='trees'.")

    def _check_kept(self, options: Options) -> None:
        if options["scorer"] == "stumps":
            raise OptionError(
                "journal of FRank.fit is for scorer='trees'; stumps are fitted again from the start."
            )

    def _check_cluster(self, options: dict[str, Any]) -> None:
        if options["scorer"] == "stumps":
            raise OptionError("FRank on a cluster boosts trees only; choose scorer='trees'.")
        super()._check_cluster(options)

    def _loss(self, data: Dataset, options: dict[str, Any]) -> Loss | None:
        sums = place_of(options).sums
        weight, per_query = relative_weight(data, sums), options["pairs"] == "query"
        loss = FidelityLoss(data.y, data.offsets, per_query=per_query, weight=weight, sums=sums)
        return None if loss.is_empty else loss

    def _fit(self, data: Dataset, valid: Dataset | None, options: Options, callback: Callback) -> Trained:
        if options["scorer"] == "trees":
            return super()._fit(data, valid, options, callback)
        if options.get("memory") is not None:
            raise OptionError("memory of FRank.fit is for scorer='trees'; stumps are trained in memory.")
        for name in ("monotone", "interaction", "feature_weights", "categorical", "goss", "dart"):
            if options[name] != self.declared_options[name].default:
                raise OptionError(f"{name} of FRank is for scorer='trees'; stumps know nothing of it.")
        return self._trained(boost_stumps(_Fidelity, data, valid, options, callback), Head())


Along = Callable[[float], FloatArray]


class _Fidelity(StumpBoosting):
    """Boosting of stumps on the fidelity loss of pairs."""

    def __init__(self, data: Dataset, options: dict[str, Any]) -> None:
        super().__init__(data, options)
        self.rate, self.candidates = options["learning_rate"], options["candidates"]
        self.total = self.binned.room()

    def start(self) -> None:
        """Set the long queries apart: their pairs are never gone through one by one."""
        pairs = self.pairs
        sizes = pairs.ends - pairs.starts
        self.long: list[LongQuery] = []
        for q in np.flatnonzero((sizes >= LONG) & (pairs.factor > 0.0)).tolist():
            rows = slice(int(pairs.starts[q]), int(pairs.ends[q]))
            own = (pairs.order[rows], pairs.worth[rows], self.weight[rows], float(pairs.factor[q]))
            self.long.append(LongQuery(rows, *own))
            pairs.factor[q] = 0.0
        self.pairs = pairs._replace(longest=int(sizes[sizes < LONG].max(initial=0)))  # of the others

    def weigh(self) -> float:
        """Fill the pull of all pairs on every row; return the loss."""
        loss = float(pull_fidelity(self.pairs, self.weight, self.scores, self.up, self.pull))
        return loss + sum(query.pull(self.scores, self.pull) for query in self.long)

    def next(self) -> tuple[Stump, float] | None:
        """Return the stump that lowers the loss most, of the best few, and its value."""
        binned = self.binned

        def fill(part: slice, places: IntArray) -> None:
            columns = binned.columns[part]
            sum_bins(columns, self.pull, places, self.net)
            sum_separated_pairs(columns, self.pairs, self.weight, self.up, places, self.total)
            for query in self.long:
                query.add_separated(columns, places, self.total)

        binned.over_features(fill)
        tried = []
        for stump in binned.best(self.net, self.total, ROOTS, self.candidates):
            along, alpha = self._along(binned.above(stump)), stump.step(stump.total)
            tried.append((along(alpha)[0], stump, along, alpha))
        if not tried:
            return None
        _, stump, along, alpha = min(tried, key=lambda found: found[0])
        alpha, change = _descend(along, alpha)
        if not change < -NOTHING * self.first_loss:
            return None
        return stump._replace(merit=-change), self.rate * alpha

    def _along(self, above: BoolArray) -> Along:
        """Return how the loss changes with the alpha of a stump: by how much, the slope, the curvature and a
        bound of that.
        """
        long = [(query, query.along(above)) for query in self.long]

        def change(alpha: float) -> FloatArray:
            out = np.zeros(4)
            try_fidelity(above, self.pairs, self.weight, self.up, float(alpha), out)
            for query, near in long:
                out += query.change(near, float(alpha))
            return out

        return change


def _descend(change: Along, alpha: float) -> tuple[float, float]:
    """Newton's method on the loss along one stump, from a first guess; never ends above its start."""
    now = change(alpha)
    if now[0] >= 0.0:
        alpha, now = 0.0, change(0.0)
    for _ in range(_STEPS):
        # The loss is not convex: where it bends the wrong way, or hardly, its bound takes the place.
        bend = now[2] if now[2] > 0.2 * now[3] else now[3]
        step = -now[1] / bend if bend > 0.0 else 0.0
        step = float(np.clip(alpha + step, -_LARGEST, _LARGEST) - alpha)
        following = change(alpha + step)
        while following[0] > now[0] and abs(step) > 1e-6:
            step /= 2
            following = change(alpha + step)
        if following[0] > now[0]:
            break
        alpha, now = alpha + step, following
        if abs(step) < 1e-5 * (1.0 + abs(alpha)):
            break
    return alpha, float(now[0])


@kernel(types.float64(PAIRS, _F, _F, _F, _F))
def pull_fidelity(pairs, weight, scores, up, pull):  # type: ignore[no-untyped-def]
    """Fill the pull of all pairs on every row, √P (1 - P) each, and return the loss."""
    # IN: pairs, weight, scores  OUT: up (exp of the centred score), pull
    worth, order, starts, ends, factor, _ = pairs
    total = 0.0
    for q in range(len(starts)):
        s, n = starts[q], ends[q] - starts[q]
        centre(scores[s : s + n], up[s : s + n], pull[s : s + n])
        if factor[q] == 0.0:
            continue
        first = 0
        for a in range(n):
            i = s + order[s + a]
            while first < n and worth[s + order[s + first]] == worth[i]:
                first += 1
            for b in range(first, n):
                j = s + order[s + b]
                p = up[i] / (up[i] + up[j])
                root = np.sqrt(p)
                weighs = factor[q] * weight[i] * weight[j]
                slope = weighs * root * (1.0 - p)
                pull[i] += slope
                pull[j] -= slope
                total += weighs * (1.0 - root)
    return total


@kernel(
    types.void(types.uint16[:, ::1], PAIRS, _F, _F, types.int64[::1], _F),
    fastmath={"reassoc"},
    allocates=True,
)
def sum_separated_pairs(columns, pairs, weight, up, places, out):  # type: ignore[no-untyped-def]
    """Change of the weight of all pairs a threshold separates when it falls below each bin, by feature.

    A pair comes apart at the higher of its bins and together again at the lower one. The sums run over the
    rows of a query side by side, and go into the bins when the query is done.
    """
    # IN: columns, pairs, weight, up, places (one more than columns)  OUT: out
    worth, order, starts, ends, factor, longest = pairs
    n_features = len(columns)
    out[places[0] : places[n_features]] = 0.0
    slopes = np.empty(longest)
    bins = np.empty((n_features, longest))  # of one query, by falling grade
    sums = np.empty((n_features, longest))
    for q in range(len(starts)):
        if factor[q] == 0.0:
            continue
        s, n = starts[q], ends[q] - starts[q]
        for f in range(n_features):
            for a in range(n):
                bins[f, a] = columns[f, s + order[s + a]]
                sums[f, a] = 0.0
        first = 0
        for a in range(n):
            i = s + order[s + a]
            while first < n and worth[s + order[s + first]] == worth[i]:
                first += 1
            slope = slopes[: n - first]
            for b in range(len(slope)):
                j = s + order[s + first + b]
                p = up[i] / (up[i] + up[j])
                slope[b] = factor[q] * weight[i] * weight[j] * np.sqrt(p) * (1.0 - p)
            for f in range(n_features):
                others, theirs, own = bins[f, first:n], sums[f, first:n], bins[f, a]
                total = 0.0
                for b in range(len(slope)):
                    change = (slope[b] if others[b] > own else 0.0) - (slope[b] if others[b] < own else 0.0)
                    theirs[b] += change
                    total -= change
                sums[f, a] += total
        for f in range(n_features):
            for a in range(n):
                out[places[f] + columns[f, s + order[s + a]]] += sums[f, a]


@kernel(types.void(types.boolean[::1], PAIRS, _F, _F, types.float64, _F))
def try_fidelity(above, pairs, weight, up, alpha, out):  # type: ignore[no-untyped-def]
    """Change of the loss when rows ``above`` rise by ``alpha``, and its derivatives there.

    The bound is √P (1 - P)(1 + P) / 4, nowhere below the size of the curvature √P (1 - P)(3P - 1) / 4.
    """
    # IN: above, pairs, weight, up, alpha  OUT: out (change, slope, curve, bound)
    worth, order, starts, ends, factor, _ = pairs
    change, slope, curve, bound = 0.0, 0.0, 0.0, 0.0
    rise, fall = np.exp(alpha), np.exp(-alpha)
    for q in range(len(starts)):
        s, n = starts[q], ends[q] - starts[q]
        if factor[q] == 0.0:
            continue
        first = 0
        for a in range(n):
            i = s + order[s + a]
            while first < n and worth[s + order[s + first]] == worth[i]:
                first += 1
            for b in range(first, n):
                j = s + order[s + b]
                if above[i] == above[j]:
                    continue
                weighs = factor[q] * weight[i] * weight[j]
                odds = up[j] / up[i]
                before = np.sqrt(1.0 / (1.0 + odds))
                p = 1.0 / (1.0 + odds * (fall if above[i] else rise))
                root = np.sqrt(p)
                change += weighs * (before - root)
                g = weighs * root * (1.0 - p)
                slope += -0.5 * g if above[i] else 0.5 * g
                curve += 0.25 * g * (3.0 * p - 1.0)
                bound += 0.25 * g * (1.0 + p)
    out[0], out[1], out[2], out[3] = change, slope, curve, bound
