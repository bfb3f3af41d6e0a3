"""`write`: a `Dataset` becomes LETOR text, so that `read` gives back the same numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from mcrank.arrays import FeatureArray
from mcrank.data.dataset import Dataset
from mcrank.data.sources import StrPath, replaced_file
from mcrank.errors import DataError, OptionError
from mcrank.writing import promise_of

_ROWS_AT_A_TIME = 1024
_BREAKS_A_WORD = re.compile(r"[\s#]")
# What a reader of comments would cut off or take for something else.
_LOST_IN_A_COMMENT = re.compile(r"\n|^[ \t\r\v\f]|[ \t\r\v\f]\Z|^docid[ \t\r\v\f]*=")


def write(data: Dataset, path: StrPath, *, sparse: bool = False) -> None:
    """Write LETOR text; a name that ends in .gz, .xz, .bz2 or .zst is compressed.

    Each value has the fewest digits that give back the same float32. Features are numbered from 1. Weights
    and feature names have no place in LETOR text and are left out. An id that would not be read back as the
    same text is refused, and so are categories, and a name that promises another format (.parquet, .csv).

    Parameters
    ----------
    data : Dataset
        What to write, in its order: grouped by query.
    path : path
        The file, replaced only when everything has been written.
    sparse : bool
        Leave out features that are 0 (the last of all stays in one row, so that their number is known).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from mcrank import Dataset, write
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.txt")
    >>> write(Dataset([[0.1, 0.0], [np.nan, 2.0]], y=[2, 0.5], qid=["a", "a"], doc_ids=["A", "B"]), path)
    >>> print(path.read_text(), end="")
    2 qid:a 1:0.1 2:0 #docid = A
    0.5 qid:a 1:nan 2:2 #docid = B
    """
    promise = promise_of(path)
    if promise not in (None, "text", "a compressed file"):
        raise OptionError(
            f"{path} would be {promise} by its name, and what is written is LETOR text; name it .txt."
        )
    if data.categories:
        names = ", ".join(repr(data.feature_names[f]) for f in data.categories)
        raise DataError(f"LETOR text has numbers alone, and this data has categories: {names}.")
    ids = [_word(q, "query id") for q in data.qids.tolist()]
    with replaced_file(path, compress=True) as stream:
        for q in range(data.n_queries):
            for start in range(int(data.offsets[q]), int(data.offsets[q + 1]), _ROWS_AT_A_TIME):
                stop = min(start + _ROWS_AT_A_TIME, int(data.offsets[q + 1]))
                stream.write("".join(_lines(data, ids[q], start, stop, sparse)).encode("utf-8"))


def _word(value: Any, what: str) -> str:
    text = str(value)
    if isinstance(value, tuple) or not text or _BREAKS_A_WORD.search(text) or not _encodes(text):
        raise DataError(
            f"{what} {value!r} cannot be written as LETOR text: it must be one word or an integer, with no "
            "blank and no '#'."
        )
    return text


def _encodes(text: str) -> bool:
    """Half a surrogate pair, which Python may hold, has no bytes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _number(value: float) -> str:
    text = str(value)
    return text[:-2] if text.endswith(".0") else text


def _lines(data: Dataset, qid: str, start: int, stop: int, sparse: bool) -> list[str]:
    block = data.X[start:stop]
    texts = _texts(block)
    left_out = block == 0 if sparse else np.zeros(block.shape, dtype=np.bool_)
    if start == 0 and sparse and not data.X[:, -1].any():
        left_out[0, -1] = False  # or a reader would take the largest number in the file for that of features
    lines = []
    for i in range(stop - start):
        pairs = [f"{j + 1}:{text}" for j, text in enumerate(texts[i]) if not left_out[i, j]]
        grade = _number(float(data.y[start + i]))
        lines.append(" ".join([grade, f"qid:{qid}", *pairs]) + _comment(data, start + i) + "\n")
    return lines


def _texts(block: FeatureArray) -> list[list[str]]:
    """Shortest text of every value; equal values, of which data has many, are converted once."""
    # By bits, so that -0.0 is not written as 0.
    bits, inverse = np.unique(block.view(np.uint32), return_inverse=True)
    words = np.array([_number(value) for value in bits.view(np.float32)], dtype=object)
    listed: list[list[str]] = words[inverse.reshape(block.shape)].tolist()
    return listed


def _comment(data: Dataset, row: int) -> str:
    value = "" if data.doc_ids is None else data.doc_ids[row]
    doc = str(value)
    if not doc:
        return ""
    if isinstance(value, tuple) or not _encodes(doc) or _LOST_IN_A_COMMENT.search(doc):
        raise DataError(
            f"document id {value!r} of row {row} cannot be written as LETOR text: it must be text with no "
            "line end, no blank at its ends and no 'docid =' at its start, or an integer."
        )
    return f" # {doc}" if _BREAKS_A_WORD.search(doc) else f" #docid = {doc}"
