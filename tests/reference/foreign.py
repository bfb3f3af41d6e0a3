"""Naive twins of other libraries' scoring: straight from what a file says, one row and one node at a time.

They believe the file, so they are asked only about files that were accepted; a walk of too many steps is an
error all the same.
"""

from __future__ import annotations

import math
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np


class Endless(Exception):
    """A walk that does not end."""


def lightgbm_raw(text: str, row: list[float]) -> list[float]:
    """Raw scores of a text model."""
    head, *trees = re.split(r"^Tree=\d+\s*$", text.split("end of trees")[0], flags=re.M)
    told = _keys(head)
    outputs = int(told.get("num_tree_per_iteration", told.get("num_class", "1")))
    sums = [0.0] * outputs
    sigmoid = re.search(r"sigmoid:(\S+)", told.get("objective", ""))
    named = told.get("objective", "").startswith(("binary", "multiclassova", "cross_entropy"))
    factor = float(sigmoid[1]) if sigmoid and named else 1.0
    if "average_output" in map(str.strip, head.split("\n")) or "average_output" in told:
        factor /= max(1, len(trees) // outputs)
    for number, tree in enumerate(trees):
        sums[number % outputs] += _lightgbm_tree(_keys(tree), row) * factor
    return sums


def _keys(text: str) -> dict[str, str]:
    lines = (line.strip().split("=", 1) for line in text.split("\n") if "=" in line)
    return dict(lines)


def _lightgbm_tree(tree: dict[str, str], row: list[float]) -> float:
    values = [float(word) for word in tree["leaf_value"].split()]
    if int(tree["num_leaves"]) == 1:
        return values[0]
    lists = {name: tree[name].split() for name in ("split_feature", "threshold", "left_child", "right_child")}
    node = 0
    for _ in range(len(values)):
        x = row[int(float(lists["split_feature"][node]))]
        decision = int(float(tree["decision_type"].split()[node]))
        missing = decision >> 2 & 3
        if decision & 1:
            left = _in_lightgbm_set(tree, int(float(lists["threshold"][node])), x)
            node = int(float(lists["left_child" if left else "right_child"][node]))
            if node < 0:
                return values[-1 - node]
            continue
        if math.isnan(x) and missing != 2:
            x = 0.0
        if (missing == 1 and abs(x) <= 1e-35) or (missing == 2 and math.isnan(x)):
            left = bool(decision & 2)
        else:
            left = x <= float(lists["threshold"][node])
        node = int(float(lists["left_child" if left else "right_child"][node]))
        if node < 0:
            return values[-1 - node]
    raise Endless


def _in_lightgbm_set(tree: dict[str, str], number: int, x: float) -> bool:
    """Whether a whole number is in a set of categories; LightGBM itself cuts off fractions before."""
    if not (0 <= x < 2**31 and x == math.floor(x)):
        return False
    ends = [int(float(word)) for word in tree["cat_boundaries"].split()]
    words = tree["cat_threshold"].split()[ends[number] : ends[number + 1]]
    code = int(x)
    return code // 32 < len(words) and bool(int(float(words[code // 32])) >> code % 32 & 1)


def xgboost_raw(model: Any, row: list[float]) -> list[float]:
    """Margins of a JSON model, its base score as it stands."""
    learner = model["learner"]
    booster, param = learner["gradient_booster"], learner["learner_model_param"]
    outputs = max(1, int(param.get("num_class", 0)), int(param.get("num_target", 0)))
    objective = learner["objective"]["name"]
    texts = str(param["base_score"]).strip("[]").split(",")
    base = [float(np.float32(float(text))) for text in texts]
    sums = [_margin(objective, b) for b in (base * outputs)[:outputs]]
    if booster["name"] == "gblinear":
        weights = [float(np.float32(w)) for w in booster["model"]["weights"]]
        known = [0.0 if math.isnan(x) else x for x in row]
        return [sums[0] + weights[-1] + sum(w * x for w, x in zip(weights, known, strict=False))]
    inner = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    factors = booster["weight_drop"] if booster["name"] == "dart" else [1.0] * len(inner["trees"])
    kept = len(inner["trees"])
    attributes = learner.get("attributes") or {}
    if "scikit_learn" in attributes and "best_iteration" in attributes:
        starts = inner.get("iteration_indptr", list(range(0, len(inner["trees"]) + 1, outputs)))
        kept = starts[min(int(attributes["best_iteration"]) + 1, len(starts) - 1)]
    for tree, output, factor in list(zip(inner["trees"], inner["tree_info"], factors, strict=True))[:kept]:
        sums[output] += _xgboost_tree(tree, row) * float(np.float32(factor))
    return sums


def _margin(objective: str, base: float) -> float:
    if objective in ("binary:logistic", "reg:logistic"):
        return -math.log(1 / base - 1)
    logs = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
    return math.log(base) if objective in logs else base


def _xgboost_tree(tree: dict[str, Any], row: list[float]) -> float:
    node = 0
    for _ in range(len(tree["left_children"])):
        condition = np.float32(tree["split_conditions"][node])
        if tree["left_children"][node] == -1:
            return float(condition)
        x = row[tree["split_indices"][node]]
        left = bool(tree["default_left"][node]) if math.isnan(x) else np.float32(x) < condition
        if not math.isnan(x) and tree.get("split_type", [0] * (node + 1))[node] == 1:
            place = list(tree["categories_nodes"]).index(node)
            first, count = tree["categories_segments"][place], tree["categories_sizes"][place]
            left = not (0 <= x < 2**24 and int(x) in list(tree["categories"])[first : first + count])
        node = tree["left_children" if left else "right_children"][node]
    raise Endless


def catboost_raw(model: dict[str, Any], row: list[float]) -> list[float]:
    """Raw values of a JSON model."""
    features = model["features_info"]["float_features"]
    scale, bias = model["scale_and_bias"]
    bias = [float(b) for b in (bias if isinstance(bias, list) else [bias])]

    def holds(split: dict[str, Any]) -> bool:
        feature = features[int(split["float_feature_index"])]
        x = row[int(feature["flat_feature_index"])]
        if math.isnan(x):
            return bool(feature["nan_value_treatment"] == "AsTrue")
        return bool(np.float32(x) > np.float32(float(split["border"])))

    sums = [0.0] * len(bias)
    for tree in model.get("oblivious_trees") or []:
        leaf = sum(holds(split) << bit for bit, split in enumerate(tree["splits"]))
        for k in range(len(bias)):
            sums[k] += tree["leaf_values"][leaf * len(bias) + k] * float(scale)
    for tree in [] if "oblivious_trees" in model else model["trees"]:
        at = tree
        while "split" in at:
            at = at["right" if holds(at["split"]) else "left"]
        values = at["value"] if isinstance(at["value"], list) else [at["value"]]
        sums = [total + float(value) * float(scale) for total, value in zip(sums, values, strict=True)]
    return [total + b for total, b in zip(sums, bias, strict=True)]


def ranklib_score(text: str, row: list[float]) -> float:
    """Score of a text model; missing values are 0, sums are in double."""
    row = [0.0 if math.isnan(x) else x for x in row]
    body = "\n".join(line for line in text.split("\n") if not line.startswith("##"))
    if "<" not in body:
        pairs = (pair.split(":") for pair in body.split())
        return sum(float(w) * (row[int(name) - 1] if int(name) else 1.0) for name, w in pairs)
    ensembles = ElementTree.fromstring(f"<all>{body}</all>").findall("ensemble")
    total = 0.0
    for tree in [tree for ensemble in ensembles for tree in ensemble.findall("tree")]:
        node = tree.find("split")
        assert node is not None
        while node.find("feature") is not None:
            x = row[int(float(node.findtext("feature") or "")) - 1]
            left = np.float32(x) <= np.float32(float(node.findtext("threshold") or ""))
            node = node.findall("split")[0 if left else 1]
        total += float(np.float32(float(node.findtext("output") or ""))) * float(
            np.float32(tree.get("weight"))
        )
    return total / max(1, len(ensembles))
