"""Arrays that end where memory ends: whoever reads or writes beyond them is ended by the system.

Run as a script, with random numbers: trains forests of random shapes on such arrays.
"""

import ctypes
import math
import mmap
import random
import sys
import warnings

import numpy as np

PAGE = mmap.PAGESIZE
_NO_ACCESS = 0
_libc = ctypes.CDLL(None, use_errno=True)


def guarded(size):
    """Zeros, as bytes, right before a page that nobody may touch. What is left to a multiple of 64 bytes, as
    vectors want it, is behind them.
    """
    room = -(-size // PAGE) * PAGE
    pages = mmap.mmap(-1, room + PAGE)
    memory = np.frombuffer(pages, dtype=np.uint8)
    end = ctypes.c_void_p(memory.ctypes.data + room)
    assert _libc.mprotect(end, ctypes.c_size_t(PAGE), _NO_ACCESS) == 0
    padded = -(-size // 64) * 64
    return memory[room - padded : room - padded + size]


def aligned(*shape, dtype=np.int64):
    """`mcrank.kernels.memory.aligned`, guarded."""
    return guarded(math.prod(shape) * np.dtype(dtype).itemsize).view(dtype).reshape(shape)


def beyond():
    """Read a byte that nobody may read."""
    array = guarded(PAGE)
    ctypes.string_at(array.ctypes.data + PAGE, 1)


def train(seed, trials):
    """Train forests of random shapes."""
    import mcrank.kernels.memory as memory

    memory.aligned = aligned  # before anybody imports it
    import mcrank
    import mcrank.memory

    mcrank.memory.fresh_bytes = guarded
    warnings.simplefilter("ignore")
    draw, stream = random.Random(seed), np.random.default_rng(seed)
    kinds = [mcrank.McRank, mcrank.OrdinalMcRank, mcrank.LambdaMART, mcrank.RegressionRanker]
    for trial in range(trials):
        rows = draw.choice([40, 300, 2500, 9000])
        features = draw.choice([1, 3, 5, 8, 12, 27, 41, 50, 64, 67, 136])
        if trial == 0:  # so large that threads share a tree, and rows have numbers
            rows, features = 70_000, 50
        X = stream.normal(size=(rows, features)).round(draw.choice([0, 1, 6]))
        X[stream.random(X.shape) < 0.1] = draw.choice([0.0, math.nan])
        y = stream.integers(0, draw.choice([2, 3, 5]), rows)
        data = mcrank.Dataset(X, y, np.arange(rows) // draw.choice([5, 20, 60]))
        options = {
            "n_estimators": 2,
            "num_leaves": draw.choice([2, 10, 31, 255]),
            "max_bins": draw.choice([4, 255, 255, 1024]),
            "min_samples_leaf": draw.choice([1, 20]),
            "n_jobs": draw.choice([1, 2]),
            "subsample": draw.choice([1.0, 1.0, 0.5]),
        }
        scores = draw.choice(kinds)(**options).fit(data).predict(data)
        assert np.isfinite(scores).all()


if __name__ == "__main__":
    if sys.argv[1] == "beyond":
        beyond()
    else:
        train(int(sys.argv[1]), int(sys.argv[2]))
