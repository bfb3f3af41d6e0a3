"""Random forests of any shape, with counts that may be 0, and rows with missing values for them."""

from __future__ import annotations

import numpy as np

from mcrank.scorers.forest.forest import ForestBuilder


def random_forest(seed, features, trees, leaves, outputs=1, empty=False, chain=False):
    stream = np.random.default_rng(seed)
    builder = ForestBuilder(features, stream.normal(size=outputs))
    for t in range(trees):
        rows = [int(stream.integers(5 * leaves, 10 * leaves))]
        feature, threshold, missing, left, right = [-1], [0.0], [0], [-1], [-1]
        open_leaves = [0]
        for _ in range(leaves - 1):
            able = [n for n in open_leaves if rows[n] > 1 or empty]
            n = able[-1] if chain else able[int(stream.integers(len(able)))]
            open_leaves.remove(n)
            feature[n], missing[n] = int(stream.integers(features)), int(stream.integers(2))
            threshold[n] = float(stream.choice([-1.0, -0.5, 0.0, 0.25, 1.0]))
            left[n], right[n] = len(feature), len(feature) + 1
            part = 1 if chain else int(stream.integers(0 if empty else 1, rows[n] + (1 if empty else 0)))
            for count in (part, rows[n] - part):
                open_leaves.append(len(feature))
                columns = (feature, threshold, missing, left, right, rows)
                for column, entry in zip(columns, (-1, 0.0, 0, -1, -1, count), strict=True):
                    column.append(entry)
        builder.append(
            feature=feature, threshold=threshold, missing_left=missing, left=left, right=right, rows=rows,
            value=[0.0 if f >= 0 else float(stream.normal()) for f in feature], output=t % outputs,
        )  # fmt: skip
    return builder.build()


def random_rows(seed, rows, features, missing=0.1):
    stream = np.random.default_rng(seed)
    X = stream.choice(np.float32([-2, -1, -0.75, -0.5, 0, 0.1, 0.25, 1, 3]), size=(rows, features))
    X[stream.random(X.shape) < missing] = np.nan
    return X
