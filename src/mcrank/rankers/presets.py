"""Options that are set together, by the word ``preset``, and those whose default goes by the data."""

from __future__ import annotations

from typing import Any

from mcrank.options import option

# Trees without what came after the papers, whatever our defaults are.
PLAIN: dict[str, Any] = {
    "colsample_node": 1.0,
    "max_depth": None,
    "l1": 0.0,
    "l2": 0.0,
    "min_sum_hessian": 0.0,
    "min_gain": 0.0,
    "extra_trees": False,
    "goss": False,
    "dart": False,
}
# What the paper says of its trees, or leaves to whoever follows it: none of it hangs on our defaults.
PAPER: dict[str, Any] = {
    "n_estimators": 1000,
    "num_leaves": 10,
    "learning_rate": 0.05,
    "max_bins": 256,
    "binning": "adaptive",
    "min_samples_leaf": 10,
    "split": "mse",
    "subsample": 1.0,
    "colsample": 1.0,
    "max_leaf_value": 1e4,
    **PLAIN,
}


# A first look: few rounds of large steps, coarse bins.
FAST = {"n_estimators": 100, "learning_rate": 0.2, "max_bins": 64, "early_stopping_rounds": 20}
# Many small steps. Half of the features for each, which it had too, left LambdaMART behind its defaults.
BEST = {"n_estimators": 2000, "learning_rate": 0.03, "early_stopping_rounds": 200}
# Rounds that leave out a fifth of the queries follow chance less, but not those of pairs within queries
# (docs/results/sampling.md).
BEST_GRADED = BEST | {"subsample": 0.8}
_WORDS = {
    "paper": "the settings of the McRank paper (M 1000, J 10, nu 0.05, 256 adaptive bins, least-squares "
    "splits)",
    "fast": "few rounds of large steps on coarse bins",
    "best": "many small steps, of grades each on 0.8 of the queries",
}


def preset_option(*words: str) -> Any:
    """Declare ``preset``, one of these words."""
    said = "; ".join(f"{word}: {_WORDS[word]}" for word in words)
    return option(default=None, choices=words, scope="run", help=f"{said}; options given beside it win")


def least_rows(given: int | None, rows: int) -> int:
    """Return the fewest rows of a leaf: as given, or by the number of training rows.

    Leaves of 50 rows follow chance less (docs/results/defaults.md); of few rows, they would leave nothing to
    learn.

    Examples
    --------
    >>> from mcrank.rankers.presets import least_rows
    >>> [least_rows(None, rows) for rows in (40, 1000, 10**6)]
    [10, 25, 50]
    """
    return min(50, max(10, rows // 40)) if given is None else given
