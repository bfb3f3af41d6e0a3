"""scikit-learn's conventions, copies, and errors in the one message form."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import mcrank
from mcrank import Dataset, McRank, OrdinalMcRank, RegressionRanker
from mcrank.errors import DataError, NotFittedError, OptionError
from mcrank.rankers.registry import RANKERS, from_bytes, to_bytes
from tests.rankers.data import few_values

KINDS = [McRank, OrdinalMcRank, RegressionRanker]
QUICK = {"n_estimators": 5, "num_leaves": 4, "min_samples_leaf": 5}


def fitted(kind, **options):
    X, y, qid = few_values(41, 150, 4, 8, 3, missing=0.1)
    return kind(**(QUICK | options)).fit(X, y, qid=qid), X, y, qid


@pytest.mark.parametrize("kind", KINDS)
def test_clone_and_parameters(kind):
    ranker, X, y, qid = fitted(kind, learning_rate=0.3)
    twin = clone(ranker)
    assert twin.get_params() == ranker.get_params()
    assert not twin.__sklearn_is_fitted__()
    assert np.array_equal(twin.fit(X, y, qid=qid).predict(X), ranker.predict(X))
    assert twin.set_params(num_leaves=7, learning_rate=0.01) is twin
    assert (twin.num_leaves, twin.get_params()["learning_rate"]) == (7, 0.01)
    assert list(ranker.get_params()) == list(inspect.signature(kind).parameters)
    assert all(p.kind is p.KEYWORD_ONLY for p in inspect.signature(kind).parameters.values())


@pytest.mark.parametrize("kind", KINDS)
def test_constructors_store_what_they_are_given(kind):
    # Checks wait for fit, so that a search may set options one by one.
    ranker = kind(num_leaves="many", n_jobs=-3)
    assert ranker.num_leaves == "many"
    assert ranker.get_params()["n_jobs"] == -3
    with pytest.raises(TypeError):
        kind(10)


@pytest.mark.parametrize("kind", KINDS)
def test_check_is_fitted(kind):
    ranker, X, y, qid = fitted(kind)
    check_is_fitted(ranker)
    new = kind()
    with pytest.raises(SklearnNotFittedError):
        check_is_fitted(new)
    asked = [lambda: new.predict(X), lambda: new.score(X, y, qid), lambda: new.save("nowhere")]
    asked += [lambda: new.feature_importances_]
    if kind is not RegressionRanker:
        asked += [lambda: new.predict_proba(X), lambda: new.predict(X, relevance="gain")]
    for ask in asked:
        with pytest.raises(NotFittedError, match=f"This {kind.__name__} is not fitted yet; call fit first."):
            ask()
    assert not hasattr(new, "feature_importances_")


@pytest.mark.parametrize("kind", KINDS)
def test_tags(kind):
    tags = get_tags(kind())
    assert tags.input_tags.allow_nan
    assert tags.target_tags.required


@pytest.mark.parametrize("kind", KINDS)
def test_copies_predict_the_same(kind):
    ranker, X, _, _ = fitted(kind)
    wanted = ranker.predict(X)
    for twin in (copy.copy(ranker), copy.deepcopy(ranker), pickle.loads(pickle.dumps(ranker))):
        assert np.array_equal(twin.predict(X), wanted)
        assert to_bytes(twin) == to_bytes(ranker)
        assert repr(twin) == repr(ranker)
    unfitted = pickle.loads(pickle.dumps(kind(num_leaves=3)))
    assert unfitted.get_params() == kind(num_leaves=3).get_params()


@pytest.mark.parametrize("kind", KINDS)
def test_model_files_hold_what_was_trained(kind):
    ranker, X, _, _ = fitted(kind)
    again = from_bytes(to_bytes(ranker))
    assert type(again) is kind
    assert np.array_equal(again.predict(X), ranker.predict(X))
    assert again.get_params() == ranker.get_params() | {"n_jobs": None}
    assert again.feature_names_ == ("f1", "f2", "f3", "f4")
    assert np.array_equal(again.bin_edges_, ranker.bin_edges_)
    assert np.array_equal(again.feature_importances_, ranker.feature_importances_)


@pytest.mark.parametrize("kind", KINDS)
def test_options_changed_after_fitting_do_not_change_the_model_saved(kind):
    ranker, _, _, _ = fitted(kind)
    before = to_bytes(ranker)
    ranker.set_params(num_leaves=99, learning_rate=0.5, measure="map")
    assert to_bytes(ranker) == before


@pytest.mark.parametrize("kind", KINDS)
def test_fitting_again_forgets_the_first_model(kind):
    ranker, X, y, qid = fitted(kind)
    X2, y2, qid2 = few_values(42, 80, 2, 5, 4)
    ranker.fit(X2, y2, qid=qid2, valid=(X2, y2, qid2))
    fresh = kind(**QUICK).fit(X2, y2, qid=qid2, valid=(X2, y2, qid2))
    assert to_bytes(ranker) == to_bytes(fresh)
    ranker.fit(X, y, qid=qid)
    assert ranker.history_ == {}


@pytest.mark.parametrize("kind", KINDS)
def test_fit_returns_itself_and_leaves_the_data_alone(kind):
    X, y, qid = few_values(43, 100, 3, 6, 3)
    before = X.copy(), y.copy(), qid.copy()
    ranker = kind(**QUICK)
    assert ranker.fit(X, y, qid=qid) is ranker
    ranker.predict(X)
    for array, wanted in zip((X, y, qid), before, strict=True):
        assert np.array_equal(array, wanted)
        assert array.flags.writeable


@pytest.mark.parametrize("kind", KINDS)
def test_importances(kind):
    ranker, _, _, _ = fitted(kind)
    shares = ranker.feature_importances_
    assert shares.shape == (4,)
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)
    assert shares[0] > shares[3]  # the curve is made of the first three features


@pytest.mark.parametrize("kind", KINDS)
def test_score_is_ndcg_at_10(kind):
    ranker, X, y, qid = fitted(kind)
    data = Dataset(X, y, qid)
    wanted = mcrank.NDCG(k=10).on(data).mean(ranker.predict(X))
    assert ranker.score(X, y, qid) == ranker.score(data) == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_feature_names_are_kept(kind):
    X, y, qid = few_values(44, 100, 3, 6, 3)
    ranker = kind(**QUICK).fit(Dataset(X, y, qid, feature_names=["bm25", "length", "clicks"]))
    assert ranker.feature_names_ == ("bm25", "length", "clicks")
    assert ranker.n_features_in_ == 3
    assert from_bytes(to_bytes(ranker)).feature_names_ == ranker.feature_names_


BAD = [
    ("n_estimators", 0, "an integer >= 1"),
    ("n_estimators", 2.0, "an integer >= 1"),
    ("n_estimators", True, "an integer >= 1"),
    ("n_estimators", None, "an integer >= 1"),
    ("num_leaves", 1, "an integer >= 2"),
    ("num_leaves", 10**30, "an integer >= 2"),
    ("learning_rate", 0, "a number > 0"),
    ("learning_rate", -0.1, "a number > 0"),
    ("learning_rate", float("nan"), "a number > 0"),
    ("learning_rate", float("inf"), "a number > 0"),
    ("learning_rate", 10**400, "a number > 0"),
    ("learning_rate", "fast", "a number > 0"),
    ("max_bins", 1, "an integer >= 2 and <= 65536"),
    ("max_bins", 65537, "an integer >= 2 and <= 65536"),
    ("binning", "equal", "'adaptive' or 'adaptive-refined' or 'quantile'"),
    ("binning", None, "'adaptive'"),
    ("min_samples_leaf", 0, "an integer >= 1"),
    ("min_samples_leaf", 10**30, "an integer >= 1"),
    ("split", "gini", "'mse' or 'newton'"),
    ("subsample", 0.0, "a number > 0 and <= 1"),
    ("subsample", 1.5, "a number > 0 and <= 1"),
    ("colsample", -1, "a number > 0 and <= 1"),
    ("early_stopping_rounds", 0, "an integer >= 1"),
    ("max_leaf_value", 0, "a number > 0"),
    ("random_state", -1, "an integer >= 0"),
    ("random_state", 2**63, "an integer >= 0"),
    ("random_state", None, "an integer >= 0"),
    ("n_jobs", 0, "an integer >= 1"),
    ("n_jobs", -2, "an integer >= 1"),
]


@pytest.mark.parametrize(("name", "value", "requirement"), BAD)
def test_options_out_of_bounds(name, value, requirement):
    X, y, qid = few_values(45, 40, 2, 4, 2)
    for kind in KINDS:
        with pytest.raises(OptionError) as error:
            kind(**{name: value}).fit(X, y, qid=qid)
        message = str(error.value)
        assert message.startswith(f"{name} of {kind.__name__} must be {requirement}")
        assert message.endswith(f", got {value!r}.")


def test_options_of_single_rankers():
    X, y, qid = few_values(45, 40, 2, 4, 2)
    for kind, name, value in (
        (McRank, "sequential", 1),
        (RegressionRanker, "loss", "huber"),
        (RegressionRanker, "target", "rank"),
    ):
        with pytest.raises(OptionError, match=f"{name} of {kind.__name__} must be .*, got {value!r}."):
            kind(**{name: value}).fit(X, y, qid=qid)
    with pytest.raises(OptionError, match="OrdinalMcRank has no option 'sequential'"):
        OrdinalMcRank(sequential=True)


@pytest.mark.parametrize("kind", KINDS)
def test_options_may_be_numpy_numbers(kind):
    X, y, qid = few_values(45, 40, 2, 4, 2)
    ranker = kind(n_estimators=np.int64(3), learning_rate=np.float32(0.25), num_leaves=np.int8(3))
    plain = kind(n_estimators=3, learning_rate=0.25, num_leaves=3)
    assert to_bytes(ranker.fit(X, y, qid=qid)) == to_bytes(plain.fit(X, y, qid=qid))


@pytest.mark.parametrize("kind", KINDS)
def test_data_that_cannot_be_used(kind):
    X, y, qid = few_values(46, 60, 3, 5, 3)
    data = Dataset(X, y, qid)
    with pytest.raises(OptionError, match=f"{kind.__name__} needs qid, the query id of each row"):
        kind(**QUICK).fit(X, y)
    with pytest.raises(OptionError, match=f"{kind.__name__} got a Dataset and also y, qid"):
        kind(**QUICK).fit(data, y, qid=qid)
    with pytest.raises(DataError, match="one grade per row: 60 rows"):
        kind(**QUICK).fit(X, y[:-1], qid=qid)
    bad = X.copy()
    bad[7, 1] = np.inf
    with pytest.raises(DataError, match="inf at row 7, column 1"):
        kind(**QUICK).fit(bad, y, qid=qid)
    ranker = kind(**QUICK).fit(data)
    with pytest.raises(DataError, match=f"X has 2 features, but {kind.__name__} is expecting 3"):
        ranker.predict(X[:, :2])
    with pytest.raises(DataError, match=f"X of {kind.__name__}.predict"):
        ranker.predict([[1.0, 2.0, np.inf]])
    with pytest.raises(DataError, match="2 dimensions"):
        ranker.predict([1.0, 2.0, 3.0])


def test_every_registered_ranker_is_public():
    for name, place in RANKERS.items():
        kind = getattr(mcrank, place.split(":")[1])
        assert kind.name == name
