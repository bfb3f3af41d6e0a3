"""Rankers are scikit-learn's estimators: its own checks and searches, and none of it loaded without need."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError as TheirNotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import mcrank
from mcrank import Dataset, McRank, RegressionRanker
from mcrank.errors import McrankError, MeasureError, NotFittedError, OptionError
from mcrank.rankers.registry import RANKERS, ranker_class
from tests.rankers.data import few_values

pytestmark = pytest.mark.slow

SMALL = {"n_estimators": 3, "num_leaves": 4, "min_samples_leaf": 1, "epochs": 2, "restarts": 1, "n_jobs": 1}
GRID = {"num_leaves": [2, 4, 8]}

# Checks of scikit-learn that rankers do not pass, and why.
_REPEATED = "a weight is not a repetition: leaves and bins count rows, pairs and ranks are made of rows"
_WORDS = "refused, as it should be, but with a DataError (a ValueError) in our own words"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": _REPEATED,
    "check_sample_weight_equivalence_on_sparse_data": _REPEATED,
    "check_complex_data": _WORDS,
    "check_dtype_object": _WORDS,
    "check_estimators_empty_data_messages": _WORDS,
}


class CutBlend(mcrank.Blend):
    """A blend cannot be made of one query: scikit-learn's checks, which know none, get three."""

    def fit(self, X, y=None, sample_weight=None):
        rows = getattr(X, "shape", None) or np.shape(np.asarray(X))
        return super().fit(X, y, qid=np.arange(rows[0]) % 3, sample_weight=sample_weight)


def small(name):
    kind = ranker_class(name)
    options = {o: value for o, value in SMALL.items() if o in kind.declared_options}
    if name == "blend":
        return CutBlend(
            members=[RegressionRanker(n_estimators=2, n_jobs=1)], folds=2, one_query=True, **options
        )
    return kind(one_query=True, **options)


