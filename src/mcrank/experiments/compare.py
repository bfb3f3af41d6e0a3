"""`compare`: rankers x data x measures x dialects, trained, chosen on validation data, and scored once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mcrank.data.alignment import aligned
from mcrank.data.dataset import Dataset
from mcrank.errors import DataError
from mcrank.experiments.assemble import Outcome, assemble, check_measures, measures_in, pool_rows
from mcrank.experiments.comparison import Choice, Comparison, FoldFacts, System, SystemFold, Timing
from mcrank.experiments.entries import Entry, entries_of, systems_of
from mcrank.experiments.fold_source import KeptFolds, Source
from mcrank.experiments.folder import RunFolder, opened
from mcrank.experiments.foreign import fold_path, read_foreign
from mcrank.experiments.schedule import Progress, Schedule, Task
from mcrank.experiments.swaps import explained_swaps
from mcrank.experiments.trial import (
    Finished,
    Trial,
    code_fingerprint,
    facts_of,
    model_in,
    read_seconds,
    read_trial,
    trial_name,
    versions,
)
from mcrank.experiments.workers import run_tasks
from mcrank.metrics.measure import Measure, parse_measure
from mcrank.options import checked
from mcrank.rankers.registry import ranker_class
from mcrank.threads import check_jobs

DEFAULT_MEASURES = ("ndcg@10", "map")


def compare(
    rankers: Any,
    data: Any,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT_MEASURES,
    dialects: Iterable[Any] = (),
    *,
    train_dialects: Iterable[Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    folds: int = 5,
    seed: int = 0,
    n_jobs: int | None = None,
    cluster: Any = None,
    read_options: Mapping[str, Any] | None = None,
    drop_empty: bool = False,
    callback: Callable[[Progress], Any] | None = None,
    command: str | None = None,
) -> Comparison:
    """Compare rankers, saved models and scores of other tools on the same test queries.

    All choices (the round to keep, the point of a grid) are made on validation data, by the measure a ranker
    is trained towards: its own ``measure`` option, or the first of ``measures``.

    Parameters
    ----------
    rankers : entry, sequence of entries, or mapping of title to entry
        An entry is the name of a ranker (``"lambdamart"``), with options and values to try
        (``"lambdamart:num_leaves=4|10,learning_rate=0.1"``), an unfitted ranker, an `Entry`, the path of a
        saved model, or the path of a score file: one number per line (in the row order of a single file or
        `Dataset`; else the test rows of one fold after the other), RankLib's, or a TREC run. ``{fold}`` in a
        path stands for the name of a fold.
    data : path, mapping, Dataset or folds
        A directory of folds as LETOR's, a file to be cut into folds by query, a mapping of ``train``,
        ``valid`` and ``test`` (paths or `Dataset`), a `Dataset`, or what `read_folds` and `kfold` return.
    measures : names or measures
        What to report; the first is the main one. Each is also given in the standard dialect.
    dialects : sequence of names
        Dialects to give every measure in as well.
    train_dialects : sequence of names, optional
        Train every ranker once towards each of these dialects.
    out : path, optional
        Folder for everything. A comparison that was killed goes on from what it finds there, and one that is
        finished changes nothing.
    folds : int
        Folds to cut a single file or `Dataset` into.
    seed : int
        Of the cut, and of every ranker that has a ``random_state`` and was not given one.
    n_jobs : int, optional
        Trials (a ranker with its options on a fold) run at a time, each on one thread; all cores by default.
        It never changes the result.
    cluster : distributed.Client, str, int or Cluster, optional
        Run trials on a Dask cluster instead, one at a time on each worker; data are sent to it, and all files
        are written here. It never changes the result.
    read_options : mapping, optional
        For `mcrank.read`: absent, first_index, n_features, unjudged.
    drop_empty : bool
        Leave out queries without a relevant document (no grade above 0), in every part. Score files may
        have the rows of the whole test data, or of the queries left.
    callback : callable, optional
        Told a `mcrank.experiments.schedule.Progress` now and then.
    command : str, optional
        How to repeat the comparison, for ``run.json``.

    Returns
    -------
    Comparison
        Frozen; ``print`` shows its leaderboard.

    Examples
    --------
    >>> import mcrank
    >>> data = mcrank.make_artificial(n_train=30, n_valid=1, n_test=1, docs_per_query=10, n_features=4).train
    >>> rankers = ["regression:n_estimators=3,num_leaves=2|4", "mcrank:n_estimators=3"]
    >>> found = mcrank.compare(rankers, data, folds=3, n_jobs=1)
    >>> found.keys, found.n_queries
    (('regression', 'mcrank'), 30)
    """
    entries = entries_of(rankers)
    names = measures_in(measures, dialects)
    systems = systems_of(entries, train_dialects)
    source = Source.of(
        data, folds=folds, seed=checked(seed, "seed", "compare", low=0), read_options=read_options
    )
    whole = source
    if drop_empty:
        source = source.seen(drop_empty=True)
    jobs = check_jobs(n_jobs, "compare")
    if cluster is not None:
        from mcrank.scale.cluster import Cluster

        cluster = Cluster.of(cluster)
    if out is not None:
        RunFolder(Path(out)).check_apart(entry.model for entry in entries if entry.model is not None)
    with opened(out) as folder:
        kept = KeptFolds(source.fold)
        stage = Stage.of(source.names, kept)
        pooled = pool_rows(source.names, stage.tests)
        check_measures(names, pooled[0])
        outcomes, systems, notes = _foreign(systems, stage, whole, drop_empty)
        plans = _plans(systems, stage, names[0], seed)
        _run(plans, source, kept, folder, cluster or jobs, callback)
        models: dict[SystemFold, bytes] = {}
        for (key, fold), candidates in plans.items():
            outcomes[key, fold], model = _chosen(candidates, folder)
            if model is not None:
                models[key, fold] = model
        notes += _model_notes(plans, stage, folder)
        environment = {
            "command": command,
            "code": code_fingerprint(),
            "data": {**source.description, "folds": [asdict(fold) for fold in stage.facts]},
            "measures": list(names),
            "seed": seed,
            "systems": [asdict(system) for system, _ in systems],
            "versions": versions(),
        }
        comparison = assemble(
            [system for system, _ in systems],
            stage.facts,
            stage.tests,
            outcomes,
            names,
            environment,
            notes,
            pooled,
        )
        comparison = replace(comparison, swaps=explained_swaps(comparison, models | _given_models(plans)))
        if out is not None:
            folder.write_models(models)
            comparison.save(folder.root)
    return comparison


@dataclass(frozen=True, eq=False)
class Stage:
    """What is known of the folds before anything is trained; of their data only the test parts stay."""

    facts: list[FoldFacts]
    tests: list[Dataset]

    @staticmethod
    def of(names: Sequence[str], folds: KeptFolds) -> Stage:
        """Look at every fold once."""
        facts: list[FoldFacts] = []
        tests: list[Dataset] = []
        first: Dataset | None = None  # whose features all parts must have
        for number, name in enumerate(names):
            parts = folds[number]
            facts.append(FoldFacts(name, **facts_of(parts)))  # type: ignore[arg-type]
            if first is None:
                first = parts.test if parts.train is None else parts.train
            names = first.feature_names
            for part, data in parts._asdict().items():
                if data is not None:
                    found = aligned(data, names, first.named, None, f"the {part} part of {name}", "compare")
            tests.append(found)
        return Stage(facts, tests)


@dataclass(frozen=True)
class Candidate:
    """A trial with its file name: a point of the grid of a system on a fold."""

    trial: Trial
    name: str
    fold: str


def _foreign(
    systems: Sequence[tuple[System, Entry]], stage: Stage, whole: Source, dropped: bool
) -> tuple[dict[SystemFold, Outcome], list[tuple[System, Entry]], list[str]]:
    """Read scores of other tools, and say in their systems how they were understood.

    ``whole`` has the folds before queries were dropped from them, if they were.
    """
    folds = [fold.name for fold in stage.facts]
    wholes: Any = None
    if dropped and any(entry.scores is not None for _, entry in systems):
        wholes = [whole.fold(number).test for number in range(len(folds))]
    outcomes: dict[SystemFold, Outcome] = {}
    notes: list[str] = []
    told = []
    for system, entry in systems:
        if entry.scores is not None:
            foreign = read_foreign(entry.scores, folds, stage.tests, wholes, whole.uncut())
            outcomes |= {
                (system.key, fold): Outcome(s) for fold, s in zip(folds, foreign.scores, strict=True)
            }
            notes += foreign.notes
            system = replace(system, source=foreign.understood)
        told.append((system, entry))
    return outcomes, told, notes


def _plans(
    systems: Sequence[tuple[System, Entry]], stage: Stage, measure: str, seed: int
) -> dict[SystemFold, list[Candidate]]:
    """Return the trials of every system that is trained or loaded, on every fold."""
    plans: dict[SystemFold, list[Candidate]] = {}
    for system, entry in systems:
        if entry.scores is not None:
            continue
        for number, fold in enumerate(stage.facts):
            if entry.grid and fold.valid is None:
                raise DataError(
                    f"{system.key} has a grid and {fold.name} no validation data to choose a point by."
                )
            features = stage.tests[number].feature_names
            facts = {"train": fold.train, "valid": fold.valid, "test": fold.test}
            found = [
                _trial(system, entry, number, fold.name, point, measure, seed) for point in entry.points()
            ]
            plans[system.key, fold.name] = [
                Candidate(trial, trial_name(trial, facts, features), fold.name) for trial in found
            ]
    return plans


def _trial(
    system: System, entry: Entry, number: int, fold: str, point: dict[str, Any], measure: str, seed: int
) -> Trial:
    if entry.ranker is None:
        path = fold_path(str(entry.model), fold, number + 1)
        if not os.path.isfile(path):
            raise DataError(f"{path}, the model of {system.key} for {fold}, does not exist.")
        return Trial(system.key, number, None, {}, {}, os.path.abspath(path))
    declared = ranker_class(entry.ranker).declared_options
    defaults: dict[str, Any] = {"measure": measure}
    if "random_state" in declared:
        defaults["random_state"] = seed
    return Trial(system.key, number, entry.ranker, {**defaults, **entry.options, **point}, point)


def _run(
    plans: Mapping[SystemFold, Sequence[Candidate]],
    source: Source,
    folds: KeptFolds,
    folder: RunFolder,
    where: Any,
    callback: Callable[[Progress], Any] | None,
) -> None:
    """Run every trial that is not there yet, in so many processes or on a cluster; equal ones of two systems
    once.
    """
    trials = {candidate.name: candidate for candidates in plans.values() for candidate in candidates}
    tasks = [
        Task(
            one.trial,
            one.fold,
            str(folder.trial(name).absolute()),
            str(folder.trial_seconds(name).absolute()),
        )
        for name, one in trials.items()
        if read_trial(folder.trial(name)) is None
    ]
    schedule = Schedule(tasks, len(trials) - len(tasks), callback)
    schedule.say()
    if tasks:
        from mcrank.scale.desk import desk_of

        jobs = min(where, len(tasks)) if isinstance(where, int) else 1
        with desk_of(None if isinstance(where, int) else where) as desk:
            run_tasks(schedule, source, folds, jobs, desk)
        schedule.say()


def _chosen(candidates: Sequence[Candidate], folder: RunFolder) -> tuple[Outcome, bytes | None]:
    """Return the outcome of the best candidate on validation data (the first of equals), and its model."""
    tries = [(candidate, _finished(candidate, folder)) for candidate in candidates]
    tried = tuple((candidate.trial.point, found.facts["value"]) for candidate, found in tries)
    better = _sign(tries[0][1].facts["measure"])
    taken, found = max(tries, key=lambda one: better * (one[1].facts["value"] or 0.0))
    seconds = {one.name: read_seconds(folder.trial_seconds(one.name)) for one in candidates}
    search = [spent.get("train") for spent in seconds.values()]
    known = [spent for spent in search if spent is not None]
    facts = found.facts
    trained = taken.trial.ranker is not None
    model = model_in(found)
    outcome = Outcome(
        scores=found.arrays["scores"],
        grades=found.arrays.get("grades"),
        probabilities=found.arrays.get("probabilities"),
        importances=found.arrays.get("importances"),
        features=facts.get("features"),
        curve=facts["history"] if trained else {},
        choice=Choice(
            taken.trial.point,
            facts["best_round"],
            facts["n_rounds"],
            facts["measure"],
            facts["value"],
            tried if len(tried) > 1 else (),
        )
        if trained
        else None,
        timing=Timing(
            seconds[taken.name].get("train"),
            seconds[taken.name].get("predict"),
            sum(known) if known and len(known) == len(search) else None,
            seconds[taken.name].get("train_cpu"),
        ),
        model_bytes=os.path.getsize(taken.trial.model)
        if taken.trial.model
        else None
        if model is None
        else len(model),
    )
    return outcome, model


def _given_models(plans: Mapping[SystemFold, Sequence[Candidate]]) -> dict[SystemFold, bytes]:
    """The models that were files before."""
    return {
        of: Path(candidates[0].trial.model).read_bytes()
        for of, candidates in plans.items()
        if candidates[0].trial.model
    }


def _sign(measure: str) -> float:
    return 1.0 if parse_measure(measure).higher_is_better else -1.0


def _finished(candidate: Candidate, folder: RunFolder) -> Finished:
    found = read_trial(folder.trial(candidate.name))
    if found is None:
        raise DataError(f"{folder.trial(candidate.name)} is gone or damaged; run the comparison again.")
    return found


def _model_notes(
    plans: Mapping[SystemFold, Sequence[Candidate]], stage: Stage, folder: RunFolder
) -> list[str]:
    """Warnings of rankers, and saved models that may know the test queries."""
    said: dict[tuple[str, str], list[str]] = {}
    trained_on = {fold.train["fingerprint"]: fold.name for fold in stage.facts if fold.train is not None}
    for (key, fold), candidates in plans.items():
        for candidate in candidates:
            facts = _finished(candidate, folder).facts
            for warning in facts["warnings"]:
                said.setdefault((key, warning), []).append(fold)
            home = trained_on.get(facts["trained_on"])
            if candidate.trial.ranker is None and home not in (None, fold):
                words = f"it was trained on the training part of {home}, which may have these test queries."
                said.setdefault((key, words), []).append(fold)
    return [f"{key} on {', '.join(dict.fromkeys(where))}: {words}" for (key, words), where in said.items()]
