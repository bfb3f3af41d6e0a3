"""XGBoost: its JSON and UBJSON models, of versions 1.x to 3.x, read without the library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from mcrank.arrays import Array, IntArray
from mcrank.errors import ModelFileError, OptionError
from mcrank.models.imports.outcome import (
    CLASSES,
    LOG,
    ODDS,
    SCORE,
    Grades,
    Outcome,
    Wishes,
    check_features,
    head_for,
    linear_scorer,
)
from mcrank.models.imports.parts import MOST_FEATURES, MOST_OUTPUTS, Part, number_of, read_json
from mcrank.models.imports.planting import LooseTree, nearest32, plant
from mcrank.models.imports.ubjson import looks_like_ubjson, read_ubjson
from mcrank.rankers.imported import ImportedRanker

# Objective -> how its predictions follow from margins. What is not here is refused.
_OBJECTIVES = {
    "reg:squarederror": SCORE, "reg:linear": SCORE, "reg:squaredlogerror": SCORE,
    "reg:pseudohubererror": SCORE, "reg:absoluteerror": SCORE, "reg:quantileerror": SCORE,
    "reg:expectileerror": SCORE, "rank:pairwise": SCORE, "rank:ndcg": SCORE, "rank:map": SCORE,
    "binary:logitraw": SCORE, "binary:hinge": SCORE, "binary:logistic": ODDS, "reg:logistic": ODDS,
    "count:poisson": LOG, "reg:gamma": LOG, "reg:tweedie": LOG, "survival:cox": LOG, "survival:aft": LOG,
    "multi:softprob": CLASSES, "multi:softmax": CLASSES,
}  # fmt: skip
# The base score is on the scale of predictions. Here margins are not.
_BASE_IS_PROBABILITY = ("binary:logistic", "reg:logistic")


def from_xgboost(
    model: Any, *, grades: Grades = None, feature_names: Sequence[str] | None = None
) -> ImportedRanker:
    """Return the ranker that an XGBoost model is; margins differ by the float32 rounding of XGBoost's sums.

    Parameters
    ----------
    model : path, Booster or XGBModel
        A JSON or UBJSON file that ``save_model`` wrote, or a trained object. Early stopping counts as in its
        ``predict``: for the scikit-learn classes and their files, not for a `Booster`.
    grades : sequence of numbers, optional
        What each class is worth, for models of classes; 0, 1, 2, ... if not said.
    feature_names : sequence of str, optional
        Instead of the names in the model.

    Returns
    -------
    ImportedRanker
        A fitted ranker. Features that hold categories take their codes, as XGBoost's arrays do. Leaves of
        several numbers, linear models of classes, and objects with another ``missing`` than NaN are refused.

    Examples
    --------
    >>> import mcrank
    >>> mcrank.from_xgboost("no-such-model.json")
    Traceback (most recent call last):
    mcrank.errors.ModelFileError: no-such-model.json cannot be read: No such file or directory.
    """
    from mcrank.models.imports.read import import_file, is_path, wrong_object

    wishes = Wishes(grades, feature_names)
    if is_path(model):
        return import_file(model, "xgboost", wishes)
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    if not hasattr(booster, "save_raw"):
        raise wrong_object(model, "from_xgboost", "a path, a Booster or an XGBModel")
    missing = np.nan if booster is model else getattr(model, "missing", np.nan)
    if missing is not None and missing == missing:
        raise OptionError(
            f"the XGBoost model takes {missing!r} for a missing value (missing=), and mcrank NaN alone; "
            "put NaN in its place in your rows, and import it after model.set_params(missing=float('nan'))."
        )
    best = None if booster is model else getattr(model, "best_iteration", None)
    part = read_json(bytes(booster.save_raw("json")), "the XGBoost model")
    return _outcome(part, wishes, None if best is None else best + 1).ranker(wishes, "the XGBoost model")


def read_xgboost(content: bytes, where: str, wishes: Wishes) -> Outcome:
    """Return what a JSON or UBJSON model says."""
    part = read_ubjson(content, where) if looks_like_ubjson(content) else read_json(content, where)
    return _outcome(part, wishes, _rounds_of_best(part["learner"]))


def _rounds_of_best(learner: Part) -> int | None:
    """Rounds that the scikit-learn class which wrote the file would predict with; None for all."""
    attributes = learner.get("attributes")
    if attributes is None or attributes.get("scikit_learn") is None:
        return None
    best = attributes.get("best_iteration")
    return None if best is None else best.integer(0, 2**31 - 2) + 1


def _outcome(part: Part, wishes: Wishes, kept: int | None) -> Outcome:
    where, learner = part.where, part["learner"]
    param, booster = learner["learner_model_param"], learner["gradient_booster"]
    n_features = check_features(param["num_feature"].integer(1, MOST_FEATURES), where)
    outputs = max(1, *(_count(param, name) for name in ("num_class", "num_target")))
    name = learner["objective"]["name"].text()
    if name not in _OBJECTIVES:
        learner["objective"]["name"].refuse(f"one of {', '.join(_OBJECTIVES)} to be imported")
    version = part.get("version")
    source = {
        "library": "xgboost", "objective": name, "boosting": booster["name"].text(),
        "version": ".".join(str(v.value) for v in version.entries()) if version is not None else "unknown",
    }  # fmt: skip
    head, base = head_for(_OBJECTIVES[name], outputs, wishes, where), _base(param, name, outputs)
    names = _names(learner, n_features)
    if source["boosting"] == "gblinear":
        weights = nearest32(booster["model"]["weights"].numbers((n_features + 1) * outputs))
        if outputs > 1:
            raise ModelFileError(f"{where} is a linear model of {outputs} classes; linear ones can have one.")
        if not np.isfinite(weights).all():
            booster["model"]["weights"].refuse("finite numbers")
        scorer = linear_scorer(weights[:-1], float(weights[-1]) + float(base[0]), where)
        return Outcome(scorer, head, source, names, 0)
    trees, rounds = _trees(booster, outputs, kept)
    return Outcome(plant(trees, base, n_features, where, prune=True), head, source, names, rounds)


def _count(param: Part, name: str) -> int:
    found = param.get(name)
    return 0 if found is None else found.integer(0, MOST_OUTPUTS)


def _base(param: Part, objective: str, outputs: int) -> Array:
    """Return the margin of each output before the first tree."""
    part = param["base_score"]
    text = part.text() if isinstance(part.value, str) else json.dumps(part.number())
    values = nearest32(np.array([number_of(word.strip()) for word in text.strip("[]").split(",")]))
    if len(values) not in (1, outputs) or not np.isfinite(values).all():
        part.refuse(f"a finite number, or one for each of {outputs} outputs")
    base = np.broadcast_to(values.astype(np.float64), (outputs,))
    if objective in _BASE_IS_PROBABILITY:
        if not ((base > 0) & (base < 1)).all():
            part.refuse("a probability between 0 and 1")
        return np.asarray(-np.log(1 / base - 1))
    if _OBJECTIVES[objective] == LOG:
        if not (base > 0).all():
            part.refuse("above 0")
        return np.asarray(np.log(base))
    return base


def _names(learner: Part, n_features: int) -> tuple[str, ...] | None:
    part = learner.get("feature_names")
    if part is None or not part.entries():
        return None
    names = tuple(entry.text() for entry in part.entries())
    if len(names) != n_features:
        raise ModelFileError(f"{part.place} must have {n_features} names, got {len(names)}.")
    return None if all(name == f"f{j}" for j, name in enumerate(names)) else names


def _trees(booster: Part, outputs: int, kept: int | None) -> tuple[list[LooseTree], int]:
    """Return the trees of the rounds kept, and how many rounds that are."""
    kind = booster["name"].text()
    if kind not in ("gbtree", "dart"):
        booster["name"].refuse("gbtree, dart or gblinear")
    model = (booster["gbtree"] if kind == "dart" else booster)["model"]
    parts = model["trees"].entries()
    count = model["gbtree_model_param"]["num_trees"].integer(0, 2**31 - 1)
    if count != len(parts):
        raise ModelFileError(f"{model.place} says it has {count} trees, and it has {len(parts)}.")
    info = model["tree_info"].integers(count)
    if ((info < 0) | (info >= outputs)).any():
        model["tree_info"].refuse(f"outputs from 0 to {outputs - 1}")
    factors = np.ones(count)
    if kind == "dart":
        factors = nearest32(booster["weight_drop"].numbers(count))
        if not np.isfinite(factors).all():
            booster["weight_drop"].refuse("finite numbers")
    starts = _starts(model, count, outputs)
    rounds = len(starts) - 1 if kept is None else min(kept, len(starts) - 1)
    ends = int(starts[rounds])
    return [
        _tree(part, int(output), float(factor))
        for part, output, factor in zip(parts[:ends], info, factors, strict=False)
    ], rounds


def _starts(model: Part, count: int, outputs: int) -> Array:
    """Return the first tree of each round, and the end."""
    found = model.get("iteration_indptr")
    if found is not None:
        starts = found.integers()
        if not len(starts) or starts[0] != 0 or starts[-1] != count or (np.diff(starts) < 0).any():
            found.refuse(f"numbers that rise from 0 to {count}")
        return starts
    parallel = model["gbtree_model_param"].get("num_parallel_tree")
    each = outputs * (1 if parallel is None else max(1, parallel.integer(0, 2**31 - 1)))
    if count % each:
        raise ModelFileError(f"{model.place} has {count} trees, and {each} belong to a round.")
    return np.arange(0, count + 1, each)


def _tree(part: Part, output: int, factor: float) -> LooseTree:
    size = part["tree_param"]["num_nodes"].integer(1, 2**31 - 1)
    vector = part["tree_param"].get("size_leaf_vector")
    if vector is not None and vector.integer(0, 2**31 - 1) > 1:
        vector.refuse("0 or 1: leaves of several numbers cannot be imported")
    left, right = part["left_children"].integers(size), part["right_children"].integers(size)
    leaf = left == -1
    if (leaf != (right == -1)).any():
        part["right_children"].refuse("-1 where left_children is, and nowhere else")
    category_set, sets = _sets(part, size, leaf)
    feature = part["split_indices"].integers(size)
    if (feature[~leaf] < 0).any():
        part["split_indices"].refuse("features, none negative")
    condition = nearest32(part["split_conditions"].numbers(size))
    with np.errstate(over="ignore"):
        below = np.nextafter(condition, np.float32(-np.inf))  # x < t is x <= the number before t
    default = part["default_left"].integers(size)
    if ((default != 0) & (default != 1)).any():
        part["default_left"].refuse("0 or 1")
    # A set goes right there, and left here.
    turned = category_set >= 0
    return LooseTree(
        feature=np.where(leaf, -1, feature),
        threshold=np.where(leaf, 0.0, below),
        missing_left=(default > 0) ^ turned,
        left=np.where(turned, right, left),
        right=np.where(turned, left, right),
        value=np.where(leaf, condition.astype(np.float64) * factor, 0.0),
        gain=_described(part, "loss_changes", size),
        rows=_described(part, "sum_hessian", size),
        output=output,
        category_set=category_set,
        sets=sets,
    )


def _sets(part: Part, size: int, leaf: Array) -> tuple[Array, tuple[IntArray, ...]]:
    """The set of each node that splits on categories (-1: of none), and the codes of each set."""
    category_set = np.full(size, -1)
    types = part.get("split_type")
    kinds = np.zeros(size) if types is None else types.integers(size)
    if types is not None and ((kinds < 0) | (kinds > 1)).any():
        types.refuse("0 for a threshold or 1 for a set of categories")
    listed = part.get("categories_nodes")
    nodes = np.empty(0, dtype=np.int64) if listed is None else listed.integers()
    if not np.array_equal(nodes, np.flatnonzero(kinds == 1)):
        part["categories_nodes"].refuse("the nodes whose split_type is 1, rising")
    if not len(nodes):
        return category_set, ()
    starts = part["categories_segments"].integers(len(nodes))
    counts = part["categories_sizes"].integers(len(nodes))
    codes = part["categories"].integers()
    if ((starts < 0) | (counts < 0) | (starts > len(codes) - counts)).any():
        part["categories_segments"].refuse(f"places among the {len(codes)} categories")
    if counts.sum() > len(codes):
        part["categories_sizes"].refuse(f"no more than the {len(codes)} categories")
    category_set[nodes] = np.where(leaf[nodes], -1, np.arange(len(nodes)))
    return category_set, tuple(
        codes[a : a + n] for a, n in zip(starts.tolist(), counts.tolist(), strict=True)
    )


def _described(part: Part, key: str, size: int) -> Any:
    """Numbers that only describe a tree: they may be missing."""
    found = part.get(key)
    return 0.0 if found is None else found.numbers(size)
