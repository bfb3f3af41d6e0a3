"""How files are written: whole or not at all, and a model under no name that promises another format."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from mcrank.atomic import written_whole
from mcrank.errors import ModelFileError, OptionError

SUFFIX = ".mcrank"
# What a suffix promises. Whoever opens such a file would refuse it, or worse, take it for what it is not.
_PROMISES = {
    "a model of another format": ".onnx .ort .pmml .mlmodel .mlpackage .tflite .safetensors .gguf .pb .skops",
    "a model of another boosting library": ".cbm .ubj .lgb .xgb",
    "pickled Python objects": ".pkl .pickle .p .joblib .dill .cloudpickle",
    "arrays of another library": ".npy .npz .h5 .hdf5 .keras .pt .pth .ckpt .mat .rds .rdata",
    "JSON, or text of another known form": ".json .jsonl .ndjson .yaml .yml .toml .xml .html .htm .svg .ini",
    "text": ".txt .text .md .rst .log .tex .py .c .cc .cpp .h .hpp .java .js .mjs .cjs .rs .go .r .sql .sh",
    "a table": ".csv .tsv .parquet .pq .arrow .feather .ipc .orc .avro .xls .xlsx .db .sqlite",
    "a compressed file": ".gz .bz2 .xz .zst .zip .tar .tgz .7z .lz4 .br",
    "a picture or a document": ".png .jpg .jpeg .gif .pdf",
}
_PROMISED = {suffix: promise for promise, suffixes in _PROMISES.items() for suffix in suffixes.split()}


def check_suffix(path: str | os.PathLike[str]) -> None:
    """Raise `OptionError` for a name that promises another format than that of a model file.

    Examples
    --------
    >>> from mcrank.writing import check_suffix
    >>> check_suffix("model.mcrank")
    >>> check_suffix("model.onnx")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    mcrank.errors.OptionError: a model cannot be saved as model.onnx: .onnx is a model of another format, ...
    """
    target = Path(path)
    promise = promise_of(path)
    if promise is not None:
        raise OptionError(
            f"a model cannot be saved as {target}: {target.suffix} is {promise}, and what is saved is a "
            f"model of mcrank; name it {target.with_suffix(SUFFIX)}."
        )


def promise_of(path: str | os.PathLike[str]) -> str | None:
    """Return what the suffix of a name promises, other than a model of mcrank; None where that is nothing.

    Examples
    --------
    >>> from mcrank.writing import promise_of
    >>> promise_of("model.onnx"), promise_of("model.best")
    ('a model of another format', None)
    """
    return _PROMISED.get(Path(path).suffix.lower())


def check_apart(path: str | os.PathLike[str], sources: Iterable[str | os.PathLike[str]], where: str) -> None:
    """Raise `OptionError` if a file to be written is one of those that are read: it would be lost."""
    for source in sources:
        if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
            raise OptionError(f"{where} is {path}, which is read and would be lost; name another file.")


def replace_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write ``content`` as the file ``path``: all of it or nothing."""
    target = Path(path)
    if target.exists() and not target.is_file():
        raise ModelFileError(f"{target} cannot be written: it exists and is not a regular file.")
    with written_whole(target) as file:
        file.write(content)
