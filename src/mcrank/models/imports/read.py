"""One entrance for model files of other libraries: which one a file is of shows in its first bytes."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mcrank.container import MODEL, open_regular
from mcrank.errors import ModelFileError, OptionError, did_you_mean
from mcrank.models.imports.catboost import read_catboost, read_cbm
from mcrank.models.imports.lightgbm import read_lightgbm
from mcrank.models.imports.outcome import Wishes
from mcrank.models.imports.parts import shown
from mcrank.models.imports.ranklib import read_ranklib
from mcrank.models.imports.ubjson import looks_like_ubjson
from mcrank.models.imports.xgboost import read_xgboost
from mcrank.rankers.imported import ImportedRanker

KINDS = ("lightgbm", "xgboost", "catboost", "sklearn", "ranklib")
_READERS = {
    "lightgbm": read_lightgbm, "xgboost": read_xgboost, "catboost": read_catboost, "ranklib": read_ranklib,
}  # fmt: skip
_MOST_BYTES = 4 << 30
_LOOK = 1 << 16  # bytes in which a JSON model shows whose it is
_CBM = b"CBM1"


def import_file(
    path: str | os.PathLike[str], kind: str | None = None, wishes: Wishes | None = None
) -> ImportedRanker:
    """Return the ranker in a model file of another library; ``kind`` is known by its content if not said.

    Examples
    --------
    >>> from mcrank.models.imports.read import import_file
    >>> import_file("model.txt", "lightgbn")
    Traceback (most recent call last):
    mcrank.errors.OptionError: There is no import from 'lightgbn'; did you mean lightgbm?
    """
    wishes = Wishes() if wishes is None else wishes
    where = os.fspath(path)
    if kind is not None and kind not in KINDS:
        raise OptionError(f"There is no import from {kind!r}; {did_you_mean(kind, KINDS, 'sources:')}")
    content = _content(where)
    found = _kind(content, where)
    if kind is not None and found != kind:
        raise ModelFileError(f"{where} is not a model of {kind}, but of {found}.")
    if wishes.n_features is not None and found != "ranklib":
        raise OptionError(f"n_features is for models of RankLib; {where}, of {found}, says it itself.")
    if wishes.grades is not None and found == "ranklib":
        raise OptionError(f"grades are for models of classes, and {where} is none.")
    with np.errstate(over="ignore", invalid="ignore"):  # odd numbers are for the checks to find
        outcome = (
            read_cbm(where, wishes) if content.startswith(_CBM) else _READERS[found](content, where, wishes)
        )
    return outcome.ranker(wishes, where)


def _content(where: str) -> bytes:
    try:
        with open_regular(where) as file:
            size = os.fstat(file.fileno()).st_size
            if size > _MOST_BYTES:
                raise ModelFileError(f"{where} has {size} bytes; a model may have {_MOST_BYTES}.")
            content = bytearray()
            while block := file.read(1 << 24):
                content += block
            return bytes(content)
    except (OSError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(
            f"{where} cannot be read: {getattr(error, 'strerror', None) or error}."
        ) from None
    except MemoryError:
        raise ModelFileError(f"{where} does not fit into memory.") from None


def _kind(content: bytes, where: str) -> str:
    """Return which library a file is of, or refuse it with what it is."""
    start = content[:_LOOK].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith((b"tree\n", b"tree\r\n")):
        return "lightgbm"
    if start.startswith(b"##"):
        return "ranklib"
    if start.startswith(_CBM):
        return "catboost"
    if looks_like_ubjson(content):
        return "xgboost"
    if start.startswith(b"{"):
        if b'"tree_info"' in start and b'"learner"' not in start and b'"num_tree_per_iteration"' in start:
            raise _unusable(where, "a dump_model of LightGBM; save_model writes what can be imported")
        return "catboost" if b'"features_info"' in start or b'"oblivious_trees"' in start else "xgboost"
    if content.startswith(MODEL.magic):
        raise _unusable(where, "a model of mcrank already; mcrank.load loads it")
    if start.startswith(b"["):
        raise _unusable(where, "a dump of trees, without objective and base score; save the model itself "
                        "(save_model)")  # fmt: skip
    if content[:1] == b"\x80":
        raise _unusable(where, "a pickle, which can run anything when it is opened, and is not opened here; "
                        "load it where you trust it, and give the object to mcrank.from_sklearn")  # fmt: skip
    if content.startswith((b"binf", b"bs64")):
        raise _unusable(where, "an old binary model of XGBoost; load it there and save it as JSON")
    begins = shown(content[:12]) if content else "nothing"
    raise _unusable(where, f"no model of {', '.join(k for k in KINDS if k != 'sklearn')}: it begins with "
                    f"{begins}")  # fmt: skip


def _unusable(where: str, words: str) -> ModelFileError:
    return ModelFileError(f"{where} is {words}.")


def is_path(model: Any) -> bool:
    """Whether a caller named a file, rather than giving an object."""
    return isinstance(model, (str, os.PathLike))


def wrong_object(model: Any, function: str, must: str) -> OptionError:
    """Return the error about an object that cannot be imported."""
    return OptionError(f"model of {function} must be {must}, got {type(model).__name__}.")
