"""Exporting: the model is checked, made into files by its target, and those are written whole."""

from __future__ import annotations

import os
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
    for words in target.warns(model):
        warnings.warn(words, stacklevel=3)
    return write(path, content)


def write(path: str | os.PathLike[str], content: bytes | Mapping[str, bytes]) -> list[Path]:
    """Write what `Target.content` gave: one file, or a folder of them."""
    if not isinstance(content, Mapping):
        replace_file(path, content)
        return [Path(path)]
    written = []
    for name, part in content.items():
        file = Path(path, *PurePosixPath(name).parts)
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, part)
        written.append(file)
    return written


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
