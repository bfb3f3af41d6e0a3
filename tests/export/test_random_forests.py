"""Forests that no ranker would train: any shape, any threshold, any side of missing values, any base."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.export.hard_rows import hard_rows
from mcrank.export.registry import target_class
from mcrank.export.write import export
from mcrank.scorers.forest.forest import Forest, ForestBuilder
from mcrank.scorers.heads import Head
from tests.export import bed

ODD = np.array(
    [0.0, -0.0, 1.0, 3.4028235e38, -3.4028235e38, 1e-45, -1e-45, 1e-38, 16777216.0], dtype=np.float32
)


@st.composite
def models(draw):
    """A head, and trees of random outputs, sizes and thresholds, some of them a single leaf."""
    stream = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_features, n_grades = draw(st.integers(1, 5)), draw(st.integers(2, 4))
    kind = draw(st.sampled_from(["identity", "softmax", "cumulative", "one-each", "base-pairs", "exp"]))
    head = (
        Head(kind)
        if kind in ("identity", "exp")
        else Head(kind, np.sort(stream.choice(9, n_grades, False)) * 1.0)
    )
    builder = ForestBuilder(
        n_features, stream.normal(size=head.n_outputs) * draw(st.sampled_from([0.0, 1.0]))
    )
    for leaves in draw(st.lists(st.sampled_from([1, 1, 2, 3, 9, 40, 257]), max_size=7)):
        bed.append_random(builder, stream, n_features, leaves, int(stream.integers(head.n_outputs)))
    arrays = builder.build().to_arrays()
    odd = (arrays["feature"] >= 0) & (stream.random(len(arrays["feature"])) < 0.3)
    arrays["threshold"] = np.where(odd, stream.choice(ODD, len(odd)), arrays["threshold"]).astype(np.float32)
    return bed.exportable(Forest.from_arrays(arrays), head)


def check(model, to, folder, near, exact, **options):
    target = target_class(to)(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = export(model, target, folder / f"model{target.suffixes[0]}")[0]
    X = target.seen(hard_rows(model.scorer, 60, seed=1)[:200], model)
    found = target.consume(model, path, X)
    want = model.scores(X)
    assert (np.abs(found.scores - want) <= near * np.maximum(1.0, np.abs(want))).all()
    if exact:
        assert np.array_equal(found.raw, model.scorer.raw(X))


@given(models())
@settings(max_examples=25)
def test_python(tmp_path_factory, model):
    check(model, "python", tmp_path_factory.getbasetemp(), 4e-15, exact=True)


@given(models(), st.sampled_from(["case", "walk"]))
@settings(max_examples=25)
def test_sqlite(tmp_path_factory, model, form):
    check(model, "sql", tmp_path_factory.getbasetemp(), 1e-14, exact=form == "case", form=form)


@pytest.mark.consumer
@pytest.mark.parametrize(
    ("to", "near", "exact"),
    [("c", 4e-15, True), ("javascript", 4e-15, True), ("lightgbm", 1e-14, False), ("xgboost", 1e-5, False),
     ("shap", 1e-14, False), ("onnx", 1e-13, False)],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
@given(models())
@settings(max_examples=12)
def test_consumers(tmp_path_factory, to, near, exact, model):
    check(model, to, tmp_path_factory.getbasetemp(), near, exact)
