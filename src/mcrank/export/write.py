"""Exporting: the model is checked, made into files by its target, and those are written whole."""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from mcrank.errors import OptionError
from mcrank.export.target import Exportable, Target
from mcrank.writing import SUFFIX, promise_of, replace_file


def export(model: Exportable, target: Target, path: str | os.PathLike[str]) -> list[Path]:
    """Write ``model`` for ``target`` at ``path``, a file or a folder; return the files written.

    All content is made before the first byte is written, and each file appears whole or not at all.
    """
    target.check(model)
    check_path(target, path)
    content = target.content(target.prepared(model))
    for words in target.notes(model):
        warnings.warn(words, stacklevel=3)
    return write(path, content, target.owned)


def write(path: str | os.PathLike[str], content: bytes | Mapping[str, bytes], owned: str = "") -> list[Path]:
    """Write what `Target.content` gave: one file, or a folder of them.

    A folder that cannot be written whole is left as it was.
    """
    if not isinstance(content, Mapping):
        replace_file(path, content)
        return [Path(path)]
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder.joinpath(*PurePosixPath(name).parts) for name in content}
    # All of it is on disk before the first file appears: a part of an export would be taken for the whole.
    with tempfile.TemporaryDirectory(prefix=".mcrank-", dir=folder) as aside:
        for number, part in enumerate(content.values()):
            replace_file(Path(aside, str(number)), part)
        for number, file in enumerate(files.values()):
            file.parent.mkdir(parents=True, exist_ok=True)
            os.replace(Path(aside, str(number)), file)
    for old in folder.iterdir() if owned else ():
        if re.fullmatch(owned, old.name) and old not in files.values() and old.is_file():
            old.unlink()  # of an earlier export, and read as if it were of this one
    return list(files.values())


def check_path(target: Target, path: str | os.PathLike[str]) -> None:
    """Raise `OptionError` where the name promises another format, or a file is where a folder should be.

    Examples
    --------
    >>> from mcrank.export.registry import target_class
    >>> from mcrank.export.write import check_path
    >>> check_path(target_class("lightgbm")(), "model.txt")
    >>> check_path(target_class("lightgbm")(), "model.onnx")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    mcrank.errors.OptionError: an export to lightgbm cannot be called model.onnx: .onnx is a model of ...
    """
    out = Path(path)
    if not target.suffixes:
        there = next((some for some in (out, *out.parents) if os.path.lexists(some)), out)
        if os.path.lexists(there) and not there.is_dir():
            raise OptionError(
                f"an export to {target.name} is a folder of files, and {there} is not a folder; name another."
            )
        return
    suffix = out.suffix.lower()
    promise = "a model of mcrank itself" if suffix == SUFFIX else promise_of(out)
    if suffix in target.suffixes:
        trouble = target.misnamed(suffix)
    else:
        trouble = None if promise is None else f"{out.suffix} is {promise};"
    if trouble is not None:
        name = out.with_suffix(next(one for one in target.suffixes if target.misnamed(one) is None))
        raise OptionError(f"an export to {target.name} cannot be called {out}: {trouble} name it {name}.")
