"""The boosting loop: rounds of gradients, root histograms, trees and score updates.

One round grows one tree per output (class, grade boundary, ...). Trees of a round are independent, so threads
take one each; when outputs do not divide evenly among the threads, those that find no tree left help with the
last ones. The forest is the same, to the last bit, for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FloatArray, RowArray
from mcrank.boosting.bin_cache import BINS
from mcrank.boosting.binning import BinnedDataset, Bins, bin_dataset, find_bins
from mcrank.boosting.budget import check_memory
from mcrank.boosting.carried import CarriedRoot
from mcrank.boosting.disk import DiskRows, in_files, pays
from mcrank.boosting.growth import Growth
from mcrank.boosting.held_out import HeldOut, Validation
from mcrank.boosting.leaves import add_sets, leaf_values, move_rows, tree_arrays
from mcrank.boosting.limits import NO_LIMITS, UNLIMITED, LimitOptions, Limits
from mcrank.boosting.packing import Packing
from mcrank.boosting.partition import LeafRows
from mcrank.boosting.refit import fallen
from mcrank.boosting.roots import SharedRoots
from mcrank.boosting.routing import BinColumns, fallen_in_bins, route_all
from mcrank.boosting.rows import MemoryRows, Rows
from mcrank.boosting.rules import NO_DEPTH, Rules
from mcrank.boosting.sampling import AllRows, Queries, draw
from mcrank.boosting.slim import slim_rows
from mcrank.boosting.start import NOTHING, Start, Tree, rounds_of, walk
from mcrank.boosting.store import BinnedData
from mcrank.boosting.trees import TreeGrower
from mcrank.boosting.workspace import BinnedArrays, TreeInput, Workspace
from mcrank.data.dataset import Dataset
from mcrank.errors import OptionError
from mcrank.losses.base import LeafRule, Loss
from mcrank.memory import check_whole, let_go
from mcrank.rounds import Callback, Rounds
from mcrank.scorers.forest.forest import Forest, ForestBuilder
from mcrank.sums import ALONE, Sums, count_all
from mcrank.threads import run_all

# Told the bins, the number and the trees of a round (0 and none at first), and what was measured after it.
Keep = Callable[[Bins, int, list[tuple[int, Tree]], dict[str, float]], None]


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
    goss: bool = False
    top_rate: float = 0.2
    other_rate: float = 0.1
    dart: bool = False
    drop_rate: float = 0.1
    skip_drop: float = 0.5
    max_drop: int = 50
    limits: LimitOptions = UNLIMITED
    memory: int | None = None  # bytes that training may take
    together: bool = False  # trees of a round share their splits


@dataclass
class Boosted:
    """Outcome of boosting."""

    forest: Forest
    bins: Bins | None  # None when there was nothing to learn
    rounds: Rounds


def boost(
    data: Dataset,
    loss: Loss,
    options: BoostOptions,
    valid: Validation | None = None,
    callback: Callback = None,
    sequential: bool = False,
    start: Start = NOTHING,
    keeper: Keep | None = None,
) -> Boosted:
    """Boost trees on ``loss``; with validation data, keep the rounds up to the best one.

    ``options.n_estimators`` counts the rounds of ``start`` too; they are measured as if they had just been
    made, so that training in two parts has the history, and the best round, of training in one. Ctrl-C ends
    boosting after the rounds already done (and is passed on if there are none). ``keeper`` is told the bins,
    then the trees of each new round and what was measured after it.
    """
    loss.base = start.base(loss)
    data_held_out, measure = (None, None) if valid is None else (valid.data, valid.measure)
    watching = ALONE if valid is None else valid.sums
    patience = options.early_stopping_rounds
    rounds = Rounds(data_held_out, measure, options.n_estimators, callback, patience, watching)
    booster = _booster(data, loss, options, sequential, start)
    if keeper is not None:
        keeper(booster.bins, 0, [], {})
    held_out = None if valid is None else HeldOut(valid, loss, start)

    def scored(trees: list[tuple[int, Tree]]) -> FloatArray | None:
        if held_out is None:
            return None
        all_trees = booster.changed()
        if all_trees is not None:
            held_out.begin()
        return held_out.after(trees if all_trees is None else all_trees, booster.bins, options.n_jobs)

    if options.memory is not None:
        check_memory(options.memory, data, booster, held_out)
    for trees in rounds_of(start.forest, loss.trees_per_round):
        measured = rounds.replay(scored(trees))
        if keeper is not None:
            keeper(booster.bins, rounds.n_rounds, trees, measured)
    with rounds.until_interrupted():
        for number in range(rounds.n_rounds + 1, options.n_estimators + 1):
            booster.let_go()
            trees = booster.round(number)
            stop = rounds.after(scored(trees))
            if keeper is not None:
                keeper(booster.bins, number, trees, rounds.last)
            if rounds.improved:
                booster.remember()
            if stop:
                break
    return Boosted(booster.forest(rounds.best_round), booster.bins, rounds)


def _booster(data: Dataset, loss: Any, options: BoostOptions, *rest: Any) -> Booster:
    if loss.adaptive:
        from mcrank.boosting.adaptive import AdaptiveBooster

        return AdaptiveBooster(data, loss, options, *rest)
    if options.dart:
        from mcrank.boosting.dart import DartBooster

        return DartBooster(data, loss, options, *rest)
    return Booster(data, loss, options, *rest)


def _sampling(data: Dataset, loss: Loss, options: BoostOptions) -> AllRows:
    """What each round sees of the rows."""
    if options.goss:
        from mcrank.boosting.one_sided import OneSided

        rates, first = (options.top_rate, options.other_rate), int(1 / options.learning_rate)
        return OneSided(data, loss, options.split, rates, options.random_state, first)
    if options.subsample < 1:
        return Queries(data, loss, options.split, options.subsample, options.random_state)
    return AllRows(data, loss, options.split)


def _binned(data: Dataset, options: BoostOptions, bins: Bins | None, sums: Sums) -> BinnedDataset:
    """Rows and bins; those found with the rows of other places are not this data set's own."""
    if isinstance(data, BinnedData):
        return data.binned_by(options.max_bins, options.binning)
    way = options.max_bins, options.binning, options.n_jobs
    if sums.size == 1 and bins is None:
        return BINS.binned(data, *way)
    sizes = {f: len(names) for f, names in data.categories.items()}
    return bin_dataset(data, find_bins(data.X, *way, sums, sizes) if bins is None else bins, options.n_jobs)


