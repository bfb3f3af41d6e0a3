"""A digest of a data set, the same however its queries are ordered, filed or cut into parts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from mcrank.data.dataset import Dataset
from mcrank.memory import let_go


def fingerprint(data: Dataset) -> str:
    """Digest of a data set that does not depend on the order of its queries, nor on the files they came in.

    Each query has a digest of its id, rows, grades and weights, in the order of its rows; the sum of all says
    which queries there are.

    Examples
    --------
    >>> from mcrank import Dataset
    >>> from mcrank.data.fingerprint import fingerprint
    >>> one = Dataset([[1.0], [2.0], [3.0]], y=[0, 1, 2], qid=["a", "b", "b"])
    >>> fingerprint(one) == fingerprint(one.select([1, 0])), fingerprint(one) == fingerprint(one.select([0]))
    (True, False)
    """
    total = 0
    head = str((data.n_features, data.weight is None, data.query_weight is None)).encode()
    if data.categories:  # of which the matrix has only the places
        head += repr(sorted(data.categories.items())).encode("utf-8", "backslashreplace")
    # Views of bytes: a slice of an array, which a digest asks for its bytes, takes three times as long.
    X, y, bounds, seen = data.X.data, data.y.data, data.offsets.tolist(), 0
    for q, (name, start, end) in enumerate(zip(data.qids.tolist(), bounds, bounds[1:], strict=False)):
        digest = hashlib.blake2b(f"{name}\0{end - start}\0".encode() + head, digest_size=16)
        digest.update(X[start:end])
        digest.update(y[start:end])
        if data.weight is not None:
            digest.update(data.weight[start:end].data)
        if data.query_weight is not None:
            digest.update(data.query_weight[q : q + 1].data)
        total += int.from_bytes(digest.digest(), "little")
        if q % 1024 == 0:
            let_go(data.X[seen:end])
            seen = end
    let_go(data.X)
    return f"{total % 2**128:032x}"


def summed(parts: Iterable[str]) -> str:
    """Return the fingerprint of a data set, of those of its parts.

    Examples
    --------
    >>> from mcrank import Dataset
    >>> from mcrank.data.fingerprint import fingerprint, summed
    >>> data = Dataset([[1.0], [2.0]], y=[0, 1], qid=["a", "b"])
    >>> summed(fingerprint(data.select([q])) for q in range(2)) == fingerprint(data)
    True
    """
    return f"{sum(int(part, 16) for part in parts) % 2**128:032x}"
