"""A model as generated code sees it: one scorer with its head, or several whose scores are added up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcrank.arrays import FloatArray, IntArray
from mcrank.export.target import Exportable
from mcrank.export.trees import settled
from mcrank.scorers.base import Scorer
from mcrank.scorers.blend import WeightedSum
from mcrank.scorers.heads import Head


class Part(NamedTuple):
    """One scorer of a model.

    Attributes
    ----------
    scorer, head : Scorer and Head
        What it scores with; never a blend, never of one grade only.
    values : ndarray or None
        What each grade is worth, where there are grades.
    columns : ndarray of int64
        Columns of the whole model it looks at, in its own order.
    shift, weight : float
        ``(score - shift) * weight`` is what it adds to a blend; 0 and 1 where it is alone.
    """

    scorer: Scorer
    head: Head
    values: FloatArray | None
    columns: IntArray
    shift: float = 0.0
    weight: float = 1.0


def parts_of(model: Exportable) -> list[Part]:
    """Return the scorers of a model: one, or the members of a blend.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.export.parts import parts_of
    >>> ranker = mcrank.McRank(n_estimators=2).fit([[0.0], [1.0]] * 20, [0, 2] * 20, qid=[1] * 40)
    >>> [(part.scorer.n_trees, part.values.tolist()) for part in parts_of(ranker.exportable())]
    [(2, [0.0, 2.0])]
    """
    every = np.arange(model.scorer.n_features)
    if not isinstance(model.scorer, WeightedSum):
        return [Part(model.scorer, model.head, model.values, every)]
    whole, found = model.scorer, []
    for number, member in enumerate(whole.members):
        scorer, head = settled(member.scorer, member.head)
        weight = float(whole.weights[number] * whole.standard.factor[number])
        columns = every if member.columns is None else member.columns
        found.append(Part(scorer, head, head.values, columns, float(whole.standard.shift[number]), weight))
    return found
