"""LightGBM's text model, version 4: raw scores equal to the last bit, also for treelite and lleaves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FeatureArray, FloatArray, IntArray
from mcrank.export.names import safe_names
from mcrank.export.probabilities import expected
from mcrank.export.target import Consumed, ConsumerMissing, Exportable, Target
from mcrank.export.trees import Tree, base_in_leaves, class_outputs, in_turn, row_counts, trees_of
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.forest.sets import set_codes, words_of

# Bits 2 and 3 are the kind of missing values, here NaN, even where training had none: another kind would turn
# NaN into 0. Bit 1 sends them left.
_NAN, _LEFT = 8, 2
_CATEGORIES = 1  # bit 0: a set of categories
# Blanks end a name; the others would break the JSON that LightGBM dumps.
_NOT_IN_NAMES = r"""[\s",:\[\]{}\\]"""
_NO_TEXT = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?|True|False", re.ASCII)  # what a frame hardly has as a text
_ZERO = 1e-35  # LightGBM takes values up to this size for 0


class LightGBM(Target):
    """A text model of LightGBM 4: `lightgbm.Booster(model_file=...)`."""

    name: ClassVar[str] = "lightgbm"
    suffixes: ClassVar[tuple[str, ...]] = (".txt", ".lgb", ".model")
    exactness: ClassVar[str] = "raw scores equal to the last bit (ABC 2e-15); values up to 1e-35 count as 0"
    categories: ClassVar[Literal["", "codes", "names"]] = "codes"
    own_sets: ClassVar[bool] = True
    learned: ClassVar[bool] = True
    missing: ClassVar[str] = "as here: NaN takes the side it took in training"

    def warns(self, model: Exportable) -> Iterator[str]:
        """Thresholds that LightGBM cannot tell from 0, and categories that are texts here alone."""
        size = np.abs(model.forest.threshold[model.forest.category_set < 0])
        near = int(((size > 0) & (size <= _ZERO)).sum())
        if near:
            yield (
                f"{near} thresholds are within 1e-35 of 0, and LightGBM takes such values for 0: rows there "
                "may fall on the other side (treelite and lleaves do not do this)."
            )
        for name, known in model.category_names.items():
            if known and all(map(_NO_TEXT.fullmatch, known)):
                yield (
                    f"categories of feature {name!r} are texts in the file, such as {known[0]!r}; where a "
                    "pandas frame has numbers or truth values there, LightGBM takes all of them for missing: "
                    "make them texts."
                )

    def seen(self, X: FeatureArray, model: Exportable) -> FeatureArray:
        """Return rows with 0 for what LightGBM takes for 0."""
        return np.where(np.abs(X) <= np.float32(_ZERO), np.float32(0), X)

    def content(self, model: Exportable) -> bytes:
        """Return the text."""
        forest, head = class_outputs(model.forest, model.head)
        forest = base_in_leaves(in_turn(forest))
        trees = [
            "\n".join(_tree_lines(number, tree, _Sets(tree, forest, model))) + "\n\n\n"
            for number, tree in enumerate(trees_of(forest))
        ]
        objective = {
            "softmax": f"multiclass num_class:{forest.n_outputs}",
            "cumulative": "binary sigmoid:1"
            if forest.n_outputs == 1
            else f"multiclassova num_class:{forest.n_outputs} sigmoid:1",
            "one-each": f"multiclassova num_class:{forest.n_outputs} sigmoid:1",
            "exp": "poisson",
            "identity": "lambdarank" if model.ranker == "lambdamart" else "regression",
        }[head.kind]
        header = [
            "tree",
            "version=v4",
            f"num_class={forest.n_outputs}",
            f"num_tree_per_iteration={forest.n_outputs}",
            "label_index=0",
            f"max_feature_idx={forest.n_features - 1}",
            f"objective={objective}",
            f"feature_names={' '.join(safe_names(model.feature_names, _NOT_IN_NAMES))}",
            f"feature_infos={' '.join(_ranges(forest, model))}",
            # Lines of the header: LightGBM would warn of parameters it does not know.
            *(f"{name}={value}" for name, value in model.about.items()),
            f"tree_sizes={' '.join(str(len(tree.encode())) for tree in trees)}",
        ]
        text = "\n".join(header) + "\n\n" + "".join(trees) + "end of trees\n\nfeature_importances:\n\n"
        names = json.dumps(list(model.category_names.values())) if model.categories else "null"
        return (text + f"parameters:\nend of parameters\n\npandas_categorical:{names}\n").encode()

    def consume(self, model: Exportable, path: Path, X: FeatureArray) -> Consumed:
        """Score with lightgbm; T is applied to its probabilities."""
        try:
            import lightgbm
        except ImportError:
            raise ConsumerMissing("lightgbm is not installed (pip install lightgbm).") from None
        booster = lightgbm.Booster(model_file=str(path))
        raw = np.asarray(booster.predict(X, raw_score=True)).reshape(len(X), -1).T
        given = np.asarray(booster.predict(X)).reshape(len(X), -1)
        return Consumed(expected(model, given), f"lightgbm {lightgbm.__version__}", raw)


class _Sets:
    """The sets of categories of a tree as LightGBM has them: NaN goes right, so where it went left the other
    categories are the set, and the sides change places.
    """

    def __init__(self, tree: Tree, forest: Forest, model: Exportable) -> None:
        self.nodes = np.flatnonzero(tree.category_set >= 0)
        self.words: list[IntArray] = []
        self.left, self.right = tree.left.copy(), tree.right.copy()
        for node in self.nodes.tolist():
            codes = set_codes(forest, int(tree.category_set[node]))
            if tree.missing_left[node]:
                known = len(model.categories.get(int(tree.feature[node]), ()))
                codes = np.setdiff1d(np.arange(known), codes)
                self.left[node], self.right[node] = tree.right[node], tree.left[node]
            self.words.append(words_of(codes).view(np.uint32).astype(np.int64))

    def lines(self) -> Iterator[str]:
        """The lines of a tree that splits on categories."""
        if len(self.nodes):
            ends = np.cumsum([0, *map(len, self.words)])
            yield f"cat_boundaries={_joined(ends)}"
            yield f"cat_threshold={_joined(np.concatenate(self.words))}"


def _ranges(forest: Forest, model: Exportable) -> Iterator[str]:
    """Smallest and largest threshold of each feature, in place of the values of training, or all codes of its
    categories; none if unused.
    """
    low, high = np.full(forest.n_features, np.inf), np.full(forest.n_features, -np.inf)
    inner = forest.feature >= 0
    of_sets = set(forest.feature[forest.category_set >= 0].tolist()) | set(model.categories)
    np.minimum.at(low, forest.feature[inner], forest.threshold[inner])
    np.maximum.at(high, forest.feature[inner], forest.threshold[inner])
    for f, (least, most) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        if f in of_sets:
            yield ":".join(map(str, range(max(1, len(model.categories.get(f, ()))))))
        else:
            yield "none" if least > most else f"[{least!r}:{most!r}]"


def _tree_lines(number: int, tree: Tree, sets: _Sets) -> Iterator[str]:
    leaf = tree.feature < 0
    inner = ~leaf
    # Inner nodes and leaves are numbered apart; a leaf i is written as -i-1.
    place = np.where(leaf, -leaf.cumsum(), inner.cumsum() - 1)
    rows = row_counts(tree)
    yield f"Tree={number}"
    yield f"num_leaves={int(leaf.sum())}"
    yield f"num_cat={len(sets.nodes)}"
    if inner.any():
        threshold, kind = tree.threshold.astype(np.float64), _NAN + _LEFT * tree.missing_left
        threshold[sets.nodes], kind[sets.nodes] = np.arange(len(sets.nodes)), _NAN + _CATEGORIES
        yield f"split_feature={_joined(tree.feature[inner])}"
        yield f"split_gain={_joined(tree.gain[inner])}"
        yield f"threshold={_joined(threshold[inner])}"
        yield f"decision_type={_joined(kind[inner])}"
        yield f"left_child={_joined(place[sets.left[inner]])}"
        yield f"right_child={_joined(place[sets.right[inner]])}"
    yield f"leaf_value={_joined(tree.value[leaf])}"
    yield f"leaf_weight={_joined(rows[leaf])}"
    yield f"leaf_count={_joined(rows[leaf])}"
    if inner.any():
        yield f"internal_value={_joined(_mean_values(tree, rows)[inner])}"
        yield f"internal_weight={_joined(rows[inner])}"
        yield f"internal_count={_joined(rows[inner])}"
    yield from sets.lines()
    yield "is_linear=0"
    yield "shrinkage=1"


def _mean_values(tree: Tree, rows: IntArray) -> FloatArray:
    """Mean value of the training rows under each node, which LightGBM's contributions start from."""
    value = tree.value.copy()
    for node in np.flatnonzero(tree.feature >= 0)[::-1].tolist():  # children come after their parents
        left, right = int(tree.left[node]), int(tree.right[node])
        share = rows[left] / rows[node]
        value[node] = share * value[left] + (1 - share) * value[right]
    return value


def _joined(values: npt.NDArray[np.generic]) -> str:
    return " ".join(map(repr, values.tolist()))
