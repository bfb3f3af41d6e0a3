"""One small fitted ranker of every kind, on rows with missing values."""

from __future__ import annotations

from functools import cache

import numpy as np

import mcrank
from mcrank.rankers.registry import RANKERS, ranker_class

_PARTS = mcrank.make_artificial(n_train=30, n_valid=8, n_test=50, docs_per_query=20, n_features=5, seed=3)


def _with_missing(data):
    X = data.X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    return mcrank.Dataset(X, data.y, np.repeat(data.qids, data.sizes))


TRAIN, VALID, TEST = (_with_missing(part) for part in _PARTS)  # TEST has 1,000 rows
NAMES = [name for name in RANKERS if name != "imported"]


SMALL = {"n_estimators": 8, "num_leaves": 6, "min_samples_leaf": 3, "epochs": 3, "hidden": "6", "n_jobs": 1}


def small(name, **options):
    """Return a ranker that learns little and soon."""
    kind = ranker_class(name)
    if name == "blend":
        options.setdefault("members", [small(member) for member in ("mcrank", "ranksvm", "ranknet")])
    return kind(**{key: value for key, value in SMALL.items() if key in kind.declared_options} | options)


@cache
def fitted(name, **options):
    return small(name, **options).fit(TRAIN, valid=VALID)
