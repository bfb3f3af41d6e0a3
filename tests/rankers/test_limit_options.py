"""Options of penalties and constraints: odd values refused, features by name or number, files, commands."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank
from mcrank.errors import OptionError
from mcrank.rankers.registry import from_bytes, to_bytes
from tests.rankers.test_determinism import noisy

HOSTILE = [
    ("l1", -1, "a number >= 0"),
    ("l2", float("inf"), "a number >= 0"),
    ("min_sum_hessian", "3", "a number >= 0"),
    ("min_gain", None, "a number >= 0"),
    ("max_depth", 0, "an integer >= 1"),
    ("max_depth", 2.5, "an integer >= 1"),
    ("colsample_node", 0, "a number > 0 and <= 1"),
    ("extra_trees", 1, "True or False"),
    ("monotone", {"f1": 2}, "-1, 0 or 1 by feature"),
    ("monotone", {"f1": True}, "-1, 0 or 1 by feature"),
    ("monotone", {1.5: 1}, "-1, 0 or 1 by feature"),
    ("monotone", "f1", "-1, 0 or 1 by feature"),
    ("monotone", 3, "-1, 0 or 1 by feature"),
    ("monotone", [0, None], "-1, 0 or 1 by feature"),
    ("feature_weights", {"f1": -1}, "numbers from 0 to 1e9"),
    ("feature_weights", {"f1": float("nan")}, "numbers from 0 to 1e9"),
    ("interaction", [], "sets of features"),
    ("interaction", [[]], "sets of features"),
    ("interaction", ["f1"], "sets of features"),
    ("interaction", [[1.5]], "sets of features"),
    ("interaction", {"f1": 1}, "sets of features"),
]


@pytest.mark.parametrize(("name", "odd", "words"), HOSTILE)
def test_hostile_values(name, odd, words):
    with pytest.raises(OptionError, match=f"{name} of RegressionRanker must be .*{words}"):
        mcrank.RegressionRanker(**{name: odd}).fit(noisy(50))


def test_features_that_are_not_there():
    data = noisy(50)
    for odd, words in (
        ({"monotone": {"f99": 1}}, "has feature 'f99'; did you mean"),
        ({"monotone": {11: 1}}, "has feature 11; the data has 0 to 10"),
        ({"monotone": {-1: 1}}, "has feature -1; the data has 0 to 10"),
        ({"monotone": [1, 0]}, "one number for each of 11 features, got 2"),
        ({"monotone": {0: 1, "f1": -1}}, "has a feature by name and by number"),
        ({"interaction": [["f1", "price"]]}, "has feature 'price'"),
        ({"feature_weights": {"12": 1.0}}, "has feature 12; the data has 0 to 10"),
    ):
        with pytest.raises(OptionError, match=words):
            mcrank.RegressionRanker(n_estimators=1, **odd).fit(data)


def test_what_does_not_go_together():
    data = noisy(100)
    with pytest.raises(OptionError, match="OrdinalMcRank's boundaries do"):
        mcrank.McRank(monotone={0: 1}).fit(data)
    with pytest.raises(OptionError, match="whose leaves are medians"):
        mcrank.RegressionRanker(loss="lad", l2=1.0).fit(data)
    with pytest.raises(OptionError, match="stumps know nothing of it"):
        mcrank.FRank(monotone={0: 1}).fit(data)
    kept = mcrank.RegressionRanker(n_estimators=2, monotone={0: 1}).fit(data)
    with pytest.raises(OptionError, match="which new values would not keep"):
        kept.refit(data)
    free = mcrank.RegressionRanker(n_estimators=2).fit(data)
    with pytest.raises(OptionError, match="must be that of the model it goes on from, None"):
        mcrank.RegressionRanker(n_estimators=2, monotone={0: 1}).fit(data, init_model=free)


def test_files_have_the_names_of_features():
    pandas = pytest.importorskip("pandas")
    data = noisy(100, features=5, missing=0.0)
    frame = pandas.DataFrame(data.X, columns=["price", "age", "3", "b", "c"])
    qid = np.repeat(data.qids, data.sizes)
    told = {"monotone": {"price": -1, 3: 1, "3": 1}, "interaction": [[0, "b"], ["3", 4]]}
    found = mcrank.LambdaMART(n_estimators=2, feature_weights=[1, 2, 1, 1, 1], **told).fit(
        frame, data.y, qid=qid
    )
    assert found.options_["monotone"] == {"price": -1, "b": 1, "3": 1}
    assert found.options_["interaction"] == [["price", "b"], ["3", "c"]]
    assert found.options_["feature_weights"] == {"age": 2.0}
    again = from_bytes(to_bytes(found))
    assert again.monotone == found.options_["monotone"]
    # The columns of another frame go by name, whatever their order.
    assert to_bytes(again.fit(frame[["c", "b", "3", "age", "price"]], data.y, qid=qid)) != to_bytes(found)


@pytest.mark.parametrize("kind", ["OrdinalMcRank", "LambdaMART"])
def test_a_cross_fitted_model_has_the_names_too(kind):
    pandas = pytest.importorskip("pandas")
    data = noisy(200, features=5, missing=0.0)
    frame = pandas.DataFrame(data.X, columns=list("abcde"))
    qid = np.repeat(data.qids, data.sizes)
    told = {"monotone": {0: 1}, "interaction": [[0, 1]], "feature_weights": [1, 1, 0.5, 1, 1]}
    first = getattr(mcrank, kind)(n_estimators=2, **told).fit(frame, data.y, qid=qid, folds=2)
    again = from_bytes(to_bytes(first))
    assert (again.monotone, again.interaction) == ({"a": 1}, [["a", "b"]])
    assert again.feature_weights == {"c": 0.5}
    # Numbers are those of the columns as they were given; the model is gone on from by their names.
    turned = {"monotone": {4: 1}, "interaction": [[4, 3]], "feature_weights": {2: 0.5}}
    further = getattr(mcrank, kind)(n_estimators=2, **turned)
    further.fit(frame[list("edcba")], data.y, qid=qid, folds=2, init_model=again)
    assert further.options_["monotone"] == {"a": 1}


def test_defaults_are_not_mentioned():
    found = mcrank.McRank(n_estimators=1).fit(noisy(50)).options_
    assert not {"l1", "l2", "monotone", "max_depth", "extra_trees", "colsample_node"} & set(found)


def test_the_command_line(tmp_path, monkeypatch, capsys):
    from mcrank.cli.main import main

    monkeypatch.chdir(tmp_path)
    mcrank.write(noisy(150, missing=0.0), tmp_path / "train.txt")
    told = ["--monotone", '{"f1": 1, "3": -1}', "--interaction", '[[0, "f4"], [1, 2]]', "--l2", "0.5"]
    told += [
        "--max-depth",
        "3",
        "--extra-trees",
        "--feature-weights",
        '{"f2": 0.5}',
        "--colsample-node",
        "0.8",
    ]
    train = ["train", "train.txt", "--ranker", "lambdamart", "--n-estimators", "3"]
    assert main([*train, *told, "--out", "m"]) == 0
    expected = mcrank.LambdaMART(
        n_estimators=3, monotone={0: 1, 3: -1}, interaction=[[0, 3], [1, 2]], l2=0.5, max_depth=3,
        extra_trees=True, feature_weights={1: 0.5}, colsample_node=0.8,
    ).fit(mcrank.read("train.txt"))  # fmt: skip
    assert (tmp_path / "m").read_bytes() == to_bytes(expected)
    capsys.readouterr()
    assert main([*train, "--monotone", "f1", "--out", "n"]) == 2
    assert "monotone of LambdaMART must be -1, 0 or 1 by feature" in capsys.readouterr().err
