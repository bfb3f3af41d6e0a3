"""Several options by one word: the option ``preset`` of the rankers that are in the McRank paper."""

from __future__ import annotations

from typing import Any

from mcrank.options import option

# What the paper says of its trees, or leaves to whoever follows it: none of it hangs on our defaults.
PAPER = {
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
}


def preset_option() -> Any:
    """Declare ``preset`` of the rankers that are in the paper."""
    return option(
        default=None,
        choices=("paper",),
        scope="run",
        help="paper: the settings of the McRank paper (M 1000, J 10, nu 0.05, 256 adaptive bins, "
        "least-squares splits); options given beside it win",
    )
