"""What all tests share."""

from __future__ import annotations

import signal

from hypothesis import settings

# A shell starts what runs in its background with Ctrl-C ignored, as will all we start: listen again.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Kernels compile inside the first example, and machines are noisy: a slow example is not a wrong one.
settings.register_profile("mcrank", deadline=None)
settings.load_profile("mcrank")
