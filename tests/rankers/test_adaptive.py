"""`McRank(base_class="adaptive")`: ABC-boost against a naive loop, and as a ranker like any other."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank
from mcrank import McRank
from mcrank.errors import DataError, OptionError
from mcrank.rankers.registry import from_bytes, to_bytes
from tests.rankers.data import few_values
from tests.reference import abc as naive
from tests.reference.losses import softmax

ROUNDS = 12
WEIGHTS = {"none": None, "some": np.random.default_rng(7).uniform(0.1, 4, 300)}
SEARCHES = {"fast": (2, 5), "worst class": (1, 0), "exhaustive": (4, 0)}


def case(seed, n_grades=4):
    X, y, qid = few_values(seed, 300, 4, 8, n_grades)
    ours = {"n_estimators": ROUNDS, "num_leaves": 5, "learning_rate": 0.2, "min_samples_leaf": 7, "n_jobs": 1}
    theirs = {"num_leaves": 5, "rate": 0.2, "min_rows": 7}
    return X, y, qid, ours | {"base_class": "adaptive", "init": "zero"}, theirs


def bases(ranker):
    """Base class of every round, from the outputs of its trees."""
    n = len(ranker.grades_)
    outputs = ranker.forest_.tree_output.reshape(-1, n - 1)
    k, j = outputs // (n - 1), outputs % (n - 1)
    base = j + (j >= k)
    assert (base == base[:, :1]).all()
    return base[:, 0].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("search", SEARCHES)
def test_against_the_naive_loop(search, weight, split):
    X, y, qid, ours, theirs = case(11)
    s, g = SEARCHES[search]
    ranker = McRank(**ours, base_search=s, base_gap=g, split=split).fit(X, y, qid=qid, weight=weight)
    scores, expected_bases = naive.boost(
        X, y.astype(int), 4, ROUNDS, search=s, gap=g, newton=split == "newton", weight=weight, **theirs
    )
    assert bases(ranker) == expected_bases
    assert len(set(expected_bases)) > 1  # a case where the choice matters
    assert np.abs(ranker.predict_proba(X).T - softmax(scores)).max() < 1e-6


def test_exhaustive_search_takes_the_base_of_the_smallest_loss_in_every_round():
    X, y, qid, ours, theirs = case(17)
    ranker = McRank(**ours | {"n_estimators": 1}, base_search=99, base_gap=0).fit(X, y, qid=qid)
    losses = []
    for base in range(4):
        forced = naive.boost(X, y.astype(int), 4, 0, search=1, gap=0, **theirs)[0]
        r, h = naive.residuals(forced, y.astype(int), base)
        moves = np.zeros_like(r)
        for j in range(3):
            for rows in naive.Tree(X, r[j], np.ones(300), 5, 7).leaves():
                moves[j, rows] = 0.2 * r[j, rows].sum() / h[j, rows].sum()
        losses.append(naive.losses(naive.moved(forced, moves, base), y.astype(int), np.ones(300)).sum())
    assert bases(ranker) == [int(np.argmin(losses))]


def test_two_grades_are_plain_mcrank():
    X, y, qid, ours, theirs = case(12, n_grades=2)
    plain = McRank(**ours | {"base_class": "none"}).fit(X, y, qid=qid)
    adaptive = McRank(**ours).fit(X, y, qid=qid)
    assert np.array_equal(plain.predict_proba(X), adaptive.predict_proba(X))
    scores, _ = naive.boost(X, y.astype(int), 2, ROUNDS, search=2, gap=5, **theirs)
    assert np.abs(plain.predict_proba(X).T - softmax(scores)).max() < 1e-6


def test_the_training_loss_falls_every_round():
    X, y, qid, ours, _ = case(13)
    seen = []
    for rounds in range(1, 8):
        p = McRank(**ours | {"n_estimators": rounds}).fit(X, y, qid=qid).predict_proba(X)
        seen.append(-np.log(p[np.arange(300), y.astype(int)]).sum())
    assert seen[0] < 300 * np.log(4)
    assert (np.diff(seen) < 0).all()


@pytest.mark.parametrize(
    "options", [{}, {"split": "newton"}, {"subsample": 0.5, "colsample": 0.5}, {"init": "prior"}]
)
def test_threads_files_and_validation(options):
    data = mcrank.make_artificial(n_train=30, n_valid=10, n_test=10, n_features=6, seed=2)
    settings = {"n_estimators": 8, "num_leaves": 6, "base_class": "adaptive", **options}
    rankers = [McRank(**settings, n_jobs=n).fit(data.train, valid=data.valid) for n in (1, 2, 3)]
    assert len({to_bytes(ranker) for ranker in rankers}) == 1
    ranker = rankers[0]
    assert ranker.forest_.n_trees == 4 * ranker.best_round_
    measured = mcrank.NDCG(k=10).on(data.valid).mean(ranker.head_.rank(ranker.learned_.raw(data.valid.X)))
    assert ranker.history_["ndcg@10"][ranker.best_round_ - 1] == pytest.approx(measured)
    loaded = from_bytes(to_bytes(ranker))
    np.testing.assert_array_equal(loaded.predict(data.test), ranker.predict(data.test))
    p = ranker.predict_proba(data.test)
    assert np.abs(p.sum(axis=1) - 1).max() < 1e-12
    np.testing.assert_allclose(ranker.predict(data.test), p @ ranker.grades_, rtol=1e-12)


def test_enough_rows_to_share_a_tree_among_threads():
    stream = np.random.default_rng(1)
    X = stream.normal(size=(21_000, 3)).astype(np.float32)
    y = np.clip(np.round(X[:, 0] + X[:, 1] * X[:, 2] + 1), 0, 3)
    settings = {"n_estimators": 3, "base_class": "adaptive", "base_gap": 0}
    found = [McRank(**settings, n_jobs=n).fit(X, y, qid=np.arange(21_000) // 20) for n in (1, 2)]
    assert len({to_bytes(ranker) for ranker in found}) == 1


def test_what_it_cannot_do_is_said():
    X, y, qid, ours, _ = case(11)
    with pytest.raises(OptionError, match="sequential of McRank must be False with base_class='adaptive'"):
        McRank(**ours, sequential=True).fit(X, y, qid=qid)
    with pytest.raises(DataError, match="20 grades; base_class='adaptive' of McRank takes at most 16"):
        McRank(**ours).fit(X, np.arange(300) % 20, qid=qid)
    with pytest.raises(OptionError, match="base_search of McRank must be an integer >= 1"):
        McRank(**ours, base_search=0).fit(X, y, qid=qid)
