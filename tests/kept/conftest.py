"""What tests of what is kept share with those of kernels."""

from __future__ import annotations

from tests.kernels.conftest import sample as sample
