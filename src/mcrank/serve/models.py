"""The models that are served: loaded, warm, and loaded again when their files change.

A request keeps the model it began with, so that a new one takes its place at any moment. A file that cannot
be used leaves the old model where it is; the log and the metrics say so.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mcrank.arrays import FeatureArray, FloatArray
from mcrank.errors import DataError, McrankError, did_you_mean
from mcrank.models.file import load
from mcrank.rankers.registry import to_bytes
from mcrank.serve.problems import NOT_FOUND, UNAVAILABLE, Problem
from mcrank.serve.settings import ModelFile
from mcrank.texts import printable

if TYPE_CHECKING:
    from mcrank.models.file import LoadedRanker

log = logging.getLogger("mcrank.serve")

_Stamp = tuple[int, int, int]
_WARM_ROWS = (1, 2, 100, 1000)  # one row, a few, and as many as make use of every kernel
_AGAIN_SECONDS = 60.0  # after which a file that could not be used is tried again though it looks the same


@dataclass(frozen=True)
class Model:
    """A loaded model.

    Attributes
    ----------
    key : str
        ``NAME`` or ``NAME@VERSION``.
    ranker : Ranker
        The model itself.
    fingerprint : str
        SHA-256 of its file's content.
    loaded : float
        When it was loaded, in seconds since 1970.
    row_seconds : float
        What a row takes to score, as measured when it was warmed.
    """

    key: str
    ranker: LoadedRanker
    fingerprint: str
    loaded: float
    row_seconds: float = 0.0

    @property
    def grades(self) -> list[float] | None:
        """Grades it has probabilities of; None where it has none."""
        values = self.ranker.head_.values
        return None if values is None else values.tolist()

    def raw(self, rows: FeatureArray) -> FloatArray:
        """Return the raw outputs of the rows of a request."""
        return _raw(self.ranker, rows)

    def facts(self) -> dict[str, Any]:
        """What /models tells."""
        return {
            "model": self.key,
            "fingerprint": self.fingerprint,
            "ranker": self.ranker.name,
            "features": list(self.ranker.feature_names_),
            "categorical": [self.ranker.feature_names_[f] for f in self.ranker.categories_],
            "grades": self.grades,
            "loaded": self.loaded,
        }


def _raw(ranker: LoadedRanker, rows: FeatureArray) -> FloatArray:
    """Raw outputs of rows that are one query, which a blend standardised by query has to know."""
    return ranker.scorer_.raw(rows, 1, np.array([0, len(rows)]))


def load_model(file: ModelFile, *, warm: bool) -> Model:
    """Load a model and, if asked to, have it score and explain once, so that no request waits for a kernel.

    Examples
    --------
    >>> from mcrank.serve.models import load_model
    >>> from mcrank.serve.settings import ModelFile
    >>> load_model(ModelFile("web", "no-such-file.mcrank"), warm=True)
    Traceback (most recent call last):
    mcrank.errors.ModelFileError: no-such-file.mcrank cannot be read: No such file or directory.
    """
    ranker = load(file.path)
    fingerprint = hashlib.sha256(to_bytes(ranker)).hexdigest()
    seconds = warmed(ranker) if warm else 0.0
    return Model(file.key, ranker, fingerprint, time.time(), seconds)


def warmed(ranker: LoadedRanker) -> float:
    """Have a model score rows and explain two; return the seconds it takes for a row."""
    seconds = 0.0
    for count in _WARM_ROWS:
        rows = np.linspace(-1, 1, count * ranker.n_features_in_, dtype=np.float32).reshape(count, -1)
        raw = _raw(ranker, rows)
        ranker.head_.rank(raw)
        ranker.head_.proba(raw)
        start = time.perf_counter()
        _raw(ranker, rows)
        seconds = (time.perf_counter() - start) / count
    try:
        ranker.explain_pair(0, 1, query=rows[:2])
    except DataError:
        log.info("models of the kind %s cannot be explained", ranker.name)
    return seconds


class Models:
    """All models, by name."""

    def __init__(self, files: tuple[ModelFile, ...]) -> None:
        self.files = {file.key: file for file in files}
        self._stamps: dict[str, _Stamp | None] = {}
        self._failed: dict[str, float] = {}  # when the file of a model could not be used
        self._models: dict[str, Model] = {}
        for file in files:
            self._stamps[file.key] = _stamp(file.path)
            self._models[file.key] = load_model(file, warm=False)
        self._aliases = {file.name: file.key for file in files} | {key: key for key in self.files}
        self.default = files[0].key
        self.ready = False

    def warm(self) -> None:
        """Warm all of them; from then on they are ready."""
        for key, model in self._models.items():
            seconds = warmed(model.ranker)
            self._models[key] = Model(key, model.ranker, model.fingerprint, model.loaded, seconds)
        self.ready = True

    def all(self) -> list[Model]:
        """All of them, in the order they were named."""
        return [self._models[key] for key in self.files]

    def failed(self, key: str) -> bool:
        """Whether the file of a model has changed to something that cannot be used."""
        return key in self._failed

    def find(self, key: str | None) -> Model:
        """Return a model by its name, the first where there is no name; else `Problem`."""
        if not self.ready:
            raise Problem(UNAVAILABLE, "The models are being loaded; ask again in a moment.", retry_after="1")
        found = self._aliases.get(self.default if key is None else key)
        if found is None:
            hint = did_you_mean(str(key)[:80], self._aliases, "models:", written=ascii)
            raise Problem(NOT_FOUND, f"there is no model {str(key)[:80]!a}; {hint}")
        return self._models[found]

    def changed(self, all_files: bool = False) -> list[str]:
        """Names of the models whose files are others than those that were loaded."""
        due = []
        for key, file in self.files.items():
            stamp = _stamp(file.path)
            failed = self._failed.get(key)
            again = failed is not None and time.monotonic() - failed > _AGAIN_SECONDS
            if stamp != self._stamps[key] or all_files or again:
                due.append(key)
        return due

    def reload(self, key: str) -> bool:
        """Load the file of a model again; keep the old one, and say so, where that cannot be done."""
        file = self.files[key]
        self._stamps[key] = _stamp(file.path)
        try:
            model = load_model(file, warm=True)
        except Exception as error:  # whatever it is, the old model goes on
            self._failed[key] = time.monotonic()
            words = error if isinstance(error, (McrankError, OSError)) else f"{type(error).__name__}: {error}"
            log.error("model %s is not replaced, the old one goes on: %s", key, printable(str(words)))
            return False
        old = self._models[key]
        self._failed.pop(key, None)
        self._models[key] = model
        words = "the same model" if old.fingerprint == model.fingerprint else f"now {model.fingerprint[:12]}"
        log.warning("model %s is loaded again: %s", key, words)
        if old.ranker.feature_names_ != model.ranker.feature_names_:
            log.warning("model %s has other features than before; clients that send the old ones fail", key)
        return True


def _stamp(path: str) -> _Stamp | None:
    """What tells whether a file is another one; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