@pytest.mark.parametrize("name", RANKERS)
def test_checks_of_scikit_learn(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of what it skips
        results = check_estimator(small(name), expected_failed_checks=EXPECTED, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    if name == "blend":  # on one row there is one query
        assert isinstance(failed.pop("check_fit2d_1sample"), AssertionError)
    assert failed == {}
    assert sum(r["status"] == "passed" for r in results) > 35
    # An expected failure that is none any more has to leave the list.
    passed = {r["check_name"] for r in results if r["status"] == "passed"}
    weights_count = name != "best-feature"
    assert not passed & {check for check in EXPECTED if weights_count or "weight" not in check}


@pytest.mark.slow
def test_estimators_from_the_moment_scikit_learn_is_loaded():
    script = """
import sys
import mcrank
ranker = mcrank.McRank(num_leaves=3)
mcrank.Blend, mcrank.RankNet, mcrank.load
assert not {"sklearn", "scipy.stats", "pandas"} & set(sys.modules), "loaded without need"
try:
    ranker.predict([[1.0]])
except mcrank.NotFittedError as error:
    assert type(error) is mcrank.NotFittedError
import sklearn.base
sklearn.set_config(enable_metadata_routing=True)
for kind in (mcrank.McRank, mcrank.Blend, mcrank.RankNet):
    assert issubclass(kind, sklearn.base.BaseEstimator)
    assert kind().set_fit_request(qid=True).get_metadata_routing().fit.requests["qid"] is True
assert sklearn.base.clone(ranker).num_leaves == 3
class Mine(mcrank.RegressionRanker):
    name = "mine"
assert isinstance(Mine(), sklearn.base.BaseEstimator) and Mine().set_score_request(qid=True)
assert not any("mcrank" in type(finder).__module__ for finder in sys.meta_path)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_estimators_where_scikit_learn_came_first():
    assert isinstance(McRank(), BaseEstimator)
    assert "McRank" in McRank(num_leaves=3)._repr_html_()
    assert "text/html" in McRank()._repr_mimebundle_()


def test_not_fitted_is_scikit_learns_error_too():
    with pytest.raises(TheirNotFittedError) as caught:
        McRank().predict([[1.0]])
    assert isinstance(caught.value, NotFittedError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, TheirNotFittedError)
    assert str(again) == str(caught.value)


@pytest.fixture(scope="module")
def rows():
    """Rows of 24 queries, mixed, with missing values."""
    X, y, _ = few_values(51, 360, 4, 8, 3, missing=0.05)
    stream = np.random.default_rng(0)
    return X, y, stream.permutation(np.repeat(np.arange(24), 15))


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def ranker(**options):
    return McRank(n_estimators=5, min_samples_leaf=5, n_jobs=1, **options)


def by_hand(rows, make=ranker, prepare=lambda X: X):
    """Mean scores of the grid, folds cut, trained and scored without scikit-learn's help."""
    X, y, q = rows
    means = []
    for leaves in GRID["num_leaves"]:
        scores = []
        for train, test in GroupKFold(3).split(X, y, q):
            fitted = make(num_leaves=leaves).fit(prepare(X[train]), y[train], qid=q[train])
            data = Dataset(prepare(X[test]), y[test], q[test])
            ranked = data.to_grouped(fitted.predict(data))
            scores.append(mcrank.parse_measure(fitted.measure).on(data).mean(ranked))
        means.append(np.mean(scores))
    return np.array(means)


def check_search(search, wanted, X):
    found = search.cv_results_["mean_test_score"]
    assert np.array_equal(found, wanted)
    assert len(set(found)) == len(found)
    assert search.best_index_ == np.argmax(wanted)
    assert np.isfinite(search.best_estimator_.predict(X)).all()


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_grid_search_as_it_comes(rows, n_jobs):
    X, y, q = rows
    search = GridSearchCV(ranker(), GRID, cv=GroupKFold(3), n_jobs=n_jobs, return_train_score=True)
    with joblib.parallel_backend("threading"):  # processes take the same calls, and long to start
        search.fit(X, y, qid=q, groups=q)
    check_search(search, by_hand(rows), X)
    train, _ = next(GroupKFold(3).split(X, y, q))
    again = ranker(num_leaves=2).fit(X[train], y[train], qid=q[train])
    assert search.cv_results_["split0_train_score"][0] == again.score(X[train], y[train], q[train])


def test_grid_search_with_routing(rows, routing):
    X, y, q = rows
    search = GridSearchCV(ranker(), GRID, cv=GroupKFold(3)).fit(X, y, qid=q, groups=q)
    check_search(search, by_hand(rows), X)
    assert search.score(X, y, qid=q) == search.best_estimator_.score(X, y, q)


@pytest.mark.parametrize("routed", [False, True])
def test_grid_search_through_a_pipeline(rows, routed):
    X, y, q = rows
    pipe = make_pipeline(SimpleImputer(strategy="constant", fill_value=0.0), ranker())
    grid = {"mcrank__num_leaves": GRID["num_leaves"]}
    words = {"qid": q} if routed else {"mcrank__qid": q}
    with sklearn.config_context(enable_metadata_routing=routed):
        search = GridSearchCV(pipe, grid, cv=GroupKFold(3)).fit(X, y, groups=q, **words)
        check_search(search, by_hand(rows, prepare=np.nan_to_num), X)
        pipe.set_output(transform="pandas").fit(X, y, **words)
        assert pipe[-1].feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
        if routed:
            assert pipe.score(X, y, qid=q) == pipe[-1].score(np.nan_to_num(X), y, q)


def test_query_ids_of_any_kind_and_other_measures(rows):
    X, y, q = rows
    texts = [f"q{i}" for i in q]
    make = lambda **options: ranker(measure="map", **options)  # noqa: E731
    wanted = by_hand(rows, make)
    assert not np.array_equal(wanted, by_hand(rows))
    for ids in (q, texts, np.array(texts, dtype=object)):
        search = GridSearchCV(make(), GRID, cv=GroupKFold(3)).fit(X, y, qid=ids, groups=q)
        assert np.array_equal(search.cv_results_["mean_test_score"], wanted)


def test_cross_validation(rows):
    X, y, q = rows
    fixed = ranker(num_leaves=4)
    scores = cross_val_score(fixed, X, y, cv=GroupKFold(3), groups=q, params={"qid": q})
    assert np.mean(scores) == by_hand(rows)[1]
    with sklearn.config_context(enable_metadata_routing=True):
        routed = cross_val_score(fixed, X, y, cv=GroupKFold(3), params={"qid": q, "groups": q})
        words = {"qid": q, "groups": q, "sample_weight": np.ones(len(y))}
        weighted = cross_validate(fixed, X, y, cv=GroupKFold(3), params=words)["test_score"]
    assert np.array_equal(scores, routed)
    assert np.array_equal(scores, weighted)
    # The inner search is scored by the outer folds' ids.
    search = GridSearchCV(ranker(), {"num_leaves": [4]}, cv=KFold(2))
    nested = cross_val_score(search, X, y, cv=GroupKFold(3), groups=q, params={"qid": q})
    assert np.array_equal(nested, scores)


def test_a_search_without_query_ids_fails(rows):
    X, y, q = rows
    with pytest.raises(ValueError, match=r"(?s)All the 9 fits failed.*McRank needs qid"):
        GridSearchCV(ranker(), GRID, cv=GroupKFold(3)).fit(X, y, groups=q)
    with pytest.raises(OptionError, match=r"McRank.score needs qid"):
        ranker().fit(X, y, qid=q).score(X, y)


def test_a_frame_may_bring_its_own_query_ids(rows):
    pandas = pytest.importorskip("pandas")
    X, y, q = rows
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(qid=q)
    scores = cross_val_score(ranker(num_leaves=4), frame, y, cv=GroupKFold(3), groups=q)
    assert np.mean(scores) == by_hand(rows)[1]


def test_score_is_the_rankers_own_measure(rows):
    X, y, q = rows
    data = Dataset(X, y, q)
    fitted = ranker().fit(data)
    scores = data.to_grouped(fitted.predict(data))
    for measure in ("ndcg@10", "ndcg@3", "map", "err"):
        wanted = mcrank.parse_measure(measure).on(data).mean(scores)
        assert fitted.set_params(measure=measure).score(data) == wanted
    yahoo = mcrank.parse_measure("ndcg@10[yahoo]").on(data).mean(scores)
    assert fitted.set_params(measure="ndcg@10", dialect="yahoo").score(data) == yahoo


def test_a_score_that_does_not_exist_is_an_error(rows):
    X, y, q = rows
    fitted = ranker(measure="ndcg@10[gdeval;ties=file]").fit(X, y, qid=q)
    with pytest.raises(MeasureError, match=r"ndcg@10.* of McRank.score has no value .*no query counts"):
        fitted.score(X, np.zeros(len(y)), q)


def test_one_query_has_to_be_asked_for(rows):
    X, y, _ = rows
    one = ranker(one_query=True).fit(X, y)
    assert np.array_equal(one.predict(X), ranker().fit(X, y, qid=np.zeros(len(y))).predict(X))
    assert one.score(X, y) == one.score(X, y, np.zeros(len(y)))
    assert "one_query" not in one.options_
    with pytest.raises(McrankError):
        ranker().fit(X, y)


def test_clone_keeps_requests(routing):
    asked = McRank().set_fit_request(valid=True)
    assert clone(asked).get_metadata_routing().fit.requests["valid"] is True
    requests = McRank().get_metadata_routing()
    assert requests.fit.requests["qid"] is True
    assert requests.fit.requests["groups"] is False
    assert requests.score.requests["qid"] is True


def test_probabilities_out_of_cross_validation(rows):
    X, y, q = rows
    words = {"cv": GroupKFold(3), "groups": q, "params": {"qid": q}, "method": "predict_proba"}
    found = cross_val_predict(ranker(), X, y, **words)
    fitted = ranker().fit(X, y, qid=q)
    assert fitted.classes_.tolist() == fitted.grades_.tolist()
    assert found.shape == fitted.predict_proba(X).shape
    train, test = next(GroupKFold(3).split(X, y, q))
    part = ranker().fit(X[train], y[train], qid=q[train])
    assert np.array_equal(found[test], part.predict_proba(X[test]))


def test_a_ranker_with_an_array_among_its_options_is_shown():
    assert repr(mcrank.LambdaMART(monotone=np.array([1, 0]))) == "LambdaMART(monotone=array([1, 0]))"
