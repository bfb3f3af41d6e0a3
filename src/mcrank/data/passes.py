"""Single passes over the grades and query ids of an evaluation."""

from __future__ import annotations

import numpy as np
from numba import types

from mcrank.kernels import kernel

_FLOATS = types.Array(types.float64, 1, "C", readonly=True)
_INTEGERS = types.Array(types.int64, 1, "C", readonly=True)
_STARTS = types.Array(types.int64, 1, "C")
_BYTES = types.Array(types.uint8, 1, "C")


@kernel(types.boolean(_FLOATS))
def are_grades(values):  # type: ignore[no-untyped-def]
    """Tell whether every value is finite and not negative."""
    # IN: values
    good = 0
    for i in range(values.shape[0]):
        good += (values[i] >= 0.0) & (values[i] < np.inf)
    return good == values.shape[0]


@kernel(types.boolean(_FLOATS, _BYTES))
def whole_grades(grades, out):  # type: ignore[no-untyped-def]
    """Write grades as bytes; tell whether that lost nothing, that is all are integers from 0 to 255."""
    # IN: grades  OUT: out
    kept = 0
    for i in range(grades.shape[0]):
        grade = grades[i]
        out[i] = np.uint8(np.int32(grade if (grade >= 0.0) & (grade < 256.0) else 0.0))
        kept += np.float64(out[i]) == grade
    return kept == grades.shape[0]


@kernel(types.int64(_INTEGERS, _STARTS))
def find_runs(ids, starts):  # type: ignore[no-untyped-def]
    """Find the first row of each run of equal ids; return how many runs, or 0 where ids fall somewhere."""
    # IN: ids (at least one)  OUT: starts (as long as ids, the runs' first)
    runs = 1
    fallen = False
    starts[0] = 0
    for i in range(1, ids.shape[0]):
        if ids[i] != ids[i - 1]:
            fallen |= ids[i] < ids[i - 1]
            starts[runs] = i
            runs += 1
    return 0 if fallen else runs
