"""Rows on which two readings of the same trees would part: thresholds, their neighbours, and odd values."""

from __future__ import annotations

import numpy as np

from mcrank.scorers.forest.forest import Forest

HIGHEST = np.finfo(np.float32).max
ODD = np.array([np.nan, 0.0, -0.0, HIGHEST, -HIGHEST, 1e-30, -1e-30, 1.0, -1.0], dtype=np.float32)
# LightGBM alone takes these for 0, which its own documentation does not say; docs/import.md does.
TINY = np.array([1e-45, -1e-45, 1e-38, -1e-38, 1e-35, -1e-35, 9e-36], dtype=np.float32)


def training_data(features: int = 5, rows: int = 600, seed: int = 1, missing: float = 0.1):
    """Rows, grades 0..4 and query ids."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features)).astype(np.float32)
    X[:, 1] = np.round(X[:, 1], 1)  # with ties, and zeros
    z = X[:, 0] + np.abs(X[:, 1]) + X[:, 2] * X[:, 0] + rng.normal(0, 0.3, rows)
    y = np.digitize(z, np.quantile(z, [0.3, 0.6, 0.8, 0.95])).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y, np.repeat(np.arange(rows // 20), 20)


def hard_rows(forest: Forest | None, features: int, rows: int = 800, seed: int = 2, tiny: bool = True):
    """Rows whose values are thresholds, their float32 neighbours, odd numbers and plain ones."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features)).astype(np.float32)
    pool = [ODD, TINY] if tiny else [ODD]
    for column in range(features):
        values = list(pool)
        if forest is not None:
            own = forest.threshold[forest.feature == column]
            values += [own, np.nextafter(own, np.float32(-np.inf)), np.nextafter(own, np.float32(np.inf))]
        chosen = rng.choice(np.concatenate(values), rows)
        chosen[np.isinf(chosen)] = HIGHEST
        if not tiny:
            chosen[(np.abs(chosen) <= 1e-35) & (chosen != 0)] = 0.0
        X[:, column] = np.where(rng.random(rows) < 0.6, chosen, X[:, column])
    return X
