"""Rank-biased overlap: how alike two runs rank, the top weighing most (Webber, Moffat and Zobel, 2010)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from mcrank.data.trec import Run
from mcrank.errors import DataError, MeasureError
from mcrank.metrics.measure import checked_number
from mcrank.sums import exact_sum

_NAME = re.compile(r"rbo(?:\(([^()]*)\))?", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Overlap:
    """Rank-biased overlap of two runs: the mean, and of every query that both have.

    ``only`` counts the queries of each run that the other has not; they are left out.
    """

    mean: float
    per_query: Mapping[str, float]
    only: tuple[int, int]
    p: float

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        """Return mean and counts, and the queries if asked for, as plain values, for JSON."""
        name = f"rbo({self.p:g})"
        counts = {
            "in both runs": len(self.per_query),
            "only in the first": self.only[0],
            "only in the second": self.only[1],
        }
        plain = {"mean": {name: self.mean}, "counts": counts}
        return plain | ({"per_query": {name: dict(self.per_query)}} if per_query else {})

    def __str__(self) -> str:
        return (
            f"rbo({self.p:g})  {self.mean:.4f}\n{len(self.per_query)} queries in both runs, "
            f"{self.only[0]} only in the first, {self.only[1]} only in the second"
        )


def rank_biased_overlap(first: Run | Any, second: Run | Any, p: float = 0.9) -> Overlap:
    """Compare how two runs rank the documents of each query; 1 is the same order, 0 no document shared.

    Parameters
    ----------
    first, second : Run
        The runs; equal scores stand by document id, descending, as in trec_eval.
    p : float
        How far down a reader goes on: with 0.9 the first ten ranks weigh 86 %.

    Examples
    --------
    >>> from mcrank import Run
    >>> from mcrank.metrics.overlap import rank_biased_overlap
    >>> one = Run(["q", "q"], ["a", "b"], [2.0, 1.0])
    >>> other = Run(["q", "q"], ["a", "c"], [2.0, 1.0])
    >>> round(rank_biased_overlap(one, one).mean, 4), round(rank_biased_overlap(one, other).mean, 4)
    (1.0, 0.55)
    """
    if not isinstance(first, Run) or not isinstance(second, Run):
        raise DataError("rank_biased_overlap compares two runs; read them with Run.read.")
    share = checked_number(p, "p of rank_biased_overlap", 0.0, 1.0 - 1e-12)
    both = [query for query in first.queries if query in second.queries]
    if not both:
        raise DataError("the two runs have no query in common; compare how they write their query ids.")
    values = {q: overlap_of(_ranked(first.queries[q]), _ranked(second.queries[q]), share) for q in both}
    only = (len(first.queries) - len(both), len(second.queries) - len(both))
    return Overlap(
        exact_sum(np.array(list(values.values()))) / len(both), MappingProxyType(values), only, share
    )


def overlap_of(first: Sequence[Any], second: Sequence[Any], p: float) -> float:
    """Return rank-biased overlap of two lists without repetition, extrapolated beyond their ends.

    Below the end of the shorter list its agreement at that depth is carried on, and so is the agreement of
    both below the end of the longer: equation 32 of the paper.

    Examples
    --------
    >>> from mcrank.metrics.overlap import overlap_of
    >>> round(overlap_of("abc", "abd", 0.5), 4)
    0.9167
    """
    short, long = sorted((first, second), key=len)
    s, end = len(short), len(long)
    if s == 0:
        return 0.0
    seen_short: set[Any] = set()
    seen_long: set[Any] = set()
    shared = at_short = 0
    total, weight = 0.0, 1.0
    for depth in range(1, end + 1):
        document = long[depth - 1]
        seen_long.add(document)
        shared += document in seen_short
        if depth <= s:
            seen_short.add(short[depth - 1])
            shared += short[depth - 1] in seen_long
            at_short = shared
        weight *= p
        carried = at_short * (depth - s) / s if depth > s else 0.0
        total += (shared + carried) / depth * weight
    return (1.0 - p) / p * total + ((shared - at_short) / end + at_short / s) * weight


def _ranked(scores: Mapping[str, float]) -> list[str]:
    by_id = sorted(scores, key=lambda document: document.encode(errors="surrogatepass"), reverse=True)
    return sorted(by_id, key=lambda document: -scores[document])


def overlap_name(measure: Any) -> float | None:
    """Return p of a name such as ``rbo`` or ``rbo(0.95)``; None for any other name.

    Examples
    --------
    >>> from mcrank.metrics.overlap import overlap_name
    >>> overlap_name("rbo"), overlap_name("rbo(0.95)"), overlap_name("rbp")
    (0.9, 0.95, None)
    """
    match = _NAME.fullmatch(measure.strip()) if isinstance(measure, str) else None
    if match is None:
        return None
    try:
        p = 0.9 if match[1] is None else float(match[1])
    except ValueError:
        raise MeasureError(f"p of {measure!r} must be a number, got {match[1]!r}.") from None
    return checked_number(p, "p of rbo", 0.0, 1.0 - 1e-12)
