"""What tests of kernels share."""

from __future__ import annotations

import pytest

from tests.kernels.sample import Sample


@pytest.fixture
def sample(tmp_path, monkeypatch):
    made = Sample(tmp_path, monkeypatch)
    yield made
    made.forget()
