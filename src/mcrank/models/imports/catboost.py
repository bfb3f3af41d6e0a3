"""CatBoost: its JSON models, read without the library, and its binary ones through it."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mcrank.arrays import Array
from mcrank.errors import ModelFileError
from mcrank.models.imports.outcome import (
    CLASSES,
    EACH,
    LOG,
    ODDS,
    SCORE,
    Grades,
    Outcome,
    Wishes,
    check_features,
    head_for,
)
from mcrank.models.imports.parts import MOST_FEATURES, MOST_OUTPUTS, Part, read_json
from mcrank.models.imports.planting import LooseTree, leaf_only, nearest32, plant
from mcrank.rankers.imported import ImportedRanker

MOST_SPLITS = 16  # of a symmetric tree: as many as CatBoost itself grows
# Objective -> how its predictions follow from raw values; those that are not here are a score.
_OBJECTIVES = {
    "Logloss": ODDS, "CrossEntropy": ODDS, "MultiClass": CLASSES, "MultiClassOneVsAll": EACH,
    "Poisson": LOG, "Tweedie": LOG,
}  # fmt: skip
_ONE_SCORE = re.compile(
    "RMSE|MAE|Quantile|MAPE|Lq|Huber|Expectile|LogLinQuantile|LogCosh|Focal|QueryRMSE|QuerySoftMax|"
    "QueryCrossEntropy|PairLogit|PairLogitPairwise|YetiRank|YetiRankPairwise|LambdaMart|StochasticFilter|"
    "StochasticRank|GroupQuantile|Cox|PythonUserDefinedPerObject|unknown"
)


class _Feature(NamedTuple):
    """A numeric feature: its column, and whether a missing value is above all borders."""

    column: int
    missing_right: bool


def from_catboost(
    model: Any, *, grades: Grades = None, feature_names: Sequence[str] | None = None
) -> ImportedRanker:
    """Return the ranker that a CatBoost model is, with its raw values to the last bit.

    Parameters
    ----------
    model : path, or CatBoost
        A file in CatBoost's format ``json``, one in its binary format ``cbm`` (which needs the package
        catboost), or a trained object.
    grades : sequence of numbers, optional
        What each class is worth, for models of classes; the classes themselves if not said.
    feature_names : sequence of str, optional
        Instead of the names in the model.

    Returns
    -------
    ImportedRanker
        A fitted ranker. Categorical, text and embedding features are refused.

    Examples
    --------
    >>> import mcrank
    >>> mcrank.from_catboost("no-such-model.json")
    Traceback (most recent call last):
    mcrank.errors.ModelFileError: no-such-model.json cannot be read: No such file or directory.
    """
    from mcrank.models.imports.read import import_file, is_path, wrong_object

    wishes = Wishes(grades, feature_names)
    if is_path(model):
        return import_file(model, "catboost", wishes)
    if not hasattr(model, "save_model") or not hasattr(model, "is_fitted"):
        raise wrong_object(model, "from_catboost", "a path or a CatBoost model")
    where = "the CatBoost model"
    return read_catboost(_as_json(model, where), where, wishes).ranker(wishes, where)


def _as_json(model: Any, where: str) -> bytes:
    """Return a trained object as the text of its JSON format."""
    with tempfile.TemporaryDirectory(prefix="mcrank-") as folder:
        path = os.path.join(folder, "model.json")
        try:
            model.save_model(path, format="json")
        except Exception as error:  # the library has one of its own, which we cannot name without it
            raise ModelFileError(f"{where} cannot be taken out of CatBoost: {error}") from None
        return Path(path).read_bytes()


def read_cbm(path: str, wishes: Wishes) -> Outcome:
    """Return what a binary model says, by CatBoost itself."""
    try:
        from catboost import CatBoost
    except ImportError:
        raise ModelFileError(
            f"{path} is a binary CatBoost model, which needs the package catboost (pip install catboost); "
            "or save it with save_model(..., format='json')."
        ) from None
    model = CatBoost()
    try:
        model.load_model(path)
    except Exception as error:
        words = str(error).strip().splitlines()[-1:] or [type(error).__name__]
        raise ModelFileError(f"{path} is not a model that CatBoost can load: {words[0]}") from None
    return read_catboost(_as_json(model, path), path, wishes)


def read_catboost(content: bytes, where: str, wishes: Wishes) -> Outcome:
    """Return what a JSON model says."""
    part = read_json(content, where)
    features, n_features, names = _features(part["features_info"])
    scale, bias = _scale_and_bias(part["scale_and_bias"])
    objective = _objective(part)
    symmetric = part.get("oblivious_trees")
    parts = (part["trees"] if symmetric is None else symmetric).entries()
    outputs = len(bias)
    grow = _branching if symmetric is None else _symmetric
    trees = [tree for entry in parts for tree in grow(entry, features, outputs, scale)]
    # CatBoost adds the bias last, and so do we: as a tree of one leaf.
    trees += [leaf_only(value, output) for output, value in enumerate(bias.tolist()) if value != 0.0]
    forest = plant(trees, np.zeros(outputs), n_features, where)
    kind = _OBJECTIVES.get(objective)
    if kind is None:
        if not _ONE_SCORE.fullmatch(objective) and outputs > 1:
            raise ModelFileError(f"{where} has the objective {objective}, which cannot be imported.")
        kind = SCORE
    head = head_for(kind, outputs, wishes, where, _classes(part) if kind in (CLASSES, EACH) else None)
    source = {
        "library": "catboost", "objective": objective, "version": _version(part),
        "form": "symmetric trees" if symmetric is not None else "non-symmetric trees",
    }  # fmt: skip
    return Outcome(forest, head, source, names, len(parts))


def _features(info: Part) -> tuple[list[_Feature], int, tuple[str, ...] | None]:
    """Return the numeric features by their numbers, the number of columns, and the names if there are any."""
    for kind in ("categorical_features", "text_features", "embedding_features"):
        other = info.get(kind)
        if other is not None and other.entries():
            other.refuse("empty: the file has no names of categories, words or vectors, only what was made "
                         "of them; numeric features can be imported")  # fmt: skip
    features: dict[int, _Feature] = {}
    names: dict[int, str] = {}
    for part in info["float_features"].entries():
        index = part["feature_index"].integer(0, MOST_FEATURES)
        column = part["flat_feature_index"].integer(0, MOST_FEATURES - 1)
        treatment = part["nan_value_treatment"].text()
        if treatment not in ("AsIs", "AsFalse", "AsTrue"):
            part["nan_value_treatment"].refuse("AsIs, AsFalse or AsTrue")
        if index != len(features) or column in names:
            part.refuse("a feature of its own, numbered in order")
        features[index] = _Feature(column, treatment == "AsTrue")
        names[column] = part["feature_id"].text() if part.get("feature_id") is not None else ""
    count = check_features(max(names, default=-1) + 1, info.where)
    known = [names.get(column, "") for column in range(count)]
    made_up = all(name in ("", str(column)) for column, name in enumerate(known))
    filled = tuple(name or f"f{column + 1}" for column, name in enumerate(known))
    return list(features.values()), count, None if made_up else filled


def _scale_and_bias(part: Part) -> tuple[float, Array]:
    entries = part.entries()
    if len(entries) != 2:
        part.refuse("a scale and a list of biases")
    bias = np.array([entries[1].number()]) if not isinstance(entries[1].value, list) else entries[1].numbers()
    if not 1 <= len(bias) <= MOST_OUTPUTS or not np.isfinite(bias).all():
        entries[1].refuse(f"1 to {MOST_OUTPUTS} finite numbers")
    return entries[0].number(), bias


def _objective(part: Part) -> str:
    """Return the name of the loss a model was trained with; "unknown" where it does not say."""
    at: Part | None = part
    for key in ("model_info", "params", "loss_function", "type"):
        at = at.get(key) if at is not None else None
    return "unknown" if at is None else at.text()


def _classes(part: Part) -> list[Any] | None:
    info = part.get("model_info")
    params = info.get("class_params") if info is not None else None
    names = params.get("class_names") if params is not None else None
    return None if names is None else [entry.value for entry in names.entries()] or None


def _version(part: Part) -> str:
    info = part.get("model_info")
    text = info.get("catboost_version_info") if info is not None else None
    found = re.search(r"release (\d+\.[\d.]*\d)", text.text()) if text is not None else None
    return found[1] if found else "unknown"


def _split(part: Part, features: list[_Feature]) -> tuple[_Feature, float]:
    if part["split_type"].text() != "FloatFeature":
        part["split_type"].refuse("FloatFeature: splits by categories cannot be imported exactly")
    feature = features[part["float_feature_index"].integer(0, len(features) - 1)]
    return feature, float(nearest32(part["border"].number()))


def _symmetric(part: Part, features: list[_Feature], outputs: int, scale: float) -> list[LooseTree]:
    """Return a tree per output of one whose nodes of a level share a split; split i is bit i of the leaf."""
    splits = [_split(entry, features) for entry in part["splits"].entries()]
    depth = len(splits)
    if depth > MOST_SPLITS:
        part["splits"].refuse(f"at most {MOST_SPLITS} splits")
    leaves = 1 << depth
    values = part["leaf_values"].numbers(leaves * outputs).reshape(leaves, outputs) * scale
    counts = part.get("leaf_weights")
    weights = np.zeros(leaves) if counts is None else counts.numbers(leaves)
    # Node n of a level holds the leaves whose upper bits are n: the last split is the root.
    levels = [np.arange(1 << level) for level in range(depth)]
    inner = leaves - 1
    feature, threshold, missing_left = np.full((3, inner + leaves), -1.0)
    rows = np.zeros(inner + leaves)
    for level, numbers in enumerate(levels):
        split, border = splits[depth - 1 - level]
        at = inner_place(level) + numbers
        feature[at], threshold[at], missing_left[at] = split.column, border, not split.missing_right
        rows[at] = weights.reshape(1 << level, -1).sum(axis=1)
    rows[inner:] = weights
    left = np.where(feature >= 0, 2 * np.arange(inner + leaves) + 1, -1)
    right = np.where(feature >= 0, left + 1, -1)
    padding = np.zeros(inner)
    return [
        LooseTree(feature, threshold, missing_left > 0, left, right,
                  np.concatenate([padding, values[:, output]]), 0.0, rows, output)
        for output in range(outputs)
    ]  # fmt: skip


def inner_place(level: int) -> int:
    """Return the first node of a level of a full binary tree."""
    return (1 << level) - 1


def _branching(part: Part, features: list[_Feature], outputs: int, scale: float) -> list[LooseTree]:
    """Return a tree per output of one whose nodes each have a split of their own."""
    nodes: list[tuple[float, float, bool, int, int]] = []
    values: list[Array] = []
    rows: list[float] = []
    waiting = [part]
    for node in waiting:  # grows while it is read
        split = node.get("split")
        weight = node.get("weight")
        rows.append(0.0 if weight is None else weight.number())
        if split is None:
            value = node["value"]
            leaf = value.numbers(outputs) if isinstance(value.value, list) else np.array([value.number()])
            if len(leaf) != outputs:
                value.refuse(f"{outputs} numbers")
            nodes.append((-1, 0.0, False, -1, -1))
            values.append(leaf * scale)
            continue
        tested, border = _split(split, features)
        nodes.append((tested.column, border, not tested.missing_right, len(waiting), len(waiting) + 1))
        values.append(np.zeros(outputs))
        waiting += [node["left"], node["right"]]
    columns = [np.array(column) for column in zip(*nodes, strict=True)]
    # Inner nodes have no weight of their own: that of their children, from the last to the first.
    for at in range(len(nodes) - 1, -1, -1):
        if nodes[at][0] >= 0:
            rows[at] = rows[nodes[at][3]] + rows[nodes[at][4]]
    matrix = np.array(values)
    feature, threshold, missing_left, left, right = columns
    return [
        LooseTree(feature, threshold, missing_left, left, right, matrix[:, k], 0.0, np.array(rows), k)
        for k in range(outputs)
    ]
