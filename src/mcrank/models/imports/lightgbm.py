"""LightGBM: its text models, versions 2 to 4, read without the library."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mcrank.arrays import Array, IntArray
from mcrank.errors import ModelFileError
from mcrank.models.imports.categories import Named, codes_of, named, placed
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
from mcrank.models.imports.parts import MOST_OUTPUTS, lines_of, number_of, read_json, shown
from mcrank.models.imports.planting import LooseTree, floor32, leaf_only, plant
from mcrank.rankers.imported import ImportedRanker

_VERSIONS = ("v2", "v3", "v4")
# Objective -> how its predictions follow from raw scores. What is not here is refused.
_OBJECTIVES = {
    "regression": SCORE, "regression_l2": SCORE, "regression_l1": SCORE, "huber": SCORE, "fair": SCORE,
    "quantile": SCORE, "mape": SCORE, "lambdarank": SCORE, "rank_xendcg": SCORE, "custom": SCORE,
    "poisson": LOG, "gamma": LOG, "tweedie": LOG, "binary": ODDS, "cross_entropy": ODDS,
    "cross_entropy_lambda": SCORE, "multiclass": CLASSES, "multiclassova": EACH,
}  # fmt: skip
_KEY = re.compile(r"[A-Za-z_]\w*")
_CODES = re.compile(r"-?\d{1,10}(:-?\d{1,10})*", re.ASCII)
_CATEGORICAL, _DEFAULT_LEFT, _MISSING_TYPE = 1, 2, 12
_ZERO_AS_MISSING, _NAN_IS_MISSING = 4, 8
_ZERO = np.float32(1e-35)  # LightGBM takes values up to here for 0


class _Line(NamedTuple):
    """The value of a key, and the line it stands on."""

    value: str
    number: int


class _Section:
    """Keys and values: the head of the file, or one tree."""

    def __init__(self, where: str, name: str, first_line: int) -> None:
        self.where, self.name, self.first_line = where, name, first_line
        self.lines: dict[str, _Line] = {}

    def refuse(self, key: str, words: str) -> ModelFileError:
        line = self.lines[key].number if key in self.lines else self.first_line
        return ModelFileError(f"{self.where}: line {line}: {key} of {self.name} {words}.")

    def add(self, key: str, value: str, number: int) -> None:
        if key in self.lines:
            raise ModelFileError(f"{self.where}: line {number}: {key} of {self.name} is there twice.")
        self.lines[key] = _Line(value, number)

    def text(self, key: str, default: str | None = None) -> str:
        if key in self.lines:
            return self.lines[key].value
        if default is None:
            raise self.refuse(key, "is missing")
        return default

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        text = self.text(key, None if default is None else str(default))
        if not (text.isascii() and text.isdecimal() and len(text) < 12 and low <= int(text) <= high):
            raise self.refuse(key, f"must be an integer from {low} to {high}, got {shown(text)}")
        return int(text)

    def numbers(self, key: str, count: int, *, whole: bool = False) -> Array:
        words = self.text(key).split()
        if len(words) != count:
            raise self.refuse(key, f"must have {count} numbers, got {len(words)}")
        values = np.array([number_of(word) for word in words], dtype=np.float64)
        bad = np.isnan(values) | (whole & (np.abs(values) >= 2**53)) | (whole & (values != np.floor(values)))
        if bad.any():
            what = "integers" if whole else "numbers"
            raise self.refuse(key, f"must be {what}, got {shown(words[int(np.argmax(bad))])}")
        return values.astype(np.int64) if whole else values

    def optional(self, key: str, count: int, default: float) -> Any:
        """Numbers that only describe a tree; what says nothing sensible counts as not said."""
        words = self.text(key, "").split()
        return np.nan_to_num([number_of(word) for word in words]) if len(words) == count else default


def from_lightgbm(
    model: Any, *, grades: Grades = None, feature_names: Sequence[str] | None = None
) -> ImportedRanker:
    """Return the ranker that a LightGBM model is, with its raw scores to the last bit.

    Parameters
    ----------
    model : path, Booster or LGBMModel
        A text file that ``save_model`` wrote, or a trained object; early stopping counts as in its
        ``predict``.
    grades : sequence of numbers, optional
        What each class is worth, for models of classes; 0, 1, 2, ... if not said. One more than there are
        outputs of ``multiclassova``: these are boundaries between grades.
    feature_names : sequence of str, optional
        Instead of the names in the model.

    Returns
    -------
    ImportedRanker
        A fitted ranker. Categories are those of the frame it was trained with, or whole numbers. Linear trees
        and zeros as missing values are refused.

    Examples
    --------
    >>> import mcrank
    >>> mcrank.from_lightgbm("no-such-model.txt")
    Traceback (most recent call last):
    mcrank.errors.ModelFileError: no-such-model.txt cannot be read: No such file or directory.
    """
    from mcrank.models.imports.read import import_file, is_path, wrong_object

    wishes = Wishes(grades, feature_names)
    if is_path(model):
        return import_file(model, "lightgbm", wishes)
    booster = getattr(model, "booster_", model)
    if not hasattr(booster, "model_to_string"):
        raise wrong_object(model, "from_lightgbm", "a path, a Booster or an LGBMModel")
    labels = getattr(model, "classes_", None) if booster.num_model_per_iteration() > 1 else None
    known = None if labels is None else np.asarray(labels).tolist()
    content, where = booster.model_to_string().encode(), "the LightGBM model"
    return read_lightgbm(content, where, wishes, known).ranker(wishes, where)


def read_lightgbm(content: bytes, where: str, wishes: Wishes, labels: Sequence[Any] | None = None) -> Outcome:
    """Return what a text model says; ``labels`` of classes only a model in Python knows."""
    head, trees, ended = _sections(lines_of(content, where), where)
    version = head.text("version", "v2")
    if version not in _VERSIONS:
        raise head.refuse("version", f"must be one of {', '.join(_VERSIONS)}, got {shown(version)}")
    if not ended and version != "v2":
        raise ModelFileError(f"{where} is cut off: it has no line 'end of trees'.")
    sizes = head.text("tree_sizes", "").split()
    if sizes and len(sizes) != len(trees):
        raise head.refuse("tree_sizes", f"names {len(sizes)} trees, and the file has {len(trees)}")
    classes = head.integer("num_class", 1, MOST_OUTPUTS, 1)
    outputs = head.integer("num_tree_per_iteration", 1, MOST_OUTPUTS, classes)
    if len(trees) % outputs:
        raise head.refuse("num_tree_per_iteration", f"is {outputs}, and the file has {len(trees)} trees")
    n_features = check_features(head.integer("max_feature_idx", 0, 2**31 - 2) + 1, where)
    kind, factor = _objective(head, outputs)
    rounds = len(trees) // outputs
    if "average_output" in head.lines and rounds:
        factor /= rounds
    planted = [_tree(tree, number % outputs, factor) for number, tree in enumerate(trees)]
    tables = _categories(head, codes_of(planted), n_features, content)
    forest = plant(placed(planted, tables, where), np.zeros(outputs), n_features, where)
    source = {
        "library": "lightgbm",
        "format": f"text {version}",
        "objective": head.text("objective", "custom"),
    } | ({"boosting": "rf"} if "average_output" in head.lines else {})
    behind = head_for(kind, outputs, wishes, where, labels)
    categories = {f: table.names for f, table in sorted(tables.items())}
    return Outcome(forest, behind, source, _names(head, n_features), rounds, categories)


def _sections(lines: list[str], where: str) -> tuple[_Section, list[_Section], bool]:
    """Cut the file into its head and trees; also whether it says where they end."""
    head = _Section(where, "the head", 1)
    trees: list[_Section] = []
    section = head
    for number, whole in enumerate(lines, start=1):
        line = whole.strip()
        if line == "end of trees" or line.startswith(("feature importances:", "feature_importances:")):
            hidden = next(
                (n for n, late in enumerate(lines, 1) if n > number and late.startswith("Tree=")), 0
            )
            if hidden:
                raise ModelFileError(f"{where}: line {hidden}: a tree stands behind the end of trees.")
            return head, trees, True
        key, equals, value = line.partition("=")
        if key == "Tree" and equals:
            if not whole.startswith("Tree="):  # which others do not take for a heading
                raise ModelFileError(f"{where}: line {number}: blanks stand before {shown(line)}.")
            if value != str(len(trees)):
                raise ModelFileError(f"{where}: line {number}: tree {len(trees)} is called {shown(value)}.")
            section = _Section(where, f"tree {len(trees)}", number)
            trees.append(section)
        elif (equals and _KEY.fullmatch(key)) or line == "average_output":
            section.add(key, value, number)
        elif line and not (section is head and line == "tree"):
            raise ModelFileError(f"{where}: line {number} must be key=value, got {shown(line)}.")
    return head, trees, False


def _objective(head: _Section, outputs: int) -> tuple[str, float]:
    """Return how predictions follow from raw scores, and by what those are multiplied for it."""
    name, *settings = (head.text("objective", "custom") or "custom").split()
    options = dict(setting.partition(":")[::2] for setting in settings)
    if name not in _OBJECTIVES:
        raise head.refuse("objective", f"is {shown(name)}, which cannot be imported; only "
                          f"{', '.join(_OBJECTIVES)} can")  # fmt: skip
    kind = _OBJECTIVES[name]
    if kind in (CLASSES, EACH) and options.get("num_class", str(outputs)) != str(outputs):
        raise head.refuse("objective", f"has {shown(options['num_class'])} classes, the file {outputs}")
    if kind in (ODDS, EACH) and "sigmoid" in options:
        factor = number_of(options["sigmoid"])
        if not 0 < factor < 1e6:
            raise head.refuse("objective", f"has the sigmoid {shown(options['sigmoid'])}; it must be above 0")
        return kind, factor
    return kind, 1.0


def _names(head: _Section, n_features: int) -> tuple[str, ...] | None:
    names = tuple(head.text("feature_names").split())
    if len(names) != n_features:
        raise head.refuse("feature_names", f"must be {n_features} names, got {len(names)}")
    made_up = all(re.fullmatch(rf"Column_{j}", name) for j, name in enumerate(names))
    return None if made_up else names


def _categories(
    head: _Section, asked: dict[int, IntArray], n_features: int, content: bytes
) -> dict[int, Named]:
    """Return the categories of each feature that has such: by the names of the frame the model was trained
    with, where it was one, else by digits.
    """
    codes = dict(asked)
    for f, info in enumerate(head.text("feature_infos", "").split()[:n_features]):
        if _CODES.fullmatch(info):
            own = np.array([int(code) for code in info.split(":") if code[0] != "-"], dtype=np.int64)
            codes[f] = np.union1d(codes.get(f, own), own)
    frame = _of_frame(content, head)
    if frame is None:
        return {f: named(own, own.tolist(), f"{head.where}: feature {f}") for f, own in codes.items()}
    if len(frame) != len(codes):
        raise ModelFileError(
            f"{head.where} was trained with a frame of {len(frame)} columns of categories, of which "
            f"{len(codes)} can be told (the others are constant, or ordered); leave those out and train "
            "again."
        )
    tables = {}
    for f, values in zip(sorted(codes), frame, strict=True):
        if codes[f].max(initial=-1) >= len(values):
            raise ModelFileError(
                f"{head.where}: feature {f} has {len(values)} categories, and a split on more."
            )
        tables[f] = named(np.arange(len(values)), values, f"{head.where}: feature {f}")
    return tables


def _of_frame(content: bytes, head: _Section) -> list[list[Any]] | None:
    """The categories of the columns of a frame, in the order of their codes, from the last line of a file."""
    line = (
        content.rstrip().rpartition(b"\npandas_categorical:")[2] if b"pandas_categorical:" in content else b""
    )
    if line in (b"", b"null", b"[]"):
        return None
    found = read_json(line, f"{head.where}: pandas_categorical")
    return [[part.value for part in entry.entries()] for entry in found.entries()]


def _sets(tree: _Section, count: int) -> tuple[IntArray, ...]:
    """The sets of categories of a tree: bits of words of 32."""
    if not count:
        return ()
    ends = tree.numbers("cat_boundaries", count + 1, whole=True)
    if ends[0] != 0 or (np.diff(ends) < 0).any():
        raise tree.refuse("cat_boundaries", "must rise from 0")
    words = tree.numbers("cat_threshold", int(ends[-1]), whole=True)
    if ((words < 0) | (words >= 2**32)).any():
        raise tree.refuse("cat_threshold", "must be words of 32 bits")
    bits = words.astype("<u4")
    return tuple(
        np.flatnonzero(np.unpackbits(bits[a:b].view(np.uint8), bitorder="little"))
        for a, b in pairwise(ends.tolist())
    )


def _tree(tree: _Section, output: int, factor: float) -> LooseTree:
    """Return a tree; its inner nodes come first, its leaves behind them."""
    leaves = tree.integer("num_leaves", 1, 2**31 - 1)
    sets = _sets(tree, tree.integer("num_cat", 0, 2**31 - 1, 0))
    if tree.text("is_linear", "0") != "0":
        raise tree.refuse("is_linear", "says its leaves are linear models, which cannot be imported")
    value = tree.numbers("leaf_value", leaves) * factor
    if leaves == 1:
        return leaf_only(value[0], output, tree.optional("leaf_count", 1, 0.0))
    inner = leaves - 1
    feature = tree.numbers("split_feature", inner, whole=True)
    if (feature < 0).any():
        raise tree.refuse("split_feature", f"must not be negative, got {feature.min()}")
    threshold = tree.numbers("threshold", inner)
    decision = _decisions(tree, inner)
    category_set = np.where(decision & _CATEGORICAL, threshold, -1)
    bad = (decision & _CATEGORICAL > 0) & ~np.isin(threshold, np.arange(len(sets)))
    if bad.any():
        raise tree.refuse("threshold", f"names set {threshold[np.argmax(bad)]:g}; there are {len(sets)}")
    sides = []
    for side in ("left_child", "right_child"):
        child = tree.numbers(side, inner, whole=True)
        bad = (child >= inner) | (child < -leaves)
        if bad.any():
            raise tree.refuse(side, f"must be from {-leaves} to {inner - 1}, got {child[np.argmax(bad)]}")
        sides.append(np.where(child < 0, inner - 1 - child, child))

    def joined(nodes: Any, ends: Any) -> Array:
        parts = (np.broadcast_to(nodes, (inner,)), np.broadcast_to(ends, (leaves,)))
        return np.concatenate(parts)

    counts = (tree.optional("internal_count", inner, 0.0), tree.optional("leaf_count", leaves, 0.0))
    return LooseTree(
        feature=joined(feature, -1),
        threshold=joined(floor32(threshold), 0),
        missing_left=joined(_missing_left(tree, threshold, decision), False),
        left=joined(sides[0], -1),
        right=joined(sides[1], -1),
        value=joined(0.0, value),
        gain=joined(tree.optional("split_gain", inner, 0.0), 0.0),
        rows=joined(*counts),
        output=output,
        category_set=joined(category_set, -1).astype(np.int64),
        sets=sets,
    )


def _decisions(tree: _Section, inner: int) -> Array:
    """How each inner node decides: bits."""
    decision = tree.numbers("decision_type", inner, whole=True)
    if ((decision < 0) | (decision > 15) | (decision & _MISSING_TYPE == _MISSING_TYPE)).any():
        raise tree.refuse("decision_type", f"must be bits of a split, got {shown(decision.tolist())}")
    return decision


def _missing_left(tree: _Section, threshold: Array, decision: Array) -> Array:
    """Which nodes send a missing value left; none that splits on categories does."""
    default = (decision & _DEFAULT_LEFT) > 0
    zero_left = threshold >= 0
    by_set = (decision & _CATEGORICAL) > 0
    as_zero = ((decision & _MISSING_TYPE) == _ZERO_AS_MISSING) & ~by_set
    # Zero as missing goes the default way. Where that is the way of its number, the split is an ordinary one.
    natural = np.where(default, threshold >= _ZERO, threshold < -_ZERO)
    if (as_zero & ~natural).any():
        raise tree.refuse("decision_type", "takes zeros for missing values (zero_as_missing), so that values "
                          "on both sides of 0 go another way; that is no split of ours")  # fmt: skip
    known = (decision & _MISSING_TYPE) == _NAN_IS_MISSING
    return np.where(known | as_zero, default, zero_left) & ~by_set
