"""Files of other libraries, written here: what is read of them, by hand and by slow twins."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

import mcrank
from mcrank.cli.describe import describe
from mcrank.errors import DataError, ModelFileError, OptionError
from mcrank.models.file import load
from mcrank.models.imports.read import import_file
from mcrank.rankers.registry import from_bytes, to_bytes
from tests.models.imports.files import (
    FILES,
    LIGHTGBM,
    RANKLIB,
    branching_model,
    catboost_model,
    to_ubjson,
    xgboost_model,
)

NAN = np.nan
ROWS = np.array([[0.5, 0.0], [0.6, -1.5], [0.6, -1.4], [NAN, NAN], [0.6, NAN], [-0.0, 9.0]], dtype=np.float32)
HIGHEST = float(np.finfo(np.float32).max)


def written(tmp_path, content, name="m"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


ALL = [(kind, name) for kind, files in FILES.items() for name in files]


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_a_file_is_known_by_its_content_and_comes_back_from_a_model_file(tmp_path, kind, name):
    path = written(tmp_path, FILES[kind][name])
    ranker = import_file(path)
    assert ranker.source_["library"] == kind
    assert to_bytes(import_file(path, kind)) == to_bytes(ranker)
    ranker.save(tmp_path / "m.mcrank")
    loaded = load(tmp_path / "m.mcrank", mcrank.ImportedRanker)
    X = np.resize(ROWS, (4, ranker.n_features_in_))
    np.testing.assert_array_equal(loaded.predict(X), ranker.predict(X))
    np.testing.assert_array_equal(loaded.predict_raw(X), ranker.predict_raw(X))
    assert loaded.source_ == ranker.source_
    assert loaded.feature_names_ == ranker.feature_names_
    assert to_bytes(loaded) == to_bytes(ranker)
    assert describe(loaded)["provenance"]["source"]["library"] == kind
    np.testing.assert_allclose(loaded.contributions(X).scores, ranker.predict(X), rtol=1e-12, atol=1e-14)
    with pytest.raises(ModelFileError, match="is not a model of"):
        import_file(path, "ranklib" if kind == "lightgbm" else "lightgbm")


def test_lightgbm_text(tmp_path):
    ranker = mcrank.from_lightgbm(written(tmp_path, LIGHTGBM.encode()))
    # x <= 0.5 left, NaN left (10); x <= -1.5 left, NaN right (8); 0.125 for all
    expected = [-0.125, 0.625, 1.625, -0.125, 1.625, -0.125]
    np.testing.assert_array_equal(ranker.predict(ROWS), expected)
    assert ranker.feature_names_ == ("bm25", "age")
    assert ranker.scorer_.rows.tolist() == [20, 10, 10, 6, 4, 0]
    assert describe(ranker)["most_useful_features"] == {"bm25": 5 / 7, "age": 2 / 7}
    swapped = mcrank.Dataset({"age": ROWS[:, 1], "other": ROWS[:, 0], "bm25": ROWS[:, 0]}, y=[0] * 6,
                             qid=[1] * 6)  # fmt: skip
    np.testing.assert_array_equal(ranker.predict(swapped), expected)
    with pytest.raises(DataError, match="no column 'age'"):
        ranker.predict(mcrank.Dataset({"bm25": [1.0], "page": [1.0]}, y=[0], qid=[1]))
    with pytest.raises(DataError, match="has inf at row 0"):
        ranker.predict([[np.inf, 0.0]])


@pytest.mark.parametrize(
    ("decision", "threshold", "left"),
    [(10, "-1", True), (8, "1", False), (2, "-1", False), (0, "0", True), (0, "-1e-300", False)],
)
def test_lightgbm_sides_of_missing_values(tmp_path, decision, threshold, left):
    text = LIGHTGBM.replace("decision_type=10 8", f"decision_type={decision} 8")
    ranker = mcrank.from_lightgbm(written(tmp_path, text.replace("=0.5 -1.5", f"={threshold} -1.5").encode()))
    assert ranker.predict([[NAN, 9.0]])[0] == (-0.125 if left else 1.625)


@pytest.mark.parametrize("double", [0.1, -0.1, 1e300, -1e300, 1e-50, -1e-50, 3.4028235677973366e38])
def test_lightgbm_thresholds_in_double_part_float32_values_as_they_do(tmp_path, double):
    text = LIGHTGBM.replace("threshold=0.5 -1.5", f"threshold={double!r} -1.5")
    ranker = mcrank.from_lightgbm(written(tmp_path, text.encode()))
    near = np.float32(np.clip(double, -HIGHEST, HIGHEST))
    with np.errstate(over="ignore"):
        values = [near, *(np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf))]
    values = np.array([v for v in values if np.isfinite(v)], dtype=np.float32)
    left = ranker.predict(np.column_stack([values, np.full_like(values, 9)])) == -0.125
    assert left.tolist() == [float(v) <= double for v in values]
    assert ranker.predict([[NAN, 9.0]])[0] == -0.125


def test_lightgbm_forests_and_sigmoids(tmp_path):
    average = LIGHTGBM.replace("label_index", "average_output\nlabel_index")
    plain = mcrank.from_lightgbm(written(tmp_path, LIGHTGBM.encode())).predict(ROWS)
    assert mcrank.from_lightgbm(written(tmp_path, average.encode())).predict(ROWS).tolist() == list(plain / 2)
    binary = LIGHTGBM.replace("objective=lambdarank", "objective=binary sigmoid:2")
    ranker = mcrank.from_lightgbm(written(tmp_path, binary.encode()))
    np.testing.assert_allclose(ranker.predict(ROWS), 1 / (1 + np.exp(-2 * plain)), rtol=1e-15)
    np.testing.assert_allclose(ranker.predict_proba(ROWS).sum(axis=1), 1, rtol=1e-15)
    poisson = LIGHTGBM.replace("objective=lambdarank", "objective=poisson")
    np.testing.assert_allclose(
        mcrank.from_lightgbm(written(tmp_path, poisson.encode())).predict(ROWS), np.exp(plain), rtol=1e-15
    )


@pytest.mark.parametrize("form", ["json", "ubj"])
def test_xgboost(tmp_path, form):
    model = xgboost_model()
    path = written(tmp_path, to_ubjson(model) if form == "ubj" else model)
    ranker = mcrank.from_xgboost(path)
    # x < 0.5 left, NaN left; x < -1.5 left, NaN right; base 0.5
    assert ranker.predict(ROWS).tolist() == [2.0, 2.0, 2.0, 0.25, 2.0, 0.25]
    assert ranker.predict([[0.49999997, 0.0], [0.5, -1.5000001]]).tolist() == [0.25, 1.0]
    assert ranker.source_ == {
        "library": "xgboost", "objective": "rank:ndcg", "boosting": "gbtree", "version": "3.2.0",
    }  # fmt: skip


def test_xgboost_thresholds_at_the_ends(tmp_path):
    for threshold, left in (("Infinity", True), ("-Infinity", False), (-HIGHEST, False), (1e39, True)):
        text = json.dumps(xgboost_model()).replace("[0.5, -0.25", f"[{threshold}, -0.25")
        ranker = mcrank.from_xgboost(written(tmp_path, text.encode()))
        X = np.array([[HIGHEST, 9.0], [-HIGHEST, 9.0], [0.0, 9.0]], dtype=np.float32)
        assert ranker.predict(X).tolist() == [0.25 if left else 2.0] * 3
        assert ranker.predict([[NAN, 9.0]]).tolist() == [0.25]  # by default left, whatever the threshold


@pytest.mark.parametrize("unit", [5e-324, 2.0**-130, 0.25])
def test_weights_of_nodes_keep_their_shares_as_rows(tmp_path, unit):
    model = xgboost_model()
    tree = model["learner"]["gradient_booster"]["model"]["trees"][0]
    tree["sum_hessian"] = [4 * unit, unit, 3 * unit, unit, 2 * unit]
    rows = mcrank.from_xgboost(written(tmp_path, model)).scorer_.rows
    assert (rows / rows[1]).tolist() == [4, 1, 3, 1, 2]


@pytest.mark.parametrize(
    ("objective", "base", "margin"),
    [("rank:ndcg", "[2.5E-1]", 0.25), ("binary:logistic", "2.5E-1", np.log(1 / 3)),
     ("count:poisson", "2.5E-1", np.log(0.25)), ("binary:logitraw", "-2.5E-1", -0.25),
     ("multi:softprob", "[1E0,2E0,3E0]", [1, 2, 3])],
)  # fmt: skip
def test_xgboost_base_scores(tmp_path, objective, base, margin):
    outputs = 3 if objective.startswith("multi") else 1
    ranker = mcrank.from_xgboost(written(tmp_path, xgboost_model(outputs, objective, base)))
    np.testing.assert_allclose(ranker.scorer_.base, np.resize(margin, outputs), rtol=1e-15)


def test_classes_are_grades_and_their_worth_is_chosen(tmp_path):
    path = written(tmp_path, xgboost_model(3, "multi:softprob"))
    ranker = mcrank.from_xgboost(path)
    probabilities = ranker.predict_proba(ROWS)
    np.testing.assert_allclose(ranker.predict(ROWS), probabilities @ [0, 1, 2], rtol=1e-15)
    np.testing.assert_allclose(ranker.predict(ROWS, "gain"), probabilities @ [0, 1, 3], rtol=1e-15)
    np.testing.assert_allclose(ranker.predict(ROWS, [0, 0, 5]), probabilities @ [0, 0, 5], rtol=1e-15)
    other = mcrank.from_xgboost(path, grades=[1, 2, 4])
    assert other.grades_.tolist() == [1, 2, 4]
    np.testing.assert_allclose(other.predict(ROWS), probabilities @ [1, 2, 4], rtol=1e-15)
    turned = mcrank.from_xgboost(path, grades=[0, 2, 1])
    assert turned.grades_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(turned.predict_proba(ROWS), probabilities[:, [0, 2, 1]])
    np.testing.assert_allclose(turned.predict(ROWS), probabilities @ [0, 2, 1], rtol=1e-14)
    for grades, words in (([0, 1], "3 numbers"), ([0, 2, 2], "must differ"), (["a"] * 3, "must be numbers")):
        with pytest.raises(OptionError, match=words):
            mcrank.from_xgboost(path, grades=grades)


def test_one_score_has_no_probabilities(tmp_path):
    path = written(tmp_path, xgboost_model())
    ranker = mcrank.from_xgboost(path)
    assert not hasattr(ranker, "predict_proba")
    assert not hasattr(ranker, "grades_")
    with pytest.raises(OptionError, match="rank:ndcg"):
        ranker.predict(ROWS, relevance="gain")
    with pytest.raises(OptionError, match="is none"):
        mcrank.from_xgboost(path, grades=[0, 1])
    with pytest.raises(OptionError, match="cannot be trained"):
        ranker.fit([[1.0]], [1], qid=[1])


def test_xgboost_boosters_of_other_kinds(tmp_path):
    model = xgboost_model()
    booster = model["learner"]["gradient_booster"]
    dart = copy.deepcopy(model)
    dart["learner"]["gradient_booster"] = {"name": "dart", "gbtree": booster, "weight_drop": [0.5]}
    assert mcrank.from_xgboost(written(tmp_path, dart)).predict([[1.0, 1.0]]).tolist() == [0.5 + 0.75]
    linear = copy.deepcopy(model)
    linear["learner"]["gradient_booster"] = {"name": "gblinear", "model": {"weights": [2.0, -1.0, 0.25]}}
    ranker = mcrank.from_xgboost(written(tmp_path, linear))
    assert ranker.predict([[1.0, 3.0], [NAN, 1.0], [1.0, NAN]]).tolist() == [-0.25, -0.25, 2.75]
    linear["learner"]["gradient_booster"]["model"]["weights"] = [0.0, 0.0, 0.25]
    assert mcrank.from_xgboost(written(tmp_path, linear)).predict([[1.0, 3.0]]).tolist() == [0.75]


def test_xgboost_early_stopping_counts_as_in_predict_of_the_class(tmp_path):
    model = xgboost_model()
    booster = model["learner"]["gradient_booster"]["model"]
    booster["trees"] *= 3
    booster["tree_info"], booster["iteration_indptr"] = [0] * 3, [0, 1, 2, 3]
    booster["gbtree_model_param"]["num_trees"] = "3"
    model["learner"]["attributes"] = {"best_iteration": "1", "scikit_learn": "{}"}
    assert mcrank.from_xgboost(written(tmp_path, model)).n_rounds_ == 2
    del model["learner"]["attributes"]["scikit_learn"]  # of a Booster, whose predict takes all
    assert mcrank.from_xgboost(written(tmp_path, model)).n_rounds_ == 3


def test_catboost_symmetric(tmp_path):
    ranker = mcrank.from_catboost(written(tmp_path, catboost_model()))
    # first split 1 where bm25 > 0.5 (NaN not), second 2 where age > -1.5 (NaN so); half of it, and 0.25
    expected = [0.25 + 0.5 * leaf for leaf in (2, 1, 3, 2, 3, 2)]
    assert ranker.predict(ROWS).tolist() == expected
    classes = mcrank.from_catboost(written(tmp_path, catboost_model(3)))
    np.testing.assert_array_equal(classes.predict_raw(ROWS), np.add.outer(expected, range(3)))


def test_catboost_branching(tmp_path):
    ranker = mcrank.from_catboost(written(tmp_path, branching_model()))
    assert ranker.predict(ROWS).tolist() == [1.25, 2.25, 3.25, 1.25, 3.25, 1.25]
    assert ranker.scorer_.rows.tolist()[:5] == [6, 2, 4, 2, 2]


def ranklib_twin(X, threshold_of=np.float32):
    """RankLib's own arithmetic on the trees of RANKLIB: sums in float32, missing values 0."""
    X = np.nan_to_num(X)
    scores = []
    for row in X:
        total = np.float32(0)
        first = -1.5 if row[1] <= threshold_of(0.5) else 2.0 if row[0] <= threshold_of(-3.0) else 3.0
        for output in (np.float32(first), np.float32(0.7)):
            total = np.float32(float(total) + float(output) * float(np.float32(0.1)))
        scores.append(float(total))
    return np.array(scores)


