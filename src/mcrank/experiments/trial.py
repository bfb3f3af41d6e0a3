"""A trial: one ranker with one set of options on one fold, trained, scored and kept in a file of its own.

The file is a model-file container (checksum at its end, appears whole or not at all) under a name made of
everything its content depends on. So a killed comparison finds what it has finished, and a trial is never
taken for another.
"""

from __future__ import annotations

import hashlib
import platform
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mcrank
from mcrank.arrays import Array, Arrays
from mcrank.container import pack, read_file
from mcrank.errors import DataError, McrankError, ModelFileError
from mcrank.experiments.fold_source import Parts
from mcrank.experiments.foreign import is_model
from mcrank.experiments.store import json_bytes, read_json, write_file
from mcrank.models.file import load
from mcrank.rankers.base import Ranker
from mcrank.rankers.few import silently
from mcrank.rankers.provenance import provenance
from mcrank.rankers.registry import from_bytes, ranker_class, to_bytes
from mcrank.rankers.stored import measure_of

FORMAT = 1
_PATIENCE = 0.2  # seconds between two words on the rounds of a trial
# Folders whose code decides nothing of what a ranker learns and what its scores are.
_NOT_CODE = ("cli", "doctor", "experiments", "papers", "report", "stats")


@dataclass(frozen=True)
class Trial:
    """What to do: train ``ranker`` with ``options`` (or load ``model``) and score the test part of a fold."""

    system: str
    fold: int
    ranker: str | None
    options: Mapping[str, Any]
    point: Mapping[str, Any]  # the part of the options that comes from the grid
    model: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as a worker process is told."""
        return {**vars(self), "options": dict(self.options), "point": dict(self.point)}


@dataclass(frozen=True, eq=False)
class Finished:
    """Content of the file of a trial."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, Array]


def facts_of(parts: Parts) -> dict[str, dict[str, Any] | None]:
    """Sizes and fingerprints of the parts of a fold."""
    return {
        part: None if data is None else provenance(data)["data"] for part, data in parts._asdict().items()
    }


def trial_name(trial: Trial, facts: Mapping[str, Any], features: tuple[str, ...]) -> str:
    """Name of a trial's file: a hash of all that its content depends on."""
    what: dict[str, Any] = {
        "format": FORMAT,
        "code": code_fingerprint(),
        "versions": versions(),
        "features": list(features),
    }
    if trial.ranker is not None:
        ranker = ranker_class(trial.ranker)(**trial.options)
        declared = ranker.declared_options
        options = {n: value for n, value in ranker.checked_options().items() if declared[n].scope == "model"}
        what |= {
            "ranker": trial.ranker,
            "options": options,
            "files": _files_in(options),
            "data": {part: None if value is None else value["fingerprint"] for part, value in facts.items()},
        }
    else:
        model = Path(str(trial.model)).read_bytes()
        what |= {"model": hashlib.sha256(model).hexdigest(), "data": {"test": facts["test"]["fingerprint"]}}
    return hashlib.blake2b(json_bytes(what), digest_size=16).hexdigest()


def _files_in(options: Mapping[str, Any]) -> dict[str, str]:
    """Hashes of models that options name, such as the members of a blend; a word means no other file."""
    words = [
        word.strip() for value in options.values() if isinstance(value, str) for word in value.split(",")
    ]
    files = [word for word in words if word and Path(word).is_file() and is_model(word)]
    return {name: hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in files}


