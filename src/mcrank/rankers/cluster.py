"""`fit` on a cluster: what a ranker sends there, and the model made of the journal that comes back."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from mcrank.boosting.boost import Boosted
from mcrank.boosting.place import Place
from mcrank.data.alignment import aligned, with_parts
from mcrank.data.categories import Keys
from mcrank.data.dataset import Dataset
from mcrank.data.scan import Scan, scan
from mcrank.data.tables import QID_NAMES
from mcrank.errors import ClusterError, OptionError
from mcrank.options import Options
from mcrank.rankers.base import Trained
from mcrank.rankers.constraints import named
from mcrank.rankers.fitting import Outcome
from mcrank.rankers.inputs import Given, as_dataset, held_out, to_learn
from mcrank.rankers.progress import telling
from mcrank.rankers.provenance import provenance_of
from mcrank.rounds import Callback, RoundEvent, Rounds
from mcrank.scale.cluster import Cluster
from mcrank.scale.collections import CollectionSource, Regrouped, is_collection, partitions, rows_of_part
from mcrank.scale.journal import Journal, Opening
from mcrank.scale.launch import Run, Whole
from mcrank.scale.plan import MemorySource, ScanSource, Source
from mcrank.scale.worker import widened
from mcrank.scorers.forest.forest import Forest, ForestBuilder

if TYPE_CHECKING:
    from mcrank.rankers.start import Beginning
    from mcrank.rankers.trees import TreeRanker


class Asked(NamedTuple):
    """What a caller of `fit` wants of a cluster."""

    cluster: Any
    regroup: bool = False
    journal: str | os.PathLike[str] | None = None
    resume: bool = False
    init_model: Any = None
    init_score: Any = None
    valid_init_score: Any = None


@dataclass(eq=False)
class Training:
    """What every worker is sent: a ranker to train on its rows with the others."""

    ranker: TreeRanker
    options: Options
    beginning: Beginning | None
    categorical: Keys | None = None

    def __call__(self, data: Dataset, valid: Dataset | None, place: Place, n_jobs: int) -> None:
        """Train; all that comes of it is told to the keeper of the place."""
        name, options = type(self.ranker).__name__, self.options | {"place": place, "n_jobs": n_jobs}
        if self.beginning is not None:
            data = self.beginning.align(data)
            options["beginning"] = self.beginning
        if valid is not None:
            valid = aligned(valid, *_columns(data), f"valid of {name}", "the ranker")
        type(self.ranker)(**self.ranker.get_params())._fit(data, valid, options, None)


class Conduct:
    """A call of `fit` on a cluster, from what was asked to what was trained."""

    def __init__(
        self,
        ranker: TreeRanker,
        options: Options,
        asked: Asked,
        callback: Callback,
        categorical: Keys | None = None,  # of data that is elsewhere
    ) -> None:
        self.ranker, self.options, self.asked = ranker, options | {"memory": None}, asked
        self.twin = type(ranker)(**ranker.get_params())
        self.journal = Journal(asked.journal, resume=asked.resume)
        self.beginning: Beginning | None = None
        self.categorical = categorical
        self._callback, self._began = callback, time.perf_counter()
        self.run: Run | None = None

    def job(self, whole: Whole) -> Training:
        """Return what to train, once it is known on what."""
        options, ranker = dict(self.options), self.ranker
        beginning = ranker._beginning(whole.sample, options, self.asked.init_model, None, None)
        if beginning is not None:
            if beginning.model is not None and beginning.model.categories_:
                raise OptionError(
                    f"init_model of {type(ranker).__name__}.fit has categories, with which it goes on on one "
                    "machine only; leave cluster out."
                )
            rounds = beginning.rounds(self.options["n_estimators"])
            beginning.align(whole.sample)
            options["n_estimators"] = rounds
        if self.options["dart"] and self.journal.rounds:
            # Values of earlier trees change in every round: it begins again.
            self.journal.rounds.clear()
        self.beginning, self.trained_options = beginning, options
        options |= named(options, whole.sample, type(ranker).__name__)
        self.journal.identify(
            {
                **ranker._identity(options),
                "rows": whole.rows,
                "queries": whole.queries,
                "features": list(whole.sample.feature_names) if whole.sample.named else whole.features,
            }
        )
        return Training(self.twin, options, beginning, self.categorical)

    def on_round(self, number: int) -> bool:
        """Tell the callback of a round; its answer ends training."""
        if self._callback is None or self.run is None:
            return False
        measured = self.journal.rounds[number - 1].measured
        seconds, waited = time.perf_counter() - self._began, self.run.seconds_waited
        asked = int(self.trained_options["n_estimators"])
        return bool(self._callback(RoundEvent(number, asked, measured, seconds, _note(waited, seconds))))

    def outcome(self, whole: Whole, interrupted: bool) -> Outcome:
        """Make of the journal what training on one machine would have given."""
        opening, beginning = self.journal.opening, self.beginning
        if opening is None:
            raise ClusterError("the workers ended without a word of what they trained.")
        trained = self._trained(opening, whole, interrupted)
        sample = widened(whole.sample, whole.features, 0.0)
        sample = with_parts(sample, categories=dict(opening.categories))
        sample = sample if beginning is None else beginning.align(sample)
        found = provenance_of(sample.n_features, opening.fingerprint, whole.queries, whole.rows)
        return self.twin, trained, self.trained_options, sample, found, beginning

    def _trained(self, opening: Opening, whole: Whole, interrupted: bool) -> Trained:
        rounds = Rounds(None, None, int(self.trained_options["n_estimators"]))
        for entry in self.journal.rounds:
            rounds.tell(entry.measured)
        rounds.interrupted = interrupted
        if opening.bins is None:
            there = None if self.beginning is None else self.beginning.forest({})
            forest = ForestBuilder(whole.features, opening.base).build() if there is None else there
            model = None if self.beginning is None else self.beginning.model
            for _ in range(0 if model is None else model.best_round_):
                rounds.tell({})
        else:
            forest = self._forest(opening, whole.features, rounds.best_round)
        trained = self.twin._trained(Boosted(forest, opening.bins, rounds), opening.head)
        return self.twin._finished(trained, self.journal.closing)

    def _forest(self, opening: Opening, features: int, rounds: int) -> Forest:
        entries = self.journal.rounds[:rounds]
        builder = ForestBuilder(features, opening.base)
        values = [tree["value"] for entry in entries for _, tree in entry.trees]
        if self.options["dart"]:
            from mcrank.boosting.dart import values_after

            model = None if self.beginning is None else self.beginning.model
            first, drawn = 0 if model is None else model.best_round_, SimpleNamespace(**self.trained_options)
            values = values_after(values, opening.per_round, first, drawn)
        grown = [pair for entry in entries for pair in entry.trees]
        for (output, tree), value in zip(grown, values, strict=True):
            builder.append(output=output, **tree | {"value": value})
        return builder.build()


def _note(waited: dict[str, float], seconds: float) -> str:
    """Whom the workers wait for, if they do."""
    if not waited:
        return ""
    slowest = max(waited, key=lambda worker: waited[worker])
    share = waited[slowest] / max(seconds, 1e-9)
    return f"waited {share:.0%} of the time for {slowest}" if share >= 0.1 else ""


def fit_on_cluster(
    ranker: Any, X: Any, given: Given, valid: Any, callback: Callback, verbose: Any, asked: Asked
) -> Outcome:
    """Train a twin of a ranker on a cluster; return it, and what `Ranker.fit` makes a model of."""
    options = ranker._training_options()
    name, one_query = type(ranker).__name__, options["one_query"]
    ranker._check_cluster(options)
    callback = telling(ranker, options, callback, verbose)
    if asked.init_score is not None or asked.valid_init_score is not None:
        raise OptionError(f"{name}.fit takes no init_score on a cluster, whose rows lie in many places.")
    n_jobs, options["n_jobs"] = options["n_jobs"] or 0, 1
    cluster = Cluster.of(asked.cluster)
    here = not (is_collection(X) or isinstance(X, (str, os.PathLike, Scan)))
    data = to_learn(X, given, name, options, ranker._takes_categories(options)) if here else None
    rows = _source_of(X, given, name) if data is None else MemorySource(data)
    watched = None if valid is None else _held_out(valid, data, f"valid of {name}", one_query)
    if asked.regroup:
        rows, watched = Regrouped(rows), None if watched is None else Regrouped(watched)
    conduct = Conduct(ranker, options, asked, callback, options["categorical"] if data is None else None)
    with cluster.client() as client:
        run = conduct.run = Run(
            cluster, client, rows, watched, conduct.job, conduct.journal, n_jobs, conduct.on_round
        )
        try:
            whole, interrupted = run.go(), False
        except KeyboardInterrupt:
            if not conduct.journal.rounds or run.whole is None:
                raise
            whole, interrupted = run.whole, True
    return conduct.outcome(whole, interrupted)


def _columns(data: Dataset) -> tuple[Any, bool, Any]:
    return data.feature_names, data.named, data.categories


def _held_out(valid: Any, train: Dataset | None, where: str, one_query: bool) -> Source:
    """Return validation data, which need not be where the training data is."""
    X, y, qid = valid if isinstance(valid, (tuple, list)) and len(valid) == 3 else (valid, None, None)
    if is_collection(X) or isinstance(X, (str, os.PathLike, Scan)):
        return _source_of(X, Given(y, qid), where)
    if train is not None:
        return MemorySource(held_out(valid, train, where, one_query))
    return MemorySource(as_dataset(X, Given(y, qid), where, one_query=one_query))


def _source_of(X: Any, given: Given, where: str) -> Source:
    """Return data that is elsewhere: files, or a Dask collection."""
    if is_collection(X):
        refused = [name for name in ("query_weight", "group") if getattr(given, name) is not None]
        if refused:
            raise OptionError(f"{where} takes no {' or '.join(refused)} beside a Dask collection; give qid.")
        weight = given.sample_weight if given.weight is None else given.weight
        ids = given.groups if given.qid is None else given.qid
        if ids is None and hasattr(X, "columns"):
            ids = next((name for name in X.columns if str(name).lower() in QID_NAMES), None)
        parts = partitions(X, {"y": given.y, "qid": ids, "weight": weight}, where)
        return CollectionSource(parts, partial(rows_of_part, where))
    extra = [name for name, value in given._asdict().items() if value is not None]
    if extra:
        raise OptionError(f"{where} got a Scan and also {', '.join(extra)}; name columns in mcrank.scan.")
    return ScanSource(X if isinstance(X, Scan) else scan(X))
