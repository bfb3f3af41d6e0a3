"""Data sets for studies of quality: those of a directory, and artificial ones of several kinds.

No ranker's options are ever chosen on the test part of a set from the directory: `development` has only the
queries of its training and validation files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import mcrank
from mcrank.data.folds import find_folds

# Kind -> queries, rows of each, features, noise, share of zero features, shares of the grades.
KINDS: dict[str, tuple[int, int, int, float, float, tuple[float, ...]]] = {
    "plain": (150, 30, 20, 0.5, 0.0, (0.5, 0.25, 0.15, 0.07, 0.03)),
    "noisy": (150, 30, 20, 2.0, 0.0, (0.5, 0.25, 0.15, 0.07, 0.03)),
    "sparse": (150, 30, 40, 0.5, 0.8, (0.5, 0.25, 0.15, 0.07, 0.03)),
    "skewed": (200, 25, 20, 0.7, 0.0, (0.93, 0.05, 0.02)),
    "few queries": (50, 40, 20, 0.7, 0.0, (0.5, 0.3, 0.2)),
    "long queries": (30, 200, 20, 0.7, 0.0, (0.7, 0.2, 0.07, 0.03)),
}


def made(kind: str, seed: int) -> mcrank.Dataset:
    """Make a set: hidden relevance of bent and joined features, weights of each query's own, and noise."""
    queries, rows, features, noise, zeros, shares = KINDS[kind]
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    n = queries * rows
    X = rng.normal(size=(n, features))
    X[:, ::3] = np.exp(X[:, ::3])  # counts and lengths have long tails
    X[rng.random(X.shape) < zeros] = 0.0
    useful = features // 2
    weight = rng.normal(size=useful) / np.sqrt(useful)
    own = np.repeat(rng.normal(size=(queries, useful)) * 0.3 / np.sqrt(useful), rows, axis=0)
    bent = np.tanh(X[:, :useful])
    hidden = (bent * (weight + own)).sum(axis=1) + 0.5 * bent[:, 0] * bent[:, 1] - 0.5 * (X[:, 2] > 0.5)
    hidden = hidden / hidden.std() + noise * rng.normal(size=n)
    X += np.repeat(rng.normal(size=(queries, 1)) * 0.3, rows, axis=0)  # what a query does to all features
    grades = np.searchsorted(np.quantile(hidden, np.cumsum(shares)[:-1]), hidden)
    return mcrank.Dataset(X, grades, np.repeat(np.arange(queries), rows))


def development(directory: str | None, seeds: int) -> dict[str, Callable[[], mcrank.Dataset]]:
    """Sets on which options may be chosen: no test part of a file is among them."""
    found: dict[str, Callable[[], mcrank.Dataset]] = {}
    for folder in sorted(Path(directory).iterdir()) if directory else ():
        if folder.is_dir():
            found[folder.name] = lambda folder=folder: _train_and_valid(folder)
    for seed in range(seeds):
        for kind in KINDS:
            found[f"{kind} {seed + 1}"] = lambda kind=kind, seed=seed: made(kind, seed)
    return found


def _train_and_valid(folder: Path) -> mcrank.Dataset:
    files = find_folds(folder)[0]
    parts = [mcrank.read(files[part]) for part in ("train", "valid")]
    return mcrank.Dataset.merge(parts)
