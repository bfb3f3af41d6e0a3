"""ONNX: every ranker as one graph, scored by onnxruntime and by onnx's own reference evaluator."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import mcrank
from mcrank.errors import OptionError
from mcrank.export.hard_rows import hard_rows
from mcrank.export.onnx import ONNX, PROBABILITIES, RAW, SCORE
from mcrank.export.onnx_graph import COMPATIBLE, NEWEST, sturdy
from mcrank.export.target import ConsumerMissing
from mcrank.export.trees import trees_of
from tests.export import bed

pytestmark = pytest.mark.consumer

# Largest differences, as shares of a score or of 1: sums in double, and trees added up in float.
NEAR = {False: 3e-14, True: 2e-7}
FAR_APART = 2e-6  # in float, where leaves are large and cancel each other


def relative(found, expected):
    with np.errstate(over="ignore"):
        return float(np.max(np.abs(found - expected) / np.maximum(1.0, np.abs(expected)), initial=0.0))


def outputs(content, X):
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"features": X}), strict=True))


@pytest.mark.parametrize("compat", [False, True])
@pytest.mark.parametrize("name", [*bed.FORESTS, *bed.OTHERS])
def test_onnxruntime_scores_as_the_model_does(name, compat, tmp_path):
    model = bed.model(name)
    X = hard_rows(model.scorer)
    target = ONNX(compat=compat)
    target.check(model)
    (tmp_path / "m.onnx").write_bytes(target.content(model))
    found = target.consume(model, tmp_path / "m.onnx", X)
    assert found.scores.dtype == np.float64
    near = FAR_APART if compat and name in bed.HAND_MADE else NEAR[compat]
    assert relative(found.scores, model.scores(X)) <= near
    if found.raw is not None:
        assert relative(found.raw, model.scorer.raw(X)) <= near


@pytest.mark.parametrize("compat", [False, True])
@pytest.mark.parametrize("name", ["mcrank", "ordinal", "abc", "two grades", "one each", "no trees"])
def test_probabilities_are_those_of_the_head(name, compat):
    model = bed.model(name)
    X = hard_rows(model.scorer, 500)
    raw = model.scorer.raw(X)
    found = outputs(ONNX(compat=compat).content(model), X)
    assert set(found) == {SCORE, RAW, PROBABILITIES}
    assert np.abs(found[PROBABILITIES] - model.head.proba(raw).T).max() <= NEAR[compat]
    assert np.abs(found[PROBABILITIES].sum(axis=1) - 1).max() < 1e-14


def test_probabilities_of_boundaries_that_cross_are_repaired():
    """Log-odds that rise where they should fall: the mean of those that cross stands for each."""
    from mcrank.scorers.forest.forest import ForestBuilder
    from mcrank.scorers.heads import Head

    builder = ForestBuilder(1, [1.0, 2.0, -3.0, 0.5, 4.0, -1.0])
    model = bed.exportable(builder.build(), Head("cumulative", np.arange(7.0)))
    X = np.zeros((2, 1), dtype=np.float32)
    proba = outputs(ONNX().content(model), X)[PROBABILITIES]
    assert proba.min() >= 0
    assert np.abs(proba.T - model.head.proba(model.scorer.raw(X))).max() < 1e-15


@pytest.mark.parametrize("compat", [False, True])
@pytest.mark.parametrize(
    "name", ["abc", "ordinal", "one each", "exp", "leaves only", "ranknet", "ranksvm", "blend"]
)
def test_the_graph_is_valid_and_its_reference_agrees(name, compat):
    import onnx
    from onnx.reference import ReferenceEvaluator

    model = bed.model(name)
    graph = onnx.load_from_string(ONNX(compat=compat).content(model))
    onnx.checker.check_model(graph, full_check=True)
    form = COMPATIBLE if compat else NEWEST
    assert {o.domain: o.version for o in graph.opset_import} == {"": form.opset, "ai.onnx.ml": form.trees}
    assert graph.ir_version == form.ir
    X = hard_rows(model.scorer, 300)
    with np.errstate(all="ignore"):
        score = ReferenceEvaluator(graph).run([SCORE], {"features": X})[0][:, 0]
    assert relative(score, model.scores(X)) <= NEAR[compat]


@pytest.mark.parametrize("name", bed.FORESTS)
def test_no_root_has_a_leaf_beside_a_split(name):
    forest = bed.model(name).forest
    found = sturdy(forest)
    for tree in trees_of(found):
        leaves = [tree.feature[side] < 0 for side in (tree.left[0], tree.right[0])]
        assert len(tree.feature) > 1
        assert leaves[0] == leaves[1]
    X = hard_rows(forest, 300)
    assert relative(found.raw(X), forest.raw(X)) < 1e-15


def test_what_a_grade_is_worth_goes_into_the_graph(tmp_path):
    X = bed.data().X
    for relevance in ("gain", [0, 1, 1, 5, 9]):
        found = outputs(ONNX().content(bed.ranker("mcrank").exportable(relevance)), X)
        assert relative(found[SCORE][:, 0], bed.ranker("mcrank").predict(X, relevance=relevance)) < 1e-14


@pytest.mark.parametrize("name", ["mcrank", "no trees", "ranknet", "one grade"])
@pytest.mark.parametrize("compat", [False, True])
def test_one_row_and_no_row(name, compat):
    model = bed.model(name)
    content = ONNX(compat=compat).content(model)
    X = hard_rows(model.scorer, 50)
    alone = np.concatenate([outputs(content, X[i : i + 1])[SCORE] for i in range(5)])
    assert relative(alone, outputs(content, X)[SCORE][:5]) <= NEAR[compat]
    assert outputs(content, X[:0])[SCORE].shape == (0, 1)


def test_the_file_says_what_it_is(tmp_path):
    import onnxruntime

    bed.ranker("mcrank").export(tmp_path / "m.onnx", to="onnx", relevance="gain")
    said = onnxruntime.InferenceSession(tmp_path / "m.onnx").get_modelmeta()
    assert said.producer_name == "mcrank"
    words = said.custom_metadata_map
    assert (words["ranker"], words["mcrank_version"]) == ("mcrank", mcrank.__version__)
    assert tuple(json.loads(words["feature_names"])) == bed.NAMES
    assert json.loads(words["relevance"]) == [0.0, 1.0, 3.0, 7.0, 15.0]
    assert len(words["fingerprint"]) == 64


def test_the_same_model_gives_the_same_bytes():
    assert ONNX().content(bed.model("blend")) == ONNX().content(bed.model("blend"))


def test_a_blend_that_needs_its_query_is_refused(tmp_path):
    data = bed.data()
    blend = mcrank.Blend(
        members=[mcrank.RankSVM(), mcrank.BestFeature()], method="equal", standard="query"
    ).fit(data, valid=data)
    with pytest.raises(OptionError, match="standard='query' needs all rows of a query"):
        blend.export(tmp_path / "m.onnx", to="onnx")


def test_a_graph_that_the_runtime_does_not_take_is_said(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"no graph")
    with pytest.raises(ConsumerMissing, match=r"does not take the graph \(.*\); export with compat"):
        ONNX().consume(bed.model("gbrank"), tmp_path / "m.onnx", bed.data().X)


def test_packages_that_are_not_there_are_named(monkeypatch, tmp_path):
    model = bed.model("gbrank")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(OptionError, match=r"pip install 'mcrank\[onnx\]'"):
        ONNX().content(model)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConsumerMissing, match="pip install onnxruntime"):
        ONNX().consume(model, tmp_path / "m.onnx", bed.data().X)
