"""`Comparison`: what a comparison found, frozen: each system's score of every test row, and what follows.

Rows of the test parts of all folds lie in one flat array, fold after fold, query ``q`` owning the rows
``offsets[q]:offsets[q + 1]``; every query is tested once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mcrank.arrays import Array, FeatureArray, FloatArray, IntArray
from mcrank.errors import OptionError
from mcrank.experiments.names import check_name
from mcrank.lazy import lazy
from mcrank.metrics.evaluate import Evaluation, evaluate_ready
from mcrank.metrics.layout import Layout
from mcrank.metrics.measure import Measure, parse_measure
from mcrank.metrics.prepared import PreparedMeasures

if TYPE_CHECKING:
    from mcrank.experiments.calibration import Calibration
    from mcrank.experiments.cutoffs import Cutoffs
    from mcrank.experiments.dialect_orders import DialectOrder
    from mcrank.experiments.leaderboard import Standing
    from mcrank.experiments.swaps import Swaps
    from mcrank.stats import Pair

SystemFold = tuple[str, str]  # key of a system, name of a fold


@dataclass(frozen=True)
class System:
    """One line of the leaderboard: a ranker with its options, a saved model, or scores of another tool.

    Attributes
    ----------
    key : str
        Its name as it was given, unique in the comparison; shown everywhere. Files have names of their own.
    title : str
        What people call it, in more words where there are some.
    kind : str
        ``"ranker"`` (trained here), ``"model"`` (saved before) or ``"scores"`` (from another tool).
    ranker : str or None
        Its name in the registry; None for scores.
    options : mapping
        Options given, those of the grid left out.
    grid : mapping of str to list
        Values tried on the validation part.
    train_dialect : str or None
        Dialect the ranker was trained towards, where the comparison crosses rankers with dialects.
    card : mapping or None
        Family, loss, scorer and ``trains_on_measure`` of the ranker.
    source : str or None
        File of a model or of scores, as it was given, and how it was understood.
    """

    key: str
    title: str
    kind: str
    ranker: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Any] = field(default_factory=dict)
    train_dialect: str | None = None
    card: Mapping[str, Any] | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        check_name(self.key, "a system")


@dataclass(frozen=True)
class FoldFacts:
    """Sizes and fingerprints of the parts of a fold.

    Each part is a mapping with ``rows``, ``queries``, ``features`` and ``fingerprint``; there may be no
    validation part.
    """

    name: str
    train: Mapping[str, Any] | None
    valid: Mapping[str, Any] | None
    test: Mapping[str, Any]


@dataclass(frozen=True)
class Choice:
    """What was chosen on the validation part of a fold.

    Attributes
    ----------
    options : mapping
        Options of the grid point taken; empty when there was no grid.
    best_round, n_rounds : int
        Rounds kept and rounds trained.
    measure : str
        The measure it was chosen by.
    value : float or None
        Its value on the validation part.
    tried : tuple of (options, value)
        Every grid point and its value.
    """

    options: Mapping[str, Any]
    best_round: int
    n_rounds: int
    measure: str
    value: float | None
    tried: tuple[tuple[Mapping[str, Any], float | None], ...] = ()


@dataclass(frozen=True)
class Timing:
    """Seconds of one system on one fold; None where they were not measured.

    ``train_seconds`` is for the grid point taken, ``search_seconds`` for all of them: time on the clock,
    which other work on the machine makes longer. ``train_cpu_seconds`` is the processor time of the first.
    """

    train_seconds: float | None = None
    predict_seconds: float | None = None
    search_seconds: float | None = None
    train_cpu_seconds: float | None = None


@dataclass(frozen=True, eq=False)
class TestRows:
    """Grades of all test rows; what measures are taken on."""

    __test__ = False  # not a test case, whatever pytest makes of the name

    y: FloatArray
    offsets: IntArray
    qids: Array
    doc_ids: Array | None
    query_weight: FloatArray | None

    @lazy
    def ready(self) -> PreparedMeasures:
        """Measures made ready for these rows, each once."""
        return PreparedMeasures(Layout.of(self))


@dataclass(frozen=True, eq=False)
class Comparison:
    """Outcome of `mcrank.compare`.

    Attributes
    ----------
    systems : tuple of System
        In the order given; row ``s`` of every table below.
    folds : tuple of FoldFacts
    fold_of_query : ndarray of int64
        Which fold tested each query.
    measures : tuple of str
        Canonical names; the first is the main one, and the standard form of each is among them.
    values : mapping of str to ndarray (systems x queries)
        Value of every query; NaN where the dialect gives none.
    means : mapping of str to ndarray (systems)
        Means as `mcrank.evaluate` gives them for all test queries together.
    scores : ndarray (systems x rows)
    features : ndarray of float32 (rows x features) or None
        None when there was too much to keep.
    probabilities : mapping of str to ndarray of float32 (rows x levels)
        Probability of each grade in ``levels``, for systems that give them.
    importances : mapping of str to ndarray (features)
        Share of each feature, mean over the folds, for systems that know.
    curves : mapping of (system, fold) to mapping of str to list
        Values on the validation part after each round.
    chosen : mapping of (system, fold) to Choice
    timings : mapping of (system, fold) to Timing
    sizes : mapping of (system, fold) to int
        Bytes of each model file.
    environment : mapping
        Versions, seed, data, and how to repeat it.
    notes : tuple of str
        What a reader of the result should know.
    swaps : Swaps or None
        Why systems put a document above a better one, for queries on which they differ most.

    Examples
    --------
    >>> import mcrank
    >>> data = mcrank.make_artificial(n_train=30, n_valid=1, n_test=1, docs_per_query=10, n_features=4).train
    >>> found = mcrank.compare(["best-feature", "regression:n_estimators=3"], data, folds=3, n_jobs=1)
    >>> found.values["ndcg@10"].shape, [line.rank for line in found.leaderboard("map")]
    ((2, 30), [1, 2])
    """

    systems: tuple[System, ...]
    folds: tuple[FoldFacts, ...]
    rows: TestRows
    fold_of_query: IntArray
    measures: tuple[str, ...]
    values: Mapping[str, FloatArray]
    means: Mapping[str, FloatArray]
    scores: FloatArray
    feature_names: tuple[str, ...]
    features: FeatureArray | None
    levels: FloatArray
    probabilities: Mapping[str, FeatureArray]
    importances: Mapping[str, FloatArray]
    curves: Mapping[SystemFold, Mapping[str, list[float]]]
    chosen: Mapping[SystemFold, Choice]
    timings: Mapping[SystemFold, Timing]
    sizes: Mapping[SystemFold, int]
    environment: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    swaps: Swaps | None = None
    _standings: dict[tuple[Any, ...], list[Standing]] = field(default_factory=dict, repr=False)
    _pairs: dict[str, list[Pair]] = field(default_factory=dict, repr=False)

    @property
    def qids(self) -> Array:
        """Id of each test query."""
        return self.rows.qids

    @property
    def offsets(self) -> IntArray:
        """Query ``q`` owns rows ``offsets[q]:offsets[q + 1]``."""
        return self.rows.offsets

    @property
    def grades(self) -> FloatArray:
        """Grade of each test row."""
        return self.rows.y

    @property
    def doc_ids(self) -> Array | None:
        """Document id of each test row."""
        return self.rows.doc_ids

    @property
    def n_queries(self) -> int:
        """Number of test queries."""
        return len(self.rows.qids)

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the systems, in their order."""
        return tuple(system.key for system in self.systems)

    def place(self, system: str | System) -> int:
        """Return the row of a system in the tables."""
        key = system.key if isinstance(system, System) else system
        if key not in self.keys:
            raise OptionError(f"there is no system {key!r}; systems: {', '.join(self.keys)}.")
        return self.keys.index(key)

    def evaluate(self, system: str | System, measures: Any) -> Evaluation:
        """Return what `mcrank.evaluate` says of one system on all test queries, for any measures."""
        return evaluate_ready(self.scores[self.place(system)], self.rows, measures, self.rows.ready)

    def per_query(self, measure: str | Measure) -> FloatArray:
        """Return a measure's value of every query (systems x queries), kept or computed now."""
        name = parse_measure(measure).name
        if name in self.values:
            return self.values[name]
        return np.stack([self.evaluate(key, name).per_query[name] for key in self.keys])

    def counted(self, measure: str | Measure) -> FloatArray:
        """Return the values of every query (systems x queries) as they count in the mean.

        A query that the dialect leaves out has none (NaN); one that it counts as 0 without giving it a value
        (LETOR 3.0 and its short queries) has 0.
        """
        values = self.per_query(measure)
        return self.rows.ready[parse_measure(measure)].counted(values) if np.isnan(values).any() else values

    def in_mean(self, measure: str | Measure) -> FloatArray:
        """Return what tests and intervals are made of (systems x queries): values whose plain mean is `mean`.

        These are the counted values, unless queries have weights or the measure is a sum.
        """
        from mcrank.metrics.influence import in_mean

        return in_mean(self.rows.ready[parse_measure(measure)], self.per_query(measure))

    def mean(self, measure: str | Measure) -> FloatArray:
        """Return the mean of a measure for each system, over all test queries, as `mcrank.evaluate` gives
        it.
        """
        name = parse_measure(measure).name
        if name in self.means:
            return self.means[name]
        return np.array([self.evaluate(key, name).mean[name] for key in self.keys])

    def fold_means(self, measure: str | Measure) -> FloatArray:
        """Return the mean of a measure on each fold's test queries (systems x folds), as papers print
        them.
        """
        asked = parse_measure(measure)
        ready, values = self.rows.ready[asked], self.per_query(asked)
        tested = [self.fold_of_query == fold for fold in range(len(self.folds))]
        return np.array([[ready.mean_of(row, queries) for queries in tested] for row in values])

    def leaderboard(
        self, measure: str | Measure | None = None, *, baseline: str | None = None
    ) -> list[Standing]:
        """Return the systems from best to worst by a measure (the main one by default).

        Each is compared with the best (or with ``baseline``): paired t tests by query, corrected by Holm's
        rule over these tests, one less than there are systems.
        """
        from mcrank.experiments.leaderboard import standings

        name = self.measures[0] if measure is None else parse_measure(measure).name
        if (name, baseline) not in self._standings:
            self._standings[name, baseline] = standings(self, name, baseline)
        return list(self._standings[name, baseline])

    def keep_leaderboard(self, measure: str, lines: list[Standing]) -> None:
        """Keep a leaderboard that was made before, so that its intervals are not drawn again."""
        self._standings[measure, None] = lines

    def pairs(self, measure: str | Measure | None = None) -> list[Pair]:
        """Return the paired t test of every pair of systems, corrected by Holm's rule over all pairs.

        A `leaderboard` corrects over its own tests alone, those against the best: a smaller family, and so
        smaller corrected p-values of the same tests.
        """
        from mcrank.stats import all_pairs

        name = self.measures[0] if measure is None else parse_measure(measure).name
        if name not in self._pairs:
            self._pairs[name] = all_pairs(self.in_mean(name), self.counted(name))
        return list(self._pairs[name])

    def wins(self, measure: str | Measure | None = None) -> IntArray:
        """Return queries won, tied and lost by the row against the column (systems x systems x 3)."""
        counts = np.zeros((len(self.keys), len(self.keys), 3), dtype=np.int64)
        for pair in self.pairs(measure):
            counts[pair.first, pair.second] = pair.wins, pair.ties, pair.losses
            counts[pair.second, pair.first] = pair.losses, pair.ties, pair.wins
        return counts

    @lazy
    def cutoffs(self) -> Cutoffs:
        """NDCG@1 to NDCG@10 of each system: means and standard deviations."""
        from mcrank.experiments.cutoffs import cutoffs

        return cutoffs(self)

    @lazy
    def calibrations(self) -> dict[str, Calibration]:
        """How right the probabilities are, of every system that predicts them."""
        from mcrank.experiments.calibration import calibrations

        return calibrations(self)

    @lazy
    def dialect_orders(self) -> list[DialectOrder]:
        """The order of the systems by the main measure under every known dialect."""
        from mcrank.experiments.dialect_orders import dialect_orders

        return dialect_orders(self)

    def verdict(self, measure: str | Measure | None = None) -> str:
        """Return one sentence: who wins, and whether it is real."""
        from mcrank.experiments.leaderboard import verdict

        return verdict(self.leaderboard(measure), self.measures[0] if measure is None else str(measure))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save everything but the models; the same comparison gives the same bytes (timings apart)."""
        from mcrank.experiments.store import save

        save(self, folder)

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> Comparison:
        """Load a saved comparison."""
        from mcrank.experiments.store import load

        return load(folder)

    def __str__(self) -> str:
        from mcrank.experiments.leaderboard import as_table

        return as_table(self)
