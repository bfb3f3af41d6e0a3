"""All that is known of a model on data: what `mcrank analyze` shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mcrank.analysis.effects import Effect, Interaction, effects_of, interactions_of
from mcrank.analysis.importance import Importance, chosen_groups, permutation_importance
from mcrank.analysis.view import View
from mcrank.analysis.weakness import Slice, WorstQuery, slices_of, worst_queries
from mcrank.arrays import FloatArray
from mcrank.data.dataset import Dataset
from mcrank.errors import OptionError
from mcrank.options import checked
from mcrank.rankers.base import Ranker
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.linear import Linear

EFFECTS = 12  # features whose effects are shown
PAIRED = 8  # features whose interactions are looked for
SWARM = 15  # features of the beeswarm
_DOTS = 200  # rows of the beeswarm
_CELLS = 20_000_000  # contributions held at a time
_NET_ROWS = 2000
_BINS = 10


class Step(NamedTuple):
    """What a callback is told: steps that are done, of how many, and what comes now."""

    done: int
    of: int
    words: str


class Swarm(NamedTuple):
    """Contributions of one feature: mean absolute one over all rows looked at, and those of a few rows, each
    with the rank of its value (0 to 1, NaN for a missing one).
    """

    feature: str
    mean: float
    contributions: FloatArray
    ranks: FloatArray


class Calibration(NamedTuple):
    """Rows by score: mean score and mean grade of each tenth; rows of equal score count alike in it."""

    score: FloatArray
    grade: FloatArray
    rows: FloatArray


class Trees(NamedTuple):
    """A forest by tree: leaves, depth of the deepest, mean absolute value of a leaf."""

    leaves: FloatArray
    depth: FloatArray
    size: FloatArray


@dataclass(frozen=True, eq=False)
class Analysis:
    """What `analyze` found; every list is in the order the page has it."""

    ranker: str
    measure: str
    unit: str
    rows: int
    queries: int
    features: int
    mean: tuple[float, float, float]
    importances: list[Importance]
    groups: list[Importance]
    effects: list[Effect]
    interactions: list[Interaction]
    swarms: list[Swarm]
    swarm_rows: int
    calibration: Calibration
    slices: list[Slice]
    worst: list[WorstQuery]
    trees: Trees | None
    history: dict[str, list[float]]

    @property
    def mean_words(self) -> str:
        """The mean of the measure with its interval, which a single query does not have."""
        mean, low, high = self.mean
        return f"{mean:.4f}" + ("" if math.isnan(low) else f" ({low:.4f} to {high:.4f})")


def analyze(
    ranker: Ranker,
    data: Dataset,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
    callback: Callable[[Step], Any] | None = None,
) -> Analysis:
    """Analyse a fitted ranker on data with grades.

    Parameters
    ----------
    ranker : Ranker
        The model.
    data : Dataset
        Data it was not trained on, best; the measure is the ranker's own.
    groups : mapping of str to names of features, optional
        Features to shuffle together, beside those whose ranks agree.
    seed : int
        Of all shuffles.
    callback : callable, optional
        Told a `Step` before each.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.analysis.analysis import analyze
    >>> parts = mcrank.make_artificial(20, 1, 20, docs_per_query=10, n_features=4)
    >>> found = analyze(mcrank.McRank(n_estimators=5, n_jobs=1).fit(parts.train), parts.test)
    >>> found.unit, len(found.importances), found.importances[0].loss > 0
    ('grades', 4, True)
    """
    ranker._check_fitted()
    if not isinstance(data, Dataset):
        raise OptionError(f"data of analyze must be a Dataset, got {type(data).__name__}; read makes one.")
    checked(seed, "seed", "analyze", low=0)
    view = View(ranker, data)
    together = chosen_groups(view, groups or {})
    single = [(name, (column,)) for column, name in enumerate(view.names)]
    features = len(view.names)
    shown, paired = min(EFFECTS, features), min(PAIRED, features)
    steps = features + len(together) + shown + paired * (paired - 1) // 2 + 3
    done = 0

    def tell(words: str) -> None:
        nonlocal done
        if callback is not None:
            callback(Step(done, steps, words))
        done += 1

    importances = permutation_importance(view, single, seed, tell)
    by_group = permutation_importance(view, together, seed, tell)
    order = [view.names.index(one.name) for one in importances]
    tell("contributions")
    swarms, looked_at = _swarms(view)
    numbers = [column for column in order[:shown] if column not in ranker.categories_]  # others have no scale
    effects = effects_of(view, numbers, tell)
    interactions = interactions_of(view, order[:paired], seed, tell)
    tell("weak queries")
    slices, worst = slices_of(view), worst_queries(view)
    tell("trees")
    return Analysis(
        ranker.name, view.measure.name, view.unit, data.n_rows, data.n_queries, features,
        view.mean_interval(view.values), importances, by_group, effects, interactions, swarms, looked_at,
        _calibration(view), slices, worst, _trees(ranker), dict(ranker.history_),
    )  # fmt: skip


def _swarms(view: View) -> tuple[list[Swarm], int]:
    scorer = view.ranker.scorer_
    most = max(1, _CELLS // len(view.names)) if isinstance(scorer, Forest | Linear) else _NET_ROWS
    step = -(-view.data.n_queries // max(1, most * view.data.n_queries // view.data.n_rows))
    some = view.data if step == 1 else view.data.select(np.arange(0, view.data.n_queries, step))
    values = some.to_grouped(view.ranker.contributions(some).values)
    size = np.abs(values).mean(axis=0)
    dots = np.unique(np.linspace(0, len(values) - 1, _DOTS).astype(np.int64))
    swarms = []
    for column in np.argsort(-size, kind="stable")[:SWARM].tolist():
        own = some.X[:, column]
        known = np.sort(own[np.isfinite(own)])
        ranks = np.searchsorted(known, own[dots], side="left") / max(len(known) - 1, 1)
        ranks = np.where(np.isnan(own[dots]), np.nan, np.clip(ranks, 0.0, 1.0))
        swarms.append(Swarm(view.names[column], float(size[column]), values[dots, column], ranks))
    return swarms, len(values)


def _calibration(view: View) -> Calibration:
    order = np.argsort(view.scores, kind="stable")
    # Rows of equal score share their mean grade: which of them lie on either side of a cut says nothing.
    _, level = np.unique(view.scores, return_inverse=True)
    grade = (np.bincount(level, weights=view.data.y) / np.bincount(level))[level]
    parts = [part for part in np.array_split(order, _BINS) if len(part)]
    return Calibration(
        np.array([view.scores[part].mean() for part in parts]),
        np.array([grade[part].mean() for part in parts]),
        np.array([float(len(part)) for part in parts]),
    )


def _trees(ranker: Ranker) -> Trees | None:
    forest = ranker.scorer_
    if not isinstance(forest, Forest) or forest.n_trees == 0:
        return None
    from mcrank.explain.pieces import descend, shares

    depth = np.empty(forest.n_nodes, dtype=np.int64)
    descend(forest.arrays, shares(forest), depth, np.empty(forest.n_nodes))
    starts = forest.tree_offsets[:-1]
    leaf = forest.feature < 0
    leaves = np.add.reduceat(leaf.astype(np.float64), starts)
    size = np.add.reduceat(np.where(leaf, np.abs(forest.value), 0.0), starts) / leaves
    return Trees(leaves, np.maximum.reduceat(depth, starts).astype(np.float64), size)
