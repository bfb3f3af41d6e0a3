"""Edited, cut and hostile files of other libraries: one clear error with the file and the line or key."""

from __future__ import annotations

import copy
import json
import os
import time

import numpy as np
import pytest

import mcrank
from mcrank.cli.main import main
from mcrank.errors import McrankError, ModelFileError
from mcrank.models.imports.read import import_file
from mcrank.rankers.registry import to_bytes
from tests.models.imports.files import (
    FILES,
    LIGHTGBM,
    RANKLIB,
    branching_model,
    catboost_model,
    to_ubjson,
    xgboost_model,
)


def refused(tmp_path, content):
    path = tmp_path / "m.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ModelFileError) as caught:
        import_file(path)
    words = str(caught.value)
    assert words.startswith(str(path))
    return words.removeprefix(str(path))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("left_child=-1 -2", "left_child=0 -2", ": node 0 of tree 0: left child must be another node"),
        ("left_child=-1 -2", "left_child=1 -2", ": node 1 of tree 0: it is a child of more than one node"),
        ("left_child=-1 -2", "left_child=-9 -2", ": line 19: left_child of tree 0 must be from -3 to 1"),
        ("right_child=1 -3", "right_child=1 0", ": node 0 of tree 0: it is a child of more than one node"),
        ("right_child=1 -3", "right_child=-2 -3", "child of more than one"),
        ("split_feature=0 1", "split_feature=0 2", ": node 1 of tree 0: feature must be a feature below 2"),
        ("split_feature=0 1", "split_feature=0 -1", ": line 15: split_feature of tree 0 must not"),
        ("split_feature=0 1", "split_feature=0 1.5", "must be integers, got '1.5'"),
        ("threshold=0.5 -1.5", "threshold=nan -1.5", ": line 17: threshold of tree 0 must be numbers"),
        ("threshold=0.5 -1.5", "threshold=0.5", ": line 17: threshold of tree 0 must have 2 numbers, got 1"),
        ("leaf_value=-0.25 0.5 1.5", "leaf_value=-0.25 inf 1.5", "value must be finite, got inf"),
        ("leaf_value=-0.25 0.5 1.5", "leaf_value=1e308 1e308 1.5", "sums are not finite"),
        ("leaf_value=-0.25 0.5 1.5\n", "", "leaf_value of tree 0 is missing"),
        ("num_leaves=3", "num_leaves=2000000000", "leaf_value of tree 0 must have 2000000000 numbers, got 3"),
        ("num_leaves=3", "num_leaves=0", "num_leaves of tree 0 must be an integer from 1"),
        ("num_leaves=3", "num_leaves=3\nnum_leaves=3", ": line 14: num_leaves of tree 0 is there twice"),
        ("num_cat=0", "num_cat=1", ": line 12: cat_boundaries of tree 0 is missing"),
        ("is_linear=0", "is_linear=1", "linear models, which cannot be imported"),
        ("decision_type=10 8", "decision_type=11 8", "names set 0.5; there are 0"),
        ("decision_type=10 8", "decision_type=12 8", "must be bits of a split"),
        ("decision_type=10 8", "decision_type=4 8", "zero_as_missing"),
        ("decision_type=10 8\n", "", "decision_type of tree 0 is missing"),
        ("Tree=1", "Tree=2", ": line 29: tree 1 is called '2'"),
        ("Tree=1", "Tree", "must be key=value, got 'Tree'"),
        (LIGHTGBM[LIGHTGBM.index("end of trees"):], "", "is cut off"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=3", "is 3, and the file has 2 trees"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=99999", "must be an integer from 1 to 1000"),
        ("max_feature_idx=1", "max_feature_idx=2147483646", "says it has 2147483647 features"),
        ("max_feature_idx=1", "max_feature_idx=2", ": line 8: feature_names of the head must be 3 names"),
        ("feature_names=bm25 age", "feature_names=bm25 bm25", "'bm25' twice"),
        ("feature_names=bm25 age", "feature_names=bm25 a\x1b[2J", "line 8 has the character '\\x1b'"),
        ("feature_names=bm25 age", "feature_names=bm25 a\u202e", "has the character"),
        ("tree_sizes=300 300", "tree_sizes=300", "names 1 trees, and the file has 2"),
        ("label_index=0", "feature_importances:", ": line 12: a tree stands behind the end of trees"),
        ("label_index=0", "=0", "line 5 must be key=value, got '=0'"),
        ("version=v4", "version=v9", "must be one of v2, v3, v4, got 'v9'"),
        ("objective=lambdarank", "objective=magic", "'magic', which cannot be imported"),
        ("objective=lambdarank", "objective=binary sigmoid:-1", "the sigmoid '-1'"),
        ("objective=lambdarank", "objective=multiclass num_class:5", "has '5' classes, the file 1"),
    ],
)  # fmt: skip
def test_edited_lightgbm(tmp_path, old, new, words):
    assert old in LIGHTGBM
    assert words in refused(tmp_path, LIGHTGBM.replace(old, new, 1))


