"""Refusing a query with too many pairs before any work is done on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mcrank.arrays import Array, IntArray
from mcrank.errors import DataError


def refuse_pairs(
    owner: str,
    work: str,
    instead: str,
    pairs: IntArray,
    sizes: IntArray,
    qids: Sequence[Any] | Array,
    most: int,
) -> None:
    """Raise `DataError` where one query has more than ``most`` pairs.

    Parameters
    ----------
    owner : str
        Who refuses.
    work, instead : str
        What it does with the pairs, and what to do about it.
    pairs, sizes : ndarray of int64
        Pairs and rows of each query.
    qids : sequence
        Their ids.
    most : int
        The limit.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.pair_limit import refuse_pairs
    >>> refuse_pairs("LambdaMART", "weighs pairs", "cut", np.array([3]), np.array([3]), ["a"], 2)
    Traceback (most recent call last):
    mcrank.errors.DataError: LambdaMART weighs pairs: query a has 3 rows, which makes 3 of them, and the \
limit is 2; cut, or raise max_pairs.
    """
    if len(pairs) == 0 or int(pairs.max()) <= most:
        return
    worst = int(np.argmax(pairs))
    raise DataError(
        f"{owner} {work}: query {qids[worst]} has {sizes[worst]:,} rows, which makes {pairs[worst]:,} of "
        f"them, and the limit is {most:,}; {instead}, or raise max_pairs."
    )
