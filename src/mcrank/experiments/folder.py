"""The folder a comparison works in: one writer at a time, finished trials, models."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from mcrank.errors import DataError, McrankError, OptionError
from mcrank.experiments.names import file_stems
from mcrank.experiments.store import json_bytes, write_file

LOCK = ".lock"
_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}\.part")  # what `replace_file` leaves behind when it is killed


class RunFolder:
    """Places of a comparison's files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.trials = root / "trials"
        self.seconds = root / "seconds"
        self.models = root / "models"

    def trial(self, name: str) -> Path:
        """File of a finished trial."""
        return self.trials / f"{name}.trial"

    def trial_seconds(self, name: str) -> Path:
        """File with the seconds of a trial."""
        return self.seconds / f"{name}.json"

    def kept(self) -> list[Path]:
        """Files that a comparison is loaded from, or goes on from: no page may take the place of one."""
        patterns = ("*.json", "*.npz", "*.npy", "trials/*", "seconds/*", "models/*")
        return [path for pattern in patterns for path in self.root.glob(pattern)]

    def check_apart(self, models: Iterable[str]) -> None:
        """Raise `OptionError` for a model to be compared that is among those that `write_models` replaces."""
        for model in models:
            if Path(model).resolve().parent == self.models.resolve():
                raise OptionError(
                    f"the model {model} is one of those in {self.models}, which make way for the models of "
                    "this comparison: it would be lost; name another folder for the results, or copy it "
                    "elsewhere."
                )

    def write_models(self, models: Mapping[tuple[str, str], bytes]) -> None:
        """Write the models by system and fold; models of another comparison in this folder go.

        Their file names are made of the names of both (`file_stems`); ``models.json`` says which is whose.
        """
        self.models.mkdir(exist_ok=True)
        systems, folds = (file_stems(of[part] for of in models) for part in (0, 1))
        names = {of: f"{systems[of[0]]}.{folds[of[1]]}.mcrank" for of in models}
        for of, content in models.items():
            write_file(self.models / names[of], content)
        index = [{"file": name, "system": system, "fold": fold} for (system, fold), name in names.items()]
        write_file(self.root / "models.json", json_bytes(index))
        for path in self.models.glob("*.mcrank"):
            if path.name not in names.values():
                path.unlink()


@contextmanager
def opened(
    out: str | os.PathLike[str] | None, kind: str = "comparison", mark: str = "run.json"
) -> Iterator[RunFolder]:
    """Open a folder for a comparison (or another ``kind`` of work, whose folders have the file ``mark``),
    made when it is not there; None for one that is thrown away.
    """
    if out is None:
        with TemporaryDirectory(prefix="mcrank-") as temporary:
            yield _prepared(Path(temporary))
        return
    root = Path(out)
    if root.exists() and not root.is_dir():
        raise DataError(f"{root} is a file; out of a {kind} must be a folder.")
    ours = (root / LOCK).exists() or (root / mark).exists()
    if root.is_dir() and any(root.iterdir()) and not ours:
        raise DataError(f"{root} has files and none is of a {kind}; name a new or empty folder.")
    root.mkdir(parents=True, exist_ok=True)
    with open(root / LOCK, "a+b") as lock:
        if not _locked(lock):
            raise McrankError(f"{root} is being written by another {kind}; wait for it, or end it.")
        yield _prepared(root)


def _prepared(root: Path) -> RunFolder:
    folder = RunFolder(root)
    for path in (folder.trials, folder.seconds):
        path.mkdir(exist_ok=True)
    for place in (root, folder.trials, folder.seconds, folder.models):
        for path in place.glob(".*.part") if place.is_dir() else ():
            if _UNFINISHED.fullmatch(path.name):
                path.unlink(missing_ok=True)
    return folder


def _locked(file: IO[bytes]) -> bool:
    """Lock a file for this process; the system lets go of it when the process ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # not a Unix
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
