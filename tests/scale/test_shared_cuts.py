"""Bins of rows in several places are those of all rows in one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.boosting.binning import find_bins
from tests.scale.places import in_mesh


def columns_of(stream, rows):
    """Features of many kinds: spread, rounded, skewed, constant, empty here and there, in one part only."""
    X = np.empty((rows, 8))
    X[:, 0] = stream.normal(size=rows)
    X[:, 1] = stream.normal(size=rows).round(1)
    X[:, 2] = stream.exponential(size=rows) ** 5 * 10.0 ** stream.integers(-30, 30)
    X[:, 3] = 7.0
    X[:, 4] = np.nan
    X[:, 5] = np.where(stream.random(rows) < 0.3, np.nan, stream.normal(size=rows))
    X[:, 6] = np.where(np.arange(rows) < rows // 3, stream.normal(size=rows), 0.0)
    X[:, 7] = np.where(np.arange(rows) < rows // 2, np.nan, stream.integers(-3, 3, rows) * 0.0)
    return X.astype(np.float32)


@pytest.mark.slow
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 200),
    parts=st.integers(2, 6),
    max_bins=st.sampled_from([2, 3, 9, 40, 256]),
    binning=st.sampled_from(["adaptive", "adaptive-refined", "quantile"]),
)
@settings(max_examples=40)
def test_bins_in_parts_are_the_bins_of_the_whole(seed, rows, parts, max_bins, binning):
    stream = np.random.default_rng(seed)
    X = columns_of(stream, rows)
    whole = find_bins(X, max_bins, binning)
    places = stream.integers(0, parts, rows)
    for found in in_mesh(
        [X[places == r] for r in range(parts)], lambda part, mesh: find_bins(part, max_bins, binning, 1, mesh)
    ):
        for name in ("edges", "offsets", "missing", "lowest", "highest"):
            assert np.array_equal(getattr(found, name), getattr(whole, name)), name
