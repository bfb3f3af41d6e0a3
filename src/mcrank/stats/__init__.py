"""Is one ranking better than another, or was it luck? Tests on the values of queries.

Values come as ``{query id: value}`` (for an `Evaluation`, ``result.by_query("ndcg@10")``), so that systems
meet by query id and never by position. Tests are SciPy's where it has them. Each is written once, on arrays,
in `mcrank.stats.paired`; to all of them, values that differ by rounding alone (below the twelfth digit) are
equal.
"""

from __future__ import annotations

from mcrank.stats.many import Pair, Row, all_pairs, compare, holm, tukey
from mcrank.stats.paired import ALTERNATIVES, Test
from mcrank.stats.power import smallest_difference
from mcrank.stats.two import (
    Interval,
    Values,
    align,
    bootstrap_interval,
    effect_size,
    paired_t,
    randomization,
    unpaired_t,
    unpaired_t_from_summary,
    wilcoxon,
)

__all__ = [
    "ALTERNATIVES", "Interval", "Pair", "Row", "Test", "Values", "align", "all_pairs", "bootstrap_interval",
    "compare", "effect_size", "holm", "paired_t", "randomization", "smallest_difference", "tukey",
    "unpaired_t", "unpaired_t_from_summary", "wilcoxon",
]  # fmt: skip
