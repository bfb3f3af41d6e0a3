"""What all tests share."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from hypothesis import settings

import mcrank
from mcrank.metrics.tools import DIALECTS

# A shell starts what runs in its background with Ctrl-C ignored, as will all we start: listen again.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:  # so does nohup, with the end of a terminal
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Kernels compile inside the first example, and machines are noisy: a slow example is not a wrong one.
settings.register_profile("mcrank", deadline=None)
# A change is let in or not by the same examples every time; everybody's own runs look for further ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "mcrank"))


@pytest.fixture(autouse=True)
def dialects():
    """Dialects that a test, or a page it runs, defines end with it: what runs next does not see them."""
    before = dict(DIALECTS)
    yield
    DIALECTS.clear()
    DIALECTS.update(before)


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """A model file, and what it says of some rows, for other processes to read."""
    folder = tmp_path_factory.mktemp("model")
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 3)), rng.integers(0, 3, 60)
    ranker = mcrank.RegressionRanker(n_estimators=3, num_leaves=3, min_samples_leaf=2, n_jobs=1)
    ranker.fit(X, y, qid=np.repeat(range(6), 10)).save(folder / "model.mcrank")
    np.savez(folder / "rows.npz", X=X, scores=ranker.predict(X))
    return folder
