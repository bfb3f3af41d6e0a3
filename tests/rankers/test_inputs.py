"""The words of other tools for query ids and weights, progress lines, and docstrings."""

from __future__ import annotations

import inspect
import typing

import numpy as np
import pytest

import mcrank
from mcrank import Dataset, McRank, RegressionRanker
from mcrank.errors import DataError, OptionError
from mcrank.rankers.registry import RANKERS, ranker_class, to_bytes
from tests.rankers.data import few_values


@pytest.fixture(scope="module")
def rows():
    X, y, qid = few_values(71, 120, 3, 8, 3)
    return X, y, qid


def make(**options):
    return RegressionRanker(**({"n_estimators": 3, "subsample": 0.5, "n_jobs": 1} | options))


def test_query_ids_under_every_word(rows):
    X, y, qid = rows
    wanted = to_bytes(make().fit(X, y, qid=qid))
    sizes = np.bincount(qid)
    score = make().fit(X, y, qid=qid).score(X, y, qid)
    for words in (
        {"groups": qid},
        {"group": sizes},
        {"group": sizes.tolist()},
        {"qid": qid, "groups": qid + 7},
    ):
        fitted = make().fit(X, y, **words)
        assert to_bytes(fitted) == wanted
        assert fitted.score(X, y, **words) == score
    frame = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}  # a mapping's length is not its number of rows
    assert make().fit(frame, y, group=sizes).n_features_in_ == 3
    assert make(one_query=True).fit(frame, y).n_features_in_ == 3


def test_words_that_contradict_each_other(rows):
    X, y, qid = rows
    sizes = np.bincount(qid)
    for words in ({"qid": qid, "groups": qid // 2}, {"qid": qid[::-1] // 2, "group": sizes}):
        with pytest.raises(OptionError, match="which make different queries of the rows; give one"):
            make().fit(X, y, **words)
    with pytest.raises(OptionError, match="weight and sample_weight, two words for one thing"):
        make().fit(X, y, qid=qid, weight=y + 1, sample_weight=y + 1)
    with pytest.raises(OptionError, match="got a Dataset and also groups"):
        make().fit(Dataset(X, y, qid), groups=qid)
    with pytest.raises(OptionError, match="got a Dataset and also sample_weight"):
        make().fit(Dataset(X, y, qid), sample_weight=y + 1)


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("ids", "adds up to .* rows, and there are 120"),
        ([120, 0], "positive integers"),
        ([60.0, 60.0], "positive integers, got float64"),
        ([-1, 121], "positive integers"),
        ([[60], [60]], "positive integers"),
        ([], "positive integers"),
        ([2**63 - 1, 2**63 - 1], "adds up to 18446744073709551614 rows"),
        ([119], "adds up to 119 rows, and there are 120"),
    ],
)
def test_sizes_that_are_none(rows, group, words):
    X, y, qid = rows
    with pytest.raises(DataError, match=f"(?s)group of RegressionRanker .*{words}"):
        make().fit(X, y, group=qid + 1 if group == "ids" else group)


def test_sample_weight(rows):
    X, y, qid = rows
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    wanted = to_bytes(make().fit(X, y, qid=qid, weight=weight))
    assert to_bytes(make().fit(X, y, qid=qid, sample_weight=weight)) == wanted
    assert wanted != to_bytes(make().fit(X, y, qid=qid))
    fitted = make().fit(X, y, qid=qid)
    assert fitted.score(X, y, qid, sample_weight=weight) == fitted.score(X, y, qid)
    by_query = np.linspace(0, 1, 12)
    data = Dataset(X, y, qid, query_weight=by_query)
    assert fitted.score(X, y, qid, query_weight=by_query) == fitted.score(data) != fitted.score(X, y, qid)


def test_progress_lines(rows, capsys):
    X, y, qid = rows
    wanted = to_bytes(make(n_estimators=5).fit(X, y, qid=qid))
    assert capsys.readouterr().err == ""
    seen = []
    for verbose, lines in ((1, 5), (True, 5), (2, 3), (10, 1), (0, 0), (False, 0)):
        for option, argument in ((verbose, None), (0, verbose)):
            fitted = make(n_estimators=5, verbose=option)
            fitted.fit(X, y, qid=qid, verbose=argument, callback=seen.append)
            said = capsys.readouterr()
            assert said.out == ""
            assert said.err.count("RegressionRanker: round") == said.err.count("\n") == lines
            assert to_bytes(fitted) == wanted
    assert len(seen) == 60  # the caller's own callback is still called
    make(verbose=1).fit(X, y, qid=qid, valid=(X, y, qid))
    assert "round 3 of 3, ndcg@10 0." in capsys.readouterr().err
    for wrong in (-1, "loud", 1.5):
        with pytest.raises(OptionError, match="verbose of RegressionRanker"):
            make(verbose=wrong).fit(X, y, qid=qid)


@pytest.mark.parametrize("name", RANKERS)
def test_docstrings_list_every_option(name):
    kind = ranker_class(name)
    parameters = kind.__doc__.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    for option in kind.declared_options.values():
        assert f"\n{option.name} : " in f"\n{parameters}"
        assert f", default {option.default!r}\n" in parameters
        assert option.help.split()[0] in parameters
    signature = inspect.signature(kind)
    assert list(signature.parameters) == list(kind.declared_options)
    assert all(p.annotation is not p.empty for p in signature.parameters.values())
    assert kind.__doc__.count("Parameters\n") == 1


def test_load_tells_type_checkers_of_probabilities():
    any_kind, one_kind = typing.get_overloads(mcrank.load)
    assert inspect.signature(any_kind).return_annotation == "LoadedRanker"
    assert list(inspect.signature(one_kind).parameters) == ["path", "kind"]


def test_run_options_stay_out_of_models_and_commands():
    from mcrank.cli.declared import declared_params

    flags = {flag for option in declared_params(McRank) for flag in option.opts}
    assert "--num-leaves" in flags
    assert not {"--verbose", "--one-query"} & flags


@pytest.mark.parametrize("count", [1, 2, 3, 90, 400])
def test_infinite_numbers_are_refused_by_place_however_rows_are_given(rows, count):
    X, y, qid = rows
    model = make().fit(X, y, qid=qid)
    good = np.resize(X, (count, X.shape[1])).astype(np.float32)
    score = model.predict(good)
    bad = good.copy()
    bad[count - 1, 2] = -np.inf
    said = rf"^X of RegressionRanker.predict has -inf at row {count - 1}, column 2; values must fit float32"
    for form in (np.ascontiguousarray, np.asfortranarray, lambda a: a.astype(np.float64), np.ndarray.tolist):
        assert model.predict(form(good)).tobytes() == score.tobytes()
        with pytest.raises(DataError, match=said):
            model.predict(form(bad))


def test_a_matrix_of_the_wrong_shape_is_refused_before_it_is_scored(rows):
    X, y, qid = rows
    model = make().fit(X, y, qid=qid)
    given = X.astype(np.float32)
    for wrong, said in (
        (given[:, :2], "X has 2 features"),
        (given[:0], "is empty"),
        (given[0], "2 dimensions"),
    ):
        with pytest.raises(DataError, match=said):
            model.predict(np.ascontiguousarray(wrong))
