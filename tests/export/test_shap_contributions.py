"""Contributions against those of `shap.TreeExplainer` for the same trees."""

from __future__ import annotations

import numpy as np
import pytest

from mcrank.explain.forest import forest_baseline, forest_contributions
from tests.explain.forests import random_forest, random_rows

# shap, when it is imported, uses what matplotlib is about to drop.
pytestmark = [pytest.mark.consumer, pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")]


def tree_of(forest, t):
    """A tree as shap takes it. It has no sides for missing values, so rows must have none."""
    begin, end = forest.tree_offsets[t], forest.tree_offsets[t + 1]
    leaf = forest.feature[begin:end] < 0
    return {
        "children_left": forest.left[begin:end],
        "children_right": forest.right[begin:end],
        "children_default": forest.right[begin:end],
        "features": np.where(leaf, -2, forest.feature[begin:end]),
        "thresholds": forest.threshold[begin:end].astype(np.float64),
        "values": forest.value[begin:end][:, None],
        "node_sample_weight": forest.rows[begin:end].astype(np.float64),
    }


@pytest.mark.parametrize(("features", "trees", "leaves"), [(4, 3, 6), (8, 20, 10), (40, 30, 31)])
def test_equal_to_shap(features, trees, leaves):
    import shap

    forest = random_forest(leaves, features, trees, leaves)
    X = random_rows(1, 50, features, missing=0.0)
    explainer = shap.TreeExplainer({"trees": [tree_of(forest, t) for t in range(trees)], "base_offset": 0.0})
    expected = explainer.shap_values(X.astype(np.float64))
    np.testing.assert_allclose(forest_contributions(forest, X)[0], expected, rtol=0, atol=1e-9)
    offset = forest_baseline(forest)[0] - forest.base[0]
    assert float(np.ravel(explainer.expected_value)[0]) == pytest.approx(offset, abs=1e-9)