SETS = "num_cat=1\ncat_boundaries=0 1\ncat_threshold=5"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("cat_boundaries=0 1", "cat_boundaries=1 1", "cat_boundaries of tree 0 must rise from 0"),
        ("cat_boundaries=0 1", "cat_boundaries=0 -1", "cat_boundaries of tree 0 must rise from 0"),
        ("cat_boundaries=0 1", "cat_boundaries=0 99", "cat_threshold of tree 0 must have 99 numbers, got 1"),
        ("cat_threshold=5", "cat_threshold=4294967296", "must be words of 32 bits"),
        ("cat_threshold=5", "cat_threshold=-1", "must be words of 32 bits"),
        ("num_cat=1", "num_cat=2147483647", "cat_boundaries of tree 0 must have 2147483648 numbers, got 2"),
        ("threshold=0 -1.5", "threshold=1 -1.5", "names set 1; there are 1"),
        ("split_feature=0 1", "split_feature=0 0", "splits feature 0 by categories and by thresholds"),
        ("pandas_categorical:null", 'pandas_categorical:[["a"]]', "has 1 categories, and a split on more"),
        ("pandas_categorical:null", 'pandas_categorical:[["a", "b", "a"]]', "two categories of one name"),
        ("pandas_categorical:null", 'pandas_categorical:[["a", "b", null]]', "neither text nor number"),
        (
            "pandas_categorical:null",
            'pandas_categorical:[["a"], ["b"]]',
            "2 columns of categories, of which 1",
        ),
        ("pandas_categorical:null", "pandas_categorical:{", "pandas_categorical is not JSON"),
    ],
)
def test_edited_sets_of_lightgbm(tmp_path, old, new, words):
    text = LIGHTGBM.replace("num_cat=0", SETS, 1).replace("decision_type=10 8", "decision_type=1 8")
    text = text.replace("threshold=0.5 -1.5", "threshold=0 -1.5")
    (tmp_path / "good.txt").write_text(text)
    ranker = mcrank.from_lightgbm(tmp_path / "good.txt")
    assert ranker.categories_ == {0: ("0", "2")}
    rows = [[0, -2], [1, -2], [2, -2], [np.nan, -2], [-1, -2]]
    assert ranker.predict_raw(rows)[:, 0].tolist() == [-0.125, 0.625, -0.125, 0.625, 0.625]
    assert old in text
    assert words in refused(tmp_path, text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("categories_segments", [2], "places among the 2 categories"),
        ("categories_sizes", [3], "places among the 2 categories"),
        ("categories_sizes", [-1], "places among the 2 categories"),
        ("categories_segments", [-1], "places among the 2 categories"),
        ("categories_segments", [2**62], "places among the 2 categories"),
        ("categories", [0, -1], "splits on the category -1"),
        ("categories", [0, 65536], "splits on the category 65536; codes from 0 to 65535"),
        ("categories_nodes", [7], "the nodes whose split_type is 1"),
        ("categories_sizes", None, "has no 'categories_sizes'"),
    ],
)
def test_edited_sets_of_xgboost(tmp_path, key, value, words):
    model = xgboost_model()
    tree = model["learner"]["gradient_booster"]["model"]["trees"][0]
    tree |= {"split_type": [1, 0, 0, 0, 0], "categories": [0, 2], "categories_nodes": [0]}
    tree |= {"categories_segments": [0], "categories_sizes": [2]}
    (tmp_path / "good.json").write_text(json.dumps(model))
    rows = [[0, -2], [1, -2], [2, -2], [np.nan, -2], [-1, -2], [99, -2]]
    found = mcrank.from_xgboost(tmp_path / "good.json").predict_raw(rows)[:, 0]
    assert found.tolist() == [1.0, 0.25, 1.0, 0.25, 0.25, 0.25]
    assert words in refused(tmp_path, json.dumps(changed(model, (*TREE, key), value)))


def changed(model, path, value):
    model = copy.deepcopy(model)
    at = model
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return model


