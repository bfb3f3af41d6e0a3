"""Pairs: the game between two rows, antisymmetric and additive, and the smallest change that swaps them."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcrank
from mcrank.errors import DataError, OptionError
from mcrank.explain.between import forest_between
from mcrank.explain.profile import forest_profiles, steps_of
from tests.explain.forests import random_forest, random_rows
from tests.explain.models import NAMES, TEST, fitted
from tests.reference.shapley import rows_shapley

EXACT = ["mcrank", "ordinal", "regression", "lambdamart", "rankboost", "ranksvm", "best-feature"]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), features=st.integers(1, 6), leaves=st.integers(1, 20))
def test_between_two_rows_equal_to_all_subsets(seed, features, leaves):
    forest = random_forest(seed, features, 3, leaves)
    a, b = random_rows(seed, 2, features, 0.2)
    expected = rows_shapley(lambda rows: forest.raw(rows)[0], a, b)
    np.testing.assert_allclose(forest_between(forest, a[None], b)[0, 0], expected, rtol=0, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), leaves=st.integers(1, 30))
def test_profiles_are_the_outputs_in_every_interval(seed, leaves):
    forest = random_forest(seed, 4, 5, leaves, outputs=2)
    row = random_rows(seed, 1, 4, 0.2)[0]
    steps = steps_of(forest)
    profiles = forest_profiles(forest, row, steps)
    for f in range(4):
        own = steps.thresholds[steps.offsets[f] : steps.offsets[f + 1]]
        for j in range(len(own) + 1):
            changed = row.copy()
            changed[f] = own[j] if j < len(own) else 100.0
            expected = forest.raw(changed[None]) - forest.raw(row[None])
            at = steps.offsets[f] + f + j
            np.testing.assert_allclose(profiles[:, at], expected[:, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_antisymmetric_and_additive(name):
    ranker = fitted(name)
    for a, b in ((0, 1), (2, 3), (40, 700)):
        there, back = ranker.explain_pair(TEST.X[a], TEST.X[b]), ranker.explain_pair(TEST.X[b], TEST.X[a])
        scores = ranker.predict(TEST.X[[a, b]])
        assert there.scores == pytest.approx(scores.tolist(), abs=1e-12)
        assert sum(there.contributions.values()) == pytest.approx(scores[0] - scores[1], abs=1e-9)
        assert set(there.contributions) == set(TEST.feature_names)
        for feature, value in there.contributions.items():
            assert back.contributions[feature] == pytest.approx(-value, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_equal_features_make_nothing_of_it(name):
    ranker = fitted(name)
    a, b = TEST.X[11].copy(), TEST.X[12]
    a[[0, 3]] = b[[0, 3]]
    found = ranker.explain_pair(a, b).contributions
    assert found["f1"] == found["f4"] == 0.0


def between(value, after):
    """The float32 next to ``after`` on the way from ``value``, and a few more in between."""
    last = np.nextafter(np.float32(after), np.float32(value))
    inside = np.linspace(value, float(last), 7, dtype=np.float32)[1:]
    return [x for x in {*inside.tolist(), float(last)} if x not in (value, after)]


def order(ranker, rows):
    """1 or -1 as the first row is above or below the second, 0 when scores are equal but for rounding."""
    a, b = ranker.predict(rows)
    return 0 if abs(a - b) <= 1e-13 * max(abs(a), abs(b)) else np.sign(a - b)


@pytest.mark.parametrize("name", NAMES)
def test_a_change_as_told_swaps_the_pair_and_a_smaller_one_does_not(name):
    ranker = fitted(name)
    told = 0
    for a, b in [(0, 1), (5, 9), (30, 31), (200, 777)]:
        why = ranker.explain_pair(TEST.X[a], TEST.X[b])
        sign = np.sign(why.difference)
        for change in why.changes:
            rows = TEST.X[[a, b]].copy()
            at = 0 if change.row == "a" else 1
            f = TEST.feature_names.index(change.feature)
            assert change.before == rows[at, f]
            rows[at, f] = change.after
            assert sign * order(ranker, rows) < 0
            told += 1
            if change.exact:
                for value in between(change.before, change.after):
                    rows[at, f] = value
                    assert sign * order(ranker, rows) >= 0
    assert told > 0
    if name in EXACT:
        assert all(change.exact for change in why.changes)


@pytest.mark.parametrize("name", ["regression", "mcrank", "ranksvm"])
def test_a_feature_without_a_change_cannot_swap_the_pair(name):
    ranker = fitted(name)
    stream = np.random.default_rng(0)
    for a, b in ((0, 1), (5, 9), (30, 31)):
        why = ranker.explain_pair(TEST.X[a], TEST.X[b])
        able = {(change.row, change.feature) for change in why.changes}
        for at, row in enumerate("ab"):
            for f, feature in enumerate(TEST.feature_names):
                if (row, feature) in able or np.isnan(TEST.X[[a, b]][at, f]):
                    continue
                rows = np.repeat(TEST.X[[a, b]][None], 200, axis=0)
                rows[:, at, f] = stream.normal(size=200) * 3
                scores = ranker.predict(rows.reshape(400, -1)).reshape(200, 2)
                assert (np.sign(scores[:, 0] - scores[:, 1]) != -np.sign(why.difference)).all()


@pytest.mark.slow
def test_a_blend_of_forests_is_exact_too():
    ranker = fitted("blend", members="mcrank,regression")
    why = ranker.explain_pair(TEST.X[0], TEST.X[1])
    assert why.changes
    assert all(change.exact for change in why.changes)


@pytest.mark.slow
@pytest.mark.parametrize("members", ["mcrank,ranksvm", "mcrank,regression"])
def test_changes_in_a_query_swap_its_rows_on_the_scale_they_make(members):
    ranker, query = fitted("blend", standard="query", members=members), TEST.select([0])
    told = 0
    for places in ((0, 1), (2, 5), (7, 3)):
        why = ranker.explain_pair(*places, query=query)
        for change in why.changes:
            X = np.array(query.X)
            X[places["ab".index(change.row)], column_of(ranker, change)] = change.after
            a, b = ranker.predict(mcrank.Dataset(X, query.y, np.zeros(len(X))))[list(places)]
            assert (a - b) * why.difference < 0
            told += 1
    assert told > 5


def column_of(ranker, change):
    return list(ranker.feature_names_).index(change.feature)


@pytest.mark.slow
def test_a_blend_standardised_in_each_query_is_explained_within_it():
    ranker = fitted("blend", standard="query")
    query = TEST.select([0]) if not hasattr(TEST, "query") else TEST.query(0)
    scores = ranker.predict(query)
    why = ranker.explain_pair(query.X[0], query.X[1], query=query)
    assert why.difference == pytest.approx(scores[0] - scores[1], abs=1e-9)
    with pytest.raises(DataError, match="queries"):
        ranker.explain_pair(query.X[0], query.X[1])


def test_ties_and_missing_values_are_named():
    ranker = fitted("regression")
    same = ranker.explain_pair(TEST.X[0], TEST.X[0], names=("left", "right"))
    assert same.sentence().startswith("left and right are tied: both have score")
    assert same.changes == ()
    assert same.smallest_change is None
    rows = TEST.X[np.isnan(TEST.X).any(axis=1)]
    texts = [ranker.explain_pair(row, np.float32([0, 0, 0, 0, 0])).sentence() for row in rows[:40]]
    assert any("missing against 0)" in text or "(0 against missing" in text for text in texts)


def test_numbers_that_differ_are_told_apart():
    scorer = mcrank.BestFeature().fit([[5.0], [4.0]], [1, 0], qid=[1, 1])
    why = scorer.explain_pair([0.40001], [0.4])
    assert "(score 0.40001 against 0.4): f1 (0.40001 against 0.4) adds" in why.sentence()
    assert "(score 1e+30 against -1e+30)" in scorer.explain_pair([1e30], [-1e30]).sentence()
    assert "(score 1234.3 against 1234.2)" in scorer.explain_pair([1234.3], [1234.2]).sentence()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mcrank", "lambdamart", "ranksvm", "ranknet", "blend"])
def test_the_value_a_sentence_says_swaps_the_pair_and_is_hardly_further(name):
    ranker = fitted(name)
    shorter = 0
    for a, b in [(i, i + 1) for i in range(0, 60, 2)]:
        why = ranker.explain_pair(TEST.X[a], TEST.X[b])
        change = why.smallest_change
        if change is None:
            assert why.tied or "No change of a single feature" in why.sentence()
            continue
        rows = TEST.X[[a, b]].copy()
        rows["ab".index(change.row), column_of(ranker, change)] = why.about
        assert np.sign(why.difference) * order(ranker, rows) < 0
        assert (
            abs(why.about - change.before) >= abs(np.float32(change.after) - np.float32(change.before)) - 1e-9
        )
        assert abs(why.about - change.after) <= 0.0101 * abs(change.after - change.before)
        shorter += len(repr(why.about)) < len(repr(np.float32(change.after)))
        verb = "rose" if change.after > change.before else "fell"
        assert f"{change.feature} {verb} from " in why.sentence()
        assert float(why.sentence().rstrip(".").rpartition(" to ")[2]) == pytest.approx(why.about, rel=1e-6)
    assert shorter > 10


def test_a_sentence_adds_up():
    ranker = fitted("mcrank")
    seen = set()
    for a, b in [(i, i + 1) for i in range(0, 80, 2)]:
        why = ranker.explain_pair(TEST.X[a], TEST.X[b])
        reasons = why.sentence().partition("): ")[2].partition(". ")[0]
        if f"{abs(why.difference):.3g}" in reasons.split(" "):  # one feature alone
            continue
        total = 0.0
        for sign, word in ((1.0, "adds? "), (-1.0, "takes? away ")):
            found = re.findall(word + r"(\d[-.e\d]*)", reasons)
            total += sign * sum(map(float, (text.rstrip(".") for text in found)))
            seen.update({word} if found else ())
        assert total == pytest.approx(abs(why.difference), abs=0.01)
    assert len(seen) == 2


def test_rows_by_name_and_of_a_frame():
    pandas = pytest.importorskip("pandas")
    names = ["a", "b", "c", "d", "e"]
    data = mcrank.Dataset(pandas.DataFrame(TEST.X, columns=names), TEST.y, np.repeat(TEST.qids, TEST.sizes))
    ranker = mcrank.RegressionRanker(n_estimators=4, n_jobs=1).fit(data)
    frame = pandas.DataFrame(TEST.X[:2, ::-1], columns=names[::-1])
    expected = ranker.explain_pair(TEST.X[0], TEST.X[1]).contributions
    assert ranker.explain_pair(frame.iloc[0], frame.iloc[[1]]).contributions == expected
    assert ranker.explain_pair(dict(frame.iloc[0]), dict(frame.iloc[1])).contributions == expected


def test_what_is_no_row_is_named():
    with pytest.raises(DataError, match=r"a of RegressionRanker.explain_pair must be one row .*\(2, 5\)"):
        fitted("regression").explain_pair(TEST.X[:2], TEST.X[0])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_of_several_rows_are_no_row(library):
    table = pytest.importorskip(library).DataFrame(TEST.X[:2])
    with pytest.raises(DataError, match=r"b of RegressionRanker.explain_pair must be one row .*\(2, 5\)"):
        fitted("regression").explain_pair(TEST.X[0], table)


def test_a_series_of_polars_is_a_row():
    polars = pytest.importorskip("polars")
    ranker = fitted("regression")
    why = ranker.explain_pair(polars.Series(TEST.X[0]), polars.Series(TEST.X[1]))
    assert why.contributions == ranker.explain_pair(TEST.X[0], TEST.X[1]).contributions


def test_numbers_of_rows_are_those_of_the_caller():
    order = np.random.default_rng(0).permutation(TEST.n_rows)  # rows of a query far apart
    mixed = mcrank.Dataset(TEST.X[order], TEST.y[order], TEST.qid[order])
    ranker = fitted("regression")
    scores = ranker.predict(mixed)
    for a, b in ((0, 1), (4, 2), (7, 30)):
        assert ranker.explain_pair(a, b, query=mixed).scores == (scores[a], scores[b])
        assert ranker.explain_pair(a, b, query=TEST.X[order]).scores == (scores[a], scores[b])


@pytest.mark.slow
def test_a_blend_standardised_in_each_query_takes_one_query():
    ranker = fitted("blend", standard="query")
    with pytest.raises(DataError, match=f"must be the rows of one query, .* got {TEST.n_queries} queries"):
        ranker.explain_pair(0, 1, query=TEST)
    with pytest.raises(DataError, match="explain_pair needs query, all rows of the query"):
        ranker.explain_pair(TEST.X[0], TEST.X[1])


def test_json_says_missing_as_null():
    row = TEST.X[np.isnan(TEST.X).any(axis=1)][0]
    text = json.dumps(fitted("mcrank").explain_pair(row, TEST.X[0]).to_dict(), allow_nan=False)
    assert "null" in text


def test_hostile_names_are_written_out():
    text = fitted("regression").explain_pair(TEST.X[0], TEST.X[1], names=("\x1b[31m", "\n")).sentence()
    assert text.isprintable()


@pytest.mark.parametrize("names", [("x",), "ab", ("a", "b", "c")])
def test_a_pair_has_two_names(names):
    with pytest.raises(OptionError, match=r"names of RankSVM\.explain_pair must be two"):
        fitted("ranksvm").explain_pair(TEST.X[0], TEST.X[1], names=names)
