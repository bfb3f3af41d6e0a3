"""The boosting loop: rounds of gradients, root histograms, trees and score updates.

One round grows one tree per output (class, grade boundary, ...). Trees of a round are independent, so each
is a task of its own; when outputs do not divide evenly among the threads, those that find no tree left help
with the last ones. The forest is the same, to the last bit, for any number of threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.boosting.binning import Bins, bin_dataset, find_bins
from mcrank.boosting.grow import Grounds, Rules, Workspace, grow, tree_arrays
from mcrank.boosting.leaves import leaf_values, move_rows, walk_rows
from mcrank.boosting.packing import Packing
from mcrank.boosting.roots import SharedRoots
from mcrank.boosting.sampling import draw, query_keys
from mcrank.boosting.team import grow_shared
from mcrank.boosting.trees import Forest, ForestBuilder
from mcrank.data.dataset import Dataset
from mcrank.errors import MeasureError
from mcrank.losses.base import Loss
from mcrank.losses.quantize import FloatArray
from mcrank.metrics.measure import Measure
from mcrank.threads import available_cores

# Below this many rows a node is done before a second thread has woken up.
_SHARED_ROWS = 20_000
_NONE = np.empty(0, dtype=np.int64)
# Values of a measure this near are equal: dialects that differ by a constant then choose the same round.
SAME = 1e-12


@dataclass(frozen=True)
class BoostOptions:
    """Options of the loop, checked; see the rankers for what each means."""

    n_estimators: int
    num_leaves: int
    learning_rate: float
    max_bins: int
    binning: str
    min_samples_leaf: int
    split: str
    subsample: float
    colsample: float
    early_stopping_rounds: int | None
    max_leaf_value: float
    random_state: int
    n_jobs: int


@dataclass(frozen=True)
class RoundEvent:
    """What a progress callback is told after each round.

    Attributes
    ----------
    round, rounds : int
        Rounds done, and rounds asked for.
    scores : dict
        Value of each measure on the validation data; empty without it.
    seconds : float
        Time since boosting began.
    """

    round: int
    rounds: int
    scores: dict[str, float]
    seconds: float


Callback = Callable[[RoundEvent], Any]


@dataclass
class Validation:
    """Data held out, the measure to watch on it, and how raw scores become ranking scores."""

    data: Dataset
    measure: Measure
    rank: Callable[[FloatArray], FloatArray]


@dataclass
class Boosted:
    """Outcome of boosting."""

    forest: Forest
    bins: Bins | None  # None when there was nothing to learn
    n_rounds: int
    best_round: int
    interrupted: bool = False
    history: dict[str, list[float]] = field(default_factory=dict)


def boost(
    data: Dataset,
    loss: Loss,
    options: BoostOptions,
    valid: Validation | None = None,
    callback: Callback | None = None,
    sequential: bool = False,
) -> Boosted:
    """Boost trees on ``loss``; with validation data, keep the rounds up to the best one.

    Ctrl-C ends boosting after the rounds already done (and is passed on if there are none).
    """
    began = time.perf_counter()
    with ThreadPoolExecutor(options.n_jobs) as pool:
        booster = _booster(data, loss, options, pool, sequential)
        watch = _Watch(valid, loss, options)
        done = 0
        interrupted = False
        try:
            for done in range(1, options.n_estimators + 1):
                trees = booster.round(done)
                scores = watch.after(done, trees, booster.run)
                event = RoundEvent(done, options.n_estimators, scores, time.perf_counter() - began)
                if (callback is not None and callback(event)) or watch.finished(done):
                    break
        except KeyboardInterrupt:
            # The round under way is dropped; the pool's exit waits for its threads.
            done = watch.complete(booster.builder.n_trees // loss.trees_per_round)
            if done == 0:
                raise
            interrupted = True
    best = min(watch.best_round, done) if valid is not None else done
    booster.builder.keep_first(best * loss.trees_per_round)
    return Boosted(booster.builder.build(), booster.bins, done, best, interrupted, watch.history)


def _booster(data: Dataset, loss: Any, *rest: Any) -> Booster:
    if loss.adaptive:
        from mcrank.boosting.adaptive import AdaptiveBooster

        return AdaptiveBooster(data, loss, *rest)
    return Booster(data, loss, *rest)


class _Watch:
    """Validation scores, history and the decision to stop."""

    def __init__(self, valid: Validation | None, loss: Loss, options: BoostOptions) -> None:
        self.valid = valid
        self.patience = options.early_stopping_rounds
        self.history: dict[str, list[float]] = {}
        self.best_round = 0
        self._best = -np.inf
        if valid is not None:
            self._bound = valid.measure.on(valid.data)
            self._raw = np.repeat(loss.base[:, None], valid.data.n_rows, axis=1)
            self.history[valid.measure.name] = []
            if np.isnan(self._bound.mean(valid.rank(self._raw))):
                raise MeasureError(
                    f"{valid.measure.name} has no value on the validation data (no query counts); "
                    "choose another measure or other data."
                )

    def after(self, done: int, trees: list[tuple[int, dict[str, Any]]], run: Any) -> dict[str, float]:
        if self.valid is None:
            return {}
        X = self.valid.data.X
        run(lambda i: _walk(X, _NONE, trees[i][1], self._raw[trees[i][0]]), range(len(trees)))
        value = float(self._bound.mean(self.valid.rank(self._raw)))
        name = self.valid.measure.name
        self.history[name].append(value)
        if value > self._best + SAME:
            self._best, self.best_round = value, done
        return {name: value}

    def complete(self, rounds: int) -> int:
        """Of the rounds grown, those whose measure was taken too."""
        return rounds if self.valid is None else min(rounds, *(len(v) for v in self.history.values()))

    def finished(self, done: int) -> bool:
        return (
            self.valid is not None and self.patience is not None and done - self.best_round >= self.patience
        )


def _walk(X: Any, rows: npt.NDArray[np.int64], tree: dict[str, Any], scores: FloatArray) -> None:
    walk_rows(
        X, rows, tree["feature"], tree["threshold"], tree["missing_left"], tree["left"], tree["right"],
        tree["value"], scores,
    )  # fmt: skip


class Booster:
    """State of training: binned rows, scores, gradients and one workspace per thread."""

    def __init__(
        self, data: Dataset, loss: Loss, options: BoostOptions, pool: ThreadPoolExecutor, sequential: bool
    ) -> None:
        self.data, self.loss, self.options, self.pool, self.sequential = data, loss, options, pool, sequential
        self.bins = find_bins(data.X, options.max_bins, options.binning, options.n_jobs)
        self.grounds = Grounds.of(bin_dataset(data, self.bins, options.n_jobs))
        self.gradients = loss.allocate(options.split)
        self.scores = self._start()
        given = len(self.gradients.weights) > 0
        derived = options.split == "newton" and loss.derived_curvature
        packing = Packing.of(data.n_rows, given=given, derived=derived, wide=self.bins.wide)
        # More leaves than the rows can fill would only cost memory.
        most = max(2, data.n_rows // options.min_samples_leaf)
        self.rules = Rules(min(options.num_leaves, most), options.min_samples_leaf, packing)
        self.spaces = [
            Workspace.allocate(self.grounds, data.n_rows, self.rules)
            for _ in range(min(options.n_jobs, max(1, loss.trees_per_round)))
        ]
        self.builder = ForestBuilder(data.n_features, loss.base)
        self.query_keys = query_keys(data.qids) if options.subsample < 1 else None
        self.feature_keys = np.arange(data.n_features, dtype=np.uint64)
        self.roots: SharedRoots | None = None
        if not (sequential or given or self.bins.wide) and loss.trees_per_round - loss.balanced > 1:
            self.roots = SharedRoots(self.grounds, packing, loss.trees_per_round, loss.balanced)

    def _start(self) -> FloatArray:
        """Scores before the first round, which trees move."""
        return np.repeat(self.loss.base[:, None], self.data.n_rows, axis=1)

    def run(self, task: Callable[[int], Any], items: Sequence[int]) -> None:
        """Run a task over items on the pool and raise what any of them raised."""
        if self.options.n_jobs == 1 or len(items) == 1:
            for item in items:
                task(item)
        else:
            list(self.pool.map(task, items))

    def round(self, number: int) -> list[tuple[int, dict[str, Any]]]:
        """Grow and apply the trees of one round; return each one's output and arrays."""
        rows, rest = self._sample(number)
        if self.sequential:
            # As printed in Algorithm 1: each class tree sees the scores the one before it moved.
            trees = []
            for k in range(self.loss.trees_per_round):
                self.loss.fill(self.scores, self.gradients, self.run)
                trees.append(self._tree(number, k, rows, rest, False, self.spaces[0], self._everyone()))
        else:
            self.loss.fill(self.scores, self.gradients, self.run)
            trees = self._trees(number, rows, rest)
        return self._keep(list(enumerate(trees)))

    def _keep(self, trees: list[tuple[int, dict[str, Any]]]) -> list[tuple[int, dict[str, Any]]]:
        """Add the trees of a round to the forest."""
        for output, tree in trees:
            self.builder.append(output=output, **tree)
        return trees

    def _trees(self, number: int, rows: Any, rest: Any) -> list[dict[str, Any]]:
        """Grow a tree for each row of the gradients, and move the scores."""
        ready = self.roots is not None and len(rows) == 0
        if self.roots is not None and ready:
            self.roots.fill(self.gradients.q, self._everyone(), self.run)
        grown = dict(self._grow_all(number, rows, rest, ready))
        return [grown[k] for k in range(self.loss.trees_per_round)]

    def _everyone(self) -> int:
        """Threads that may share one tree: no more than cores, as they do not sleep."""
        return min(self.options.n_jobs, available_cores()) if self.data.n_rows >= _SHARED_ROWS else 1

    def _grow_all(self, number: int, rows: Any, rest: Any, ready: bool) -> list[tuple[int, dict[str, Any]]]:
        n_trees, n_jobs = self.loss.trees_per_round, self.options.n_jobs
        threads = len(self.spaces)
        # Threads beyond one per tree help with a tree each; those that find no tree left help with the last
        # ones, where trees do not fill a last turn of all threads. Both pay only where a node is worth a
        # hand-over.
        team = max(1, self._everyone() // n_trees)
        left_over = n_trees % n_jobs if 1 < self._everyone() < n_trees else 0
        grown: list[tuple[int, dict[str, Any]]] = []
        waiting = iter(range(n_trees))  # trees differ in size: a free thread takes the next one

        def chain(thread: int) -> None:
            for k in waiting:
                size = self._everyone() if k >= n_trees - left_over else team
                grown.append((k, self._tree(number, k, rows, rest, ready, self.spaces[thread], size)))

        self.run(chain, range(threads))
        return grown

    def _tree(
        self, number: int, k: int, rows: Any, rest: Any, ready: bool, ws: Workspace, team: int
    ) -> dict[str, Any]:
        """Grow one tree, find its leaf values and move the scores."""
        options, gradients = self.options, self.gradients
        if self.roots is not None and ready:
            self.roots.copy(k, ws.hists[0])
        features = self._features(number, k)
        arguments = (
            self.grounds, self.rules, gradients.q[k], rows, gradients.weights_of(k), features, ready, ws,
        )  # fmt: skip
        if team > 1:
            n = grow_shared(*arguments, self.pool, team)
        else:
            n = grow(*arguments)
        nodes = ws.nodes[:n].copy()
        values = leaf_values(
            self.loss,
            gradients,
            k,
            self.scores,
            nodes,
            ws.entries,
            options.learning_rate,
            options.max_leaf_value,
        )
        move_rows(
            nodes["left"].astype(np.int64), nodes["begin"].copy(), nodes["end"].copy(), ws.entries, values,
            self.scores[k],
        )  # fmt: skip
        unit = self.rules.packing.gain_unit(gradients.unit, gradients.lane_unit)
        tree = tree_arrays(nodes, self.grounds, self.bins.edges, unit)
        tree["value"] = values
        if len(rest):
            _walk(self.data.X, rest, tree, self.scores[k])
        return tree

    def _sample(self, number: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Rows of the queries drawn for this round and the others; both empty when all rows are used."""
        if self.query_keys is None:
            return _NONE, _NONE
        drawn = draw(self.query_keys, self.options.subsample, self.options.random_state, number)
        chosen = np.zeros(self.data.n_queries, dtype=bool)
        chosen[drawn] = True
        by_row = np.repeat(chosen, self.data.sizes)
        return np.flatnonzero(by_row).astype(np.int64), np.flatnonzero(~by_row).astype(np.int64)

    def _features(self, number: int, k: int) -> npt.NDArray[np.int32]:
        if self.options.colsample >= 1:
            return self.feature_keys.astype(np.int32)
        seed = self.options.random_state
        return draw(self.feature_keys, self.options.colsample, seed, number, k + 1).astype(np.int32)
