"""What all tests of trees share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _small_trees_are_shared(monkeypatch):
    """Threads share trees of any number of bins: where that pays is not what is tested."""
    monkeypatch.setattr("mcrank.boosting.trees._SHARED_BINS", 1)
