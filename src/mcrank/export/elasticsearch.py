"""Elasticsearch and OpenSearch with the learning-to-rank plug-in: bodies of requests, in a folder.

Trees go as ``model/xgboost+json``, linear rankers as ``model/linear``. The plug-in knows one sum of trees, as
it is or through a sigmoid: ordinal rankers become one sigmoid model for each boundary of grades, and a query
that adds them up; softmax has no such form.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mcrank.arrays import FeatureArray, IntArray
from mcrank.export.nested import (
    DISTIL,
    add_leaves,
    behind,
    depths,
    linear_parts,
    linear_trouble,
    nested,
    sums,
    too_deep,
)
from mcrank.export.target import Consumed, Exportable, Target
from mcrank.export.trees import FLOAT_MAX, Tree, next_float32
from mcrank.options import option
from mcrank.scorers.linear import Linear

_AS_IS, _SIGMOID = "rank:pairwise", "binary:logistic"  # of several words that mean the same there
_QUERY, _FEATURES = "query.json", "featureset.json"


class Elasticsearch(Target):
    """Feature set, model and query as bodies of requests to the learning-to-rank plug-in."""

    name: ClassVar[str] = "elasticsearch"
    scorers: ClassVar[tuple[str, ...]] = ("forest", "linear")
    heads: ClassVar[tuple[str, ...]] = ("identity", "exp", "cumulative")
    exactness: ClassVar[str] = (
        "1e-6 of the score (sums in float); of linear models of two grades log-odds, whose order is the same"
    )
    learned: ClassVar[bool] = True
    missing: ClassVar[str] = (
        "trees: a feature whose query does not match goes where NaN went in training; linear rankers: it is 0"
    )
    single: ClassVar[bool] = True
    owned: ClassVar[str] = r"model(_\d+)?\.json"
    advice: ClassVar[str] = DISTIL
    consumer: ClassVar[str] = "Elasticsearch's plug-in 1.5.9 and newer"

    model_name: str = option(default="mcrank", help="name of the model in the plug-in's store")
    window: int = option(default=100, low=1, high=10_000, help="documents the query ranks anew")
    nonnegative: bool = option(
        default=False, help="add a constant so that no score is below 0, as outside of rescoring none may be"
    )

    def refuses(self, model: Exportable) -> str | None:
        """Return why this model cannot go there."""
        if model.values is not None and not np.diff(model.values).any():
            return "every grade is worth the same"
        if isinstance(model.scorer, Linear):
            if self.nonnegative:
                return "scores of a linear ranker have no lower bound"
            return linear_trouble(model.scorer, model.feature_names)
        return too_deep(model.forest)

    def warns(self, model: Exportable) -> Iterable[str]:
        """Yield what the user of this model has to know."""
        if isinstance(model.scorer, Linear):
            yield (
                f"{self.name} takes a feature whose query does not match for 0, and this linear ranker takes "
                "a missing value for the mean of the training rows."
            )

    def seen(self, X: FeatureArray, model: Exportable) -> FeatureArray:
        """Return rows as the plug-in takes them: nothing is missing to a linear model, and no tree can have
        the largest float below its threshold.
        """
        if isinstance(model.scorer, Linear):
            return np.where(np.isnan(X), np.float32(0), X)
        return np.where(np.float32(FLOAT_MAX) == X, np.float32(np.inf), X)

    def comparable(self, model: Exportable) -> Exportable:
        """Return the model as it was learned. What goes by the score alone, as odds of boundaries do, has one
        order, that of grades, whatever they are worth.
        """
        shown = super().comparable(model)
        return shown if shown is model else replace(shown, values=shown.head.values)

    def content(self, model: Exportable) -> dict[str, bytes]:
        """Return the bodies of the requests, by file name."""
        names = model.feature_names
        parts: list[dict[str, Any]]
        if isinstance(model.scorer, Linear):
            weights = linear_parts(model.scorer)[0].tolist()
            parts = [{"type": "model/linear", "definition": dict(zip(names, weights, strict=True))}]
        else:
            parts = [self._part(trees, model.head.kind, names) for trees in sums(model.forest)]
        models = {
            f"{file}.json": _dumped({"model": {"name": name, "model": part}})
            for (file, name), part in zip(self._names(len(parts)), parts, strict=True)
        }
        return {_FEATURES: _dumped(_feature_set(names)), **models, _QUERY: _dumped(self._query(model))}

    def _names(self, count: int) -> list[tuple[str, str]]:
        """File and name of each of so many models."""
        if count == 1:
            return [("model", self.model_name)]
        return [(f"model_{k}", f"{self.model_name}_{k}") for k in range(1, count + 1)]

    def _part(self, trees: list[Tree], head: str, names: tuple[str, ...]) -> dict[str, Any]:
        splits = [_split(tree, names) for tree in trees]
        if self.nonnegative and head != "cumulative":
            splits.append({"nodeid": 0, "leaf": _lift(trees)})
        definition = {"objective": _SIGMOID if head == "cumulative" else _AS_IS, "splits": splits}
        return {"type": "model/xgboost+json", "definition": json.dumps(definition, separators=(",", ":"))}

    def _query(self, model: Exportable) -> dict[str, Any]:
        """A search that ranks the first documents anew; models of boundaries are added up."""
        weights = _weights(model)
        parts: list[dict[str, Any]] = []
        for (_, name), weight in zip(self._names(len(weights)), weights, strict=True):
            if weight == 0.0:
                continue
            part: dict[str, Any] = {"sltr": {"model": name, "params": {"keywords": "words of the query"}}}
            if weight != 1.0:  # a boost of sltr itself would multiply features
                part = {"function_score": {"query": part, "functions": [{"weight": weight}]}}
            parts.append(part)
        scored = parts[0] if len(parts) == 1 else {"bool": {"should": parts}}
        rescore = {"rescore_query": scored, "query_weight": 0, "rescore_query_weight": 1}
        return {
            "query": {"match": {"text": "words of the query"}},
            "rescore": {"window_size": self.window, "query": rescore},
        }

    def consume(self, model: Exportable, path: Path, X: FeatureArray) -> Consumed:
        """Score with a twin of the plug-in's arithmetic, from the bodies that were written."""
        query = json.loads((path / _QUERY).read_text(encoding="utf-8"))
        weights = _query_weights(query["rescore"]["query"]["rescore_query"])
        columns = {name: k for k, name in enumerate(model.feature_names)}
        stored = {}
        for file in sorted(path.glob("model*.json")):
            body = json.loads(file.read_text(encoding="utf-8"))["model"]
            stored[body["name"]] = body["model"]
        total = np.zeros(len(X), dtype=np.float32)
        for name, weight in weights.items():
            score = _linear_twin if stored[name]["type"] == "model/linear" else _trees_twin
            total += np.float32(weight) * score(stored[name]["definition"], columns, X)
        scores = total.astype(np.float64) + self._dropped(model)
        # The plug-in ranks by the logarithm of a score, and by log-odds where they are a linear map.
        if model.head.kind == "exp" or isinstance(model.scorer, Linear):
            scores = behind(model, scores[None])
        return Consumed(scores, self.consumer, twin=True)

    def _dropped(self, model: Exportable) -> float:
        """The constant by which our scores are above the plug-in's; no order depends on it."""
        if isinstance(model.scorer, Linear):
            return linear_parts(model.scorer)[1]
        if model.values is not None:
            return float(model.values[0])
        return -_lift(sums(model.forest)[0]) if self.nonnegative else 0.0


