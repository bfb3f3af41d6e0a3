"""Lemma 1 of McRank: how much DCG can be lost by errors of classification."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mcrank.arrays import Array, FloatArray
from mcrank.metrics.dcg import DCG
from mcrank.metrics.layout import Graded, Layout
from mcrank.metrics.prepared import PreparedMeasure, checked_scores


def classification_bound(n: int, errors: int, k: int | None = None, top_grade: int = 4) -> float:
    """Lemma 1: the most DCG that ``errors`` misclassified of ``n`` documents can cost, ranked by class.

    (2^K - 1) sqrt(2) (sum c_i^2 - n prod c_i^(2/n))^(1/2) sqrt(errors), with K the top grade and c_i the
    discounts, 0 beyond the cut-off ``k``.

    Examples
    --------
    >>> from mcrank.metrics.lemma import classification_bound
    >>> classification_bound(10, errors=0)
    0.0
    >>> classification_bound(10, errors=4) == 2 * classification_bound(10, errors=1)
    True
    """
    discount = 1.0 / np.log2(np.arange(2, n + 2, dtype=np.float64))
    if k is not None:
        discount[k:] = 0.0
    # With a cut-off below n a factor is 0, and so is the product; logarithms keep it from underflowing else.
    product = float(np.exp(2.0 / n * np.log(discount).sum())) if n and discount[-1] > 0.0 else 0.0
    spread = max(0.0, float((discount**2).sum()) - n * product)
    return float((2.0**top_grade - 1.0) * np.sqrt(2.0 * spread * errors))


@dataclass(frozen=True, eq=False)
class BoundCheck:
    """DCG lost by each query, and the bound it must not pass.

    Examples
    --------
    >>> from mcrank import Dataset
    >>> from mcrank.metrics.lemma import check_classification
    >>> data = Dataset([[0.0]] * 2, y=[0, 1], qid=[1, 1])
    >>> check_classification([1, 0], data).tightest < 1
    True
    """

    qids: Array
    loss: FloatArray
    bound: FloatArray

    @property
    def holds(self) -> bool:
        """Whether every query lost no more than its bound (up to rounding)."""
        return bool((self.loss <= self.bound * (1.0 + 1e-12) + 1e-12).all())

    @property
    def tightest(self) -> float:
        """Largest share of its bound that a query lost; 0 where nothing was lost."""
        share = np.divide(self.loss, self.bound, out=np.zeros_like(self.loss), where=self.bound > 0.0)
        return float(share.max(initial=0.0))


def check_classification(predicted: npt.ArrayLike, data: Graded, k: int | None = None) -> BoundCheck:
    """Check Lemma 1 on predicted grades: ranked by them, ties in the worst order, what does each query lose?

    ``predicted`` has one grade per row, in the data's grouped row order.

    Examples
    --------
    >>> from mcrank import Dataset
    >>> from mcrank.metrics.lemma import check_classification
    >>> data = Dataset([[0.0]] * 3, y=[0, 1, 2], qid=[1, 1, 1])
    >>> check_classification([0, 1, 1], data).holds
    True
    """
    layout = Layout.of(data)
    levels = checked_scores(predicted, layout)
    prepared = PreparedMeasure(DCG(k=k, dialect="standard;ties=worst"), layout)
    loss = prepared.per_query(layout.grades) - prepared.per_query(levels)
    top = int(max(layout.grades.max(initial=0.0), levels.max(initial=0.0)))
    wrong = levels != layout.grades
    bound = [
        classification_bound(int(stop - start), int(wrong[start:stop].sum()), k, top)
        for start, stop in zip(layout.starts, layout.stops, strict=True)
    ]
    return BoundCheck(layout.qids, loss, np.array(bound))
