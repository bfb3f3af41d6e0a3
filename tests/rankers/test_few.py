"""What `fit` says of held-out data that are too small to choose by, or to correct probabilities on."""

import warnings

import numpy as np
import pytest

import mcrank
from mcrank.rankers.few import FEW_QUERIES
from mcrank.rounds import Shown
from mcrank.stats import smallest_difference

SMALL = {"n_estimators": 4, "num_leaves": 4, "n_jobs": 1}
CHOSE, CORRECTED = "chose by the measure on held-out data", "corrected probabilities on held-out rows"


def parts(n_valid, seed=3):
    return mcrank.make_artificial(30, n_valid, 1, docs_per_query=20, n_features=5, seed=seed)


def said(function):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return [str(one.message) for one in found if CHOSE in str(one.message) or CORRECTED in str(one.message)]


@pytest.mark.parametrize("kind", [mcrank.LambdaMART, mcrank.McRank, mcrank.RankNet])
def test_few_validation_queries_are_told_with_what_they_show(kind):
    train, valid, _ = parts(8)
    options = {k: v for k, v in {**SMALL, "epochs": 3}.items() if k in kind.declared_options}
    with pytest.warns(
        UserWarning, match=rf"{kind.__name__}\.fit {CHOSE}, whose 8 queries show differences above"
    ):
        kind(**options).fit(train, valid=valid)


def test_enough_queries_one_round_and_no_validation_data_are_not_spoken_of():
    train, valid, _ = parts(FEW_QUERIES)
    assert said(lambda: mcrank.LambdaMART(**SMALL).fit(train, valid=valid)) == []
    few = parts(8).valid
    assert said(lambda: mcrank.LambdaMART(**SMALL | {"n_estimators": 1}).fit(train, valid=few)) == []
    assert said(lambda: mcrank.LambdaMART(**SMALL).fit(train)) == []


def test_folds_are_told_of_all_queries_together():
    train, valid, _ = parts(8)
    assert said(lambda: mcrank.LambdaMART(**SMALL).fit(train, valid=valid, folds=2)) == []
    (words,) = said(lambda: mcrank.LambdaMART(**SMALL).fit(valid, folds=2))
    assert "whose 8 queries" in words
    assert "folds" not in words


def test_a_blend_speaks_once_for_its_members():
    train, valid, _ = parts(8)
    found = said(lambda: mcrank.Blend(members="mcrank,ranksvm", n_jobs=1, folds=None).fit(train, valid=valid))
    assert [words.split(".")[0] for words in found] == ["Blend"]


def test_grades_of_few_held_out_rows_are_named_with_their_number():
    train, valid, _ = parts(40)
    top = valid.y == 4
    y = np.where(top & (np.cumsum(top) > 3), 3.0, valid.y)
    rare = mcrank.Dataset(valid.X, y, valid.qid)
    for kind in (mcrank.McRank, mcrank.OrdinalMcRank):
        with pytest.warns(UserWarning, match=rf"{kind.__name__}\.fit {CORRECTED}, of which grade 4 has 3:"):
            kind(**SMALL).fit(train, valid=rare)
        assert said(lambda kind=kind: kind(**SMALL, calibrate=False).fit(train, valid=rare)) == []


def test_the_smallest_difference_is_that_of_the_paired_test():
    stream = np.random.default_rng(1)
    for n in (6, 12, 20, 29):
        best, last = stream.random(n), stream.random(n)
        shown = Shown()
        shown.take(np.append(best, np.nan), True)
        shown.take(np.append(last, np.nan), False)
        assert shown.queries == n
        assert shown.smallest_difference == pytest.approx(smallest_difference(best, last), rel=0.1)


@pytest.mark.parametrize("folds", [None, 2])
def test_queries_that_weigh_nothing_show_nothing(folds):
    """What eight queries could show is not more because others, which choose nothing, are there too."""
    train, valid, _ = parts(40)
    weight = np.where(np.arange(40) < 8, 2.0, 0.0)
    heavy = mcrank.Dataset(valid.X, valid.y, valid.qid, query_weight=weight)
    given = {"folds": folds} if folds else {"valid": heavy}
    (words,) = said(lambda: mcrank.LambdaMART(**SMALL).fit(heavy if folds else train, **given))
    assert "whose 8 queries" in words


def test_rounds_that_are_all_the_same_show_nothing():
    shown = Shown()
    assert (shown.queries, shown.smallest_difference) == (0, None)
    shown.take(np.ones(5), True)
    assert shown.smallest_difference is None


def test_searches_and_curves_are_silent():
    from mcrank.tuning.space import space_of
    from mcrank.tuning.trial import Trials

    data = parts(20).valid
    trials = Trials(data, space_of("mcrank", SMALL | {"n_estimators": 3}, {}), 2, 0, 1)
    assert said(lambda: trials.run(0, {})) == []
    options = {"n_estimators": 3}
    curve = lambda: mcrank.learning_curve(data, "regression", shares=(0.5, 1.0), repeats=1, options=options)  # noqa: E731
    assert said(curve) == []


@pytest.mark.parametrize("kind", [mcrank.McRank, mcrank.LambdaMART, mcrank.RankSVM, mcrank.AdaRank])
@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([0, 0, 0, 0], "every grade is 0"),
        ([2, 2, 0, 0], "of each query all grades are equal"),
        ([0, 0, 0, 1], ""),
    ],
)
def test_data_that_no_order_can_be_learned_from_are_told_of(kind, y, words):
    data = mcrank.Dataset(np.arange(8.0).reshape(4, 2), y, [1, 1, 2, 2])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        kind(n_jobs=1).fit(data)
    told = [str(one.message) for one in found if "no query has rows of different grades" in str(one.message)]
    assert len(told) == bool(words)
    assert all(one.startswith(f"{kind.__name__}.fit got ") and f"({words})" in one for one in told)
    assert all(one.filename == __file__ for one in found)