BOOSTER = ("learner", "gradient_booster", "model")
TREE = (*BOOSTER, "trees", 0)
PARAM = ("learner", "learner_model_param")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ((*TREE, "left_children"), [1, -1, 0, -1, -1], "node 0 of tree 0: it is a child of more than one"),
        ((*TREE, "left_children"), [1, -1, 1, -1, -1], "node 1 of tree 0: it is a child of more than one"),
        ((*TREE, "left_children"), [1, -1, 99, -1, -1], "left child must be a node of its tree, got 99"),
        ((*TREE, "left_children"), [1, -1, 2**63 - 1, -1, -1], "left child must be a node of its tree"),
        ((*TREE, "left_children"), [1, -1, -7, -1, -1], "left child must be a node of its tree, got -7"),
        ((*TREE, "left_children"), [1, -1], "trees[0].left_children must have 5 entries, got 2"),
        ((*TREE, "left_children"), [1, -1, 3.5, -1, -1], "must be a list of integers"),
        ((*TREE, "left_children"), [1, -1, 2**70, -1, -1], "a list of integers within bounds"),
        ((*TREE, "left_children"), [1, -1, "3", -1, -1], "must be a list of integers"),
        ((*TREE, "right_children"), [2, 3, 4, -1, -1], "-1 where left_children is"),
        ((*TREE, "split_indices"), [0, 0, -1, 0, 0], "split_indices must be features, none negative"),
        ((*TREE, "split_indices"), [0, 0, 2, 0, 0], "node 2 of tree 0: feature must be a feature below 2"),
        ((*TREE, "split_conditions"), [float("nan"), 0.0, 0.0, 0.0, 0.0], "threshold must be a number"),
        ((*TREE, "split_conditions"), [0.0, 1e39, 0.0, 0.0, 0.0], "value must be finite, got inf"),
        ((*TREE, "split_conditions"), None, "trees[0] has no 'split_conditions'"),
        ((*TREE, "default_left"), [2, 0, 0, 0, 0], "default_left must be 0 or 1"),
        ((*TREE, "split_type"), [1, 0, 0, 0, 0], "the nodes whose split_type is 1"),
        ((*TREE, "split_type"), [2, 0, 0, 0, 0], "0 for a threshold or 1 for a set of categories"),
        ((*TREE, "categories_nodes"), [0], "the nodes whose split_type is 1"),
        ((*TREE, "tree_param", "num_nodes"), "2147483647", "must have 2147483647 entries, got 5"),
        ((*TREE, "tree_param", "size_leaf_vector"), "3", "leaves of several numbers cannot be imported"),
        ((*BOOSTER, "gbtree_model_param", "num_trees"), "2147483647", "it has 1"),
        ((*BOOSTER, "tree_info"), [3], "tree_info must be outputs from 0 to 0"),
        ((*BOOSTER, "iteration_indptr"), [0, 5], "iteration_indptr must be numbers that rise from 0 to 1"),
        ((*BOOSTER, "trees"), {}, "trees must be a list, got an object of 0"),
        ((*PARAM, "num_feature"), "99999999999", "num_feature must be an integer from 1 to 131072"),
        ((*PARAM, "num_class"), "99999999", "num_class must be an integer from 0 to 1000"),
        ((*PARAM, "num_target"), "2", "predicts 2 numbers for a row"),
        ((*PARAM, "base_score"), "nan", "base_score must be a finite number"),
        ((*PARAM, "base_score"), "[1,2,3]", "base_score must be a finite number, or one for each of 1"),
        (("learner", "objective", "name"), "my:own", "name must be one of reg:squarederror"),
        (("learner", "gradient_booster", "name"), "gbforest", "name must be gbtree, dart or gblinear"),
        (("learner", "feature_names"), ["a"], "feature_names must have 2 names, got 1"),
        (("learner", "feature_names"), ["a", 2], "feature_names[1] must be a text, got 2"),
        (("learner",), [], "learner must be an object, got a list of 0"),
        (("learner",), None, "the file has no 'learner'"),
    ],
)
def test_edited_xgboost(tmp_path, path, value, words):
    assert words in refused(tmp_path, json.dumps(changed(xgboost_model(), path, value)))


