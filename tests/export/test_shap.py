"""SHAP takes the trees as they are: its raw outputs are mcrank's, and its values add up to them."""

from __future__ import annotations

import runpy

import numpy as np
import pytest

from mcrank.export.hard_rows import hard_rows
from mcrank.export.shap import Shap, tree_model
from mcrank.export.write import export
from mcrank.losses.abc import class_scores
from tests.export import bed


def raw_of(model, X):
    raw = model.scorer.raw(X)
    return class_scores(raw) if model.head.kind == "base-pairs" else raw


@pytest.mark.consumer
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("name", bed.FORESTS)
def test_values_add_up(tmp_path, name):
    import shap

    model = bed.model(name)
    X = hard_rows(model.scorer, 200)[:200]
    path = export(model, Shap(), tmp_path / "model.py")[0]
    found = Shap().consume(model, path, X)
    assert np.abs(found.raw - raw_of(model, X)).max() <= 4e-15
    assert np.abs(found.scores - model.scores(X)).max() <= 4e-15
    explainer = shap.TreeExplainer(tree_model(model.forest, model.head))
    values = explainer.shap_values(X.astype(np.float64), check_additivity=False)
    outputs = 1 if values.ndim == 2 else values.shape[2]
    sums = values.reshape(len(X), X.shape[1], outputs).sum(axis=1) + explainer.expected_value
    assert np.abs(sums.T - raw_of(model, X)).max() <= 1e-13


@pytest.mark.parametrize("name", bed.FORESTS)
def test_the_file_makes_what_the_function_makes(tmp_path, name):
    model = bed.model(name)
    made = runpy.run_path(str(export(model, Shap(), tmp_path / "model.py")[0]))["trees"]()
    want = tree_model(model.forest, model.head)
    assert np.array_equal(made["base_offset"], want["base_offset"])
    for one, other in zip(made["trees"], want["trees"], strict=True):
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[key], other[key]) for key in one)