class OpenSearch(Elasticsearch):
    """The same for OpenSearch, whose plug-in sends missing values their own way since 3.8."""

    name: ClassVar[str] = "opensearch"
    consumer: ClassVar[str] = "OpenSearch 3.8 and newer"
    missing: ClassVar[str] = (
        "a feature whose query does not match goes where NaN went in training, from OpenSearch 3.8 on; "
        "always right before"
    )


def _weights(model: Exportable) -> list[float]:
    """What each model counts in the sum: the worth of one grade more. A linear one knows no grades."""
    if model.values is None or isinstance(model.scorer, Linear):
        return [1.0]
    steps: list[float] = np.diff(model.values).tolist()
    return steps


def _lift(trees: list[Tree]) -> float:
    """What lifts every sum of these trees to 0 or above."""
    return max(0.0, -sum(float(tree.value[tree.feature < 0].min()) for tree in trees))


def _split(tree: Tree, names: tuple[str, ...]) -> dict[str, Any]:
    """A tree as XGBoost dumps it."""
    deep, conditions = depths(tree).tolist(), next_float32(tree.threshold).tolist()

    def leaf(node: int) -> dict[str, Any]:
        return {"nodeid": node, "leaf": float(tree.value[node])}

    def split(node: int, yes: dict[str, Any], no: dict[str, Any]) -> dict[str, Any]:
        left, right = int(tree.left[node]), int(tree.right[node])
        return {
            "nodeid": node,
            "depth": deep[node],
            "split": names[tree.feature[node]],
            # Beyond the last float there is only infinity, which JSON does not have.
            "split_condition": min(conditions[node], FLOAT_MAX),
            "yes": left,
            "no": right,
            "missing": left if tree.missing_left[node] else right,
            "children": [yes, no],
        }

    return nested(tree, leaf, split)


