"""A study: which options come next (Optuna's sampler), which trials stop early (its pruner), what is kept.

Trials come one after another; only their folds train side by side. So what the sampler and the pruner know is
the trials before, and a study is the same for any number of threads. Each finished trial is a file of its
own. A study that was killed is asked for the same trials again, is told of those it has, and is then where it
was: what follows is what would have followed. A time budget only says how many trials there are.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from mcrank.errors import DataError, McrankError
from mcrank.experiments.folder import RunFolder
from mcrank.experiments.store import json_bytes, read_json, write_file
from mcrank.ranges import Between
from mcrank.tuning.lockstep import EVERY
from mcrank.tuning.space import Space
from mcrank.tuning.trial import Prune, Trial

FORMAT = 1
MARK = "study.json"
_FIRST = 10  # trials drawn evenly over the ranges before the sampler learns from them
_BEFORE_PRUNING = 5  # trials that end by themselves before others are compared with them
_ROUNDS_BEFORE_PRUNING = 2 * EVERY
# What the state of a trial is to Optuna.
_STATES = {"complete": "COMPLETE", "pruned": "PRUNED", "failed": "FAIL"}


def optuna_there() -> Any:
    """Return the module `optuna`; an error that says how to get it where there is none."""
    try:
        import optuna
    except ImportError:
        raise McrankError(
            "tuning needs the package optuna, which is not there: pip install 'mcrank[tune]'."
        ) from None
    return optuna


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Without Optuna's lines about every trial and its warnings of what may change one day."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


class Study:
    """Asks for the next trial, and is told what became of it.

    Parameters
    ----------
    space : Space
        What is varied.
    seed : int
        Of the sampler.
    """

    def __init__(self, space: Space, seed: int) -> None:
        self._optuna = optuna = optuna_there()
        self._space = space
        with _quiet(optuna):
            self._study = optuna.create_study(
                direction="maximize",
                sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=_FIRST),
                pruner=optuna.pruners.MedianPruner(
                    n_startup_trials=_BEFORE_PRUNING, n_warmup_steps=_ROUNDS_BEFORE_PRUNING - 1
                ),
            )
            self._ranges = {name: self._distribution(found) for name, found in space.ranges.items()}
            self._study.enqueue_trial(space.start)

    def _distribution(self, found: Any) -> Any:
        kinds = self._optuna.distributions
        if not isinstance(found, Between):
            return kinds.CategoricalDistribution(found.values)
        kind = kinds.IntDistribution if isinstance(found.low, int) else kinds.FloatDistribution
        return kind(found.low, found.high, log=found.log)

    def next(self, run: Callable[[dict[str, Any], Prune], Trial]) -> Trial:
        """Ask for a trial, have it run, and take what became of it into account unless it was cut."""
        with _quiet(self._optuna):
            asked = self._study.ask(self._ranges)

        def prune(step: int, value: float) -> bool:
            asked.report(value, step)
            return bool(asked.should_prune())

        found = run(dict(asked.params), prune)
        if found.state != "cut":
            state = getattr(self._optuna.trial.TrialState, _STATES[found.state])
            with _quiet(self._optuna):
                self._study.tell(asked, found.value if found.state == "complete" else None, state=state)
        return found

    def importances(self) -> dict[str, float]:
        """Return the share of each option in the variance of the trials that were not stopped (fANOVA).

        Nothing where there are too few of them to say.
        """
        optuna = self._optuna
        complete = self._study.get_trials(states=(optuna.trial.TrialState.COMPLETE,))
        if len({trial.value for trial in complete}) < _FIRST:
            return {}
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        with _quiet(optuna):
            try:
                found = optuna.importance.get_param_importances(self._study, evaluator=evaluator)
            except (RuntimeError, ValueError):
                return {}
        return {name: float(share) for name, share in found.items()}


class Journal:
    """The files of a study: what it is, and one for each finished trial; seconds are kept apart.

    Parameters
    ----------
    folder : RunFolder
        Where they lie.
    facts : mapping
        All that the trials depend on: another study is not gone on with.
    """

    def __init__(self, folder: RunFolder, facts: Mapping[str, Any]) -> None:
        self._folder = folder
        mark = folder.root / MARK
        wanted = {"format": FORMAT, **facts}
        if mark.exists():
            self._check_same(mark, wanted)
        elif any(folder.trials.iterdir()) or (folder.root / "run.json").exists():
            raise DataError(f"{folder.root} holds something else than a study; name a new or empty folder.")
        write_file(mark, json_bytes(wanted))

    def _check_same(self, mark: Path, wanted: Mapping[str, Any]) -> None:
        root = self._folder.root
        try:
            found = read_json(mark)
            differ = [name for name in {**found, **wanted} if found.get(name) != _as_read(wanted.get(name))]
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{mark} is damaged ({error}); name a new folder, or delete {root}.") from None
        if differ:
            raise DataError(
                f"{root} holds another study: it differs in {', '.join(sorted(differ))}; name another folder."
            )

    def read(self, number: int) -> Trial | None:
        """Return a finished trial; None when there is none, or a damaged one (it is then run again)."""
        path = self._path(number)
        try:
            content = read_json(path)
            digest = content.pop("digest")
            if digest != _digest(content) or content["number"] != number:
                raise ValueError("its checksum does not fit")
            content["reported"] = [(int(step), float(value)) for step, value in content["reported"]]
            return Trial(**content)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            warnings.warn(f"{path} is damaged ({error}); the trial is run again.", stacklevel=2)
            return None

    def seconds(self, number: int) -> float:
        """Return how long a finished trial took; 0 where that is not known."""
        try:
            return float(read_json(self._folder.trial_seconds(f"{number:05}")))
        except (OSError, ValueError, TypeError):
            return 0.0

    def write(self, trial: Trial, seconds: float) -> None:
        """Keep a finished trial; its own file comes last: it means done."""
        content = _as_read(asdict(trial))
        write_file(self._folder.trial_seconds(f"{trial.number:05}"), json_bytes(seconds))
        write_file(self._path(trial.number), json_bytes({**content, "digest": _digest(content)}))

    def _path(self, number: int) -> Path:
        return self._folder.trial(f"{number:05}")


def replay(trial: Trial, options: Mapping[str, Any], prune: Prune) -> Trial:
    """Tell the pruner what a kept trial reported; `DataError` where another trial was asked for."""
    if _as_read(trial.options) != _as_read(options):
        raise DataError(
            f"trial {trial.number} of the study is of other options than this search comes to (it was kept "
            "by another version of optuna, perhaps); name another folder."
        )
    for step, value in trial.reported:
        prune(step, value)
    return replace(trial, options=options)  # a file has texts for numbers of features, lists for tuples


def _as_read(value: Any) -> Any:
    """A value as a JSON file gives it back."""
    return json.loads(json_bytes(value))


def _digest(content: Any) -> str:
    return hashlib.blake2b(json_bytes(content), digest_size=16).hexdigest()
