"""Lambdas of DCG and NDCG that look beyond the cut-off of the measure.

A swap of two rows below rank k changes ``ndcg@k`` by nothing: with its own lambdas, a good row far down is
told apart only from those in the first k ranks, whatever they are, and most rows of a long query from none.
NDCG at a larger cut-off has more pairs and nearly the same optimum (docs/results/lambdas.md).
"""

from __future__ import annotations

from dataclasses import replace

from mcrank.metrics.dcg import DCG, NDCG
from mcrank.metrics.measure import Measure
from mcrank.metrics.prepared import PreparedMeasure

WIDE = 30  # ranks that LambdaMART looks at by default


def wide_enough(measure: Measure, truncation: int | None) -> int | None:
    """Return the truncation as given, or by default `WIDE` for ``dcg@k`` and ``ndcg@k`` with a smaller k.

    Examples
    --------
    >>> from mcrank import MAP, NDCG
    >>> from mcrank.losses.widened import wide_enough
    >>> [wide_enough(measure, None) for measure in (NDCG(k=10), NDCG(k=50), NDCG(), MAP(k=10))]
    [30, 50, None, None]
    >>> wide_enough(NDCG(k=10), 10)
    10
    """
    if truncation is None and measure.k is not None and _goes_on(measure):
        return max(WIDE, measure.k)
    return truncation


def widened(prepared: PreparedMeasure, truncation: int | None) -> PreparedMeasure:
    """Return the measure whose swaps are weighed: of ``dcg@k`` and ``ndcg@k`` with k below the truncation,
    the same at that cut-off, and any other as it is.

    Queries with fewer rows than the new cut-off count, whatever the dialect makes of those shorter than k.

    Examples
    --------
    >>> from mcrank import NDCG, Dataset
    >>> from mcrank.losses.widened import widened
    >>> data = Dataset([[0.0]] * 3, y=[0, 1, 2], qid=[1, 1, 1])
    >>> [widened(NDCG(k=10).on(data), ranks).measure.name for ranks in (None, 5, 30)]
    ['ndcg@10', 'ndcg@10', 'ndcg@30']
    """
    measure = prepared.measure
    if truncation is None or measure.k is None or truncation <= measure.k or not _goes_on(measure):
        return prepared
    wide = replace(measure, k=truncation, dialect=measure.switches.but(short="cut"))
    return PreparedMeasure(wide, prepared.layout)


def _goes_on(measure: Measure) -> bool:
    """Whether the measure means the same at a larger cut-off; precision, say, soon means nothing."""
    return type(measure) in (DCG, NDCG)
