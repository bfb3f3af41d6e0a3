"""Training data of the models that are imported, and what LightGBM sees of rows."""

from __future__ import annotations

import numpy as np

GROUP = 20  # rows of a query


def training_data(features: int = 5, rows: int = 600, seed: int = 1, missing: float = 0.1):
    """Rows, grades 0..4 and query ids."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features)).astype(np.float32)
    X[:, 1] = np.round(X[:, 1], 1)  # with ties, and zeros
    z = X[:, 0] + np.abs(X[:, 1]) + X[:, 2] * X[:, 0] + rng.normal(0, 0.3, rows)
    y = np.digitize(z, np.quantile(z, [0.3, 0.6, 0.8, 0.95])).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y, np.repeat(np.arange(rows // GROUP), GROUP)


def target_of(objective: str, y):
    """Grades as an objective wants them: 0 and 1, or above 0."""
    if any(word in objective for word in ("binary", "logistic", "Logloss", "Entropy", "entropy", "rank:map")):
        return (y > 1).astype(float)
    return y + 0.5 if any(word in objective for word in ("gamma", "cox", "aft")) else y


def without_tiny(X):
    """Rows with 0 for what LightGBM takes for 0."""
    return np.where(np.abs(X) <= np.float32(1e-35), np.float32(0), X)
