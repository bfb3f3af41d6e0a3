"""What several tests of reading need."""

from __future__ import annotations

import pytest

from mcrank.data import letor


@pytest.fixture
def parses(monkeypatch):
    """Count how often text is parsed."""
    calls = []
    real = letor.read_letor
    monkeypatch.setattr(letor, "read_letor", lambda *a: calls.append(1) or real(*a))
    return calls