FEATURE = ("features_info", "float_features", 0)
SYMMETRIC = ("oblivious_trees", 0)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ((*SYMMETRIC, "leaf_values"), [1.0] * 3, "oblivious_trees[0].leaf_values must have 4 entries, got 3"),
        ((*SYMMETRIC, "leaf_values"), [float("inf")] * 4, "value must be finite"),
        ((*SYMMETRIC, "splits", 0, "float_feature_index"), 2, "must be an integer from 0 to 1"),
        ((*SYMMETRIC, "splits", 0, "float_feature_index"), -1, "must be an integer from 0 to 1"),
        ((*SYMMETRIC, "splits", 0, "border"), float("nan"), "border must be a finite number"),
        ((*SYMMETRIC, "splits", 0, "border"), "x", "border must be a finite number"),
        ((*SYMMETRIC, "splits", 0, "split_type"), "OnlineCtr", "splits by categories"),
        ((*SYMMETRIC, "splits"), catboost_model()["oblivious_trees"][0]["splits"] * 30, "at most 16 splits"),
        ((*FEATURE, "flat_feature_index"), 10**9, "must be an integer from 0 to 131071"),
        ((*FEATURE, "flat_feature_index"), 1, "must be a feature of its own"),
        ((*FEATURE, "nan_value_treatment"), "Perhaps", "must be AsIs, AsFalse or AsTrue"),
        (("features_info", "categorical_features"), [{}], "numeric features can be imported"),
        (("scale_and_bias",), [1e308, [0.0]], "sums are not finite"),
        (("scale_and_bias",), [1], "a scale and a list of biases"),
        (("scale_and_bias",), [1, []], "1 to 1000 finite numbers"),
        (("oblivious_trees",), None, "the file has no 'trees'"),
        (("model_info", "params", "loss_function", "type"), "MultiClass", "class"),
    ],
)
def test_edited_catboost(tmp_path, path, value, words):
    model = changed(catboost_model(2 if value == "MultiClass" else 1), path, value)
    if value == "MultiClass":
        model["model_info"]["class_params"] = {"class_names": ["bad", "good"]}
    assert words in refused(tmp_path, json.dumps(model))


def test_edited_branching_catboost(tmp_path):
    assert "trees[0].right has no 'left'" in refused(
        tmp_path, json.dumps(changed(branching_model(), ("trees", 0, "right", "left"), None))
    )
    assert "value must be a list of numbers" in refused(
        tmp_path, json.dumps(changed(branching_model(), ("trees", 0, "left", "value"), ["a"]))
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("## LambdaMART", "## RankBoost", "line 1 says it is 'RankBoost'"),
        ("<feature> 2 </feature>", "<feature> 0 </feature>", "line 8: a feature must be from 1 to 131072"),
        ("<feature> 2 </feature>", "<feature> 99999999 </feature>", "a feature must be from 1 to 131072"),
        (
            "<feature> 2 </feature>",
            "<feature> 1e99 </feature>",
            "a feature must be from 1 to 131072, got inf",
        ),
        ('id="1" weight', 'id="1"weight', "line 6: a tag must have name="),
        ("<feature> 2 </feature>", "<feature> two </feature>", "feature must be a number, got 'two'"),
        ("<feature> 2 </feature>", "<feature> 2", "line 9: </feature> should stand here, got <threshold>"),
        ("<threshold> 0.5 </threshold>", "<threshold> NaN </threshold>", "threshold must be a number"),
        ("<output> 2.0 </output>", "<output> Infinity </output>", "line 17: an output must be finite"),
        ('weight="0.1"', 'weight="heavy"', "line 6: a <tree> must have one weight"),
        ("</ensemble>", "", "cut off where <tree> or </ensemble> should follow"),
        ('<split pos="left">', "", "should stand here, got <output>"),
        ("<output> -1.5 </output>", "<output> -1.5 </output><split>", "a leaf for none"),
        ("<output> 2.0 </output>", "<output> 2.0 </output> > ", "belongs to no tag"),
        ("<ensemble>", "<!DOCTYPE x [<!ENTITY a 'b'>]><ensemble>", "belongs to no tag"),
    ],
)
def test_edited_ranklib(tmp_path, old, new, words):
    assert old in RANKLIB
    assert words in refused(tmp_path, RANKLIB.replace(old, new, 1))


