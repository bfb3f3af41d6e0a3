"""Stumps on bins: one feature, one threshold, 1 above it and 0 below; missing values are below.

Rankers that boost stumps (RankBoost, FRank) ask for the best threshold of sums over rows or pairs; every
threshold of a feature is tried in one pass over its bins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mcrank.arrays import BoolArray, FeatureArray, FloatArray, IntArray
from mcrank.boosting.bin_cache import BINS
from mcrank.boosting.binning import Bins, bin_dataset
from mcrank.boosting.boost import Boosted
from mcrank.data.dataset import Dataset
from mcrank.kernels import kernel, step
from mcrank.losses.pairwise import pair_arrays
from mcrank.rounds import Callback, Rounds
from mcrank.scorers.forest.forest import ForestBuilder
from mcrank.threads import run_all
from mcrank.training.weights import relative

# With less than this share of the first loss left there is nothing to learn, only rounding.
NOTHING = 1e-12
# How a threshold is judged from N = W+ - W- and T = W+ + W-, W the weight of pairs it orders well and badly.
NET, SIZE, ROOTS = 0, 1, 2  # N, |N|, or (√W+ - √W-)²: what the best step takes from an exponential loss
_SMOOTH = 1e-4  # added to W+ and W-, as a share of all: a stump without badly ordered pairs has a finite step


class Stump(NamedTuple):
    """A threshold found: rows whose bin is ``first`` or higher are above it."""

    feature: int
    first: int
    threshold: float
    net: float
    total: float
    merit: float

    def step(self, whole: float) -> float:
        """Return ½ ln(W+/W-), the best step of an exponential loss, smoothed by a share of ``whole``."""
        good, bad = (max(self.total + sign * self.net, 0.0) / 2 for sign in (1, -1))
        small = _SMOOTH * whole
        return float(0.5 * np.log((good + small) / (bad + small)))


def equal_width_bins(X: FeatureArray, count: int) -> Bins:
    """Return bins cut at ``count`` thresholds of equal distance, from the lowest value of a feature upwards.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.training.stumps import equal_width_bins
    >>> equal_width_bins(np.array([[0.0], [1.0], [4.0]], dtype=np.float32), 4).edges.tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    edges, missing = [], []
    for f in range(X.shape[1]):
        known = X[~np.isnan(X[:, f]), f].astype(np.float64)
        low, high = (known.min(), known.max()) if len(known) else (0.0, 0.0)
        cuts = np.unique((low + (high - low) * np.arange(count) / count).astype(np.float32))
        edges.append(cuts[cuts < np.float32(high)])  # above the highest value there is nothing
        missing.append(len(known) < len(X))
    offsets = np.r_[0, np.cumsum([len(cuts) for cuts in edges])].astype(np.int64)
    nothing = np.empty(0, dtype=np.float32)  # the ends of bins serve other layouts than these
    return Bins(np.concatenate(edges), offsets, np.array(missing, dtype=np.uint8), nothing, nothing)


@dataclass(frozen=True, eq=False)
class BinnedColumns:
    """Binned features, and room for sums over their bins: feature ``f`` owns ``places[f]:places[f + 1]``."""

    bins: Bins
    columns: npt.NDArray[np.uint16]
    places: IntArray
    n_jobs: int

    @classmethod
    def of(cls, data: Dataset, options: dict[str, Any], thresholds: int | None = None) -> BinnedColumns:
        """Bin a data set: all ``thresholds`` between bins as the options say, or a few of equal distance."""
        n_jobs = options["n_jobs"]
        if thresholds is None:
            binned = BINS.binned(data, options["max_bins"], options["binning"], n_jobs)
        else:
            binned = bin_dataset(data, equal_width_bins(data.X, thresholds), n_jobs)
        bins = binned.bins
        places = np.r_[0, np.cumsum(bins.counts)].astype(np.int64)
        # 16 bits for every feature: one compilation of each kernel, whatever the number of bins.
        columns = binned.wide_columns if bins.wide else binned.columns.astype(np.uint16)
        return cls(bins, columns, places, n_jobs)

    def room(self) -> FloatArray:
        """Return zeros, one for each bin of each feature."""
        return np.zeros(int(self.places[-1]))

    def over_features(self, task: Callable[[slice, IntArray], None]) -> None:
        """Run a task on parts of the features and the places of their bins, a part for each thread."""
        cuts = np.linspace(0, self.bins.n_features, self.n_jobs + 1).astype(int).tolist()
        parts = [(a, b) for a, b in pairwise(cuts) if a < b]
        run_all(lambda part: task(slice(*part), self.places[part[0] : part[1] + 1]), parts, self.n_jobs)

    def best(self, net: FloatArray, total: FloatArray, rule: int, most: int) -> list[Stump]:
        """Return the best threshold of the ``most`` best features, best first; none without any merit.

        ``net`` and ``total`` hold, at each bin, what changes when the threshold falls below it.
        """
        n = self.bins.n_features
        first, found = np.zeros(n, dtype=np.int64), np.zeros((3, n))
        best_cuts(net, total, self.places, self.bins.missing, rule, first, found)
        order = np.argsort(-found[2], kind="stable")[:most]
        stumps = []
        for f in order[found[2][order] > 0.0].tolist():
            edge = self.bins.offsets[f] + first[f] - 1 - int(self.bins.missing[f])
            threshold = float(self.bins.edges[edge])
            stumps.append(Stump(f, int(first[f]), threshold, *(float(x) for x in found[:, f])))
        return stumps

    def above(self, stump: Stump) -> BoolArray:
        """Return whether each training row is above the threshold."""
        return np.asarray(self.columns[stump.feature] >= stump.first)

    def append(self, builder: ForestBuilder, stump: Stump, value: float, above: int, rows: int) -> None:
        """Append the stump to a forest as a tree of two leaves, 0 and ``value``."""
        builder.append(
            feature=[stump.feature, -1, -1], threshold=[stump.threshold, 0.0, 0.0], missing_left=[1, 0, 0],
            left=[1, -1, -1], right=[2, -1, -1], value=[0.0, 0.0, value], gain=[stump.merit, 0.0, 0.0],
            rows=[rows, rows - above, above],
        )  # fmt: skip


