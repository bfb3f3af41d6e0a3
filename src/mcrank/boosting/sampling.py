"""Which queries and features a round may see.

A choice hangs on the seed, the round and the query's id (or the feature's number), never on row positions:
the same query is drawn in the same rounds wherever its rows lie in the file.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

_STEP = np.uint64(0x9E3779B97F4A7C15)


def query_keys(qids: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """A 64-bit key of each query id, from its text; 7 and "7" are the same query to a file."""
    digests = (hashlib.blake2b(str(q).encode(), digest_size=8).digest() for q in qids.tolist())
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _mix(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Finaliser of splitmix64: every bit of the key reaches every bit of the result."""
    with np.errstate(over="ignore"):
        keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def draw(keys: npt.NDArray[np.uint64], share: float, *context: int) -> npt.NDArray[np.int64]:
    """Draw about ``share`` of the keys (at least one) for a context such as (seed, round); ascending
    positions.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.boosting.sampling import draw
    >>> len(draw(np.arange(10, dtype=np.uint64), 0.5, 1, 2))
    5
    """
    salt = np.zeros(1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for part in context:
            salt = _mix(salt + _STEP + np.uint64(part))
        drawn = _mix(keys + _STEP + salt)
    size = max(1, round(share * len(keys)))
    return np.sort(np.argsort(drawn, kind="stable")[:size])
