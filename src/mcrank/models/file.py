"""Saving a ranker as one file and loading it again; no pickle, and nothing is believed before it is checked.

The container (`mcrank.container`) checks bytes, sizes and numbers; the ranker's ``from_state`` checks
meaning: options within bounds, trees that are trees, indices in range. A file that fails either is answered
with one `ModelFileError`.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from mcrank.atomic import written_whole
from mcrank.container import Arrays, canonical, pack, read_file, unpack
from mcrank.errors import KernelError, McrankError, ModelFileError, OptionError, did_you_mean
from mcrank.models.suffix import check_suffix
from mcrank.texts import check_texts

if TYPE_CHECKING:
    import numpy.typing as npt

    from mcrank.data.dataset import Dataset
    from mcrank.rankers.base import Ranker

    class LoadedRanker(Ranker):
        """A ranker of a class that only its file knows: type checkers let it be asked for probabilities."""

        def predict(self, X: Dataset | npt.ArrayLike, relevance: Any = "grade") -> npt.NDArray[np.float64]:
            """Return one score per row; ``relevance`` is for rankers with probabilities."""

        def predict_proba(self, X: Dataset | npt.ArrayLike) -> npt.NDArray[np.float64]:
            """Return the probability of each grade; rankers without probabilities have no such method."""


R = TypeVar("R", bound="Ranker")


def save(ranker: Ranker, path: str | os.PathLike[str]) -> None:
    """Save a fitted ranker as one file; the same model always gives the same bytes.

    The file appears under its name only when it is complete, so an interrupted save leaves the old file.

    Parameters
    ----------
    ranker : Ranker
        A fitted ranker.
    path : path
        Where to write; an existing file is replaced. A name that promises a format of somebody else, such as
        ``m.onnx`` or ``m.json``, is an `OptionError`.

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
    check_suffix(path)
    replace_file(path, to_bytes(ranker))


@overload
def load(path: str | os.PathLike[str]) -> LoadedRanker: ...


@overload
def load(path: str | os.PathLike[str], kind: type[R]) -> R: ...


def load(path: str | os.PathLike[str], kind: type[R] | None = None) -> Any:
    """Load a ranker saved with `save`; a damaged, hostile or newer file raises `ModelFileError`.

    Parameters
    ----------
    path : path
        A model file.
    kind : class of rankers, optional
        Which class it must be of, `mcrank.McRank` for one; type checkers then know the class of the result.

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
    ranker = _ranker(*read_file(path), where)
    if kind is not None and not isinstance(ranker, kind):
        raise ModelFileError(f"{where} holds a {type(ranker).__name__}, and a {kind.__name__} was asked for.")
    return ranker


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
    check_texts(meta, "the text")
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
    return _ranker(*unpack(content, where), where)


# What a ranker may trip over when the bytes are intact but their meaning is not: then the file is to blame.
# Anything else (a compiler without a place to write, a missing library) is not the file's fault.
_NONSENSE = (ArithmeticError, AttributeError, LookupError, McrankError, RecursionError, TypeError, ValueError)


def _ranker(header: dict[str, Any], arrays: Arrays, where: str) -> Ranker:
    """Return the ranker that the content of a model file describes, checked."""
    meta, name = header.pop("meta", None), header.pop("ranker", None)
    if header or not isinstance(meta, dict) or not isinstance(name, str):
        raise ModelFileError(f"{where} is damaged: its header must have exactly arrays, meta and ranker.")
    try:
        check_texts(meta, "the text")
        with np.errstate(over="ignore", invalid="ignore"):  # odd numbers are for the checks to find
            ranker = ranker_class(name).from_state(meta, arrays)
            _check_returned(ranker, meta, arrays)
        _check_reach(arrays, "the model")
    except KernelError:
        raise  # about this machine, not about the file
    except _NONSENSE as error:
        words = str(error) if isinstance(error, McrankError) else f"{type(error).__name__}: {error}"
        raise ModelFileError(f"{where} does not hold a usable {name[:40]!a} model: {words}") from error
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
        raise OptionError(f"There is no ranker {name!r}; {did_you_mean(name, RANKERS, 'rankers:')}")
    module, _, class_name = RANKERS[name].partition(":")
    found: type[Ranker] = getattr(importlib.import_module(module), class_name)
    return found


def replace_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write ``content`` under a temporary name beside ``path``, then rename it: all of it or nothing."""
    target = Path(path)
    if target.exists() and not target.is_file():
        raise ModelFileError(f"{target} cannot be written: it exists and is not a regular file.")
    with written_whole(target) as file:
        file.write(content)


def _check_returned(ranker: Ranker, meta: dict[str, Any], arrays: Arrays) -> None:
    """Check that the ranker took everything as it was written: saved again, it would say the same.

    Options that the file does not have are newer than it, and have their defaults.
    """
    meta_back, arrays_back = ranker.state()
    for name in sorted({*arrays, *arrays_back}):
        forms = [(a[name].dtype, a[name].shape) if name in a else None for a in (arrays, arrays_back)]
        if forms[0] != forms[1]:
            raise ModelFileError(f"its array {name!r} does not fit.")
    options = {name: value for name, value in meta_back["options"].items() if name in meta["options"]}
    if canonical(meta_back | {"options": options}) != canonical(meta):
        raise ModelFileError("its header has something that does not belong there.")


def _check_reach(arrays: Arrays, where: str) -> None:
    """Check that no row can get an infinite score: finite leaves are not enough, their sums must be too."""
    with np.errstate(over="ignore"):
        reach = sum(float(np.abs(arrays[name]).sum()) for name in ("base", "value") if name in arrays)
    if not np.isfinite(reach):
        raise ModelFileError(f"{where} has leaves so large that their sums are not finite.")
