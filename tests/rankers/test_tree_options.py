"""Every option of boosted trees, looked at alike: it does something, and threads, files and flags agree.

That a rule is the one that is told is for its witness to say: LightGBM, XGBoost or a naive twin.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import mcrank
from mcrank.cli.main import main
from mcrank.container import pack, unpack
from mcrank.errors import ModelFileError
from mcrank.rankers.forests import ForestRanker
from mcrank.rankers.registry import from_bytes, to_bytes
from mcrank.rankers.trees import TreeRanker
from tests.rankers.test_determinism import noisy

ROOT = Path(__file__).parents[2]
SMALL = {"n_estimators": 3, "num_leaves": 6, "min_samples_leaf": 5}
LAMBDA, CLASSES = mcrank.LambdaMART, mcrank.McRank
_SETS = {"categorical": ["f1"]}
_GOSS = {"goss": True, "learning_rate": 1.0}
_DART = {"dart": True, "skip_drop": 0.0, "drop_rate": 0.9}
# Each with a value that changes the trees, and what it needs beside it.
OPTIONS = {
    "l1": (LAMBDA, {"l1": 0.5}, {}),
    "l2": (LAMBDA, {"l2": 0.5}, {}),
    "min_sum_hessian": (LAMBDA, {"min_sum_hessian": 200.0}, {}),
    "min_gain": (LAMBDA, {"min_gain": 60.0}, {}),
    "max_depth": (LAMBDA, {"max_depth": 2}, {}),
    "max_leaf_value": (LAMBDA, {"max_leaf_value": 0.01}, {}),
    "subsample": (LAMBDA, {"subsample": 0.5}, {}),
    "colsample": (LAMBDA, {"colsample": 0.3}, {}),
    "colsample_node": (LAMBDA, {"colsample_node": 0.3}, {}),
    "extra_trees": (LAMBDA, {"extra_trees": True}, {}),
    "random_state": (LAMBDA, {"random_state": 2**63 - 1}, {"extra_trees": True}),
    "feature_weights": (LAMBDA, {"feature_weights": {"f1": 0.01, "f6": 3.0}}, {}),
    "interaction": (LAMBDA, {"interaction": [["f4", "f6"], ["f5"]]}, {"feature_weights": {"f1": 0.0}}),
    "monotone": (LAMBDA, {"monotone": {"f1": -1, "f4": -1}}, {}),
    "categorical": (LAMBDA, {"categorical": ["f1"]}, {}),
    "cat_smooth": (LAMBDA, {"cat_smooth": 400.0}, _SETS),
    "cat_l2": (LAMBDA, {"cat_l2": 500.0}, _SETS),
    "max_cat_to_onehot": (LAMBDA, {"max_cat_to_onehot": 16}, _SETS),
    "max_cat_threshold": (LAMBDA, {"max_cat_threshold": 1}, _SETS),
    "min_data_per_group": (LAMBDA, {"min_data_per_group": 9000}, _SETS),
    "goss": (LAMBDA, {"goss": True}, {"learning_rate": 1.0}),
    "top_rate": (LAMBDA, {"top_rate": 0.5}, _GOSS),
    "other_rate": (LAMBDA, {"other_rate": 0.5}, _GOSS),
    "dart": (LAMBDA, {"dart": True}, {"skip_drop": 0.0, "drop_rate": 0.9}),
    "drop_rate": (LAMBDA, {"drop_rate": 0.0}, _DART),
    "skip_drop": (LAMBDA, {"skip_drop": 1.0}, _DART),
    "max_drop": (LAMBDA, {"max_drop": 1}, _DART),
    "max_bins": (LAMBDA, {"max_bins": 5}, {}),
    "binning": (LAMBDA, {"binning": "quantile"}, {"max_bins": 20, "feature_weights": {"f1": 0.0}}),
    "split": (LAMBDA, {"split": "mse"}, {}),
    "num_leaves": (LAMBDA, {"num_leaves": 3}, {}),
    "learning_rate": (LAMBDA, {"learning_rate": 0.7}, {}),
    "min_samples_leaf": (LAMBDA, {"min_samples_leaf": 2000}, {}),
    "n_estimators": (LAMBDA, {"n_estimators": 2}, {}),
    "multi_output": (CLASSES, {"multi_output": "tree"}, {}),
    "sequential": (CLASSES, {"sequential": True}, {}),
    "base_class": (CLASSES, {"base_class": "adaptive"}, {}),
}
# They end a training or begin it, and have tests of their own: threads, files and flags in each.
ELSEWHERE = {"early_stopping_rounds", "warm_start"}
# Who else finds the same trees: LightGBM, XGBoost or scikit-learn where they have the rule, or a naive twin.
WITNESSES = {
    "test_limits.py::test_xgboost_grows_the_same_trees": ("l1", "l2", "min_sum_hessian", "monotone"),
    "test_limits.py::test_lightgbm_grows_the_same_trees": ("max_depth", "feature_weights", "interaction"),
    "test_limits.py::test_lightgbm_asks_for_the_same_gain": ("min_gain",),
    "test_limits.py::test_the_naive_twin_grows_the_same_trees": ("colsample_node", "extra_trees"),
    "test_determinism.py::test_each_tree_sees_only_the_features_drawn": ("colsample",),
    "test_determinism.py::test_sampling_sees_only_the_queries_drawn": ("subsample",),
    "test_categorical.py::test_lightgbm_finds_the_same_sets": (
        "categorical", "cat_smooth", "cat_l2", "max_cat_to_onehot", "max_cat_threshold", "min_data_per_group",
    ),
    "test_goss.py::test_trees_are_those_of_the_naive_twin": ("goss", "top_rate", "other_rate"),
    "test_dart.py::test_lightgbm_drops_all_rounds_alike": ("dart", "drop_rate", "skip_drop"),
    "test_dart.py::test_the_naive_twin": ("max_drop",),
    "test_together.py::test_xgboost_grows_the_same_vector_trees": ("multi_output",),
    "test_start.py::test_warm_start_counts_rounds_in_all_as_scikit_learn": ("warm_start",),
    "test_custom.py::test_lightgbm_grows_the_same_trees": ("loss",),
    "test_refit.py::test_lightgbm_finds_the_same_leaves": ("decay",),
}  # fmt: skip


def rows(count):
    """Noisy rows whose first feature has few values, so that it may be categories as well."""
    data = noisy(count, missing=0.0)
    X = data.X.copy()
    X[:, 0] = np.clip(np.round(3 * X[:, 0]), -6, 6) + 6
    return mcrank.Dataset(X, data.y, np.repeat(data.qids, data.sizes))


def made(name, *, without=False, **more):
    kind, option, beside = OPTIONS[name]
    return kind(**SMALL | beside | ({} if without else option) | more)


def test_no_option_is_left_out():
    own = set(TreeRanker.declared_options) - set(ForestRanker.declared_options) - {"n_jobs", "verbose"}
    assert set(OPTIONS) | ELSEWHERE >= own
    for name, (kind, option, beside) in OPTIONS.items():
        assert {*option, *beside} <= set(kind.declared_options), name


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_threads_change_no_byte_and_the_option_does(name):
    data = rows(21_000)  # enough to share a tree
    found = {to_bytes(made(name, n_jobs=n).fit(data)) for n in (1, 2, 4)}
    assert len(found) == 1
    one, other = (from_bytes(found.pop()), made(name, without=True).fit(data))
    assert not np.array_equal(one.predict(data), other.predict(data))


@pytest.mark.parametrize("name", OPTIONS)
def test_files_keep_the_option(name):
    data = rows(450)
    ranker = made(name).fit(data)
    content = to_bytes(ranker)
    again = from_bytes(content)
    assert to_bytes(again) == content
    assert np.array_equal(again.predict(data), ranker.predict(data))
    assert again.options_[name] == OPTIONS[name][1][name] == getattr(again, name)
    assert to_bytes(again.fit(data)) == content


ODD = [
    None, True, -1, 0, 0.5, 2**63, 10**40, "", "f1", [], {}, [[]], ["f99"], {"f99": 1}, {"f1": "x"}, [0, 1],
]  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_odd_values_in_a_file_are_refused_or_another_model(name):
    header, arrays = unpack(to_bytes(made(name).fit(rows(450))), "it")
    accepted = []
    for odd in ODD:
        changed = json.loads(json.dumps(header))
        changed["meta"]["options"][name] = odd
        try:
            again = from_bytes(pack(changed, arrays), "it")
        except ModelFileError:
            continue
        accepted.append(odd)
        # As from_bytes took it, the ranker writes it.
        assert unpack(to_bytes(again), "it")[0]["meta"]["options"].get(name, odd) == odd
    assert len(accepted) < len(ODD) / 2


@pytest.mark.parametrize("name", OPTIONS)
def test_flags_of_the_command_line(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    mcrank.write(rows(300), "train.txt")
    kind, option, beside = OPTIONS[name]
    words = []
    for key, value in (SMALL | beside | option).items():
        flag = "--" + key.replace("_", "-")
        if isinstance(value, bool):
            words += [flag]
        elif key == "categorical":
            words += [flag, ",".join(value)]
        else:
            words += [flag, value if isinstance(value, str) else json.dumps(value)]
    ranker = {LAMBDA: "lambdamart", CLASSES: "mcrank"}[kind]
    assert main(["train", "train.txt", "--ranker", ranker, *words, "--out", "m"]) == 0, capsys.readouterr()
    assert Path("m").read_bytes() == to_bytes(made(name).fit(mcrank.read("train.txt")))


@pytest.mark.parametrize("name", [*OPTIONS, *sorted(ELSEWHERE)])
def test_the_documentation_has_it_in_words_and_in_code(name):
    pages = [page.read_text() for page in sorted((ROOT / "docs").rglob("*.md"))]
    blocks = [block for page in pages for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL)]
    assert any(f"`{name}`" in page for page in pages)
    assert any(re.search(rf"\b{name}=", block) for block in blocks)


def test_witnesses_are_there():
    for witness, options in WITNESSES.items():
        file, test = witness.split("::")
        text = (ROOT / "tests" / "rankers" / file).read_text()
        assert f"def {test}(" in text
        for name in options:
            assert name in text, (witness, name)
    named = {name for options in WITNESSES.values() for name in options}
    assert named >= {name for name, declared in TreeRanker.declared_options.items() if declared.tacit}
