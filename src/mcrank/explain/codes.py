"""Features that hold categories as codes: which codes the trees know.

Models of other libraries may split by sets of codes without having names for them.
"""

from __future__ import annotations

import numpy as np

from mcrank.arrays import IntArray
from mcrank.scorers.base import Scorer
from mcrank.scorers.blend import WeightedSum
from mcrank.scorers.forest.forest import Forest


def coded_features(scorer: Scorer) -> dict[int, IntArray]:
    """Return the codes that sets of a forest, or of the forests of a sum, have of each feature.

    A feature that is compared with thresholds too holds numbers, and is not there.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.explain.codes import coded_features
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> builder = ForestBuilder(n_features=2, base=[0.0])
    >>> builder.append(feature=[1, -1, -1], left=[1, -1, -1], right=[2, -1, -1], value=[0, 1.0, 2.0],
    ...                category_set=[0, -1, -1], set_offsets=np.array([0, 1]),
    ...                set_words=np.array([0b1001], dtype=np.uint64))
    >>> {feature: codes.tolist() for feature, codes in coded_features(builder.build()).items()}
    {1: [0, 3]}
    """
    found: dict[int, IntArray] = {}
    if isinstance(scorer, WeightedSum):
        for member in scorer.members:
            for f, codes in coded_features(member.scorer).items():
                column = f if member.columns is None else int(member.columns[f])
                found[column] = np.union1d(found.get(column, codes), codes)
    elif isinstance(scorer, Forest) and scorer.has_sets:
        inner = scorer.feature >= 0
        numeric = set(scorer.feature[inner & (scorer.category_set < 0)].tolist())
        for f in sorted(set(scorer.feature[inner & (scorer.category_set >= 0)].tolist()) - numeric):
            sets = np.unique(scorer.category_set[inner & (scorer.feature == f)])
            found[f] = np.unique(np.concatenate([_codes(scorer, s) for s in sets.tolist()]))
    return found


def _codes(forest: Forest, number: int) -> IntArray:
    """The codes of one set."""
    words = forest.set_words[forest.set_offsets[number] : forest.set_offsets[number + 1]]
    bits = (words[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    return np.flatnonzero(bits.reshape(-1)).astype(np.int64)
