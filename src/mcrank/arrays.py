"""Names of the arrays that cross every layer, in one place."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
RowArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]
FeatureArray = npt.NDArray[np.float32]
ByteArray = npt.NDArray[np.uint8]


def read_only(array: Array) -> Array:
    """Return the array itself, which nobody can write to from now on."""
    array.setflags(write=False)
    return array
