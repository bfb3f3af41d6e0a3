"""Edges between bins as a model file has them."""

from __future__ import annotations

import numpy as np

from mcrank.arrays import Array, FeatureArray, IntArray
from mcrank.errors import ModelFileError


def checked_edges(edges: Array, offsets: Array, n_features: int) -> tuple[FeatureArray, IntArray]:
    """Return edges and where those of each feature begin, or raise `ModelFileError`."""
    good = (
        edges.dtype == np.float32
        and offsets.dtype == np.int64
        and offsets.shape == (n_features + 1,)
        and edges.ndim == 1
        and offsets[0] == 0
        and offsets[-1] == len(edges)
        and bool((offsets[1:] >= offsets[:-1]).all())
    )
    if not good:
        raise ModelFileError("bin_edges and bin_offsets do not fit together.")
    inside = np.ones(max(len(edges) - 1, 0), dtype=bool)
    ends = offsets[1:-1]
    inside[ends[(ends > 0) & (ends < len(edges))] - 1] = False  # between two features edges may fall
    if not (np.diff(edges)[inside] > 0).all():
        raise ModelFileError("bin_edges of a feature must rise.")
    return edges, offsets


def all_edges(found: list[tuple[FeatureArray, IntArray]]) -> tuple[FeatureArray, IntArray]:
    """Return edges of every feature that any of several fits cut at.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.rankers.edges import all_edges
    >>> edges = [(np.array([1.0, 3.0]), np.array([0, 2])), (np.array([2.0, 3.0]), np.array([0, 2]))]
    >>> all_edges(edges)[0].tolist()
    [1.0, 2.0, 3.0]
    """
    columns = [
        np.unique(np.concatenate([edges[offsets[f] : offsets[f + 1]] for edges, offsets in found]))
        for f in range(len(found[0][1]) - 1)
    ]
    return np.concatenate(columns), np.cumsum([0, *map(len, columns)], dtype=np.int64)
