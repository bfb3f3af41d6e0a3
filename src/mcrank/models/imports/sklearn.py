"""scikit-learn: its gradient boosting and forests, taken from trained objects; pickles are never opened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mcrank.arrays import Array
from mcrank.errors import ModelFileError
from mcrank.models.imports.categories import Named, named, placed, refuse_empty
from mcrank.models.imports.outcome import CLASSES, LOG, ODDS, SCORE, Grades, Outcome, Wishes, head_for
from mcrank.models.imports.planting import LooseTree, floor32, plant
from mcrank.rankers.imported import ImportedRanker

_WHERE = "the scikit-learn model"


def from_sklearn(
    model: Any, *, grades: Grades = None, feature_names: Sequence[str] | None = None
) -> ImportedRanker:
    """Return the ranker that a scikit-learn model of trees is.

    Parameters
    ----------
    model : estimator
        A fitted HistGradientBoosting, GradientBoosting, RandomForest, ExtraTrees or DecisionTree regressor or
        classifier. Files are pickles, which can run anything, and are not opened here.
    grades : sequence of numbers, optional
        What each class is worth, for classifiers; the classes themselves if not said.
    feature_names : sequence of str, optional
        Instead of the names the model was trained with.

    Returns
    -------
    ImportedRanker
        A fitted ranker. Boosting has the raw predictions to the last bit; forests and single trees of
        classes give their Expected Relevance as one score, which differs by rounding.

    Examples
    --------
    >>> import mcrank
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0.0, 0.0, 1.0, 3.0]
    >>> model = GradientBoostingRegressor(n_estimators=3).fit(X, y)
    >>> bool((mcrank.from_sklearn(model).predict(X) == model.predict(X)).all())
    True
    """
    from mcrank.models.imports.read import wrong_object

    wishes = Wishes(grades, feature_names)
    name = type(model).__name__
    for words, take in _TAKERS.items():
        if name.startswith(words) and hasattr(model, "n_features_in_"):
            outcome = take(model, wishes)
            break
    else:
        raise wrong_object(model, "from_sklearn", f"a fitted {', '.join(_TAKERS)} regressor or classifier")
    source = {"library": "sklearn", "version": _version(), "objective": outcome.source["objective"]}
    given = getattr(model, "feature_names_in_", None)
    names = None if given is None else tuple(map(str, given))
    return outcome._replace(source=source | {"class": name}, names=names).ranker(wishes, _WHERE)


def _version() -> str:
    import sklearn

    return str(sklearn.__version__)


def _classes(model: Any) -> list[Any] | None:
    found = getattr(model, "classes_", None)
    if isinstance(found, list):
        raise ModelFileError(f"{_WHERE} predicts several targets, and a ranking needs one score.")
    return None if found is None else np.asarray(found).tolist()


def _head(model: Any, outputs: int, wishes: Wishes, link: str) -> Any:
    classes = _classes(model)
    if classes is None:
        return head_for(link, outputs, wishes, _WHERE)
    kind = ODDS if outputs == 1 else CLASSES
    return head_for(kind, outputs, wishes, _WHERE, None if outputs == 1 else classes)


def _histogram_boosting(model: Any, wishes: Wishes) -> Outcome:
    rounds, outputs = model._predictors, model.n_trees_per_iteration_
    columns, tables = _encoded(model)
    trees = [
        _histogram_tree(predictor, columns, output)
        for predictors in rounds
        for output, predictor in enumerate(predictors)
    ]
    base = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1)
    trees = placed(trees, tables, _WHERE)
    forest = plant(trees, np.broadcast_to(base, (outputs,)), model.n_features_in_, _WHERE)
    loss = str(model.loss)
    link = LOG if loss in ("poisson", "gamma") else SCORE
    categories = {f: table.names for f, table in sorted(tables.items())}
    head = _head(model, outputs, wishes, link)
    return Outcome(forest, head, {"objective": loss}, None, len(rounds), categories)


def _encoded(model: Any) -> tuple[Array, dict[int, Named]]:
    """The column of each feature its trees know, and the categories of columns that hold such.

    The model puts columns of categories first, and what it does not know, or a negative code, is missing.
    """
    count = model.n_features_in_
    if getattr(model, "_preprocessor", None) is None:
        return np.arange(count), {}
    encoders = {name: (encoder, chosen) for name, encoder, chosen in model._preprocessor.transformers_}
    encoder, chosen = encoders["encoder"]
    columns = np.flatnonzero(np.asarray(chosen, dtype=bool))
    tables = {}
    for column, values in zip(columns.tolist(), encoder.categories_, strict=True):
        known = [value for value in np.asarray(values).tolist() if value is not None and value == value]
        tables[column] = named(np.arange(len(known)), known, f"{_WHERE}: feature {column}")
        refuse_empty(tables[column].names, f"{_WHERE}: feature {column}")
    return np.concatenate([columns, np.setdiff1d(np.arange(count), columns)]), tables


def _histogram_tree(predictor: Any, columns: Array, output: int) -> LooseTree:
    nodes = predictor.nodes
    leaf = nodes["is_leaf"].astype(bool)
    by_set = nodes["is_categorical"].astype(bool) & ~leaf
    bits = np.ascontiguousarray(predictor.raw_left_cat_bitsets, dtype="<u4").view(np.uint8)
    return LooseTree(
        feature=np.where(leaf, -1, columns[np.where(leaf, 0, nodes["feature_idx"])]),
        threshold=np.where(leaf | by_set, 0.0, floor32(nodes["num_threshold"])),
        missing_left=nodes["missing_go_to_left"],
        left=np.where(leaf, -1, nodes["left"].astype(np.int64)),
        right=np.where(leaf, -1, nodes["right"].astype(np.int64)),
        value=np.where(leaf, nodes["value"], 0.0),
        gain=nodes["gain"],
        rows=nodes["count"].astype(np.float64),
        output=output,
        category_set=np.where(by_set, nodes["bitset_idx"].astype(np.int64), -1),
        sets=tuple(np.flatnonzero(np.unpackbits(one, bitorder="little")) for one in bits),
    )


def _tree_of(tree: Any, value: Array, output: int = 0) -> LooseTree:
    """Return one of scikit-learn's own trees, with these values in its leaves."""
    leaf = tree.children_left < 0
    missing_left = getattr(tree, "missing_go_to_left", np.zeros(len(leaf)))
    # The decrease of impurity, weighted as its feature importances are.
    weighted = tree.weighted_n_node_samples * tree.impurity
    gain = np.where(leaf, 0.0, weighted - weighted[tree.children_left] - weighted[tree.children_right])
    return LooseTree(
        feature=np.where(leaf, -1, tree.feature),
        threshold=np.where(leaf, 0.0, floor32(tree.threshold)),
        missing_left=np.asarray(missing_left, dtype=bool) & ~leaf,
        left=np.where(leaf, -1, tree.children_left),
        right=np.where(leaf, -1, tree.children_right),
        value=np.where(leaf, value, 0.0),
        gain=gain,
        rows=tree.n_node_samples.astype(np.float64),
        output=output,
    )


