"""Probabilities corrected on held-out queries: what is corrected, kept, saved, continued and refused."""

from dataclasses import replace

import numpy as np
import pytest

import mcrank
from mcrank.container import pack, unpack
from mcrank.errors import DataError, ModelFileError, OptionError
from mcrank.rankers.registry import from_bytes, to_bytes
from mcrank.sums import ALONE
from mcrank.training.correcting import rows_used
from mcrank.training.shares import grade_shares

SMALL = {"n_estimators": 6, "num_leaves": 4, "n_jobs": 1}
KINDS = [
    (mcrank.McRank, {}),
    (mcrank.McRank, {"init": "zero"}),
    (mcrank.McRank, {"base_class": "adaptive"}),
    (mcrank.OrdinalMcRank, {}),
]


@pytest.fixture(scope="module")
def parts():
    return mcrank.make_artificial(n_train=30, n_valid=20, n_test=20, docs_per_query=20, n_features=5, seed=3)


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_held_out_rows_correct_probabilities(parts, kind, options):
    train, valid, test = parts
    plain = kind(**SMALL, **options, calibrate=False).fit(train, valid=valid)
    ranker = kind(**SMALL, **options).fit(train, valid=valid)
    assert plain.correction_ is None
    assert plain.forest_.value.tobytes() == ranker.learned_.value.tobytes()
    assert ranker.best_round_ == plain.best_round_
    assert ranker.calibration(valid).log_loss < plain.calibration(valid).log_loss
    # The mean grade is that of held-out rows which weigh as if they had the shares of all queries, and next
    # to nothing is believed of how both differ.
    n, codes = len(ranker.grades_), [ranker._codes(part.y) for part in (train, valid)]
    shares = grade_shares(codes[0], n, None, train.offsets, ALONE)
    weight = rows_used(codes[1], n, None, valid.offsets, ALONE, shares)[1]
    mean, expected = (
        np.average(each, weights=weight) for each in (valid.y, ranker.predict_proba(valid) @ ranker.grades_)
    )
    assert mean == pytest.approx(np.concatenate([train.y, valid.y]).mean(), rel=0.002)
    assert abs(expected / mean - 1) < 0.03
    found, before = ranker.calibration(test), plain.calibration(test)
    assert found.log_loss < before.log_loss
    assert found.log_loss < found.constant_log_loss
    raw = ranker.correction_.applied(plain._raw(test, "x"), ranker.head_)
    np.testing.assert_allclose(ranker.predict_proba(test), ranker.head_.proba(raw).T, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_correction_leaves_rows_of_boundaries_in_their_order(seed):
    """The promise: whatever held-out rows say, OrdinalMcRank ranks as it was learned."""
    levels = [(0.5, 0.3, 0.2), (0.26, 0.36, 0.285, 0.076, 0.019), (0.88, 0.09, 0.03), (0.9, 0.1)][seed]
    train, valid, test = mcrank.make_artificial(
        n_train=30, n_valid=10, n_test=60, docs_per_query=20, n_features=5, levels=levels, seed=seed
    )
    # Held-out grades upside down say that all is wrong.
    for held_out in (valid, mcrank.Dataset(valid.X, valid.y.max() - valid.y, valid.qid)):
        ranker = mcrank.OrdinalMcRank(n_estimators=20, num_leaves=4).fit(train, valid=held_out)
        plain = ranker.head_.as_learned.rank(ranker.learned_.raw(test.X))
        assert ranker.correction_ is not None
        assert (np.diff(ranker.predict(test)[np.argsort(plain)]) >= 0).all()


def test_boundaries_have_the_odds_of_grades_at_their_score(parts):
    """The promise: probabilities are right where boundaries learned apart are too sure, the order stays."""
    train, valid, test = mcrank.make_artificial(
        n_train=60, n_valid=40, n_test=200, docs_per_query=20, n_features=10, seed=1
    )
    ranker = mcrank.OrdinalMcRank(n_estimators=150, early_stopping_rounds=50, n_jobs=1).fit(
        train, valid=valid
    )
    assert ranker.head_.odds is ranker.correction_.odds
    header, arrays = unpack(to_bytes(ranker), "the model")
    del header["meta"]["correction"]["odds"]
    older = from_bytes(pack(header, arrays))  # as files of earlier versions are, and go on to be
    assert older.head_.odds is None
    _assert_mean_in_old_order(ranker, older, test)
    found, before = ranker.calibration(test), older.calibration(test)
    assert found.log_loss < before.log_loss - 0.03
    assert found.top.error < 0.02 + found.top.noise < before.top.error
    assert abs(found.mean_expected / found.mean_grade - 1) < 0.05
    # Grades are the likelier high, the higher the score is.
    order = np.argsort(ranker.predict(test))
    assert (np.diff(np.cumsum(ranker.predict_proba(test)[order], axis=1), axis=0) < 1e-12).all()


def _assert_mean_in_old_order(ranker, older, data):
    """The score is the mean of the probabilities, for every T, and ranks as what was learned."""
    p = ranker.predict_proba(data)
    for relevance, worth in (("grade", ranker.grades_), ("gain", np.exp2(ranker.grades_) - 1)):
        np.testing.assert_allclose(ranker.predict(data, relevance=relevance), p @ worth, rtol=1e-12)
    assert np.array_equal(np.argsort(ranker.predict(data)), np.argsort(older.predict(data)))
    assert ranker.score(data) == older.score(data)


@pytest.mark.parametrize("options", [{}, {"base_class": "adaptive"}])
def test_classes_keep_a_quarter_of_what_was_learned(options):
    """The promise: rows of such a score say more of the grades than few held-out rows say of each class."""
    train, valid, test = mcrank.make_artificial(
        n_train=60, n_valid=40, n_test=200, docs_per_query=20, n_features=10, seed=1
    )
    ranker = mcrank.McRank(n_estimators=150, early_stopping_rounds=50, n_jobs=1, **options).fit(
        train, valid=valid
    )
    assert ranker.head_.odds.learned == 0.25
    header, arrays = unpack(to_bytes(ranker), "the model")
    del header["meta"]["correction"]["odds"]
    older = from_bytes(pack(header, arrays))
    _assert_mean_in_old_order(ranker, older, test)
    raw = ranker.scorer_.raw(test.X)
    by_score = replace(ranker.head_.odds, learned=0.0).proba(older.head_.above(raw)).T
    found = 0.25 * older.predict_proba(test) + 0.75 * by_score
    np.testing.assert_allclose(ranker.predict_proba(test), found, atol=1e-15)
    np.testing.assert_allclose(older.predict_proba(test) @ ranker.grades_, older.predict(test), rtol=1e-12)
    now, before = ranker.calibration(test), older.calibration(test)
    assert now.expected.error < 0.8 * before.expected.error
    assert now.log_loss < before.log_loss - 0.02
    assert abs(now.mean_expected / now.mean_grade - 1) < 0.05


@pytest.mark.parametrize("options", [{}, {"base_class": "adaptive"}])
def test_the_likeliest_grade_is_as_likely_as_said(options):
    """Of one draw chance alone decides by which side of .02 it comes out: in the mean of six."""
    above = []
    for seed in range(1, 7):
        train, valid, test = mcrank.make_artificial(
            n_train=60, n_valid=40, n_test=200, docs_per_query=20, n_features=10, seed=seed
        )
        ranker = mcrank.McRank(n_estimators=150, early_stopping_rounds=50, n_jobs=1, **options)
        found = ranker.fit(train, valid=valid).calibration(test)
        above.append(found.top.error - found.top.noise)
        assert found.log_loss < found.constant_log_loss
        assert abs(found.mean_expected / found.mean_grade - 1) < 0.05
    assert np.mean(above) < 0.02


@pytest.mark.parametrize("kind", [mcrank.McRank, mcrank.OrdinalMcRank])
def test_odds_are_for_three_grades_and_more(parts, kind):
    train, valid, _ = parts
    two = [mcrank.Dataset(d.X, d.y > 1, d.qid) for d in (train, valid)]
    assert kind(**SMALL).fit(two[0], valid=two[1]).head_.odds is None
    assert kind(**SMALL).fit(train, folds=2).head_.odds is not None
    assert kind(**SMALL).fit(train).head_.odds is None
    first = kind(**SMALL).fit(train, valid=valid)
    assert first.head_.odds is not None
    assert kind(**SMALL).fit(train, init_model=first).head_.odds is None


def test_without_held_out_queries_nothing_is_corrected(parts):
    train, _, _ = parts
    ranker = mcrank.McRank(**SMALL).fit(train)
    assert ranker.correction_ is None
    assert ranker.forest_ is ranker.learned_
    assert b"correction" not in to_bytes(ranker)


def test_the_paper_corrects_nothing(parts):
    train, valid, _ = parts
    ranker = mcrank.McRank(preset="paper", **SMALL).fit(train, valid=valid)
    assert ranker.correction_ is None
    assert ranker.options_["init"] == "zero"


def test_scores_to_start_from_are_no_part_of_the_model_and_leave_it_uncorrected(parts):
    train, valid, _ = parts
    start = {"init_score": np.zeros((train.n_rows, 5)), "valid_init_score": np.zeros((valid.n_rows, 5))}
    assert mcrank.McRank(**SMALL).fit(train, valid=valid, **start).correction_ is None


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_saved_and_loaded(parts, kind, options):
    train, valid, test = parts
    ranker = kind(**SMALL, **options).fit(train, valid=valid)
    content = to_bytes(ranker)
    again = from_bytes(content)
    assert to_bytes(again) == content
    assert again.predict_proba(test).tobytes() == ranker.predict_proba(test).tobytes()
    assert again.correction_.to_json() == ranker.correction_.to_json()


@pytest.mark.parametrize(
    "correction",
    [
        [], {}, 3, {"slope": 1.0}, {"slope": 1.0, "shifts": [0.0]}, {"slope": 0.0, "shifts": [0.0] * 5},
        {"slope": -1.0, "shifts": [0.0] * 5}, {"slope": 1e7, "shifts": [0.0] * 5},
        {"slope": 1, "shifts": [0.0] * 5}, {"slope": True, "shifts": [0.0] * 5},
        {"slope": 1.0, "shifts": ["0"] * 5}, {"slope": 1.0, "shifts": "00000"},
        {"slope": 1.0, "shifts": [0.0] * 5, "more": 1}, None,
        {"slopes": [1.0] * 5}, {"slopes": [1.0] * 4, "shifts": [0.0] * 5},
        {"slopes": 1.0, "shifts": [0.0] * 5}, {"slopes": None, "shifts": [0.0] * 5},
        {"slopes": [1.0, 1.0, 1.0, 1.0, 0.0], "shifts": [0.0] * 5},
        {"slopes": [1.0, 1.0, 1.0, 1.0, 2], "shifts": [0.0] * 5},
        {"slopes": [1.0, 1.0, 1.0, 1.0, 1e7], "shifts": [0.0] * 5},
        {"slope": 1.0, "slopes": [1.0] * 5, "shifts": [0.0] * 5},
    ],
)  # fmt: skip
def test_a_file_is_not_believed(parts, correction):
    train, valid, _ = parts
    header, arrays = unpack(to_bytes(mcrank.McRank(**SMALL).fit(train, valid=valid)), "the model")
    header["meta"]["correction"] = correction
    with pytest.raises(ModelFileError, match="usable"):
        from_bytes(pack(header, arrays))


def test_one_slope_for_all_is_said_once(parts):
    train, valid, test = parts
    ranker = mcrank.McRank(**SMALL).fit(train, valid=valid)
    header, arrays = unpack(to_bytes(ranker), "the model")
    shifts = header["meta"]["correction"]["shifts"]
    assert len(set(header["meta"]["correction"]["slopes"])) == 5
    header["meta"]["correction"] = {"slope": 0.5, "shifts": shifts}  # as every file of earlier versions
    older = from_bytes(pack(header, arrays))
    assert to_bytes(from_bytes(to_bytes(older))) == to_bytes(older)
    raw = 0.5 * ranker.learned_.raw(test.X) + np.array(shifts)[:, None]
    np.testing.assert_allclose(older.predict_proba(test), older.head_.proba(raw).T, atol=1e-12)


def test_pairs_with_a_base_grade_have_one_slope(parts):
    train, valid, _ = parts
    ranker = mcrank.McRank(**SMALL, base_class="adaptive").fit(train, valid=valid)
    header, arrays = unpack(to_bytes(ranker), "the model")
    slope = header["meta"]["correction"].pop("slope")
    header["meta"]["correction"]["slopes"] = [slope + 0.5, *[slope] * 4]
    with pytest.raises(ModelFileError, match="one for all, of pairs"):
        from_bytes(pack(header, arrays))


def test_leaves_that_only_the_correction_makes_infinite_are_refused(parts):
    train, valid, _ = parts
    header, arrays = unpack(to_bytes(mcrank.McRank(**SMALL).fit(train, valid=valid)), "the model")
    header["meta"]["correction"]["slopes"][0] = 1e6
    arrays["value"] = np.where(arrays["feature"] < 0, 1e301, 0.0)
    with pytest.raises(ModelFileError, match="finite"):
        from_bytes(pack(header, arrays))


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_going_on_is_one_longer_fit(parts, kind, options):
    train, valid, _ = parts
    longer = kind(**SMALL | {"n_estimators": 8}, **options).fit(train, valid=valid)
    first = kind(**SMALL | {"n_estimators": 3}, **options).fit(train, valid=valid)
    more = kind(**SMALL | {"n_estimators": 8 - first.best_round_}, **options)
    again = more.fit(train, valid=valid, init_model=first)
    assert to_bytes(again) == to_bytes(longer)
    assert again.forest_.value.tobytes() == longer.forest_.value.tobytes()


def test_refitted_leaves_keep_the_correction(parts):
    train, valid, test = parts
    ranker = mcrank.OrdinalMcRank(**SMALL).fit(train, valid=valid)
    same = ranker.refit(train, decay=0.0)
    assert same.predict(test).tobytes() == ranker.predict(test).tobytes()
    assert ranker.refit(test, decay=0.5).correction_ is ranker.correction_


def test_weights_and_threads(parts):
    train, valid, test = parts
    weighted = mcrank.Dataset(valid.X, valid.y, valid.qid, weight=np.where(valid.y > 1, 3.0, 1.0))
    found = [
        mcrank.McRank(**SMALL | {"n_jobs": jobs}).fit(train, valid=weighted).predict(test) for jobs in (1, 2)
    ]
    assert found[0].tobytes() == found[1].tobytes()
    plain = mcrank.McRank(**SMALL).fit(train, valid=valid)
    assert found[0].mean() > plain.predict(test).mean()


def test_one_grade_and_two(parts):
    train = parts[0]
    one = mcrank.Dataset(train.X, np.ones(train.n_rows), train.qid)
    assert mcrank.McRank(**SMALL).fit(one).correction_ is None
    binary = [mcrank.Dataset(d.X, d.y > 1, d.qid) for d in parts]
    for kind in (mcrank.McRank, mcrank.OrdinalMcRank):
        ranker = kind(**SMALL).fit(binary[0], valid=binary[1])
        assert len(ranker.correction_.shifts) == 1
        assert ranker.calibration(binary[2]).log_loss < ranker.calibration(binary[2]).constant_log_loss


def test_calibration_takes_rows_without_queries(parts):
    train, valid, test = parts
    ranker = mcrank.McRank(**SMALL).fit(train, valid=valid)
    assert ranker.calibration(test.X, test.y).to_dict() == ranker.calibration(test).to_dict()
    with pytest.raises(OptionError, match="calibration requires y"):
        ranker.calibration(test.X)
    for wrong in (test.y[:3], 2):
        with pytest.raises(DataError, match="y of Dataset must have one"):
            ranker.calibration(test.X, wrong)


@pytest.mark.parametrize("kind", [mcrank.McRank, mcrank.LambdaMART, mcrank.RankBoost])
def test_stages(parts, kind):
    train, valid, test = parts
    options = {"n_estimators": 5, "n_jobs": 1}
    ranker = kind(**options).fit(train, valid=valid)
    stages = list(ranker.staged_predict(test))
    assert len(stages) == ranker.best_round_
    assert stages[-1].tobytes() == ranker.predict(test).tobytes()
    for rounds, scores in enumerate(stages, start=1):
        assert scores.tobytes() == ranker.predict(test, rounds=rounds).tobytes()
    assert len(np.unique(ranker.predict(test, rounds=0))) == 1
    for wrong in (ranker.best_round_ + 1, -1, 1.5, "all"):
        with pytest.raises(OptionError, match="rounds"):
            ranker.predict(test, rounds=wrong)


def test_stages_of_probabilities_and_of_what_has_none(parts):
    train, valid, test = parts
    ranker = mcrank.OrdinalMcRank(**SMALL).fit(train, valid=valid)
    assert ranker.predict_proba(test, rounds=1).shape == (test.n_rows, 5)
    with pytest.raises(OptionError, match="rounds"):
        mcrank.RankSVM(n_jobs=1).fit(train).predict(test, rounds=1)


def test_stages_come_in_the_order_of_the_caller(parts):
    train, _, test = parts
    order = np.random.default_rng(1).permutation(test.n_rows)
    mixed = mcrank.Dataset(test.X[order], test.y[order], test.qid[order])
    ranker = mcrank.LambdaMART(n_estimators=3, n_jobs=1).fit(train)
    for one, other in zip(ranker.staged_predict(test), ranker.staged_predict(mixed), strict=True):
        assert other.tobytes() == one[order].tobytes()