class StumpBoosting(ABC):
    """State of boosting stumps on a loss of pairs; a subclass says which stump comes next, and its value.

    A pair weighs the product of the weights of its rows, times the weight of its query (divided by the
    number of its pairs where ``pairs`` is "query"). Only ratios of weights matter: the largest are made 1.
    """

    loss: float

    def __init__(self, data: Dataset, options: dict[str, Any]) -> None:
        self.binned = BinnedColumns.of(data, options, options.get("thresholds"))
        self.net = self.binned.room()
        self.scores, self.pull, self.up, self.down = np.zeros((4, data.n_rows))
        self.weight = relative(data.weight, data.n_rows)
        pairs = pair_arrays(data.y, data.offsets, options["pairs"] == "query")
        factor = pairs.factor * relative(data.query_weight, data.n_queries)
        self.pairs = pairs._replace(factor=relative(factor, data.n_queries))
        self.start()
        self.loss = self.first_loss = self.weigh()

    def start(self) -> None:  # noqa: B027 - most have nothing to make ready
        """Make ready what `weigh` needs; the pairs and their weights are there."""

    @abstractmethod
    def weigh(self) -> float:
        """Weigh the pairs under the scores in force: fill `pull`, and return the loss."""

    @abstractmethod
    def next(self) -> tuple[Stump, float] | None:
        """Return the best stump and its value, None when none helps."""

    def learn(
        self, builder: ForestBuilder, valid: Dataset | None, options: dict[str, Any], rounds: Rounds
    ) -> None:
        """Add stumps to a forest until there are enough of them."""
        held_out = np.zeros(0 if valid is None else valid.n_rows)
        for _ in range(options["n_estimators"]):
            found = self.next() if self.loss > NOTHING * self.first_loss else None
            if found is None:
                return
            stump, value = found
            above = self.binned.above(stump)
            self.scores[above] += value
            self.binned.append(builder, stump, value, int(above.sum()), len(above))
            if valid is not None:
                held_out[valid.X[:, stump.feature] > np.float32(stump.threshold)] += value
            self.loss = self.weigh()
            if rounds.after(held_out, loss=self.loss / self.first_loss):
                return


def boost_stumps(
    kind: type[StumpBoosting],
    data: Dataset,
    valid: Dataset | None,
    options: dict[str, Any],
    callback: Callback,
) -> Boosted:
    """Boost stumps, keeping those up to the best round; Ctrl-C ends it after the rounds already done."""
    rounds = Rounds(
        valid, options["measure"], options["n_estimators"], callback, options["early_stopping_rounds"]
    )
    builder = ForestBuilder(data.n_features, [0.0])
    boosting = kind(data, options)
    with rounds.until_interrupted():
        boosting.learn(builder, valid, options, rounds)
    builder.keep_first(rounds.best_round)
    return Boosted(builder.build(), boosting.binned.bins, rounds)


@step()
def centre(scores, up, pull):  # type: ignore[no-untyped-def]
    """Exponentials of a query's scores about their middle, and no pull as yet; returns the scores' width."""
    # IN: scores  OUT: up, pull
    low, high = np.inf, -np.inf
    for i in range(len(scores)):
        pull[i] = 0.0
        low, high = min(low, scores[i]), max(high, scores[i])
    middle = low + (high - low) / 2
    for i in range(len(scores)):
        # So far from the middle, nothing of the other side is left in any sum.
        up[i] = np.exp(min(max(scores[i] - middle, -300.0), 300.0))
    return high - low


@kernel("void(uint16[:, ::1], float64[::1], int64[::1], float64[::1])")
def sum_bins(columns, values, places, out):  # type: ignore[no-untyped-def]
    """Sum a value of every row over the bins of some features."""
    # IN: columns, values, places (one more than columns)  OUT: out (overwritten at these places)
    for f in range(len(columns)):
        sums = out[places[f] : places[f + 1]]
        sums[:] = 0.0
        column = columns[f]
        for i in range(len(values)):
            sums[column[i]] += values[i]


@kernel("void(float64[::1], float64[::1], int64[::1], uint8[::1], int64, int64[::1], float64[:, ::1])")
def best_cuts(net, total, places, missing, rule, first, found):  # type: ignore[no-untyped-def]
    """Lower a threshold through the bins of each feature and keep the best; the highest of equals."""
    # IN: net, total (empty unless the rule asks for it), places, missing, rule
    # OUT: first (lowest bin above), found[0..2] (N, T and merit; merit 0 where no threshold has any)
    for f in range(len(first)):
        n = 0.0
        t = 0.0
        first[f] = 0
        found[:, f] = 0.0
        for b in range(places[f + 1] - places[f] - 1, missing[f], -1):
            n += net[places[f] + b]
            merit = n
            if rule == 1:
                merit = abs(n)
            elif rule == 2:
                t += total[places[f] + b]
                good = max(t + n, 0.0)
                bad = max(t - n, 0.0)
                merit = (np.sqrt(good) - np.sqrt(bad)) ** 2 / 2
            if merit > found[2, f]:
                first[f] = b
                found[0, f] = n
                found[1, f] = t
                found[2, f] = merit
