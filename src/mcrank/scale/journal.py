"""The journal of a training: every round's trees, as they are done, from which it can go on, or end.

It lives where the training was started, in memory and, if there is to be one, in a file: containers
(`mcrank.container`) one behind the other, of which a last one that is cut short was never written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mcrank.arrays import Arrays, FloatArray
from mcrank.boosting.binning import Bins
from mcrank.boosting.place import Round
from mcrank.container import PRELUDE, Kind, canonical, pack, unpack
from mcrank.data.categories import Categories
from mcrank.errors import ModelFileError, OptionError
from mcrank.scorers.forest.forest import NODE_DTYPES
from mcrank.scorers.forest.sets import packed
from mcrank.scorers.heads import Head

JOURNAL = Kind(b"\x89MCJ\r\n\x1a\n", "journal", 2**32, True, "Remove it and train from the start.")
_BINS = tuple(Bins.__dataclass_fields__)


class Opening(NamedTuple):
    """What is decided before the first round; without bins there is nothing to learn."""

    head: Head
    base: FloatArray
    per_round: int
    bins: Bins | None
    fingerprint: str  # of the training data
    categories: Categories  # of all its rows


class Entry(NamedTuple):
    """A round: its trees, and what was measured after it."""

    trees: Round
    measured: dict[str, float]


def pack_opening(opening: Opening) -> bytes:
    """Return an opening as bytes."""
    arrays: Arrays = {"base": opening.base}
    if opening.head.values is not None:
        arrays["head_values"] = opening.head.values
    if opening.bins is not None:
        arrays |= {f"bins_{name}": getattr(opening.bins, name) for name in _BINS}
    header = {
        "head": opening.head.kind, "per_round": opening.per_round, "fingerprint": opening.fingerprint,
        "categories": [[feature, list(names)] for feature, names in opening.categories.items()],
    }  # fmt: skip
    return pack({"opening": header}, arrays, JOURNAL)


def pack_round(number: int, entry: Entry) -> bytes:
    """Return a round as bytes."""
    trees = [tree for _, tree in entry.trees]
    names = [name for name in NODE_DTYPES if name in trees[0]]
    arrays: Arrays = {name: np.concatenate([tree[name] for tree in trees]) for name in names}
    if "set_offsets" in trees[0]:  # splits on categories
        arrays["sets"] = np.array([len(tree["set_offsets"]) - 1 for tree in trees], dtype=np.int64)
        arrays["set_sizes"] = np.concatenate([np.diff(tree["set_offsets"]) for tree in trees])
        arrays["set_words"] = np.concatenate([tree["set_words"] for tree in trees]).view(np.int64)
    arrays["outputs"] = np.array([output for output, _ in entry.trees], dtype=np.int64)
    arrays["sizes"] = np.array([len(tree["left"]) for tree in trees], dtype=np.int64)
    return pack({"round": number, "measured": entry.measured}, arrays, JOURNAL)


def pack_closing(found: dict[str, Any]) -> bytes:
    """Return what was found when all rounds were done, as bytes."""
    return pack({"closing": found}, {}, JOURNAL)


def _opening(header: Mapping[str, Any], arrays: Arrays) -> Opening:
    # Copies: kernels take arrays that may be written to.
    bins = Bins(*(arrays[f"bins_{name}"].copy() for name in _BINS)) if "bins_edges" in arrays else None
    head = Head(header["head"], arrays.get("head_values"))
    categories = {int(feature): tuple(map(str, names)) for feature, names in header.get("categories", ())}
    known = str(header["fingerprint"])
    return Opening(head, arrays["base"], int(header["per_round"]), bins, known, categories)


def _entry(header: Mapping[str, Any], arrays: Arrays) -> Entry:
    cuts = np.cumsum(arrays["sizes"])[:-1]
    nodes = {name: np.split(arrays[name], cuts) for name in NODE_DTYPES if name in arrays}
    trees: Round = [
        (output, {name: parts[t] for name, parts in nodes.items()})
        for t, output in enumerate(arrays["outputs"].tolist())
    ]
    if "sets" in arrays:
        words = np.split(arrays["set_words"].view(np.uint64), np.cumsum(arrays["set_sizes"])[:-1])
        ends = np.cumsum(arrays["sets"])
        for (_, tree), count, end in zip(trees, arrays["sets"].tolist(), ends.tolist(), strict=True):
            tree |= packed(words[end - count : end])
    return Entry(trees, {str(name): float(value) for name, value in header["measured"].items()})


class Journal:
    """What a training has done so far.

    Parameters
    ----------
    path : path, optional
        File to keep it in as well.
    resume : bool
        Whether to go on from what the file has; else it must not be there.

    Attributes
    ----------
    opening : Opening or None
        What was decided before the first round, once it is.
    rounds : list of Entry
        Rounds done.
    closing : dict or None
        What was found on validation data when all rounds were done; never kept in the file, as more rounds
        find it anew.

    Examples
    --------
    >>> from mcrank.scale.journal import Journal
    >>> len(Journal().rounds)
    0
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, resume: bool = False) -> None:
        self.opening: Opening | None = None
        self.rounds: list[Entry] = []
        self.closing: dict[str, Any] | None = None
        self._path = None if path is None else Path(path)
        self._identity: bytes | None = None
        if self._path is None:
            if resume:
                raise OptionError("resume needs journal, the file to go on from.")
            return
        if self._path.exists():
            if not resume:
                raise OptionError(
                    f"journal {self._path} is there already; resume goes on from it, or remove it."
                )
            self._read(self._path)

    def identify(self, facts: Mapping[str, Any]) -> None:
        """Say what is trained on what; a file of another training is refused."""
        identity = canonical({"training": facts})
        if self._identity is None:
            self._identity = identity
            self._write(pack({"training": facts}, {}, JOURNAL))
        elif self._identity != identity:
            raise OptionError(
                f"journal {self._path} belongs to another training: its options, rows or columns are others; "
                "remove it, or train as then."
            )

    def take(self, content: bytes) -> int:
        """Take an opening (0) or a round, packed; return its number, or -1 where it is known already."""
        header, arrays = unpack(content, "a record of the training", JOURNAL)
        if "closing" in header:
            self.closing = dict(header["closing"])
            return -1
        if "opening" in header:
            opening = _opening(header["opening"], arrays)
            if self.opening is not None:
                if opening.fingerprint != self.opening.fingerprint:
                    raise OptionError(
                        "the rows are not those the training began with (their fingerprint is another): "
                        "train from the start."
                    )
                return -1
            self.opening, number = opening, 0
        else:
            number = int(header["round"])
            if number != len(self.rounds) + 1:
                return -1
            self.rounds.append(_entry(header, arrays))
        self._write(content)
        return number

    def _write(self, content: bytes) -> None:
        if self._path is None:
            return
        try:
            with open(self._path, "ab") as file:
                file.write(content)
        except OSError as error:  # that of a full disk does not say of which file it is
            raise OSError(error.errno, error.strerror or str(error), os.fspath(self._path)) from None

    def _read(self, path: Path) -> None:
        content, at, end = path.read_bytes(), 0, 0
        writing, self._path = self._path, None  # nothing that is read is written again
        while len(content) - at >= PRELUDE.size:
            size = int(PRELUDE.unpack_from(content, at)[3])
            if PRELUDE.unpack_from(content, at)[0] != JOURNAL.magic:
                raise ModelFileError(f"{path} is not a mcrank journal, or damaged at byte {at}.")
            if size > len(content) - at:
                break
            record = content[at : at + size]
            header, _ = unpack(record, str(path), JOURNAL)
            if "training" in header:
                self._identity = canonical(header)
            else:
                self.take(record)
            at = end = at + size
        self._path = writing
        if end < len(content):
            with open(path, "r+b") as file:
                file.truncate(end)  # a record that was never finished
