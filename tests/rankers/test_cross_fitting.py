"""Cross-fitting: every ranker on parts of the queries in turn, one round for all, one model of all."""

import errno

import numpy as np
import pytest

import mcrank
from mcrank.data.folds import parts_by_id
from mcrank.errors import DataError, OptionError
from mcrank.rankers.registry import RANKERS, from_bytes, ranker_class, to_bytes
from tests.rankers.data import interrupt_after
from tests.rankers.test_categorical import BRANDS, frame

DATA = mcrank.make_artificial(n_train=12, n_valid=8, n_test=6, docs_per_query=12, n_features=4, seed=5)
BOTH = mcrank.Dataset.merge([DATA.train, DATA.valid])
FEW = {"n_estimators": 5, "epochs": 3, "num_leaves": 4, "restarts": 1, "n_jobs": 1, "hidden": "4"}
TREES = {"n_estimators": 6, "num_leaves": 4, "min_samples_leaf": 3, "n_jobs": 1}


def untrained(name, **more):
    kind = ranker_class(name)
    if name == "custom":
        pytest.skip("needs a loss of its own")
    options = {k: v for k, v in (FEW | more).items() if k in kind.declared_options}
    return kind(**options | ({"members": "best-feature,ranksvm"} if name == "blend" else {}))


@pytest.mark.parametrize("name", sorted(RANKERS))
def test_every_ranker(name):
    ranker = untrained(name).fit(DATA.train, valid=DATA.valid, folds=2)
    assert np.isfinite(ranker.predict(DATA.test)).all()
    again = from_bytes(to_bytes(ranker))
    assert again.predict(DATA.test).tobytes() == ranker.predict(DATA.test).tobytes()
    more = untrained(name, n_jobs=3).fit(DATA.train, valid=DATA.valid, folds=2)
    assert to_bytes(more) == to_bytes(ranker)
    again.set_params(n_jobs=1).fit(DATA.train, valid=DATA.valid, folds=2)
    assert to_bytes(again) == to_bytes(ranker)
    if name != "blend":
        assert ranker.oof_scores_.shape == (BOTH.n_rows,)
        measured = mcrank.NDCG(k=10).on(BOTH).mean(ranker.oof_scores_)
        assert ranker.history_["ndcg@10"][ranker.best_round_ - 1] == pytest.approx(measured, abs=0.02)
        assert ranker.provenance_["cross_fitting"] == {"folds": 2}


