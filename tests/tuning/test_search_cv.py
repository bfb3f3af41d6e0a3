"""`TuneSearchCV`, and scikit-learn's own searches of rankers."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import mcrank
from mcrank.errors import OptionError

pytest.importorskip("optuna")
pytestmark = pytest.mark.consumer

DATA = mcrank.make_artificial(40, 1, 1, docs_per_query=8, n_features=4, seed=3).train


def test_the_search_of_scikit_learn():
    X, y, qid = DATA.X, DATA.y, DATA.qid
    search = mcrank.TuneSearchCV(
        mcrank.RegressionRanker(n_estimators=20), {"num_leaves": [4, 8]}, n_iter=5, cv=2, n_jobs=1
    )
    with pytest.raises(mcrank.NotFittedError):
        search.predict(X)
    fitted = clone(search).fit(X, y, qid=qid)
    assert fitted.best_params_["num_leaves"] in (4, 8)
    assert fitted.best_score_ == fitted.cv_results_["mean_test_score"][fitted.best_index_]
    assert fitted.cv_results_["rank_test_score"][fitted.best_index_] == 1
    assert fitted.predict(X).shape == y.shape
    assert fitted.score(X, y, qid) == fitted.best_estimator_.score(DATA)


@pytest.mark.parametrize("wrong", ["lambdamart", mcrank.LambdaMART, FunctionTransformer()])
def test_the_search_of_scikit_learn_is_of_rankers(wrong):
    with pytest.raises(OptionError, match="estimator of TuneSearchCV must be a ranker"):
        mcrank.TuneSearchCV(wrong, n_iter=1, cv=2).fit(DATA)


def test_the_search_of_scikit_learn_takes_the_words_of_fit():
    starts = np.flatnonzero(np.r_[True, DATA.qid[1:] != DATA.qid[:-1]])
    group = np.diff(np.r_[starts, len(DATA.qid)])
    weight = 1.0 + np.arange(len(DATA.y)) % 3
    once = np.arange(len(group)) % 2 + 1.0
    given = mcrank.Dataset(DATA.X, DATA.y, DATA.qid, weight=weight, query_weight=once)

    def found(*args, **words):
        search = mcrank.TuneSearchCV(
            mcrank.RegressionRanker(n_estimators=10, num_leaves=4),
            {"l2": [0.0, 5.0]},
            n_iter=2,
            cv=2,
            n_jobs=1,
        )
        return search.fit(*args, **words)

    expected = found(given)
    for words in ({"weight": weight, "group": group}, {"sample_weight": weight, "groups": DATA.qid}):
        other = found(DATA.X, DATA.y, query_weight=once, **words)
        assert other.predict(DATA.X).tolist() == expected.predict(DATA.X).tolist()
        assert other.best_score_ == expected.best_score_
        scored = other.score(DATA.X, DATA.y, group=group, query_weight=once)
        assert scored == expected.score(given)
    plain = found(DATA)
    assert plain.predict(DATA.X).tolist() != expected.predict(DATA.X).tolist()
    assert plain.best_score_ != expected.best_score_


def test_the_search_of_scikit_learn_keeps_what_its_ranker_says_of_the_data():
    codes = np.random.default_rng(0).integers(0, 5, len(DATA.y))
    X = np.c_[DATA.X[:, :2], codes]
    ranker = mcrank.RegressionRanker(n_estimators=5, num_leaves=4, categorical=[2], one_query=True)
    search = mcrank.TuneSearchCV(ranker, {"l2": [0.0, 5.0]}, n_iter=2, cv=2, n_jobs=1)
    assert search.fit(X, DATA.y, qid=DATA.qid).best_estimator_.categories_.keys() == {2}


def test_the_search_of_scikit_learn_is_routed_to_as_a_ranker_is():
    ranker = mcrank.McRank(n_estimators=3, num_leaves=4, n_jobs=1)
    search = mcrank.TuneSearchCV(ranker, {"l2": [0.0, 5.0]}, n_iter=2, cv=2, n_jobs=1)
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(FunctionTransformer(), search)
        told = {"qid": DATA.qid, "groups": DATA.qid}
        scores = cross_val_score(pipe, DATA.X, DATA.y, cv=GroupKFold(2), params=told, error_score="raise")
    assert np.isfinite(scores).all()


def test_the_search_of_scikit_learn_has_what_its_ranker_has():
    pandas = pytest.importorskip("pandas")
    names = [f"x{f}" for f in range(DATA.X.shape[1])]
    frame = pandas.DataFrame(DATA.X, columns=names)
    graded = mcrank.TuneSearchCV(mcrank.McRank(n_estimators=3), {"l2": [0.0, 5.0]}, n_iter=2, cv=2, n_jobs=1)
    assert not hasattr(graded, "classes_")
    assert not hasattr(graded, "n_features_in_")
    graded.fit(frame, DATA.y, qid=DATA.qid)
    assert graded.feature_names_in_.tolist() == names
    assert graded.n_features_in_ == len(names)
    assert graded.classes_.tolist() == np.unique(DATA.y).tolist()
    expected = graded.best_estimator_.predict_proba(frame)
    assert graded.predict_proba(frame).tolist() == expected.tolist()
    assert not hasattr(graded.fit(DATA.X, DATA.y, qid=DATA.qid), "feature_names_in_")
    plain = mcrank.TuneSearchCV(mcrank.RegressionRanker())
    assert not hasattr(plain, "predict_proba")


def test_scikit_learns_own_search_takes_a_ranker():
    search = GridSearchCV(
        mcrank.RegressionRanker(n_estimators=5, n_jobs=1), {"num_leaves": [3, 6]}, cv=GroupKFold(2)
    )
    search.fit(DATA.X, DATA.y, groups=DATA.qid, qid=DATA.qid)
    assert search.best_params_["num_leaves"] in (3, 6)
