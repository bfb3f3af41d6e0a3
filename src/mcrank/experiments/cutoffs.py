"""NDCG at the truncation levels of the McRank paper's Figure 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mcrank.arrays import FloatArray

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison

CUTOFFS = tuple(range(1, 11))


@dataclass(frozen=True, eq=False)
class Cutoffs:
    """NDCG@1..10 of each system: mean and standard deviation over the queries (systems x cut-offs)."""

    mean: FloatArray
    std: FloatArray


def cutoffs(comparison: Comparison) -> Cutoffs:
    """Measure every system at the cut-offs of the McRank paper's Figure 1."""
    names = [f"ndcg@{k}" for k in CUTOFFS]
    found = [comparison.evaluate(key, names) for key in comparison.keys]
    freedom = 1 if comparison.n_queries > 1 else 0
    return Cutoffs(
        np.array([[one.mean[name] for name in names] for one in found]),
        np.array([[one.per_query[name].std(ddof=freedom) for name in names] for one in found]),
    )
