"""Figure 2: the splits that bins could take are those that somebody else's stump finds."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank
from mcrank.papers import figure2


def test_splits_are_those_a_tree_of_two_leaves_finds(short_and_empty):
    """The best split of one feature is what scikit-learn's regression stump takes away."""
    tree_module = pytest.importorskip("sklearn.tree")
    train = mcrank.read_folds(short_and_empty)[0].train
    for feature in range(train.n_features):
        order = np.argsort(train.X[:, feature], kind="stable")
        values, grades = train.X[order, feature].astype(float), train.y[order]
        points, reduced = figure2.splits_of(values, grades)
        stump = tree_module.DecisionTreeRegressor(max_depth=1).fit(values[:, None], grades)
        best = points[np.argmax(reduced)]
        assert best <= stump.tree_.threshold[0] < values[np.searchsorted(values, best, side="right")]
        assert reduced.max() / len(values) == pytest.approx(
            stump.tree_.impurity[0]
            - stump.tree_.weighted_n_node_samples[1:] @ stump.tree_.impurity[1:] / len(values)
        )
