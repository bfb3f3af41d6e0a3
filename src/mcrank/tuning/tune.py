"""`mcrank.tune`: find good options for a ranker within minutes, and say honestly how good they are."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.data.dataset import Dataset
from mcrank.data.fingerprint import fingerprint
from mcrank.data.folds import split
from mcrank.data.read import read
from mcrank.errors import DataError, McrankError
from mcrank.experiments.folder import RunFolder, opened
from mcrank.experiments.store import json_bytes, read_json, write_file
from mcrank.experiments.trial import code_fingerprint, versions
from mcrank.functions import hashes_in, name_of
from mcrank.metrics.measure import Measure
from mcrank.models.file import load
from mcrank.options import checked
from mcrank.rankers.base import Ranker
from mcrank.rankers.inputs import held_out
from mcrank.threads import check_jobs
from mcrank.tuning.budget import Budget
from mcrank.tuning.result import Estimate, Tuning
from mcrank.tuning.space import space_of
from mcrank.tuning.study import MARK, Journal, Study, optuna_there, replay
from mcrank.tuning.trial import Trial, Trials, query_values, smoothed

MINUTES = 20.0
MODEL, RESULT = "model.mcrank", "tuning.json"
_PATIENCE = 0.1  # seconds between two calls of the callback


@dataclass(frozen=True)
class TuneProgress:
    """What the callback of `mcrank.tune` is told.

    Attributes
    ----------
    trial, trials : int
        Trials finished, and trials asked for (0: as many as there is time for).
    round : int
        Round of the trial under way.
    value, best : float or None
        Its best held-out measure so far, and that of the best trial.
    seconds, seconds_left : float
        Time since the search began, and time left for trials (infinite without a limit).
    """

    trial: int
    trials: int
    round: int
    value: float | None
    best: float | None
    seconds: float
    seconds_left: float


def tune(
    data: Dataset | str | os.PathLike[str],
    ranker: str | type[Ranker] | Ranker = "mcrank",
    *,
    minutes: float | None = None,
    trials: int | None = None,
    folds: int = 4,
    holdout: float = 0.2,
    test: Dataset | str | os.PathLike[str] | None = None,
    options: Mapping[str, Any] | None = None,
    ranges: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    cluster: Any = None,
    callback: Callable[[TuneProgress], Any] | None = None,
) -> Any:
    """Search for good options and return the ranker, fitted with them on all of the data.

    Each trial trains on all but one of the folds in turn and is judged by the measure of all held-out queries
    together, after every round; those behind the others after a few rounds are stopped. The first trial has
    the options as they were given. Folds train side by side, trials one after another: the study is the same
    for any number of threads. Killed and called again with the same ``out``, it goes on and comes to the same
    trials; with a time budget, the time already spent counts, and there may be more or fewer of them.

    Parameters
    ----------
    data : Dataset or path
        Queries with grades.
    ranker : str, type or Ranker
        A name of `mcrank rankers`, a class, or a ranker that is not fitted; what differs from its defaults
        stays as it is.
    minutes, trials : float, int, optional
        When to stop: after so many minutes, fits after the search included, or so many trials, whichever is
        first. 20 minutes where neither is given.
    folds : int
        Parts that the queries of the search are cut into.
    holdout : float
        Share of the queries that take no part in the search; the estimate is made on them, and the returned
        ranker is trained on them too. 0 for no estimate.
    test : Dataset or path, optional
        Queries to make the estimate on instead; ``holdout`` is then not used.
    options : mapping, optional
        Options that stay as they are, such as ``{"measure": "map"}``.
    ranges : mapping, optional
        Ranges instead of those that the options declare: ``{"num_leaves": (4, 32), "l2": (0.1, 10, "log"),
        "split": ["mse", "newton"], "subsample": None}``; None for an option that is not to be varied.
    out : path, optional
        Folder of the study, of the model (``model.mcrank``) and of what was found (``tuning.json``).
    seed : int
        Of the cut and of the search.
    n_jobs : int, optional
        Threads; every core by default.
    cluster : distributed.Client, str, int or Cluster, optional
        Train folds of a trial on the workers of a Dask cluster; the study is the same, and is written here,
        where the ranker that was found is trained as well.
    callback : callable, optional
        Told a `TuneProgress` now and then.

    Returns
    -------
    Ranker
        Fitted; its attribute ``tuning_`` is a `mcrank.tuning.result.Tuning`.

    Examples
    --------
    >>> import mcrank
    >>> data = mcrank.make_artificial(40, 1, 1, docs_per_query=10, n_features=5, seed=1).train
    >>> ranker = mcrank.tune(
    ...     data, "regression", trials=3, folds=2, options={"n_estimators": 20}, n_jobs=1
    ... )  # doctest: +SKIP
    >>> ranker.tuning_.sentence  # doctest: +SKIP
    """
    from mcrank.scale.desk import desk_of

    limits = _limits(minutes, trials, folds, holdout, seed)
    space = space_of(ranker, options or {}, ranges or {})
    optuna_there()
    began = time.monotonic()
    whole = data if isinstance(data, Dataset) else read(data, n_jobs=n_jobs)
    n_jobs = check_jobs(n_jobs, "tune")
    searched, held = _parts(whole, limits, test)
    with desk_of(cluster, room=folds) as desk:
        judge = Trials(searched, space, limits.folds, limits.seed, n_jobs, desk)
        with opened(out, "study", MARK) as folder:  # not made where the queries are too few
            search = _Search(folder, judge, whole, held, limits, n_jobs, callback, began)
            return search.finished() or search.run()


@dataclass(frozen=True)
class _Limits:
    seconds: float | None
    trials: int | None
    folds: int
    holdout: float
    seed: int


def _limits(minutes: Any, trials: Any, folds: Any, holdout: Any, seed: Any) -> _Limits:
    if minutes is None and trials is None:
        minutes = MINUTES
    minutes = checked(minutes, "minutes", "tune", float, low=0, high=1e6, open_low=True, optional=True)
    return _Limits(
        None if minutes is None else 60.0 * minutes,
        checked(trials, "trials", "tune", low=1, high=2**31 - 1, optional=True),
        checked(folds, "folds", "tune", low=2, high=2**31 - 1),
        checked(holdout, "holdout", "tune", float, low=0, high=0.9),
        checked(seed, "seed", "tune", low=0, high=2**31 - 1),
    )


class _Search:
    """One call of `tune`."""

    def __init__(
        self,
        folder: RunFolder,
        trials: Trials,
        data: Dataset,
        held: Dataset | None,
        limits: _Limits,
        n_jobs: int,
        callback: Callable[[TuneProgress], Any] | None,
        began: float,
    ) -> None:
        self._folder, self._space, self._data, self._limits = folder, trials.space, data, limits
        self._n_jobs, self._callback = n_jobs, callback
        self._searched, self._held, self._trials = trials.data, held, trials
        self._journal = Journal(folder, self._facts())
        estimates = 0.0 if self._held is None else 1.0
        self._budget = Budget(limits.seconds, estimates + data.n_rows / self._searched.n_rows, began)
        self._done: list[Trial] = []
        self._best: Trial | None = None
        self._start_values: dict[Any, float] = {}
        self._notes: list[str] = []
        self._said = 0.0

    def _facts(self) -> dict[str, Any]:
        space, limits = self._space, self._limits
        declared = space.kind.declared_options
        fixed = {n: _in_words(v) for n, v in space.fixed.items() if declared[n].scope == "model"}
        of_model = {n: v for n, v in space.fixed.items() if declared[n].scope == "model"}
        functions = hashes_in(of_model | {"measure": self._trials.measure})
        return {
            "ranker": space.kind.name,
            "options": fixed,
            "ranges": {name: found.words for name, found in space.ranges.items()},
            "measure": self._trials.measure.name,
            "rounds": space.most_rounds,
            "folds": limits.folds,
            "seed": limits.seed,
            "data": fingerprint(self._searched),
            **({"functions": functions} if functions else {}),
            "code": code_fingerprint(),
            "versions": {**versions(), "optuna": optuna_there().__version__},
        }

    def finished(self) -> Ranker | None:
        """Return what an earlier call with the same limits came to; None where there is none."""
        root = self._folder.root
        try:
            kept = read_json(root / RESULT)
            same = kept.pop("limits") == self._limits_words
        except (OSError, ValueError, KeyError, AttributeError):
            return None
        if not same or not (root / MODEL).is_file():
            return None
        ranker = load(root / MODEL)
        ranker.tuning_ = Tuning.from_json(kept, str(root / RESULT))  # type: ignore[attr-defined]
        return ranker

    @property
    def _limits_words(self) -> list[Any]:
        held = None if self._held is None else fingerprint(self._held)
        return [self._limits.seconds, self._limits.trials, held, fingerprint(self._data)]

    def run(self) -> Ranker:
        """Run trials until a limit is reached, then train what was found."""
        study = Study(self._space, self._limits.seed)
        stoppable = self._space.rounds is not None
        most = self._limits.trials or 0
        while not most or len(self._done) < most:
            if self._done and not self._kept_next() and not self._budget.enough(stoppable):
                break
            trial = study.next(self._next)
            if trial.state == "cut":
                if self._best is None and trial.value is not None:
                    self._notes.append("The time was over in the first trial: nothing else was tried.")
                    self._best, self._done = trial, [trial]
                break
        best = self._best
        if best is None:
            raise McrankError(
                f"no trial of {self._space.kind.__name__} came to a result: "
                f"{self._done[0].error if self._done else 'the time was over before its first round'}"
            )
        return self._final(study, best)

    def _kept_next(self) -> bool:
        return self._folder.trial(f"{len(self._done):05}").is_file()

    def _next(self, options: dict[str, Any], prune: Any) -> Trial:
        """Run the next trial, or take it from the journal."""
        number, began = len(self._done), time.monotonic()
        options |= self._space.outside if number == 0 else {}
        kept = self._journal.read(number)
        if kept is not None:
            trial, seconds = replay(kept, options, prune), self._journal.seconds(number)
        else:
            trial = self._trials.run(
                number,
                options,
                prune,
                over=lambda: self._budget.left(time.monotonic() - began) < 0.0,
                watch=self._say,
            )
            seconds = time.monotonic() - began
        if trial.state == "cut":
            return trial
        if kept is None:
            self._journal.write(trial, seconds)
        else:
            self._budget.spent(seconds)
        self._done.append(trial)
        self._take(trial, seconds)
        return trial

    def _take(self, trial: Trial, seconds: float) -> None:
        """Compare a finished trial with the best, and learn from it how long things take."""
        if trial.number == 0 and trial.state == "failed":
            raise McrankError(f"the first trial of {self._space.kind.__name__} failed: {trial.error}")
        self._budget.finished(seconds)
        if trial.state != "complete" or trial.value is None:
            return
        to_best = seconds * trial.rounds / max(1, len(trial.curve))
        if self._best is None or trial.value > (self._best.value or 0.0):
            self._best = trial
            self._budget.better(to_best)
        if trial.number == 0 and self._held is not None:
            began = time.monotonic()
            self._start_values = self._values_of(trial)
            self._budget.timed(time.monotonic() - began, to_best)

    def _values_of(self, trial: Trial) -> dict[Any, float]:
        """Values of the held-out queries, by the options of a trial trained on all that was searched."""
        if self._held is None:
            return {}
        ranker = self._fitted(trial, self._searched)
        return query_values(self._trials.measure, self._held, ranker.predict(self._held))

    def _fitted(self, trial: Trial, data: Dataset) -> Ranker:
        rounds = {} if self._space.rounds is None else {self._space.rounds: trial.rounds}
        return self._space.ranker(trial.options, **rounds, n_jobs=self._n_jobs).fit(data)

    def _final(self, study: Study, best: Trial) -> Ranker:
        estimate = None
        if self._held is not None:
            tuned = self._start_values if best.number == 0 and self._start_values else self._values_of(best)
            estimate = Estimate.of(tuned, self._start_values or tuned)
        ranker = self._fitted(best, self._data)
        rounds = {} if self._space.rounds is None else {self._space.rounds: best.rounds}
        found = Tuning(
            ranker=self._space.kind.name,
            measure=self._trials.measure.name,
            options={**{n: _in_words(v) for n, v in self._space.fixed.items()}, **best.options, **rounds},
            rounds=best.rounds,
            best=best.number,
            trials=self._done,
            importances=study.importances(),
            estimate=estimate,
            ranges={name: found.words for name, found in self._space.ranges.items()},
            queries=self._searched.n_queries,
            held_out=0 if self._held is None else self._held.n_queries,
            folds=self._limits.folds,
            seed=self._limits.seed,
            seconds=self._budget.seconds,
            notes=self._notes,
        )
        ranker.save(self._folder.root / MODEL)
        content = {**found.to_json(), "limits": self._limits_words}
        write_file(self._folder.root / RESULT, json_bytes(content))
        ranker.tuning_ = found  # type: ignore[attr-defined]
        return ranker

    def _say(self, curve: FloatArray) -> None:
        now = time.monotonic()
        if self._callback is None or now - self._said < _PATIENCE:
            return
        self._said = now
        self._callback(
            TuneProgress(
                len(self._done),
                self._limits.trials or 0,
                len(curve),
                float(smoothed(curve).max()) if len(curve) else None,
                None if self._best is None else self._best.value,
                self._budget.seconds,
                self._budget.left(),
            )
        )


def _parts(data: Dataset, limits: _Limits, test: Any) -> tuple[Dataset, Dataset | None]:
    """Queries to search on, and those that take no part in it."""
    if test is not None:
        other = test if isinstance(test, Dataset) else read(test, n_features=None)
        return data, held_out(other, data, "test of tune")
    if limits.holdout == 0:
        return data, None
    if data.n_queries < 2 * limits.folds + 2:
        raise DataError(
            f"tune with {limits.folds} folds and a share held out needs at least {2 * limits.folds + 2} "
            f"queries, got {data.n_queries}; give more data, fewer folds, or holdout=0."
        )
    searched, held = split(data, 1.0 - limits.holdout, limits.holdout, seed=limits.seed)
    return searched, held


def _in_words(value: Any) -> Any:
    """An option's value as a file can say it."""
    if isinstance(value, Measure):
        return value.name
    if callable(value):
        return name_of(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()  # as a text, a long array would leave out its middle
    return value if isinstance(value, (str, int, float, bool, list, dict, type(None))) else str(value)