def _feature_set(names: tuple[str, ...]) -> dict[str, Any]:
    """Features by name; what each asks for only the index knows, so a match of a field stands there."""
    features = [
        {
            "name": name,
            "params": ["keywords"],
            "template_language": "mustache",
            "template": {"match": {name: "{{keywords}}"}},
        }
        for name in names
    ]
    return {"featureset": {"features": features}}


def _dumped(body: dict[str, Any]) -> bytes:
    return (json.dumps(body, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()


def _query_weights(scored: dict[str, Any]) -> dict[str, float]:
    """Models a query asks for, and what each counts."""
    if "bool" in scored:
        found: dict[str, float] = {}
        for part in scored["bool"]["should"]:
            found |= _query_weights(part)
        return found
    if "function_score" in scored:
        inside = scored["function_score"]
        ((name, weight),) = _query_weights(inside["query"]).items()
        return {name: weight * inside["functions"][0]["weight"]}
    return {scored["sltr"]["model"]: 1.0}


def _linear_twin(definition: dict[str, float], columns: dict[str, int], X: FeatureArray) -> FeatureArray:
    """A float32 sum in the order of the features; a missing one counts as 0."""
    total = np.zeros(len(X), dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for name, weight in definition.items():
            total += np.float32(weight) * np.nan_to_num(
                X[:, columns[name]], nan=0.0, posinf=None, neginf=None
            )
    return total


def _trees_twin(definition: str, columns: dict[str, int], X: FeatureArray) -> FeatureArray:
    """A float32 sum of leaves; a value below the condition goes to the first child."""
    parsed = json.loads(definition)
    total = np.zeros(len(X), dtype=np.float32)

    def read(node: dict[str, Any], rows: IntArray) -> Any:
        if "leaf" in node:
            return node["leaf"]
        x = X[rows, columns[node["split"]]]
        left = np.where(np.isnan(x), node["missing"] == node["yes"], np.float32(node["split_condition"]) > x)
        yes, no = node["children"]
        return left, yes, no

    for root in parsed["splits"]:
        add_leaves(root, read, total)
    if parsed["objective"] == _SIGMOID:
        return (1.0 / (1.0 + np.exp(-total.astype(np.float64)))).astype(np.float32)
    return total
