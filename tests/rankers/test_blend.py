"""Blend: standardised scores, weights by ascent and least squares, members in one file."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

import mcrank
from mcrank import Blend, Dataset, RankSVM, RegressionRanker
from mcrank.container import pack, unpack
from mcrank.errors import DataError, ModelFileError, OptionError
from mcrank.rankers.blend import PATIENCE
from mcrank.rankers.imported import ImportedRanker
from mcrank.rankers.registry import from_bytes, to_bytes
from mcrank.scorers.blend import Standard
from mcrank.scorers.heads import Head
from mcrank.training.mixing import mixing_weights
from tests.rankers.data import dataset, few_values, teaching_nothing

DATA = mcrank.make_artificial(n_train=16, n_valid=12, n_test=6, docs_per_query=12, n_features=4, seed=7)
TREES = RegressionRanker(n_estimators=8, num_leaves=4, min_samples_leaf=3, n_jobs=1)
METHODS = ("ascent", "nnls", "equal")


def settings(method="ascent", shrink=0.0, measure="ndcg@10"):
    return {
        "method": method, "shrink": shrink, "measure": mcrank.parse_measure(measure), "random_state": 0,
    }  # fmt: skip


def quick(**options):
    return Blend(**{"members": [TREES, "ranksvm", "best-feature"], "folds": None, **options})


class TestStandard:
    scores = np.random.default_rng(0).normal(size=(3, 12)) * [[1], [1e9], [1e-9]] + [[5], [0], [0]]
    data = Dataset(np.zeros((12, 1)), np.zeros(12), np.repeat([1, 2, 3], [5, 6, 1]))

    def test_over_all_rows(self):
        scaled = Standard.fit(self.scores, "global").apply(self.scores, None)
        np.testing.assert_allclose(scaled.mean(axis=1), 0, atol=1e-9)
        np.testing.assert_allclose(scaled.std(axis=1), 1)

    def test_in_each_query(self):
        scaled = Standard.fit(self.scores, "query").apply(self.scores, self.data.offsets)
        for rows in (slice(0, 5), slice(5, 11)):
            np.testing.assert_allclose(scaled[:, rows].mean(axis=1), 0, atol=1e-9)
            np.testing.assert_allclose(scaled[:, rows].std(axis=1), 1)
        assert (scaled[:, 11] == 0).all()

    @pytest.mark.parametrize("kind", ["global", "query"])
    def test_equal_and_huge_scores(self, kind):
        scores = np.array([[0.1] * 12, [1e308, -1e308] * 6, [0.0] * 12])
        scaled = Standard.fit(scores, kind).apply(scores, self.data.offsets)
        assert np.isfinite(scaled).all()
        assert (scaled[[0, 2]] == 0).all()


class TestWeights:
    data = dataset(31, 200, 3, 6, 3)
    good = few_values(31, 200, 3, 6, 3)[1] + np.random.default_rng(1).normal(size=200) * 0.3
    noise = np.random.default_rng(2).normal(size=200)

    @pytest.mark.parametrize("method", METHODS)
    def test_weights_are_shares(self, method):
        weights = mixing_weights(np.array([self.good, self.noise, -self.good]), self.data, settings(method))
        assert (weights >= 0).all()
        assert weights.sum() == pytest.approx(1)

    @pytest.mark.parametrize("method", ["ascent", "nnls"])
    def test_the_good_ranker_gets_the_weight(self, method):
        weights = mixing_weights(np.array([self.noise, self.good]), self.data, settings(method))
        assert weights[1] > 0.9
        half = mixing_weights(np.array([self.noise, self.good]), self.data, settings(method, 0.5))
        np.testing.assert_allclose(half, 0.5 * weights + 0.25)

    def test_ascent_gains_over_equal_weights(self):
        columns = np.array([self.good, self.noise, self.noise[::-1]])
        bound = mcrank.NDCG(k=10).on(self.data)
        found = mixing_weights(columns, self.data, settings())
        assert bound.mean(found @ columns) > bound.mean(columns.sum(axis=0))

    def test_nnls_is_that_of_rows_centred_by_query(self):
        columns = np.array([self.good, self.noise + 0.2 * self.good, -self.noise])
        gain = np.exp2(self.data.y) - 1
        rows = np.vstack([columns, gain])
        for q in range(self.data.n_queries):
            own = slice(self.data.offsets[q], self.data.offsets[q + 1])
            rows[:, own] -= rows[:, own].mean(axis=1, keepdims=True)
        wanted = nnls(rows[:-1].T, rows[-1])[0]
        found = mixing_weights(columns, self.data, settings("nnls"))
        np.testing.assert_allclose(found, wanted / wanted.sum(), atol=1e-9)

    @pytest.mark.parametrize("method", METHODS)
    def test_nothing_to_weigh(self, method):
        flat = Dataset(self.data.X, np.zeros(200), self.data.qid)
        columns = np.array([self.good, self.noise])
        np.testing.assert_allclose(mixing_weights(columns, flat, settings(method)), 0.5)
        np.testing.assert_allclose(mixing_weights(np.zeros((2, 200)), self.data, settings(method)), 0.5)

    def test_any_measure(self):
        columns = np.array([self.noise, self.good])
        for measure in ("map", "err@5", "ndcg[yahoo]"):
            assert mixing_weights(columns, self.data, settings(measure=measure))[1] > 0.9


@pytest.mark.parametrize("standard", ["global", "query"])
@pytest.mark.parametrize("method", METHODS)
def test_the_score_is_the_weighted_sum(method, standard):
    ranker = quick(method=method, standard=standard).fit(DATA.train, valid=DATA.valid)
    held_out = np.array([m.predict(DATA.valid) for m in ranker.members_])
    learned = Standard.fit(held_out, standard)
    wanted = ranker.weights_ @ learned.apply(
        np.array([m.predict(DATA.test) for m in ranker.members_]), DATA.test.offsets
    )
    np.testing.assert_allclose(ranker.predict(DATA.test), wanted, rtol=1e-9, atol=1e-12)
    assert ranker.history_["ndcg@10"][-1] == pytest.approx(ranker.score(DATA.valid))
    assert ranker.history_["ndcg@10"][:-1] == pytest.approx([m.score(DATA.valid) for m in ranker.members_])
    assert (ranker.n_rounds_, ranker.best_round_) == (4, 4)
    again = from_bytes(to_bytes(ranker))
    np.testing.assert_array_equal(again.predict(DATA.test), ranker.predict(DATA.test))
    assert to_bytes(again) == to_bytes(ranker)
    assert [type(m) for m in again.members_] == [type(m) for m in ranker.members_]


def test_members_may_be_names_files_and_rankers(tmp_path):
    fitted = RankSVM(C=0.01).fit(DATA.train)
    fitted.save(tmp_path / "svm.mcrank")
    untrained = RegressionRanker(n_estimators=3)
    by_object = Blend(members=[fitted, untrained, "best-feature"]).fit(DATA.train, valid=DATA.valid)
    by_file = Blend(members=[tmp_path / "svm.mcrank", untrained, "best-feature"])
    by_file.fit(DATA.train, valid=DATA.valid)
    assert to_bytes(by_object) == to_bytes(by_file)
    assert not untrained.__sklearn_is_fitted__()
    text = f"{tmp_path / 'svm.mcrank'}, best-feature"
    by_text = Blend(members=text, method="equal").fit(DATA.train, valid=DATA.valid)
    assert [m.name for m in by_text.members_] == ["ranksvm", "best-feature"]
    assert by_text.options_["members"] == "ranksvm,best-feature"


def test_named_members_get_the_measure_and_the_seed():
    ranker = Blend(
        members="ranksvm,coordinate-ascent", measure="ndcg@5", dialect="yahoo", random_state=3, folds=2
    )
    ranker.fit(DATA.train, valid=DATA.valid)
    assert [m.options_["measure"] for m in ranker.members_] == ["ndcg@5[yahoo]"] * 2
    assert ranker.members_[1].options_["random_state"] == 3
    assert list(ranker.history_) == ["ndcg@5[yahoo]"]


@pytest.mark.parametrize("valid", [None, DATA.valid])
def test_rows_are_judged_by_fits_that_have_not_seen_them(valid):
    ranker = quick(folds=4).fit(DATA.train, valid=valid)
    alone = type(TREES)(**TREES.get_params()).fit(DATA.train, valid=valid, folds=4)
    assert [m.name for m in ranker.members_] == ["regression", "ranksvm", "best-feature"]
    assert to_bytes(ranker.members_[0]) == to_bytes(alone)
    pooled = DATA.train if valid is None else Dataset.merge([DATA.train, valid])
    columns = np.array([m.oof_scores_ for m in ranker.members_])
    standard = Standard.fit(columns, "global")
    assert ranker.standard_.shift.tolist() == standard.shift.tolist()
    options = settings(shrink=0.5)
    wanted = mixing_weights(standard.apply(columns, None), pooled, options)
    assert ranker.weights_.tolist() == wanted.tolist()
    bound = mcrank.NDCG(k=10).on(pooled)
    assert ranker.history_["ndcg@10"][:-1] == pytest.approx([bound.mean(c) for c in columns])
    again = from_bytes(to_bytes(ranker))
    np.testing.assert_array_equal(again.predict(DATA.test), ranker.predict(DATA.test))


def test_folds_of_fit_are_those_of_the_blend():
    models = [quick(folds=3).fit(DATA.train), quick().fit(DATA.train, folds=3)]
    assert to_bytes(models[0]) == to_bytes(models[1])
    with pytest.raises(OptionError, match="folds of Blend is None, and there is no valid"):
        quick().fit(DATA.train)


def test_members_named_by_a_text_stop_early():
    ranker = Blend(members="regression", folds=None).fit(DATA.train, valid=DATA.valid)
    assert ranker.members_[0].options_["early_stopping_rounds"] == PATIENCE
    assert ranker.members_[0].n_rounds_ < 1000
    assert Blend().members == "mcrank,ordinal,lambdamart,ranksvm"


def test_all_thread_counts_give_the_same_model():
    models = [to_bytes(quick(n_jobs=jobs).fit(DATA.train, valid=DATA.valid)) for jobs in (1, 2, 4)]
    assert models[0] == models[1] == models[2]


def test_rows_out_of_order_come_back_in_the_callers_order():
    ranker = quick(standard="query").fit(DATA.train, valid=DATA.valid)
    test = DATA.test
    order = np.random.default_rng(0).permutation(test.n_rows)
    mixed = Dataset(test.X[order], test.y[order], test.qid[order])
    np.testing.assert_allclose(ranker.predict(mixed), ranker.predict(test)[order], rtol=1e-9, atol=1e-12)


def test_a_matrix_has_no_queries():
    plain = quick().fit(DATA.train, valid=DATA.valid)
    np.testing.assert_allclose(plain.predict(DATA.test.X), plain.predict(DATA.test))
    with pytest.raises(DataError, match="standard='query' needs to know the queries; give a Dataset"):
        quick(standard="query").fit(DATA.train, valid=DATA.valid).predict(DATA.test.X)


@pytest.mark.parametrize("case", ["no relevant row", "single rows", "constant"])
@pytest.mark.parametrize("method", METHODS)
def test_data_with_nothing_to_learn(case, method):
    data = Dataset(*teaching_nothing(case, *few_values(32, 40, 3, 6, 3)))
    ranker = Blend(members=[TREES, "ranksvm", "coordinate-ascent"], method=method).fit(data, valid=data)
    assert np.isfinite(ranker.predict(data)).all()


class TestErrors:
    def fails(self, error, match, members, data=DATA.train, valid=DATA.valid):
        with pytest.raises(error, match=match):
            Blend(members=members).fit(data, valid=valid)

    def test_members(self, tmp_path):
        self.fails(OptionError, "names no ranker", " , ")
        self.fails(OptionError, "did you mean ranksvm", "rankswm")
        self.fails(OptionError, "names of rankers, model files or rankers, got 3", ["ranksvm", 3])
        self.fails(OptionError, "which does not exist", [tmp_path / "nothing"])
        self.fails(OptionError, "has a Blend", "ranksvm,blend")
        (tmp_path / "bad").write_text("x")
        self.fails(ModelFileError, "not a mcrank model file", [tmp_path / "bad"])

    def test_fitted_members(self):
        fitted = RankSVM().fit(DATA.train)
        self.fails(OptionError, "fitted RankSVM, and there is no valid", [fitted], valid=None)
        other = dataset(33, 60, 3, 6, 3)
        self.fails(DataError, "a RankSVM of 4 features, the training data 3", [fitted], other, other)
        self.fails(DataError, "one query", "ranksvm", DATA.train.select([0]), None)

    def test_members_with_categories(self):
        coded = [
            Dataset(np.c_[np.digitize(part.X[:, :1], [0.3, 0.6]), part.X[:, 1:]], part.y, part.qid)
            for part in (DATA.train, DATA.valid)
        ]
        member = RegressionRanker(n_estimators=3, num_leaves=4, min_samples_leaf=3, categorical=[0])
        fitted = RegressionRanker(**member.get_params()).fit(coded[0])
        for members in ([member], [fitted, "ranksvm"]):
            self.fails(OptionError, "a RegressionRanker with categories", members, *coded)
        self.fails(OptionError, "a RegressionRanker with categories", [member], coded[0], None)
        header, arrays = unpack(to_bytes(quick(members="best-feature").fit(coded[0], valid=coded[1])), "it")
        inner = np.frombuffer(to_bytes(fitted), dtype=np.uint8)
        with pytest.raises(ModelFileError, match="member 0 has categories"):
            from_bytes(pack(header, arrays | {"member_0000": inner}))

    def test_files_within_files(self):
        header, arrays = unpack(
            to_bytes(quick(members="best-feature").fit(DATA.train, valid=DATA.valid)), "it"
        )
        inner = np.frombuffer(pack(header, arrays), dtype=np.uint8)
        with pytest.raises(ModelFileError, match="member 0 is a blend itself"):
            from_bytes(pack(header, arrays | {"member_0000": inner}))
        narrow = dataset(34, 60, 3, 6, 3)
        other = np.frombuffer(to_bytes(RankSVM().fit(narrow)), dtype=np.uint8)
        with pytest.raises(ModelFileError, match="member 0 takes 3 features, the blend 4"):
            from_bytes(pack(header, arrays | {"member_0000": other}))
        damaged = arrays["member_0000"].copy()
        damaged[len(damaged) // 2] ^= 1
        with pytest.raises(ModelFileError):
            from_bytes(pack(header, arrays | {"member_0000": damaged}))

    @pytest.mark.parametrize(
        ("name", "value"), [("method", "mean"), ("shrink", 1.5), ("standard", "rank"), ("folds", 1)]
    )
    def test_options_out_of_bounds(self, name, value):
        with pytest.raises(OptionError, match=f"{name} of Blend must be"):
            Blend(**{name: value}).fit(DATA.train)


class TestLoadedAndFittedAgain:
    @pytest.mark.parametrize("folds", [None, 2])
    def test_trains_what_it_trained(self, folds):
        blend = quick(folds=folds).fit(DATA.train, valid=DATA.valid)
        again = from_bytes(to_bytes(blend)).fit(DATA.train, valid=DATA.valid)
        assert to_bytes(again) == to_bytes(blend)

    def test_names_that_say_it_all_stay_names(self):
        blend = Blend(members="regression,ranksvm", folds=2, measure="map", n_jobs=1).fit(DATA.train)
        loaded = from_bytes(to_bytes(blend))
        assert loaded.members == "regression,ranksvm"
        assert to_bytes(loaded) == to_bytes(blend)

    def test_members_that_training_did_not_come_to_are_named(self):
        blend = quick().fit(DATA.train, valid=DATA.valid, callback=lambda event: event.round == 3)
        trees, *rest = from_bytes(to_bytes(blend)).members
        assert trees.get_params() == TREES.get_params() | {"n_jobs": None}
        assert rest == ["ranksvm", "best-feature"]

    def test_what_another_library_trained_stays_as_it_is(self):
        forest = RegressionRanker(n_estimators=3, n_jobs=1).fit(DATA.train).forest_
        imported = ImportedRanker.of(forest, Head(), {"library": "other"})
        blend = quick(members=[imported, TREES]).fit(DATA.train, valid=DATA.valid)
        again = from_bytes(to_bytes(blend)).fit(DATA.train, valid=DATA.valid)
        assert to_bytes(again) == to_bytes(blend)


class TestStopping:
    def test_a_callback_ends_after_the_member_under_way(self):
        ranker = quick().fit(DATA.train, valid=DATA.valid, callback=lambda event: event.round == 3)
        assert [m.name for m in ranker.members_] == ["regression"]
        assert ranker.members_[0].n_rounds_ == 3
        assert ranker.n_rounds_ == 2

    @pytest.mark.parametrize("folds", [None, 2])
    def test_ctrl_c_keeps_the_members_trained(self, folds):
        def press(event):
            if event.rounds == 11 and event.round == 3:  # the path of RankSVM
                raise KeyboardInterrupt

        with pytest.warns(UserWarning, match="was interrupted") as caught:
            ranker = quick(folds=folds).fit(DATA.train, valid=DATA.valid, callback=press)
        said = [str(warning.message).split(";")[0] for warning in caught]
        assert [s for s in said if "held-out" not in s] == [
            "RankSVM was interrupted",
            "Blend was interrupted",
        ]
        assert ranker.interrupted_
        assert [m.name for m in ranker.members_] == ["regression", "ranksvm"]
        assert np.isfinite(ranker.predict(DATA.test)).all()