def test_ranklib_trees(tmp_path):
    ranker = mcrank.from_ranklib(written(tmp_path, RANKLIB.encode()), n_features=3)
    X = np.random.default_rng(1).normal(0, 3, (200, 3)).astype(np.float32)
    X[np.random.default_rng(2).random(X.shape) < 0.3] = NAN
    np.testing.assert_allclose(ranker.predict(X), ranklib_twin(X), rtol=3e-7)
    assert ranker.n_features_in_ == 3
    forest = RANKLIB.replace("LambdaMART", "Random Forests") + RANKLIB.split("\n\n")[1]
    mean = mcrank.from_ranklib(written(tmp_path, forest.encode()), n_features=3)
    np.testing.assert_allclose(mean.predict(X), ranker.predict(X), rtol=1e-15)
    with pytest.raises(OptionError, match="uses feature 2, and n_features is 1"):
        mcrank.from_ranklib(written(tmp_path, RANKLIB.encode()), n_features=1)


def test_ranklib_weights(tmp_path):
    path = written(tmp_path, FILES["ranklib"]["linear"])
    ranker = mcrank.from_ranklib(path, feature_names=["a", "b", "c", "d"])
    assert ranker.predict([[4.0, 9.0, 1.0, 9.0], [NAN, 1.0, NAN, 1.0]]).tolist() == [-0.5, 0.5]
    assert ranker.feature_names_ == ("a", "b", "c", "d")
    assert from_bytes(to_bytes(ranker)).predict([[4.0, 9.0, 1.0, 9.0]]).tolist() == [-0.5]


def test_outputs_may_be_boundaries_between_grades(tmp_path):
    head = "multiclassova num_class:2 sigmoid:1"
    text = LIGHTGBM.replace("lambdarank", head).replace("num_class=1", "num_class=2")
    text = text.replace("num_tree_per_iteration=1", "num_tree_per_iteration=2")
    path = written(tmp_path, text.encode())
    each, boundaries = mcrank.from_lightgbm(path), mcrank.from_lightgbm(path, grades=[0, 1, 2])
    above = 1 / (1 + np.exp(-each.predict_raw(ROWS)))
    np.testing.assert_allclose(each.predict(ROWS), above[:, 1] / above.sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(boundaries.predict(ROWS), above.sum(axis=1), rtol=1e-14)


def test_objects_of_other_kinds_are_refused():
    for function in ("from_lightgbm", "from_xgboost", "from_catboost", "from_sklearn", "from_ranklib"):
        with pytest.raises(OptionError, match=f"model of {function} must be .*, got dict"):
            getattr(mcrank, function)({})