def _gradient_boosting(model: Any, wishes: Wishes) -> Outcome:
    stages = model.estimators_
    outputs = stages.shape[1]
    trees = [
        _tree_of(stage[k].tree_, model.learning_rate * stage[k].tree_.value[:, 0, 0], k)
        for stage in stages
        for k in range(outputs)
    ]
    start = np.zeros((1, outputs))
    if not (isinstance(model.init_, str) and model.init_ == "zero"):
        if type(model.init_).__name__ not in ("DummyRegressor", "DummyClassifier"):
            raise ModelFileError(f"{_WHERE} starts from another model (init), which cannot be imported.")
        start = np.asarray(model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32)))
    forest = plant(trees, start.reshape(-1), model.n_features_in_, _WHERE)
    loss = str(model.loss)
    if loss == "exponential":  # whose log-odds are twice the raw prediction
        forest = plant([t._replace(value=2 * t.value) for t in trees], 2 * start.reshape(-1),
                       model.n_features_in_, _WHERE)  # fmt: skip
    return Outcome(forest, _head(model, outputs, wishes, SCORE), {"objective": loss}, None, len(stages))


def _averaged(model: Any, wishes: Wishes) -> Outcome:
    """A forest, or one tree: the mean of leaves. Of classes it is the Expected Relevance."""
    members = getattr(model, "estimators_", [model])
    classes = _classes(model)
    if getattr(model, "n_outputs_", 1) != 1:
        raise ModelFileError(f"{_WHERE} predicts several targets, and a ranking needs one score.")
    worth = None if classes is None else _worth(classes, wishes)
    trees = []
    for member in members:
        value = member.tree_.value[:, 0, :]
        leaf_value = value[:, 0] if worth is None else (value / value.sum(axis=1, keepdims=True)) @ worth
        trees.append(_tree_of(member.tree_, leaf_value / len(members)))
    forest = plant(trees, [0.0], model.n_features_in_, _WHERE)
    plain = wishes._replace(grades=None)
    return Outcome(forest, head_for(SCORE, 1, plain, _WHERE), {"objective": str(model.criterion)}, None,
                   len(members))  # fmt: skip


def _worth(classes: list[Any], wishes: Wishes) -> Array:
    """What each class is worth; of two it is the probability of the second."""
    several = len(classes)
    if several == 2 and wishes.grades is None:
        return np.array([0.0, 1.0])
    values = head_for(CLASSES, several, wishes, _WHERE, classes).values
    if wishes.grades is not None:  # checked; in the order of the classes here
        return np.array(wishes.grades, dtype=np.float64)
    assert values is not None  # of classes
    return values


_TAKERS = {
    "HistGradientBoosting": _histogram_boosting,
    "GradientBoosting": _gradient_boosting,
    "RandomForest": _averaged,
    "ExtraTrees": _averaged,
    "ExtraTree": _averaged,
    "DecisionTree": _averaged,
}
