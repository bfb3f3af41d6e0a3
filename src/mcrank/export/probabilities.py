"""What a library that knows classes predicts, and the one score that the ranker makes of it."""

from __future__ import annotations

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.export.target import Exportable


def expected(model: Exportable, given: FloatArray) -> FloatArray:
    """Return scores of what a consumer predicts (rows x outputs): the score itself, or probabilities.

    Examples
    --------
    >>> import numpy as np, mcrank
    >>> from mcrank.export.probabilities import expected
    >>> ranker = mcrank.McRank(n_estimators=2).fit([[0.0], [1.0]] * 20, [0, 2] * 20, qid=[1] * 40)
    >>> expected(ranker.exportable(), np.array([[0.25], [0.75]])).tolist()  # of being above grade 0
    [0.5, 1.5]
    """
    if model.values is None:
        return np.asarray(given[:, 0])
    if model.head.kind == "cumulative":
        return np.asarray(model.values[0] + given @ np.diff(model.values))
    score = given @ model.values
    # Learned one by one, probabilities need not add up to 1.
    return np.asarray(score / given.sum(axis=1) if model.head.kind == "one-each" else score)
