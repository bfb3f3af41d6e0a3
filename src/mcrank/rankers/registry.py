"""Every ranker by name, and as bytes: what the command line trains and a model file may hold. A new ranker is
one line here.

No pickle, and nothing is believed before it is checked. The container (`mcrank.container`) checks bytes,
sizes and numbers; the ranker's ``from_state`` checks meaning: options within bounds, trees that are trees,
indices in range. A file that fails either is answered with one `ModelFileError`.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from mcrank.arrays import Arrays
from mcrank.container import canonical, pack, read_file, unpack
from mcrank.errors import KernelError, McrankError, ModelFileError, OptionError, did_you_mean
from mcrank.texts import check_texts

if TYPE_CHECKING:
    from mcrank.rankers.base import Ranker
    from mcrank.rankers.stored import Stored

RANKERS: dict[str, str] = {
    "mcrank": "mcrank.rankers.mcrank:McRank",
    "ordinal": "mcrank.rankers.mcrank:OrdinalMcRank",
    "regression": "mcrank.rankers.regression:RegressionRanker",
    "gbrank": "mcrank.rankers.gbrank:GBRank",
    "lambdamart": "mcrank.rankers.lambdamart:LambdaMART",
    "best-feature": "mcrank.rankers.best_feature:BestFeature",
    "adarank": "mcrank.rankers.adarank:AdaRank",
    "ranksvm": "mcrank.rankers.ranksvm:RankSVM",
    "ranknet": "mcrank.rankers.nets:RankNet",
    "lambdarank": "mcrank.rankers.nets:LambdaRank",
    "rankboost": "mcrank.rankers.rankboost:RankBoost",
    "coordinate-ascent": "mcrank.rankers.coordinate_ascent:CoordinateAscent",
    "blend": "mcrank.rankers.blend:Blend",
    "frank": "mcrank.rankers.frank:FRank",
    "custom": "mcrank.rankers.custom:CustomRanker",
}
# What a model file may hold besides, and nobody can train.
_UNTRAINED = {"imported": "mcrank.rankers.imported:ImportedRanker"}


def ranker_class(name: str) -> type[Ranker]:
    """Return the class of the ranker called ``name`` on the command line and in model files.

    Examples
    --------
    >>> from mcrank.rankers.registry import ranker_class
    >>> ranker_class("ordnal")
    Traceback (most recent call last):
    mcrank.errors.OptionError: There is no ranker 'ordnal'; did you mean ordinal?
    """
    if name not in RANKERS:
        raise OptionError(f"There is no ranker {name!r}; {did_you_mean(name, RANKERS, 'rankers:')}")
    return _class_at(RANKERS[name])


def _class_at(place: str) -> type[Ranker]:
    module, _, class_name = place.partition(":")
    found: type[Ranker] = getattr(importlib.import_module(module), class_name)
    return found


def to_bytes(ranker: Stored) -> bytes:
    """Return the content of its model file; the same model always gives the same bytes.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.rankers.registry import to_bytes
    >>> ranker = mcrank.RegressionRanker(n_estimators=2).fit([[0.0], [1.0]] * 20, [0, 1] * 20, qid=[1] * 40)
    >>> to_bytes(ranker)[1:4]
    b'MCR'
    """
    meta, arrays = ranker.state()
    check_texts(meta, "the text")
    _check_reach(arrays)
    return pack({"meta": meta, "ranker": ranker.name}, arrays)


def from_bytes(content: bytes | bytearray, where: str = "the model") -> Ranker:
    """Return the ranker in ``content``, the bytes of a model file; ``where`` names it in errors.

    Examples
    --------
    >>> from mcrank.rankers.registry import from_bytes
    >>> from_bytes(b"GIF89a")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    mcrank.errors.ModelFileError: the model is not a mcrank model file: ...
    """
    return _ranker(*unpack(content, where), where)


def from_file(path: str | os.PathLike[str]) -> Ranker:
    """Return the ranker in a model file; see `mcrank.load`.

    Examples
    --------
    >>> from mcrank.rankers.registry import from_file
    >>> from_file("no-such-file.mcrank")
    Traceback (most recent call last):
    mcrank.errors.ModelFileError: no-such-file.mcrank cannot be read: No such file or directory.
    """
    return _ranker(*read_file(path), os.fspath(path))


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
            kind = _class_at(_UNTRAINED[name]) if name in _UNTRAINED else ranker_class(name)
            ranker = kind.from_state(meta, arrays)
            _check_returned(ranker, meta, arrays)
        _check_reach(arrays)
    except KernelError:
        raise  # about this machine, not about the file
    except _NONSENSE as error:
        words = str(error) if isinstance(error, McrankError) else f"{type(error).__name__}: {error}"
        raise ModelFileError(f"{where} does not hold a usable {name[:40]!a} model: {words}") from error
    return ranker


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


def _check_reach(arrays: Arrays) -> None:
    """Check that no row can get an infinite score: finite leaves are not enough, their sums must be too."""
    with np.errstate(over="ignore"):
        reach = sum(float(np.abs(arrays[name]).sum()) for name in ("base", "value") if name in arrays)
    if not np.isfinite(reach):
        raise ModelFileError("the model has leaves so large that their sums are not finite.")
