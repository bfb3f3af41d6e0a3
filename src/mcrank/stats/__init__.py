"""Is one ranking better than another, or was it luck? Tests on the values of queries.

Values come as ``{query id: value}`` (for an `Evaluation`, ``result.by_query("ndcg@10")``), so that systems
meet by query id and never by position. Tests are SciPy's where it has them.
"""

from __future__ import annotations

from mcrank.stats.many import Row, compare, holm, tukey
from mcrank.stats.two import (
    ALTERNATIVES,
    Interval,
    Test,
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
    "ALTERNATIVES", "Interval", "Row", "Test", "Values", "align", "bootstrap_interval", "compare",
    "effect_size", "holm", "paired_t", "randomization", "tukey", "unpaired_t", "unpaired_t_from_summary",
    "wilcoxon",
]  # fmt: skip
