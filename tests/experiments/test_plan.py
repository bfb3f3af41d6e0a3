"""Comparisons described in TOML, and the conditions that make them fail."""

from __future__ import annotations

import pytest

import mcrank
from mcrank.experiments.fail_if import FailIf
from mcrank.experiments.plan import Plan
from tests.experiments.small import small_comparison

GOOD = """
measures = ["ndcg@10", "map"]
dialects = ["yahoo"]
train_dialects = ["standard"]
seed = 3
out = "run"
baseline = "base"
fail_if = ["ndcg@10 < -0.002"]

[data]
train = "a/train.txt"
test = "a/test.txt"
unjudged = "drop"

[[entry]]
ranker = "mcrank"
title = "base"
options = { learning_rate = 0.1 }
grid.num_leaves = [4, 10]

[[entry]]
scores = "lgb/{fold}.txt"
"""


def test_a_good_plan(tmp_path):
    (tmp_path / "plan.toml").write_text(GOOD)
    plan = Plan.read(tmp_path / "plan.toml")
    first, second = plan.arguments["rankers"]
    assert (first.title, first.options, first.grid) == (
        "base",
        {"learning_rate": 0.1},
        {"num_leaves": [4, 10]},
    )
    assert second.scores == str(tmp_path / "lgb/{fold}.txt")
    assert plan.arguments["data"] == {
        "train": str(tmp_path / "a/train.txt"),
        "test": str(tmp_path / "a/test.txt"),
    }
    assert plan.arguments["read_options"] == {"unjudged": "drop"}
    assert plan.arguments["out"] == str(tmp_path / "run")
    assert (plan.arguments["seed"], plan.arguments["dialects"]) == (3, ["yahoo"])
    assert (plan.baseline, plan.fail_if) == ("base", ("ndcg@10 < -0.002",))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("measures", "mesures", "has no key 'mesures'; did you mean measures"),
        ("unjudged", "unjuged", r"\[data\] of .* has no key 'unjuged'; did you mean unjudged"),
        ("grid.num", "gird.num", r"\[\[entry\]\] 1 of .* has no key 'gird'; did you mean grid"),
        ("learning_rate", "lerning_rate", "1 of .*no option 'lerning_rate'; did you mean learning_rate"),
        ("[4, 10]", "[4, 1]", "num_leaves of McRank must be an integer >= 2 .*got 1"),
        ('ranker = "mcrank"', 'ranker = "mcrnk"', "did you mean mcrank"),
        ("seed = 3", 'seed = "3"', "seed of .* must be an integer, got '3'"),
        ("seed = 3", "seed = true", "seed of .* must be an integer"),
        ('train = "a/train.txt"', 'train = "a"\nfolds = "b"', "must have folds, or file, or train"),
        ('train = "a/train.txt"\ntest = "a/test.txt"', "", "must have folds, or file, or train"),
        ('unjudged = "drop"', "kfold = 5", "kfold of .* is for a single file"),
        ("seed = 3", "seed = ", "is not TOML"),
    ],
)  # fmt: skip
def test_bad_plans(old, new, words, tmp_path):
    assert old in GOOD
    (tmp_path / "plan.toml").write_text(GOOD.replace(old, new))
    with pytest.raises(mcrank.McrankError, match=words):
        Plan.read(tmp_path / "plan.toml")


def test_nothing_to_compare():
    with pytest.raises(mcrank.OptionError, match=r"has no \[\[entry\]\]"):
        Plan.parse({"data": {"folds": "x"}}, "p")
    with pytest.raises(mcrank.OptionError, match=r"has no \[data\]"):
        Plan.parse({"entry": [{"ranker": "mcrank"}]}, "p")


def test_conditions():
    small = small_comparison()
    means = dict(zip(small.keys, small.mean("ndcg@10"), strict=True))
    worst = min(means, key=means.get)
    best = max(means, key=means.get)
    gap = means[worst] - means[best]
    assert gap < -0.01
    (line,) = FailIf("ndcg@10", True, 0.999 * gap).failures(small, best)
    assert line.startswith(f"ndcg@10 of {worst} is {means[worst]:.4f}, {gap:+.4f} from {best}")
    assert FailIf("ndcg@10", True, gap - 1e-9).failures(small, best) == []
    assert len(FailIf("ndcg@10", False, -gap / 2).failures(small, worst)) >= 1
    # Against the first system unless another is named.
    others = [key for key in small.keys[1:] if means[key] < means[small.keys[0]]]
    assert len(FailIf("ndcg@10", True, 0.0).failures(small)) == len(others)
    with pytest.raises(mcrank.OptionError, match="there is no system 'nobody'"):
        FailIf("ndcg@10", True, 0.0).failures(small, "nobody")


def test_significantly():
    small = small_comparison()
    for bound in (-0.001, 0.0):
        lines = {line.system: line for line in small.leaderboard("map", baseline="f1")}
        significant = [
            key for key, line in lines.items()
            if key != "f1" and line.difference > bound and line.corrected_p < 0.05
        ]  # fmt: skip
        found = FailIf.parse(f"map > {bound} significantly").failures(small, "f1")
        assert sorted(words.split()[2] for words in found) == sorted(significant)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("ndcg@10 < -0.002", FailIf("ndcg@10", True, -0.002)),
        ("ndcg@10<-2e-3", FailIf("ndcg@10", True, -0.002)),
        (" map > 0.1  significantly ", FailIf("map", False, 0.1, True)),
        ("ndcg@5[xgboost;empty=0] < 0", FailIf("ndcg@5[xgboost;empty=0]", True, 0.0)),
    ],
)
def test_conditions_are_read(text, condition):
    assert FailIf.parse(text) == condition


@pytest.mark.parametrize(
    "text", ["", "ndcg@10", "ndcg@10 < x", "ndcg@10 = 1", "ndcg@10 < nan", "map < 0 maybe"]
)
def test_bad_conditions(text):
    with pytest.raises(mcrank.OptionError, match="fail-if must look like"):
        FailIf.parse(text)


def test_condition_on_an_unknown_measure():
    with pytest.raises(mcrank.MeasureError, match="did you mean ndcg@10"):
        FailIf.parse("ndgc@10 < 0")