def _vector_growth(data: Dataset) -> type[Growth]:
    from mcrank.boosting.together import VectorGrowth

    if data.categories:
        raise OptionError(
            "multi_output='tree' takes numbers only: categories are tried in the order of one output's "
            f"gradients; feature {min(data.categories)} of the training data has categories."
        )
    return VectorGrowth


class Booster:
    """State of training: binned rows, scores, gradients and one workspace per tree under way."""

    def __init__(
        self, data: Dataset, loss: Loss, options: BoostOptions, sequential: bool, start: Start = NOTHING
    ) -> None:
        self.data, self.loss, self.options, self.sequential = data, loss, options, sequential
        sums = loss.sums
        binned = _binned(data, options, start.bins, sums)
        self.bins, self.binned = binned.bins, BinnedArrays.of(binned)
        self._in_files = in_files(self.binned)
        self.rate = options.learning_rate
        self.sampling = _sampling(data, loss, options)
        self.gradients = self.sampling.gradients
        self.scores = self._begin(start)
        given = len(self.gradients.weights) > 0
        derived = options.split == "newton" and loss.derived_curvature and not given
        everyones = count_all(data.n_rows, sums)
        rounded = loss.rounded_curvature and self.gradients.lane_is_curvature
        packing = Packing.of(everyones, given=given, derived=derived, wide=self.bins.wide, rounded=rounded)
        # More leaves than the rows can fill would only cost memory.
        most = max(2, everyones // options.min_samples_leaf)
        leaves = min(options.num_leaves, most)
        slim, limits = slim_rows(packing, leaves, data.n_rows), options.limits
        depth = NO_DEPTH if limits.max_depth is None else limits.max_depth
        self.rules = Rules(leaves, options.min_samples_leaf, packing, slim, depth)
        self.builder = ForestBuilder(data.n_features, loss.base)
        for before in rounds_of(start.forest, loss.trees_per_round):
            self._keep(before)
        self.feature_keys = np.arange(data.n_features, dtype=np.uint64)
        # Every tree asks for these: on small data it shows.
        self._every_feature = self.feature_keys.astype(np.int32)
        self._unlimited = limits.plain and not data.categories
        self.roots: SharedRoots | CarriedRoot | None = None
        self.rows: Rows | None = None
        passes = pays(self.binned, data.n_rows, loss.trees_per_round, options.memory)
        trees = loss.trees_per_round
        shared = None
        # Weights of rows are the same in every round and for every tree; curvatures are not.
        changes = given and (self.gradients.lane_is_curvature or len(self.gradients.weights) > 1)
        if not (passes or sequential or changes or self.bins.wide) and trees - loss.balanced > 1:
            weights = self.gradients.weights_of(0)
            self.roots = shared = SharedRoots(self.binned.columns, packing, trees, loss.balanced, weights)
        if passes:
            self.rows = DiskRows(self.binned, self.rules, self.gradients, trees)
        elif sums.size > 1 or options.together:
            self.rows = MemoryRows(
                self.binned, self.rules, self.gradients, trees, n_jobs=options.n_jobs, shared=shared,
                share=data.n_rows / max(1, everyones),
            )  # fmt: skip
        if self.rows is not None:
            growth = _vector_growth(data) if options.together else Growth
            self.growth, self.roots = growth(self.binned, self.rules, sums), None
            return
        self.grower = TreeGrower(self.binned, self.rules, data.n_rows, trees, options.n_jobs)
        # Where threads share no tree, they would wait for a pass that one of them makes.
        together = self.grower.sharing > 1 or options.n_jobs == 1
        if shared is not None and self._unlimited and options.colsample >= 1 and together and not given:
            shared.count_children(self.binned, self.rules)
        if self.sampling.leaves.rule is LeafRule.MEAN and options.subsample >= 1 and not options.dart:
            self.roots = CarriedRoot.of(self.binned, self.rules, data.n_rows)

    def _begin(self, start: Start) -> FloatArray:
        """Scores before the first new round, which trees move."""
        return start.train_scores(self.loss, self.data, self.run, self.options.n_jobs)

    def run(self, task: Callable[[int], Any], items: Sequence[int]) -> None:
        """Run a task over items on the threads of this training."""
        run_all(task, items, self.options.n_jobs)

    def round(self, number: int) -> list[tuple[int, Tree]]:
        """Grow and apply the trees of one round; return each one's output and arrays."""
        self.loss.round = number
        if self.sequential:
            # As printed in Algorithm 1: each class tree sees the scores the one before it moved.
            trees = []
            for k in range(self.loss.trees_per_round):
                rows, rest = self.sampling.fill(self.scores, number, self.run)
                trees += self._grow_trees([k], number, rows, rest, False)
        else:
            trees = self._trees(number, *self.sampling.fill(self.scores, number, self.run))
        return self._keep(list(enumerate(trees)))

    def let_go(self) -> None:
        """Check that files are whole; keep little of them in memory, where a caller said how much it is."""
        for array in self._in_files:
            check_whole(array)
            if self.options.memory is not None:
                let_go(array)

    def _keep(self, trees: list[tuple[int, Tree]]) -> list[tuple[int, Tree]]:
        """Add the trees of a round to the forest."""
        for output, tree in trees:
            self.builder.append(output=output, **tree)
        return trees

    def changed(self) -> list[tuple[int, Tree]] | None:
        """Return all trees as they are now, if the last round changed earlier ones; else None."""
        return None

    def remember(self) -> None:
        """Keep what later rounds may change: nothing, as trees stay what they are."""

    def forest(self, rounds: int) -> Forest:
        """Return the trees of the first so many rounds."""
        self.builder.keep_first(rounds * self.loss.trees_per_round)
        return self.builder.build()

    def _trees(self, number: int, rows: Any, rest: Any) -> list[dict[str, Any]]:
        """Grow a tree for each row of the gradients, and move the scores."""
        ready = False
        if self.roots is not None and len(rows) == 0:
            ready = self.roots.fill(self.gradients, self.grower.sharing, self.run)
            self.let_go()
        return self._grow_trees(range(self.loss.trees_per_round), number, rows, rest, ready)

    def _grow_trees(
        self, outputs: Sequence[int], number: int, rows: Any, rest: Any, ready: bool
    ) -> list[dict[str, Any]]:
        """Grow the trees of some outputs, and move the scores."""
        if self.rows is not None:
            return self._grow_together(self.rows, outputs, number, rows, rest)
        grown: list[dict[str, Any]] = [{}] * len(outputs)

        def begin(at: int, ws: Workspace, threads: int) -> TreeInput:
            k = outputs[at]
            known = self.roots.copy(k, ws.hists) if self.roots is not None and ready else 0
            q, weights = self.gradients.q[k], self.gradients.weights_of(k)
            features = self._features(number, k)
            limits = self._limits(number, k, features)
            return TreeInput.of(self.binned, q, rows, weights, features, known, threads, limits)

        def finish(at: int, nodes: npt.NDArray[Any], ws: Workspace) -> None:
            grown[at] = self._finish(outputs[at], nodes, ws.rows)
            move = partial(self._move, outputs[at], nodes, rest, ws.rows, grown[at])
            if isinstance(self.roots, CarriedRoot):
                left.append((nodes, ws, move))
            else:
                move()

        left: list[tuple[npt.NDArray[Any], Workspace, Callable[[], None]]] = []
        self.grower.trees(len(outputs), begin, finish)
        if isinstance(self.roots, CarriedRoot):  # of one tree a round
            nodes, ws, move = left[0]
            self.roots.take(nodes, ws, self.gradients, grown[0]["value"], self.run, move)
        return grown

    def _grow_together(
        self, rows: Rows, outputs: Sequence[int], number: int, drawn: Any, rest: Any
    ) -> list[dict[str, Any]]:
        """Grow the trees of some outputs together: with the rows of other places, or from disk."""
        rows.begin(outputs, drawn, len(rest))
        features = [self._features(number, output) for output in outputs]
        limits = [self._limits(number, k, some) for k, some in zip(outputs, features, strict=True)]
        grown = self.growth.trees(rows, features, limits)
        trees = []
        for tree, (output, nodes) in enumerate(zip(outputs, grown, strict=True)):
            where = rows.leaves(tree, nodes)
            trees.append(self._finish(output, nodes, where))
            self._move(output, nodes, rest, where, trees[-1])
        return trees

    def _finish(self, k: int, nodes: npt.NDArray[Any], where: LeafRows) -> dict[str, Any]:
        """Find the arrays of a tree, leaf values among them."""
        options, gradients = self.options, self.gradients
        rule, most = self.sampling.leaves, options.max_leaf_value
        values = leaf_values(rule, gradients, k, self.scores, nodes, where, self.rate, most, options.limits)
        unit = self.rules.packing.gain_unit(gradients.unit, gradients.lane_unit)
        tree = tree_arrays(nodes, self.binned, self.bins.edges, unit)
        tree["value"] = values
        if self.data.categories:
            add_sets(nodes, self.bins, tree)
        return tree

    def _move(self, k: int, nodes: npt.NDArray[Any], rest: Any, where: LeafRows, tree: Tree) -> None:
        """Move the scores by a tree."""
        # Where some rows did not take part, all are sent down the tree, if bins can tell them.
        own = BinColumns.own(self.binned.columns, self.bins) if len(rest) else None
        if own is None or not route_all(own, tree, self.scores[k]):
            values = tree["value"]
            move_rows(nodes["left"].astype(np.int64), where, values, self.scores[k])
            if len(rest) and isinstance(self.data, BinnedData):
                self.scores[k][rest] += values[self.fallen(tree)[rest]]
            elif len(rest):
                walk(self.data.X, tree, self.scores[k], rest)

    def fallen(self, tree: Tree) -> RowArray:
        """Return the number of the leaf of a grown tree that each row falls into."""
        if isinstance(self.data, BinnedData):
            return fallen_in_bins(self.data.binned, tree, self.run)
        return fallen(self.data.X, tree, self.run)

    def _limits(self, number: int, k: int, features: npt.NDArray[np.int32]) -> Limits:
        limits = self.options.limits
        if self._unlimited:
            return NO_LIMITS
        shape = (2 * self.rules.num_leaves - 1, self.data.n_features)
        context = (self.options.random_state, number, k + 1)
        return Limits.of(limits, self.rules.packing, self.gradients, features, shape, context)

    def _features(self, number: int, k: int) -> npt.NDArray[np.int32]:
        if self.options.colsample >= 1:
            return self._every_feature
        seed = self.options.random_state
        return draw(self.feature_keys, self.options.colsample, seed, number, k + 1).astype(np.int32)
