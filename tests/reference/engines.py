"""Exports to search engines, walked one row at a time: what their sources do, in float."""

from __future__ import annotations

import json
import math
from xml.etree import ElementTree

import numpy as np

F = np.float32


def walk_elasticsearch(path, names, row):
    """A query as the plug-in runs it, feature by feature, in float."""
    body = json.loads((path / "query.json").read_text())["rescore"]["query"]
    assert (body["query_weight"], body["rescore_query_weight"]) == (0, 1)
    models = {}
    for file in path.glob("model*.json"):
        models |= {m["name"]: m["model"] for m in [json.loads(file.read_text())["model"]]}

    def score(name):
        part = models[name]
        if part["type"] == "model/linear":
            total = F(0)
            for feature, weight in part["definition"].items():
                x = row[names.index(feature)]
                total += F(weight) * (F(0) if np.isnan(x) else x)
            return total
        definition = json.loads(part["definition"])
        total = F(0)
        for node in definition["splits"]:
            while "leaf" not in node:
                assert set(node) == {
                    "nodeid",
                    "depth",
                    "split",
                    "split_condition",
                    "yes",
                    "no",
                    "missing",
                    "children",
                }
                x = row[names.index(node["split"])]
                to = (
                    node["missing"]
                    if np.isnan(x)
                    else node["yes"]
                    if F(node["split_condition"]) > x
                    else node["no"]
                )
                (node,) = [child for child in node["children"] if child["nodeid"] == to]
            assert set(node) == {"nodeid", "leaf"}
            total += F(node["leaf"])
        return F(1 / (1 + math.exp(-float(total)))) if definition["objective"] == "binary:logistic" else total

    def ask(query):
        if "bool" in query:
            return sum(ask(part) for part in query["bool"]["should"])
        if "function_score" in query:
            return F(query["function_score"]["functions"][0]["weight"]) * ask(
                query["function_score"]["query"]
            )
        return score(query["sltr"]["model"])

    return float(ask(body["rescore_query"]))


def walk_solr(path, names, row):
    features = {f["name"]: f["params"] for f in json.loads((path / "features.json").read_text())}
    body = json.loads((path / "model.json").read_text())
    values = {}
    for feature in body["features"]:
        x = row[names.index(feature["name"])]
        x = F(features[feature["name"]]["defaultValue"]) if np.isnan(x) else x
        norm = feature.get("norm", {"params": {"avg": "0", "std": "1"}})["params"]
        with np.errstate(over="ignore"):  # infinite is beyond every threshold, as it should be
            values[feature["name"]] = (x - F(norm["avg"])) / F(norm["std"])
    total = F(0)
    if body["class"].endswith("LinearModel"):
        for name, weight in body["params"]["weights"].items():
            total += F(weight) * values[name]
        return float(total)
    assert body["params"]["isNullSameAsZero"] is False
    for tree in body["params"]["trees"]:
        node = tree["root"]
        while "value" not in node:
            x = values[node["feature"]]
            left = node["missing"] == "left" if np.isnan(x) else x <= F(node["threshold"]) + F(1e-6)
            node = node["left" if left else "right"]
        total += F(tree["weight"]) * F(node["value"])
    return float(total)


def walk_ranklib(path, names, row):
    lines = path.read_text().splitlines()
    assert lines[0] == "## LambdaMART"
    total = F(0)
    for tree in ElementTree.fromstring("".join(line for line in lines if not line.startswith("##"))):
        (node,) = tree
        while node[0].tag != "output":
            feature, threshold, left, right = node
            x = row[int(feature.text) - 1]
            assert (left.get("pos"), right.get("pos")) == ("left", "right")
            node = left if (F(0) if np.isnan(x) else x) <= F(threshold.text) else right
        total += F(tree.get("weight")) * F(node[0].text)
    return float(total)