@cache
def code_fingerprint() -> str:
    """Hash of the code that decides results: another version of it starts afresh."""
    digest = hashlib.blake2b(digest_size=16)
    root = Path(mcrank.__file__).parent
    for file in sorted(root.rglob("*.py")):
        name = file.relative_to(root)
        if name.parts[0] not in _NOT_CODE:
            digest.update(name.as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def versions() -> dict[str, str]:
    """Versions a result depends on."""
    import numba
    import scipy

    return {
        "mcrank": mcrank.__version__,
        "numba": numba.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "scipy": scipy.__version__,
    }


class Rounds:
    """The callback of ``fit``: passes on how far training is, not too often."""

    def __init__(self, tell: Callable[[int, int], Any]) -> None:
        self._tell = tell
        self._last = 0.0

    def __call__(self, event: Any) -> bool:
        """Tell of a round; never stop."""
        now = time.monotonic()
        if now - self._last >= _PATIENCE:
            self._last = now
            self._tell(event.round, event.rounds)
        return False


class Computed(NamedTuple):
    """What came of a trial: the content of its file, and the seconds that parts of it took."""

    content: bytes
    seconds: dict[str, float | None]


def keep(found: Computed, target: Path, seconds: Path) -> float:
    """Write what came of a trial; return the seconds it took. The trial's file comes last: it means done."""
    write_file(seconds, json_bytes(found.seconds))
    write_file(target, found.content)
    return found.seconds["whole"] or 0.0


def compute(
    trial: Trial,
    parts: Parts,
    callback: Callable[[Any], Any] | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    model: bytes | None = None,
) -> Computed:
    """Train (or take ``model``, if it is not to be loaded here) and score.

    After Ctrl-C rankers return with the rounds they have, which is not what was asked for here: when
    ``interrupted`` says so, nothing comes of it.
    """
    began = time.perf_counter()
    # Small held-out data would be told of once for each fold and system; a comparison says what it can show.
    with warnings.catch_warnings(record=True) as said, silently():
        warnings.simplefilter("always")
        ranker, train_seconds, train_cpu = _ranker(trial, parts, callback, model)
        if interrupted():
            raise KeyboardInterrupt
        facts, arrays = _outcome(trial, ranker, parts)
    facts["warnings"] = sorted({str(warning.message) for warning in said})
    predict_seconds = _predict_seconds(ranker, parts)
    whole = time.perf_counter() - began
    took = {"train": train_seconds, "train_cpu": train_cpu, "predict": predict_seconds, "whole": whole}
    try:
        return Computed(pack(facts, arrays), took)
    except (ModelFileError, ValueError) as error:
        raise McrankError(f"{ranker!r} gave something that is not a finite number: {error}") from None


def _ranker(
    trial: Trial, parts: Parts, callback: Callable[[Any], Any] | None, model: bytes | None
) -> tuple[Ranker, float | None, float | None]:
    """A ranker that is fitted, and the seconds that took: on the clock, and of processor time."""
    if trial.ranker is None:
        given = load(str(trial.model)) if model is None else from_bytes(model, str(trial.model))
        return given.set_params(n_jobs=1), None, None
    if parts.train is None:
        raise DataError("the data has no train part; give one, or enter models and scores alone.")
    ranker = ranker_class(trial.ranker)(**{**trial.options, "n_jobs": 1})
    began, used = time.perf_counter(), time.process_time()
    ranker.fit(parts.train, valid=parts.valid, callback=callback)
    return ranker, time.perf_counter() - began, time.process_time() - used


def _outcome(trial: Trial, ranker: Ranker, parts: Parts) -> tuple[dict[str, Any], Arrays]:
    test = parts.test
    arrays: Arrays = {"scores": np.ascontiguousarray(test.to_grouped(ranker.predict(test)))}
    if trial.ranker is not None:
        # Only what was saved can be loaded, so what is kept is what a loaded model would give.
        arrays["model"] = np.frombuffer(to_bytes(ranker), dtype=np.uint8)
    probabilities = getattr(ranker, "predict_proba", None)
    if probabilities is not None:
        arrays["grades"] = np.asarray(ranker.grades_, dtype=np.float64)  # type: ignore[attr-defined]
        arrays["probabilities"] = test.to_grouped(probabilities(test)).astype(np.float32)
    importances = getattr(ranker, "feature_importances_", None)
    if importances is not None:
        arrays["importances"] = np.asarray(importances, dtype=np.float64)
    measure = measure_of(ranker.checked_options())
    value = None
    if trial.ranker is not None and parts.valid is not None:
        value = float(measure.on(parts.valid).mean(parts.valid.to_grouped(ranker.predict(parts.valid))))
    facts = {
        "best_round": int(ranker.best_round_),
        "n_rounds": int(ranker.n_rounds_),
        "history": {name: list(map(float, values)) for name, values in ranker.history_.items()},
        "measure": measure.name,
        "value": value,
        "ranker": ranker.name,
        # Files of folds may order their columns differently, and models may know fewer.
        "features": list(ranker.feature_names_) if ranker._named and test.named else None,
        "trained_on": ranker.provenance_.get("data", {}).get("fingerprint"),
    }
    return facts, arrays


def _predict_seconds(ranker: Ranker, parts: Parts) -> float:
    """Best of a few predictions of the test part, on one thread."""
    best, spent = float("inf"), 0.0
    while spent < 0.02 or best == spent:  # twice at least: the first one may have had to warm up
        began = time.perf_counter()
        ranker.predict(parts.test)
        took = time.perf_counter() - began
        best, spent = min(best, took), spent + took
    return best


def read_trial(path: Path) -> Finished | None:
    """Return a finished trial; None when there is none, or a damaged one."""
    try:
        return Finished(*read_file(path))
    except (OSError, ModelFileError):
        return None


def read_seconds(path: Path) -> dict[str, float | None]:
    """Return the seconds of a trial, nothing when they are not known."""
    try:
        found = read_json(path)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def model_in(trial: Finished) -> bytes | None:
    """Return the content of the model file that a trial trained."""
    return trial.arrays["model"].tobytes() if "model" in trial.arrays else None