@pytest.mark.parametrize("name", ["lambdamart", "regression", "rankboost", "frank"])
def test_the_model_is_the_mean_of_fits_that_held_a_part_out(name):
    ranker = untrained(name).fit(BOTH, folds=3)
    part = parts_by_id(BOTH, 3)
    scores = []
    for number in range(3):
        alone = untrained(name, n_estimators=ranker.best_round_).fit(BOTH.select(part != number))
        out = BOTH.select(part == number)
        scores.append(alone.predict(DATA.test))
        rows = np.repeat(part == number, BOTH.sizes)
        np.testing.assert_allclose(ranker.oof_scores_[rows], alone.predict(out), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ranker.predict(DATA.test), np.mean(scores, axis=0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("hidden", ["3", "4,3", "2,3,2"])
def test_the_mean_of_nets_is_one_net(hidden):
    from mcrank.rankers.average import average
    from mcrank.scorers.net import Net, layer_sizes, n_weights
    from mcrank.scorers.scaling import Scaling

    stream = np.random.default_rng(3)
    X = stream.normal(size=(20, 4)).astype(np.float32)
    sizes, scaling = layer_sizes(4, hidden, "hidden"), Scaling.fit(X, "zscore")
    nets = [Net(sizes, "tanh", stream.normal(size=n_weights(sizes)), scaling) for _ in range(3)]
    mean = np.mean([net.raw(X) for net in nets], axis=0)
    np.testing.assert_allclose(average(nets, 0).raw(X), mean, rtol=1e-12, atol=1e-12)


def test_the_order_of_queries_changes_no_fold_and_no_score():
    order = np.random.default_rng(0).permutation(BOTH.n_queries)
    mixed = BOTH.select(order)
    part = parts_by_id(BOTH, 4)
    assert parts_by_id(mixed, 4).tolist() == part[order].tolist()
    assert np.bincount(part).tolist() == [5, 5, 5, 5]
    models = [to_bytes(mcrank.McRank(**TREES).fit(data, folds=4)) for data in (BOTH, mixed)]
    assert models[0] == models[1]


def test_rows_come_back_in_the_order_of_the_caller():
    order = np.empty(BOTH.n_rows, dtype=int)  # queries mixed, the rows of each in their order
    places = np.argsort(np.random.default_rng(1).permutation(BOTH.qid), kind="stable")
    order[places] = np.argsort(BOTH.qid, kind="stable")
    mixed = mcrank.Dataset(BOTH.X[order], BOTH.y[order], BOTH.qid[order])
    one, other = (mcrank.RegressionRanker(**TREES).fit(data, folds=2) for data in (BOTH, mixed))
    assert other.oof_scores_.tobytes() == one.oof_scores_[order].tobytes()


def test_queries_of_the_same_id_in_both_parts_stay_two():
    twin = mcrank.Dataset(DATA.train.X[::-1], DATA.train.y[::-1], DATA.train.qid[::-1])
    ranker = mcrank.RegressionRanker(**TREES).fit(DATA.train, valid=twin, folds=2)
    assert ranker.provenance_["data"]["queries"] == 2 * DATA.train.n_queries
    assert len(ranker.oof_scores_) == 2 * DATA.train.n_rows


def test_categories_stay_categories_where_queries_of_both_parts_have_the_same_id():
    (table, grades, qid), (table2, grades2, qid2) = frame(), frame(seed=2, rows=200)
    ranker = mcrank.LambdaMART(**TREES, min_data_per_group=1, max_cat_to_onehot=1)
    same = ranker.fit(table, grades, qid=qid, valid=(table2, grades2, qid2), folds=2)
    assert same.categories_ == {0: tuple(BRANDS)}
    of_brands = same.forest_.feature == 0
    assert of_brands.any()
    assert (same.forest_.category_set[of_brands] >= 0).all()


@pytest.mark.parametrize("kind", [mcrank.McRank, mcrank.OrdinalMcRank])
def test_probabilities_are_corrected_on_all_held_out_rows(kind):
    ranker = kind(**TREES).fit(BOTH, folds=4)
    plain = kind(**TREES, calibrate=False).fit(BOTH, folds=4)
    assert ranker.correction_ is not None
    assert plain.correction_ is None
    assert ranker.oof_scores_.mean() == pytest.approx(BOTH.y.mean(), rel=0.02)
    assert ranker.calibration(DATA.test).log_loss < plain.calibration(DATA.test).log_loss + 0.01


def test_a_grade_that_one_part_alone_has():
    y = BOTH.y.copy()
    y[BOTH.offsets[3]] = 9.0
    rare = mcrank.Dataset(BOTH.X, y, BOTH.qid)
    for kind in (mcrank.McRank, mcrank.OrdinalMcRank):
        ranker = kind(**TREES).fit(rare, folds=4)
        assert ranker.grades_.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 9.0]
        assert ranker.predict_proba(DATA.test)[:, 5].max() < 0.2


def test_early_stopping_goes_by_all_held_out_queries():
    ranker = mcrank.LambdaMART(**TREES | {"n_estimators": 60}, early_stopping_rounds=5).fit(BOTH, folds=2)
    curve = ranker.history_["ndcg@10"]
    assert ranker.n_rounds_ == len(curve)
    assert ranker.best_round_ == int(np.argmax(curve)) + 1
    assert ranker.n_rounds_ in (60, ranker.best_round_ + 5)
    assert ranker.forest_.n_trees == 2 * ranker.best_round_
    assert len(list(ranker.staged_predict(DATA.test))) == ranker.best_round_


@pytest.mark.parametrize("kind", [mcrank.McRank, mcrank.LambdaMART])
def test_it_can_be_gone_on_with(kind):
    first = kind(**TREES | {"n_estimators": 3}).fit(BOTH, folds=4)
    more = kind(**TREES | {"n_estimators": 6 - first.best_round_}).fit(BOTH, folds=4, init_model=first)
    longer = kind(**TREES).fit(BOTH, folds=4)
    assert to_bytes(more) == to_bytes(longer)
    for folds, words in ((None, "init_model .* is the mean of 4 fits, .* give folds=4"), (2, "init_model")):
        with pytest.raises(OptionError, match=words):
            kind(**TREES).fit(BOTH, folds=folds, init_model=first)
    with pytest.raises(OptionError, match=r"warm_start=True, .* is the mean of 4 fits"):
        first.set_params(warm_start=True).fit(BOTH)


def test_a_callback_and_ctrl_c_end_all_fits():
    events = []
    ranker = mcrank.McRank(**TREES).fit(BOTH, folds=2, callback=lambda e: events.append(e) or e.round == 3)
    assert [e.round for e in events] == [1, 2, 3]
    assert (ranker.n_rounds_, events[0].rounds) == (3, 6)
    assert [e.scores["ndcg@10"] for e in events] == ranker.history_["ndcg@10"]

    with pytest.warns(UserWarning, match="interrupted"):
        ranker = mcrank.McRank(**TREES).fit(BOTH, folds=2, callback=interrupt_after(3))
    assert ranker.n_rounds_ == 2
    assert ranker.interrupted_

    def at_once(event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mcrank.McRank(**TREES).fit(BOTH, folds=2, callback=at_once)


def test_what_goes_wrong_is_raised_once_and_leaves_no_thread():
    import threading

    before = threading.active_count()

    def fails(event):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        mcrank.McRank(**TREES).fit(BOTH, folds=3, callback=fails)
    with pytest.raises(DataError, match="max_pairs"):
        mcrank.LambdaMART(**TREES, max_pairs=1).fit(BOTH, folds=3)
    assert threading.active_count() <= before + 3  # threads that kernels share stay


@pytest.mark.parametrize("folds", [1, 0, -2, 1001, 2.5, "4", True])
def test_folds_out_of_bounds(folds):
    with pytest.raises(OptionError, match=r"folds of McRank\.fit"):
        mcrank.McRank(**TREES).fit(BOTH, folds=folds)


def test_too_few_queries_and_scores_to_start_from():
    with pytest.raises(DataError, match="as many queries, got 12"):
        mcrank.McRank(**TREES).fit(DATA.train, folds=13)
    with pytest.raises(OptionError, match="init_score"):
        mcrank.LambdaMART(**TREES).fit(BOTH, folds=2, init_score=np.zeros(BOTH.n_rows))


class Cut(Exception):
    """The process that trained is gone."""


def killed_after(rounds):
    def callback(event):
        if event.round > rounds:
            raise Cut

    return callback


@pytest.mark.slow
@pytest.mark.parametrize("kind", [mcrank.McRank, mcrank.LambdaMART, mcrank.OrdinalMcRank])
def test_killed_and_resumed_is_one_fit(kind, tmp_path, monkeypatch):
    from mcrank.boosting.boost import Booster

    whole = kind(**TREES).fit(BOTH, folds=4)
    journal = tmp_path / "rounds"
    with pytest.raises(Cut):
        kind(**TREES).fit(BOTH, folds=4, journal=journal, callback=killed_after(4))
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["rounds.1", "rounds.2", "rounds.3", "rounds.4"]
    files[2].write_bytes(files[2].read_bytes()[:-5])  # a record that was never finished
    grown, round_ = [], Booster.round
    monkeypatch.setattr(Booster, "round", lambda self, number: grown.append(number) or round_(self, number))
    for jobs in (1, 3):
        again = kind(**TREES | {"n_jobs": jobs}).fit(BOTH, folds=4, journal=journal, resume=True)
        assert to_bytes(again) == to_bytes(whole)
        assert again.history_ == whole.history_
        assert again.oof_scores_.tobytes() == whole.oof_scores_.tobytes()
    assert min(grown) >= 3  # what was kept is not grown again
    assert grown.count(6) == 8  # of a finished fit only the last round


@pytest.mark.slow
def test_a_fit_that_was_about_to_stop_stops_where_it_would_have(tmp_path):
    options = TREES | {"n_estimators": 40, "early_stopping_rounds": 3}
    whole = mcrank.LambdaMART(**options).fit(BOTH, folds=2, journal=tmp_path / "a")
    assert whole.n_rounds_ < 40
    again = mcrank.LambdaMART(**options).fit(BOTH, folds=2, journal=tmp_path / "a", resume=True)
    assert (again.n_rounds_, to_bytes(again)) == (whole.n_rounds_, to_bytes(whole))


@pytest.mark.parametrize("what", ["loss", "measure"])
def test_a_journal_of_another_function_of_the_same_name_is_refused(tmp_path, what):
    def fit(number, **more):
        options = {
            "loss": lambda scores, grades, offsets: (number * (scores - grades), np.ones(len(scores))),
            "measure": mcrank.CustomMeasure(lambda scores, grades: number * grades[0], title="top"),
        }
        known = mcrank.CustomRanker(loss=options["loss"] if what == "loss" else "listnet")
        known.set_params(**TREES, measure=options["measure"] if what == "measure" else "ndcg")
        return known.fit(BOTH, folds=2, journal=tmp_path / "rounds", **more)

    first = fit(0.5)
    assert to_bytes(fit(0.5, resume=True)) == to_bytes(first)
    with pytest.raises(OptionError, match="another training"):
        fit(0.25, resume=True)


def test_a_journal_of_another_training_and_one_that_nobody_asked_for_are_refused(tmp_path):
    path = tmp_path / "rounds"
    mcrank.LambdaMART(**TREES).fit(BOTH, folds=2, journal=path)
    with pytest.raises(OptionError, match="is there already"):
        mcrank.LambdaMART(**TREES).fit(BOTH, folds=2, journal=path)
    for options, data, folds in (
        (TREES | {"num_leaves": 3}, BOTH, 2),
        (TREES, DATA.train, 2),
        (TREES, BOTH, 3),
    ):
        with pytest.raises(OptionError, match="another training"):
            mcrank.LambdaMART(**options).fit(data, folds=folds, journal=path, resume=True)
    with pytest.raises(OptionError, match="resume needs journal"):
        mcrank.LambdaMART(**TREES).fit(BOTH, folds=2, resume=True)
    with pytest.raises(OptionError, match="boosted trees only"):
        mcrank.RankSVM(n_jobs=1).fit(BOTH, folds=2, journal=tmp_path / "other")
    with pytest.raises(OptionError, match="scorer='trees'"):
        mcrank.FRank(n_jobs=1).fit(BOTH, folds=2, journal=tmp_path / "other")
    assert not list(tmp_path.glob("other*"))
    with pytest.raises(OptionError, match="is for folds"):
        mcrank.LambdaMART(**TREES).fit(BOTH, journal=path)


def test_a_full_disk_names_the_journal(tmp_path, monkeypatch):
    def full(path, mode):
        raise OSError(errno.ENOSPC, "No space left on device")  # as of a write: without a name

    monkeypatch.setattr("mcrank.scale.journal.open", full, raising=False)
    with pytest.raises(OSError, match=r"No space left on device: .*rounds\.1") as told:
        mcrank.LambdaMART(**TREES).fit(BOTH, folds=2, journal=tmp_path / "rounds")
    assert told.value.errno == errno.ENOSPC


@pytest.mark.parametrize("options", [{"dart": True, "skip_drop": 0.0}, {"subsample": 0.5, "colsample": 0.5}])
def test_sampling_and_dart_resume_to_the_same_model(options, tmp_path):
    whole = mcrank.LambdaMART(**TREES, **options).fit(BOTH, folds=2)
    with pytest.raises(Cut):
        mcrank.LambdaMART(**TREES, **options).fit(
            BOTH, folds=2, journal=tmp_path / "a", callback=killed_after(3)
        )
    again = mcrank.LambdaMART(**TREES, **options).fit(BOTH, folds=2, journal=tmp_path / "a", resume=True)
    assert to_bytes(again) == to_bytes(whole)


def test_it_goes_out_as_one_forest(tmp_path):
    ranker = mcrank.LambdaMART(**TREES).fit(BOTH, folds=4)
    (path,) = ranker.export(tmp_path / "model.txt", to="lightgbm")
    assert path.read_text().count("\nTree=") == ranker.forest_.n_trees == 4 * ranker.best_round_
    again = mcrank.from_lightgbm(path).predict(DATA.test)
    np.testing.assert_allclose(again, ranker.predict(DATA.test), rtol=1e-12, atol=1e-12)
