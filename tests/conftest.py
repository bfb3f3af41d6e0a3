"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# Kernels compile inside the first example, and machines are noisy: a slow example is not a wrong one.
settings.register_profile("mcrank", deadline=None)
settings.load_profile("mcrank")
