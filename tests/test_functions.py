"""The hash of a function: the same in every process for what does the same, another for anything else."""

from __future__ import annotations

import functools
import subprocess
import sys

import numpy as np
import pytest

from mcrank.functions import hash_of

BEFORE = "from mcrank.functions import hash_of\nimport functools, numba, numpy as np\n"
SAME = [
    "lambda s, g, o: (s - g, s in {1, 2, 3}, {'a', 'b', 'c', 'd'})",
    "functools.partial(pow, 2.5, mod=None)",
    "numba.njit(lambda s: s + np.float64(2))",
    "np.add",
    "functools.partial(max, key=lambda x: np.arange(3))",
]


@pytest.mark.parametrize("text", SAME)
def test_every_process_finds_the_same(text):
    """Also where texts hash otherwise, and the function stands in another line of another file."""
    found = set()
    for seed, blanks in (("1", ""), ("2", "\n\n")):
        code = f"{BEFORE}{blanks}print(hash_of({text}))"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(filter(None, sys.path))},
        )  # fmt: skip
        found.add(done.stdout)
    assert len(found) == 1


class Called:
    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return self.by * x

    def other(self, x):
        return x


class Recalled(Called):
    def __call__(self, x):
        return self.by + x


def bound(by):
    return lambda x: x * by


def itself(x):
    def again(y):
        return again(y - 1) if y else x

    return again


def test_what_differs_has_another():
    rates = np.zeros(5000), np.eye(1, 5000, 2500)[0]
    functions = [
        *(lambda x: x + 1, lambda x: x + 2, lambda x: x - 1, lambda x: len(x), lambda x: max(x)),
        *(
            lambda x, y=1: x,
            lambda x, y=2: x,
            lambda x, *, y=2: x,
            lambda x: x in (1, 2),
            lambda x: x in (1, 3),
        ),
        *map(bound, (1, 2, "1", *rates, [1], {"a": 1})),
        *(functools.partial(pow, 2), functools.partial(pow, 3), pow, np.add, np.subtract),
        *(Called(1), Called(2), Recalled(1), Called(1).__call__, Called(1).other),
        *(itself(1), itself(2)),
    ]
    assert len(set(map(hash_of, functions))) == len(functions)
    assert hash_of(bound(rates[1])) == hash_of(bound(rates[1].copy()))
    assert hash_of(Called(1)) == hash_of(Called(1))
    assert hash_of(itself(1)) == hash_of(itself(1))
