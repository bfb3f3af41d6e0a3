"""Saving a ranker as one file and loading it again; no pickle, and nothing is believed before it is checked.

The container (`mcrank.models.container`) checks bytes, sizes and numbers; the ranker's ``from_state`` checks
meaning: options within bounds, trees that are trees, indices in range. A file that fails either is answered
with one `ModelFileError`.
"""

from __future__ import annotations

import difflib
import importlib
import os
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mcrank.errors import McrankError, ModelFileError, OptionError
from mcrank.models.container import MAX_FILE_BYTES, Arrays, canonical, pack, unpack

if TYPE_CHECKING:
    from mcrank.rankers.base import Ranker


def save(ranker: Ranker, path: str | os.PathLike[str]) -> None:
    """Save a fitted ranker as one file; the same model always gives the same bytes.

    The file appears under its name only when it is complete, so an interrupted save leaves the old file.

    Parameters
    ----------
    ranker : Ranker
        A fitted ranker.
    path : path
        Where to write; an existing file is replaced.

    Examples
    --------
    >>> import tempfile, mcrank
    >>> from mcrank.models.file import save
    >>> ranker = mcrank.RegressionRanker(n_estimators=2).fit([[0.0], [1.0]] * 20, [0, 1] * 20, qid=[1] * 40)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(ranker, f"{folder}/model.mcrank")
    ...     mcrank.load(f"{folder}/model.mcrank")
    RegressionRanker(n_estimators=2)
    """
    replace_file(path, to_bytes(ranker))


def load(path: str | os.PathLike[str]) -> Ranker:
    """Load a ranker saved with `save`; a damaged, hostile or newer file raises `ModelFileError`.

    Parameters
    ----------
    path : path
        A model file.

    Returns
    -------
    Ranker
        A fitted ranker of the class that was saved, with the same predictions.

    Examples
    --------
    >>> import mcrank
    >>> mcrank.load("no-such-file.mcrank")
    Traceback (most recent call last):
    mcrank.errors.ModelFileError: no-such-file.mcrank cannot be read: No such file or directory.
    """
    where = os.fspath(path)
    return from_bytes(_read(where), where)


def to_bytes(ranker: Ranker) -> bytes:
    """Return the content of the file that `save` would write.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.models.file import to_bytes
    >>> ranker = mcrank.RegressionRanker(n_estimators=2).fit([[0.0], [1.0]] * 20, [0, 1] * 20, qid=[1] * 40)
    >>> to_bytes(ranker)[1:4]
    b'MCR'
    """
    meta, arrays = ranker.state()
    _check_reach(arrays, "the model")
    return pack({"meta": meta, "ranker": ranker.name}, arrays)


def from_bytes(content: bytes | bytearray, where: str = "the model") -> Ranker:
    """Return the ranker in ``content``, the bytes of a model file; ``where`` names it in errors.

    Examples
    --------
    >>> from mcrank.models.file import from_bytes
    >>> from_bytes(b"GIF89a")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    mcrank.errors.ModelFileError: the model is not a mcrank model file: ...
    """
    header, arrays = unpack(content, where)
    meta, name = header.pop("meta", None), header.pop("ranker", None)
    if header or not isinstance(meta, dict) or not isinstance(name, str):
        raise ModelFileError(f"{where} is damaged: its header must have exactly arrays, meta and ranker.")
    try:
        ranker = ranker_class(name).from_state(meta, arrays)
    except Exception as error:
        # The bytes are intact but their meaning is not: whatever the ranker trips over, the file is to blame.
        words = str(error) if isinstance(error, McrankError) else f"{type(error).__name__}: {error}"
        raise ModelFileError(f"{where} does not hold a usable {name} model: {words}") from error
    _check_returned(ranker, meta, arrays, where)
    _check_reach(arrays, where)
    return ranker


def ranker_class(name: str) -> type[Ranker]:
    """Return the class of the ranker called ``name`` on the command line and in model files.

    Examples
    --------
    >>> from mcrank.models.file import ranker_class
    >>> ranker_class("ordnal")
    Traceback (most recent call last):
    mcrank.errors.OptionError: There is no ranker 'ordnal'; did you mean ordinal?
    """
    from mcrank.rankers.registry import RANKERS

    if name not in RANKERS:
        near = difflib.get_close_matches(name, RANKERS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"rankers: {', '.join(RANKERS)}."
        raise OptionError(f"There is no ranker {name!r}; {hint}")
    module, _, class_name = RANKERS[name].partition(":")
    found: type[Ranker] = getattr(importlib.import_module(module), class_name)
    return found


def replace_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write ``content`` under a temporary name beside ``path``, then rename it: all of it or nothing."""
    target = Path(path)
    if target.exists() and not target.is_file():
        raise ModelFileError(f"{target} cannot be written: it exists and is not a regular file.")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise OSError(
            error.errno, error.strerror, str(target)
        ) from None  # not the name of the temporary file
    finally:
        temporary.unlink(missing_ok=True)


def _check_returned(ranker: Ranker, meta: dict[str, Any], arrays: Arrays, where: str) -> None:
    """Check that the ranker took everything as it was written: saved again, it would say the same.

    Options that the file does not have are newer than it, and have their defaults.
    """
    unusable = f"{where} does not hold a usable {ranker.name} model"
    meta_back, arrays_back = ranker.state()
    for name in sorted({*arrays, *arrays_back}):
        forms = [(a[name].dtype, a[name].shape) if name in a else None for a in (arrays, arrays_back)]
        if forms[0] != forms[1]:
            raise ModelFileError(f"{unusable}: its array {name!r} does not fit.")
    options = {name: value for name, value in meta_back["options"].items() if name in meta["options"]}
    if canonical(meta_back | {"options": options}) != canonical(meta):
        raise ModelFileError(f"{unusable}: its header has something that does not belong there.")


def _check_reach(arrays: Arrays, where: str) -> None:
    """Check that no row can get an infinite score: finite leaves are not enough, their sums must be too."""
    with np.errstate(over="ignore"):
        reach = sum(float(np.abs(arrays[name]).sum()) for name in ("base", "value") if name in arrays)
    if not np.isfinite(reach):
        raise ModelFileError(f"{where} has leaves so large that their sums are not finite.")


def _read(where: str) -> bytearray:
    """Read a whole file into memory that arrays may share; only a regular file of sane size."""
    try:
        # Asked before opening: opening a pipe would wait for its other end.
        if not stat.S_ISREG(os.stat(where).st_mode):
            raise ModelFileError(f"{where} is not a regular file; a model is one file.")
        with open(where, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_FILE_BYTES:
                raise ModelFileError(f"{where} has {size} bytes; a model file has at most {MAX_FILE_BYTES}.")
            content = bytearray(size)
            got = file.readinto(content)
    except (OSError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(
            f"{where} cannot be read: {getattr(error, 'strerror', None) or error}."
        ) from None
    except MemoryError:
        raise ModelFileError(f"{where} does not fit into memory.") from None
    return content[:got]
