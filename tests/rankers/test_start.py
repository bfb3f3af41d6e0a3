"""Training that begins with something: trees of a fitted ranker, or scores of the rows."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank
from mcrank import Dataset
from mcrank.errors import DataError, OptionError
from mcrank.rankers.registry import to_bytes
from tests.rankers.test_determinism import noisy

SMALL = {"num_leaves": 5, "min_samples_leaf": 4, "n_jobs": 2}
KINDS = {
    "mcrank": (mcrank.McRank, {}),
    "sampled": (mcrank.McRank, {"subsample": 0.6, "colsample": 0.5, "random_state": 7}),
    "sequential": (mcrank.McRank, {"sequential": True, "init": "prior"}),
    "adaptive": (mcrank.McRank, {"base_class": "adaptive", "base_gap": 1, "init": "prior"}),
    "newton": (mcrank.McRank, {"split": "newton"}),
    "ordinal": (mcrank.OrdinalMcRank, {"max_bins": 20}),
    "l2": (mcrank.RegressionRanker, {}),
    "lad": (mcrank.RegressionRanker, {"loss": "lad"}),
    "lambdamart": (mcrank.LambdaMART, {"measure": "map"}),
    "gbrank": (mcrank.GBRank, {}),
    "frank": (mcrank.FRank, {"scorer": "trees"}),
}


def make(kind, rounds, **more):
    ranker, own = KINDS[kind]
    return ranker(n_estimators=rounds, **SMALL | own | more)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("kind", KINDS)
def test_two_parts_are_one_longer_fit(kind, weighted, tmp_path):
    data, valid = noisy(400, weighted=weighted), noisy(90, seed=6)
    for held_out in (None, valid):
        whole = make(kind, 7).fit(data, valid=held_out)
        part = make(kind, 4).fit(data)
        part.save(tmp_path / "part.mcrank")
        for init in (part, tmp_path / "part.mcrank"):
            found = make(kind, 3).fit(data, valid=held_out, init_model=init)
            assert to_bytes(found) == to_bytes(whole)
            assert found.history_ == whole.history_


def test_a_part_cut_at_its_best_round_is_gone_on_from_there():
    data, valid = noisy(300), noisy(60, seed=8)
    whole = make("l2", 30, learning_rate=0.5).fit(data, valid=valid)
    part = make("l2", 20, learning_rate=0.5).fit(data, valid=valid)
    assert part.best_round_ < 20
    found = make("l2", 30 - part.best_round_, learning_rate=0.5).fit(data, valid=valid, init_model=part)
    assert to_bytes(found) == to_bytes(whole)


def test_early_stopping_counts_from_the_best_of_all_rounds():
    data, valid = noisy(300), noisy(60, seed=8)
    whole = make("l2", 60, learning_rate=0.5, early_stopping_rounds=4).fit(data, valid=valid)
    part = make("l2", 2, learning_rate=0.5).fit(data)
    found = make("l2", 58, learning_rate=0.5, early_stopping_rounds=4).fit(data, valid=valid, init_model=part)
    assert whole.n_rounds_ < 60
    assert to_bytes(found) == to_bytes(whole)


def test_warm_start_counts_rounds_in_all_as_scikit_learn():
    data = noisy(300)
    ranker = make("mcrank", 3, warm_start=True).fit(data)
    ranker.set_params(n_estimators=5).fit(data)
    assert ranker.n_rounds_ == 5
    assert to_bytes(ranker) == to_bytes(make("mcrank", 5).fit(data))
    with pytest.raises(OptionError, match=r"n_estimators of McRank must be at least 5.*got 4"):
        ranker.set_params(n_estimators=4).fit(data)
    with pytest.raises(OptionError, match="goes on from its own trees"):
        ranker.set_params(n_estimators=6).fit(data, init_model=ranker)
    assert ranker.n_rounds_ == 5
    again = ranker.set_params(n_estimators=5, warm_start=False).fit(data)
    assert again.n_rounds_ == 5


def test_other_data_are_binned_anew_and_told_in_the_provenance():
    old, new = noisy(300), noisy(300, seed=9)
    first = make("l2", 3).fit(old)
    found = make("l2", 2).fit(new, init_model=first)
    kept = found.forest_.part(0, 3)
    assert np.array_equal(kept.value, first.forest_.value)
    assert found.forest_.base == first.forest_.base
    # The fourth tree is the first of a training on what the three leave over.
    rest = make("l2", 1).fit(new, init_score=first.predict(new))
    assert np.array_equal(found.forest_.part(3, 4).value, rest.forest_.value)
    assert found.provenance_["earlier_data_1"] == first.provenance_["data"] | {"rounds": 3}
    assert found.provenance_["data"]["fingerprint"] != first.provenance_["data"]["fingerprint"]
    third = make("l2", 1).fit(old, init_model=found)
    assert set(third.provenance_) == {"data", "versions", "earlier_data_1", "earlier_data_2"}


def test_columns_go_by_name():
    pandas = pytest.importorskip("pandas")
    data = noisy(200, features=5, missing=0.0)
    frame = pandas.DataFrame(data.X, columns=list("abcde"))
    qid = np.repeat(data.qids, data.sizes)
    first = make("l2", 2).fit(frame, data.y, qid=qid)
    found = make("l2", 2).fit(frame[list("cadeb")], data.y, qid=qid, init_model=first)
    assert found.feature_names_ == tuple("abcde")
    assert to_bytes(found) == to_bytes(make("l2", 4).fit(frame, data.y, qid=qid))


def test_grades_are_those_of_the_first_part():
    data = noisy(300)
    first = make("mcrank", 2).fit(data)
    fewer = data.select([q for q in range(data.n_queries) if q % 3 == 0])
    low = Dataset(fewer.X, np.minimum(fewer.y, 1), np.repeat(fewer.qids, fewer.sizes))
    assert make("mcrank", 2).fit(low, init_model=first).grades_.tolist() == first.grades_.tolist()
    high = Dataset(fewer.X, fewer.y + 1, np.repeat(fewer.qids, fewer.sizes))
    with pytest.raises(DataError, match="has grade 5, which the trees it starts from do not know"):
        make("mcrank", 2).fit(high, init_model=first)


@pytest.mark.parametrize("kind", ["l2", "lambdamart", "mcrank", "ordinal", "adaptive"])
def test_initial_scores_are_a_start_and_no_part_of_the_model(kind):
    data = noisy(300)
    first = make(kind, 3).fit(data)
    columns = {"mcrank": 5, "ordinal": 4, "adaptive": 5}.get(kind, 1)
    scores = np.random.default_rng(1).normal(size=(data.n_rows, columns))
    given = make(kind, 3).fit(data, init_score=scores if columns > 1 else scores[:, 0])
    assert not np.array_equal(given.forest_.value, first.forest_.value)
    assert not given.forest_.base.any()
    both = make(kind, 2).fit(data, init_score=scores, init_model=make(kind, 1).fit(data, init_score=scores))
    assert to_bytes(both) == to_bytes(given)


def test_initial_scores_of_the_base_change_nothing_but_the_base():
    data = noisy(300)
    plain = make("l2", 4).fit(data)
    given = make("l2", 4).fit(data, init_score=np.full(data.n_rows, plain.forest_.base[0]))
    assert np.array_equal(given.forest_.value, plain.forest_.value)


def test_validation_has_initial_scores_too():
    data, valid = noisy(300), noisy(60, seed=8)
    base = make("l2", 3).fit(data)
    scores = {"init_score": base.predict(data), "valid_init_score": base.predict(valid)}
    found = make("l2", 3).fit(data, valid=valid, **scores)
    measure = mcrank.NDCG(k=10).on(valid)
    assert found.history_["ndcg@10"][found.best_round_ - 1] == pytest.approx(
        measure.mean(found.predict(valid) + base.predict(valid)), abs=1e-12
    )


def test_initial_scores_are_in_the_caller_s_order():
    data = noisy(300)
    order = np.random.default_rng(3).permutation(data.n_rows)
    order = order[np.argsort(order % 2, kind="stable")]
    qid = np.repeat(data.qids, data.sizes)
    scores = data.X[:, 5].copy()
    scores[np.isnan(scores)] = 0
    mixed = Dataset(data.X[order], data.y[order], qid[order])
    back = np.argsort(order)
    again = Dataset(mixed.X[np.argsort(mixed.source_rows)][back], data.y, qid)
    assert np.array_equal(again.X, data.X, equal_nan=True)
    one = make("l2", 3).fit(mixed, init_score=scores[order]).predict(mixed)[back]
    other = make("l2", 3).fit(data, init_score=scores).predict(data)
    assert np.allclose(one, other, atol=1e-12)


HOSTILE = {
    "text": (["a"] * 300, DataError, "init_score of LambdaMART.fit"),
    "short": (np.zeros(299), DataError, r"must have shape \(300,\), got \(299,\)"),
    "columns": (np.zeros((300, 2)), DataError, r"must have shape \(300,\), got \(300, 2\)"),
    "nan": (np.r_[np.zeros(7), np.nan, np.zeros(292)], DataError, "at row 7"),
    "huge": (np.full(300, 1e200), DataError, r"at most 1e\+100"),
    "complex": (np.zeros(300, dtype=complex), DataError, "init_score"),
}


@pytest.mark.parametrize("odd", HOSTILE)
def test_bad_initial_scores(odd):
    given, error, words = HOSTILE[odd]
    with pytest.raises(error, match=words):
        make("lambdamart", 2).fit(noisy(300), init_score=given)


def test_what_cannot_be_gone_on_from_is_said(tmp_path):
    data = noisy(300)
    l2 = make("l2", 2).fit(data)
    with pytest.raises(OptionError, match="must be a fitted ranker or the path of a model file, got 7"):
        make("l2", 2).fit(data, init_model=7)
    with pytest.raises(mcrank.errors.NotFittedError):
        make("l2", 2).fit(data, init_model=mcrank.RegressionRanker())
    with pytest.raises(mcrank.errors.ModelFileError, match="cannot be read"):
        make("l2", 2).fit(data, init_model=tmp_path / "nothing.mcrank")
    linear = mcrank.BestFeature().fit(data)
    with pytest.raises(OptionError, match="must be a ranker of boosted trees, got a BestFeature"):
        make("l2", 2).fit(data, init_model=linear)
    with pytest.raises(OptionError, match="no scores but probabilities"):
        make("l2", 2).fit(data, init_model=make("mcrank", 2).fit(data))
    with pytest.raises(OptionError, match="goes on from 'softmax' only"):
        make("mcrank", 2).fit(data, init_model=make("ordinal", 2).fit(data))
    with pytest.raises(OptionError, match="goes on from 'grades' only"):
        make("mcrank", 2).fit(data, init_model=l2)
    with pytest.raises(DataError, match="12 features, but init_model is expecting 11"):
        make("l2", 2).fit(noisy(300, features=12), init_model=l2)
    with pytest.raises(OptionError, match="form='average'"):
        make("gbrank", 2, form="average").fit(data, init_score=np.zeros(300))
    with pytest.raises(OptionError, match="scorer='stumps'"):
        mcrank.FRank(n_estimators=2).fit(data, init_model=l2)
    with pytest.raises(OptionError, match=r"BestFeature.fit got init_model"):
        mcrank.BestFeature().fit(data, init_model=l2)
    with pytest.raises(OptionError, match="needs init_score and valid_init_score, or neither"):
        make("l2", 2).fit(data, valid=data, init_score=np.zeros(300))
    with pytest.raises(OptionError, match="valid_init_score, but no valid"):
        make("l2", 2).fit(data, init_score=np.zeros(300), valid_init_score=np.zeros(300))


def test_another_ranker_s_scores_can_be_gone_on_from():
    data = noisy(300)
    first = make("l2", 3).fit(data)
    found = make("lambdamart", 3).fit(data, init_model=first)
    assert found.n_rounds_ == 6
    assert found.options_["n_estimators"] == 6
    assert np.array_equal(found.forest_.part(0, 3).value, first.forest_.value)


def test_nothing_to_learn_leaves_the_model_as_it_was():
    data = noisy(300)
    first = make("lambdamart", 3).fit(data)
    flat = Dataset(data.X, np.ones(300), np.repeat(data.qids, data.sizes))
    found = make("lambdamart", 3).fit(flat, init_model=first)
    assert np.array_equal(found.predict(data), first.predict(data))
    assert found.best_round_ == 3


@pytest.mark.parametrize("jobs", [1, 4])
def test_threads_change_nothing(jobs):
    data = noisy(400)
    scores = np.linspace(-1, 1, 400)
    models = [
        to_bytes(make("l2", 2, n_jobs=n).fit(data, init_score=scores, init_model=make("l2", 2).fit(data)))
        for n in (2, jobs)
    ]
    assert models[0] == models[1]


@pytest.mark.parametrize("kind", [dict, list])
def test_numbers_of_features_are_those_of_the_columns_given(kind):
    pandas = pytest.importorskip("pandas")
    data = noisy(200)
    names = [f"x{j}" for j in range(data.n_features)]
    table = pandas.DataFrame(data.X, columns=names)
    first = mcrank.LambdaMART(n_estimators=2, **SMALL).fit(table, data.y, qid=data.qid)
    assert 0 in first.forest_.feature
    turned = table[names[::-1]]
    place = len(names) - 1
    weights = {place: 0.0} if kind is dict else [1.0] * place + [0.0]
    ranker = mcrank.LambdaMART(n_estimators=2, feature_weights=weights, **SMALL)
    both = ranker.fit(turned, data.y, qid=data.qid, init_model=first)
    assert both.options_["feature_weights"] == {"x0": 0.0}
    new = both.forest_.feature[first.forest_.n_nodes :]
    assert 0 not in new
    # An array has positions only, which are those of the model's columns.
    plain = ranker.fit(data.X, data.y, qid=data.qid, init_model=first)
    assert plain.options_["feature_weights"] == {names[place]: 0.0}


@pytest.mark.parametrize("kind", ["mcrank", "ordinal"])
def test_scores_to_start_from_are_checked_where_nothing_is_learned(kind):
    data = noisy(60)
    same = Dataset(data.X, np.ones(60), qid=np.repeat(np.arange(6), 10))
    fitted = make(kind, 2).fit(same, init_score=np.zeros(60))
    for wrong in (np.zeros(59), np.zeros((60, 3)), np.full(60, np.nan)):
        with pytest.raises(DataError, match="init_score of"):
            make(kind, 2).fit(same, init_score=wrong)
        with pytest.raises(DataError, match="valid_init_score of"):
            make(kind, 2).fit(same, init_score=np.zeros(60), valid=same, valid_init_score=wrong)
        with pytest.raises(DataError, match=r"init_score of .*refit"):
            fitted.refit(same, init_score=wrong)
    with pytest.raises(OptionError, match="valid_init_score, but no valid"):
        make(kind, 2).fit(same, valid_init_score=np.zeros(60))
