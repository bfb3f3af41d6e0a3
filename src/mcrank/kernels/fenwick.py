"""Sums over grades that change as rows come and go: Fenwick's tree, from place 0."""

from __future__ import annotations

from mcrank.kernels.declare import step


@step()
def add_at(tree, place, value):  # type: ignore[no-untyped-def]
    """Add a value at one place.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.kernels.fenwick import add_at, sum_upto
    >>> tree = np.zeros(3)
    >>> for place, value in enumerate([1.0, 2.0, 4.0]):
    ...     add_at(tree, place, value)
    >>> [float(sum_upto(tree, place)) for place in (-1, 0, 1, 2)]
    [0.0, 1.0, 3.0, 7.0]
    """
    # IN: place, value  OUT: tree
    while place < len(tree):
        tree[place] += value
        place |= place + 1


@step()
def sum_upto(tree, place):  # type: ignore[no-untyped-def]
    """Sum of all places up to one; -1 is before the first."""
    # IN: tree, place
    total = tree.dtype.type(0)
    while place >= 0:
        total += tree[place]
        place = (place & (place + 1)) - 1
    return total
