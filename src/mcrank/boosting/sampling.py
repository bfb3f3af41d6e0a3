"""Which rows and features a round may see.

A choice hangs on the seed, the round and the query's id (or the feature's number, or the row's place in its
query), never on where a query lies: the same query is drawn in the same rounds wherever its rows are in the
file.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.arrays import BoolArray, FloatArray, IntArray
from mcrank.data.dataset import Dataset
from mcrank.losses.base import Loss
from mcrank.losses.quantize import Gradients, Run
from mcrank.sums import Sums

Keys = npt.NDArray[np.uint64]
_STEP = np.uint64(0x9E3779B97F4A7C15)
_NONE = np.empty(0, dtype=np.int64)


def query_keys(qids: npt.NDArray[Any]) -> Keys:
    """A 64-bit key of each query id, from its text; 7 and "7" are the same query to a file."""
    digests = (hashlib.blake2b(str(q).encode(), digest_size=8).digest() for q in qids.tolist())
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def row_keys(data: Dataset) -> Keys:
    """A 64-bit key of each row, from its query's id and its place there."""
    places = np.arange(data.n_rows) - np.repeat(data.offsets[:-1], data.sizes)
    with np.errstate(over="ignore"):
        return _mix(np.repeat(query_keys(data.qids), data.sizes) + _STEP * (places + 1).astype(np.uint64))


def _mix(keys: Keys) -> Keys:
    """Finaliser of splitmix64: every bit of the key reaches every bit of the result."""
    with np.errstate(over="ignore"):
        keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def salt_of(*context: int) -> np.uint64:
    """What a context, such as (seed, round), adds to the keys of its lots."""
    salt = np.zeros(1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for part in context:
            salt = _mix(salt + _STEP + np.uint64(part))
    return np.uint64(salt[0])


def lots(keys: Keys, *context: int) -> Keys:
    """Random 64-bit numbers, one for each key, in a context."""
    with np.errstate(over="ignore"):
        return _mix(keys + _STEP + salt_of(*context))


def draw(keys: Keys, share: float, *context: int) -> IntArray:
    """Draw about ``share`` of the keys (at least one) for a context such as (seed, round); ascending
    positions.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.boosting.sampling import draw
    >>> len(draw(np.arange(10, dtype=np.uint64), 0.5, 1, 2))
    5
    """
    size = max(1, round(share * len(keys)))
    return np.sort(np.argsort(lots(keys, *context), kind="stable")[:size])


def everyones(keys: Keys, sums: Sums) -> tuple[slice, Keys]:
    """Keys of everybody's queries (or rows), and which of them are this place's own."""
    gathered = sums.gather(keys)
    first = sum(len(k) for k in gathered[: sums.rank])
    return slice(first, first + len(keys)), np.concatenate(gathered)


class AllRows:
    """Gradients of every row, and all rows to grow trees on.

    Attributes
    ----------
    gradients : Gradients
        What trees are grown on.
    leaves : Loss
        Whose rule gives leaves their values.
    """

    def __init__(self, data: Dataset, loss: Loss, split: str) -> None:
        self.data, self.loss, self.leaves = data, loss, loss
        self.gradients: Gradients = loss.allocate(split)

    def fill(self, scores: FloatArray, number: int, run: Run) -> tuple[IntArray, IntArray]:
        """Fill the gradients of a round; return the rows it sees and the others, both empty for all."""
        self.loss.fill(scores, self.gradients, run)
        return _NONE, _NONE


class Queries(AllRows):
    """Rows of a share of the queries, drawn anew each round."""

    def __init__(self, data: Dataset, loss: Loss, split: str, share: float, seed: int) -> None:
        super().__init__(data, loss, split)
        self._share, self._seed = share, seed
        self._own, self._keys = everyones(query_keys(data.qids), loss.sums)

    def fill(self, scores: FloatArray, number: int, run: Run) -> tuple[IntArray, IntArray]:
        """Fill the gradients of a round; return the rows of the queries drawn, and the others."""
        super().fill(scores, number, run)
        chosen = np.zeros(len(self._keys), dtype=bool)
        chosen[draw(self._keys, self._share, self._seed, number)] = True
        return parted(np.repeat(chosen[self._own], self.data.sizes))


def parted(chosen: BoolArray) -> tuple[IntArray, IntArray]:
    """Rows that are chosen, and those that are not."""
    return np.flatnonzero(chosen).astype(np.int64), np.flatnonzero(~chosen).astype(np.int64)
