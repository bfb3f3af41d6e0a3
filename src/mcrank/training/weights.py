"""Weights of rows as a loss takes them."""

from __future__ import annotations

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.data.dataset import Dataset
from mcrank.errors import DataError
from mcrank.sums import ALONE, Sums


def relative_weight(data: Dataset, sums: Sums = ALONE) -> FloatArray | None:
    """Row weight times query weight, the largest (of all places) being 1, as only ratios matter; or None."""
    with np.errstate(over="ignore", invalid="ignore"):
        weight = data.row_weight
        largest = 1.0 if weight is None else sums.most(float(weight.max()))
    if weight is None:
        return None
    if not np.isfinite(largest) or largest <= 0:
        raise DataError(
            f"weight times query_weight of the training data has a maximum of {largest}; "
            "it must be positive and finite."
        )
    return np.asarray(weight / largest)


def relative(weight: FloatArray | None, count: int) -> FloatArray:
    """Weights, the largest being 1; all 1 where there are none."""
    return np.ones(count) if weight is None else np.asarray(weight / max(float(weight.max()), 1e-300))