@pytest.mark.parametrize(
    ("line", "words"),
    [("", "one line of weights, got 0"), ("1:nan", "feature 1 must have one finite weight"),
     ("1:1 1:2", "feature 1 must have one finite weight"), ("-1:1", "must have feature:weight, got '-1:1'"),
     ("999999999:1", "must have feature:weight"), ("1:1\n2:2", "one line of weights, got 2"),
     ("1:1e308 2:1e308", "scores are not finite")],
)  # fmt: skip
def test_edited_weights_of_ranklib(tmp_path, line, words):
    assert words in refused(tmp_path, f"## Coordinate Ascent\n{line}\n")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "begins with nothing"),
        (b"\x80\x04\x95", "is a pickle, which can run anything"),
        (b"binf\x00\x00", "is an old binary model of XGBoost"),
        (b'[{"nodeid": 0}]', "is a dump of trees"),
        (b'{"name":"tree","num_tree_per_iteration":1,"tree_info":[]}', "is a dump_model of LightGBM"),
        (b"\x89MCR\r\n\x1a\n", "is a model of mcrank already"),
        (b"GIF89a", "no model of lightgbm, xgboost, catboost, ranklib: it begins with b'GIF89a'"),
        (b"tree\n\xff\xfe", "is not text: line 2 is not UTF-8"),
        (b'{"learner": {', "is not JSON: line 1"),
        (b'{"a": 1,\n"a": 2}', "has the key 'a' twice"),
        (b'{"learner":' + b"[" * 10**6, "nested too deeply"),
        (b'{"learner": ' + b"1" * 10_000 + b"}", "is not JSON"),
        (to_ubjson(xgboost_model())[:-40], "is not UBJSON: it is cut off"),
        (b"{L\x7f\xff\xff\xff\xff\xff\xff\xffa", "is beyond the file at byte 10"),
        (b"{i\x01a[$Z#L\x00\x00\x00\x00\x00\x00\x00\x00}", "a list cannot have the type 'Z'"),
        (b"{i\x01a" + b"[" * 100_000, "nested deeper than 64"),
        (b"{i\x01aZi\x01aZ}", "the key 'a' is there twice"),
        (b"{i\x01aZ}x", "there is more behind its end"),
    ],
)
def test_what_is_no_model(tmp_path, content, words):
    assert words in refused(tmp_path, content)


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in FILES for name in FILES[kind]])
def test_every_cut_is_refused_or_leaves_a_whole_model(tmp_path, kind, name):
    content, path = FILES[kind][name], tmp_path / "cut"
    path.write_bytes(content)
    whole = import_file(path)
    accepted = []
    for size in range(0, len(content), max(1, len(content) // 150)):
        path.write_bytes(content[:size])
        try:
            accepted.append(import_file(path))
        except ModelFileError as error:
            words = str(error)
            assert words.startswith(str(path))
    # Of LightGBM only what describes the model may be gone; a weight of RankLib may lose digits.
    assert not accepted or kind == "lightgbm" or name == "linear"
    if kind == "lightgbm":
        assert {to_bytes(ranker) for ranker in accepted} == {to_bytes(whole)}


def test_a_chain_of_many_nodes_and_a_cycle_out_of_reach_take_little_time(tmp_path):
    n = 40_000
    chain = {
        "num_leaves": n + 1, "num_cat": 0, "split_feature": " ".join(["0"] * n),
        "threshold": " ".join(["1"] * n), "decision_type": " ".join(["10"] * n),
        "left_child": " ".join(str(-1 - i) for i in range(n)),
        "right_child": " ".join([*map(str, range(1, n)), str(-1 - n)]),
        "leaf_value": " ".join(["0.5"] * (n + 1)),
    }  # fmt: skip
    head, rest = LIGHTGBM.split("Tree=0")[0].replace("tree_sizes=300 300\n", ""), "\n\nend of trees\n"

    def text(tree):
        return head + "Tree=0\n" + "\n".join(f"{k}={v}" for k, v in tree.items()) + rest

    path = tmp_path / "chain.txt"
    path.write_text(text(chain))
    start = time.process_time()
    ranker = import_file(path)
    assert ranker.predict([[1.0, 0.0], [2.0, 0.0]]).tolist() == [0.5, 0.5]
    # Two nodes that are each other's children, and nobody else's.
    right = chain["right_child"].split()
    right[n // 2] = "0"
    path.write_text(text(chain | {"right_child": " ".join(right)}))
    with pytest.raises(ModelFileError, match="child of more than one"):
        import_file(path)
    right[n // 2], right[-1] = str(-1 - n), str(n // 2 + 1)
    path.write_text(text(chain | {"right_child": " ".join(right)}))
    with pytest.raises(ModelFileError, match="cannot be reached from the root"):
        import_file(path)
    assert time.process_time() - start < 10


def test_a_pipe_or_a_folder_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ""):
        with pytest.raises(McrankError, match=r"not a regular file|Is a directory"):
            import_file(tmp_path / name)


def test_the_command_writes_nothing_for_a_bad_file(tmp_path, capsys):
    path, out = tmp_path / "m.txt", tmp_path / "m.mcrank"
    path.write_text(LIGHTGBM.replace("num_cat=0", "num_cat=1", 1))
    assert main(["import", str(path), "--out", str(out)]) == 3
    assert "cat_boundaries of tree 0 is missing" in capsys.readouterr().err
    assert not out.exists()
