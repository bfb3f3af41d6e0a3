"""RankLib: its text models of trees (LambdaMART, MART, Random Forests) and weights (Coordinate Ascent, Linear
Regression), read without Java.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from mcrank.errors import ModelFileError, OptionError
from mcrank.models.imports.outcome import Outcome, Wishes, check_features, linear_scorer
from mcrank.models.imports.parts import MOST_FEATURES, lines_of, number_of, shown
from mcrank.models.imports.planting import LooseTree, nearest32, plant
from mcrank.rankers.imported import ImportedRanker
from mcrank.scorers.heads import Head

_TREES = ("LambdaMART", "MART", "Random Forests")
_LINEAR = ("Coordinate Ascent", "Linear Regression")
_ATTRIBUTE = re.compile(r"""\s+([A-Za-z]+)\s*=\s*("[^"&]*"|'[^'&]*')""")
_ATTRIBUTES = re.compile(rf"(?:{_ATTRIBUTE.pattern})*\s*")
_TOKEN = re.compile(r"<([^<>]*)>|([^<>]+)|[<>]")


def from_ranklib(
    path: Any, *, n_features: int | None = None, feature_names: Sequence[str] | None = None
) -> ImportedRanker:
    """Return the ranker that a RankLib model is; scores differ by the float32 rounding of RankLib's sums.

    Parameters
    ----------
    path : path
        A text file that RankLib saved: LambdaMART, MART, Random Forests, Coordinate Ascent or Linear
        Regression.
    n_features : int, optional
        Columns of the data. RankLib does not say it; the highest feature it uses if not given.
    feature_names : sequence of str, optional
        Names of the features, from feature 1 on.

    Returns
    -------
    ImportedRanker
        A fitted ranker. As in RankLib, a missing value is 0.

    Examples
    --------
    >>> import tempfile, mcrank
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    ...     _ = file.write("## Coordinate Ascent\\n## Restart = 5\\n1:0.25 3:-0.75\\n")
    ...     _ = file.flush()
    ...     mcrank.from_ranklib(file.name).predict([[1.0, 0.0, 1.0], [4.0, 9.0, 0.0]]).tolist()
    [-0.5, 1.0]
    """
    from mcrank.models.imports.read import import_file, is_path, wrong_object

    if not is_path(path):
        raise wrong_object(path, "from_ranklib", "a path")
    if n_features is None and feature_names is not None:
        n_features = len(feature_names)
    return import_file(path, "ranklib", Wishes(None, feature_names, n_features))


def read_ranklib(content: bytes, where: str, wishes: Wishes) -> Outcome:
    """Return what a text model says."""
    lines = lines_of(content, where)
    kind = lines[0].strip().removeprefix("##").strip()
    if kind not in (*_TREES, *_LINEAR):
        raise ModelFileError(
            f"{where}: line 1 says it is {shown(kind)}; of RankLib's models {', '.join((*_TREES, *_LINEAR))} "
            "can be imported."
        )
    source = {"library": "ranklib", "objective": kind, "format": "text"}
    if kind in _LINEAR:
        scorer = _linear(lines, where, wishes)
        return Outcome(scorer, Head(), source, None, 0)
    ensembles = _Parser(lines, where).ensembles()
    trees = [tree for ensemble in ensembles for tree in ensemble]
    if len(ensembles) > 1:
        if kind != "Random Forests":
            raise ModelFileError(f"{where} has {len(ensembles)} ensembles; {kind} has one.")
        trees = [tree._replace(value=tree.value / len(ensembles)) for tree in trees]
    highest = max((int(tree.feature.max()) for tree in trees), default=0) + 1
    return Outcome(
        plant(trees, [0.0], _count(highest, wishes, where), where), Head(), source, None, len(trees)
    )


def _count(highest: int, wishes: Wishes, where: str) -> int:
    """Return the number of columns: what the caller says, if it is enough."""
    if wishes.n_features is None:
        return check_features(max(highest, 1), where)
    if wishes.n_features < highest:
        raise OptionError(f"{where} uses feature {highest}, and n_features is {wishes.n_features!r}.")
    return check_features(int(wishes.n_features), where)


def _linear(lines: list[str], where: str, wishes: Wishes) -> Any:
    """Return the scorer of ``feature:weight`` pairs; feature 0 is a constant."""
    rows = [(n, line) for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("##")]
    if len(rows) != 1:
        raise ModelFileError(f"{where} must have one line of weights, got {len(rows)}.")
    number, line = rows[0]
    weights: dict[int, float] = {}
    for pair in line.split():
        name, _, text = pair.partition(":")
        weight = number_of(text)
        if not (name.isascii() and name.isdecimal() and int(name[:9]) <= MOST_FEATURES and len(name) < 9):
            raise ModelFileError(f"{where}: line {number} must have feature:weight, got {shown(pair)}.")
        if not np.isfinite(weight) or int(name) in weights:
            raise ModelFileError(
                f"{where}: line {number}: feature {int(name)} must have one finite weight, got {shown(text)}."
            )
        weights[int(name)] = weight
    count = _count(max(weights), wishes, where)
    dense = np.zeros(count)
    for feature, weight in weights.items():
        if feature:
            dense[feature - 1] = weight
    return linear_scorer(dense, weights.get(0, 0.0), where)


class _Tag(NamedTuple):
    """A tag, or the text between two (with an empty name), and its line."""

    name: str
    rest: str  # attributes, or the text
    line: int


class _Parser:
    """Reads ensembles tag by tag; nothing is nested in Python, so that depth costs nothing."""

    def __init__(self, lines: list[str], where: str) -> None:
        self.where = where
        self.tags = self._tags(lines)
        self.line = 1

    def refuse(self, words: str) -> NoReturn:
        raise ModelFileError(f"{self.where}: line {self.line}: {words}.")

    def _tags(self, lines: list[str]) -> Iterator[_Tag]:
        for number, line in enumerate(lines, start=1):
            if line.startswith("##"):
                continue
            for match in _TOKEN.finditer(line):
                text = match[2]
                if match[1] is None and text is None:
                    self.line = number
                    self.refuse("a mark < or > that belongs to no tag")
                if text is not None and text.strip():
                    yield _Tag("", text.strip(), number)
                elif text is None:
                    name, space, rest = match[1].partition(" ")
                    rest = space + rest
                    if not _ATTRIBUTES.fullmatch(rest):
                        self.line = number
                        self.refuse(f'a tag must have name="value" behind its name, got {shown(rest)}')
                    yield _Tag(name.strip(), rest, number)

    def next(self) -> _Tag | None:
        tag = next(self.tags, None)
        if tag is not None:
            self.line = tag.line
        return tag

    def take(self, *names: str) -> _Tag:
        """Return the next tag, which must be one of these."""
        tag = self.next()
        if tag is None:
            self.refuse(f"the file is cut off where {_words(names)} should follow")
        if tag.name not in names:
            found = f"the text {shown(tag.rest)}" if not tag.name else f"<{tag.name[:40]!a}>".replace("'", "")
            self.refuse(f"{_words(names)} should stand here, got {found}")
        return tag

    def content(self, name: str) -> float:
        """Return the number between a tag, which has been read, and its end; as float32, like RankLib."""
        text = self.take("").rest
        value = float(nearest32(number_of(text)))
        if np.isnan(value):
            self.refuse(f"{name} must be a number, got {shown(text)}")
        self.take(f"/{name}")
        return value

    def ensembles(self) -> list[list[LooseTree]]:
        found: list[list[LooseTree]] = []
        while (tag := self.next()) is not None:
            if tag.name != "ensemble":
                self.refuse(f"<ensemble> should stand here, got {shown(tag.name or tag.rest)}")
            found.append([])
            while (tag := self.take("tree", "/ensemble")).name == "tree":
                found[-1].append(self.tree(tag))
        if not found:
            self.refuse("there is no <ensemble>")
        return found

    def tree(self, tag: _Tag) -> LooseTree:
        found = [match[2] for match in _ATTRIBUTE.finditer(tag.rest) if match[1] == "weight"]
        weight = float(nearest32(number_of(found[0][1:-1] if len(found) == 1 else "")))
        if not np.isfinite(weight):
            self.refuse("a <tree> must have one weight that is a finite number")
        nodes = self.nodes()
        self.take("/tree")
        columns = [np.array(column) for column in zip(*nodes, strict=True)]
        feature, threshold, left, right, value, rows = columns
        zero_left = threshold >= 0  # a missing value is 0
        return LooseTree(feature, threshold, zero_left, left, right, value * weight, 0.0, rows)

    def nodes(self) -> list[list[float]]:
        """Read the nodes of a tree: feature, threshold, children, value and number of leaves of each."""
        nodes: list[list[float]] = []
        open_splits: list[int] = []
        self.take("split")
        nodes.append(self.node(open_splits, 0))
        while open_splits:
            parent = open_splits[-1]
            tag = self.take("split", "/split")
            if tag.name == "/split":
                self.close(nodes, open_splits)
                continue
            side = 2 if nodes[parent][2] < 0 else 3
            if nodes[parent][0] < 0 or nodes[parent][side] >= 0:
                self.refuse("a <split> has a place for two others, and a leaf for none")
            nodes[parent][side] = len(nodes)
            nodes.append(self.node(open_splits, len(nodes)))
        return nodes

    def close(self, nodes: list[list[float]], open_splits: list[int]) -> None:
        """End the innermost split, and add its leaves to the one around it."""
        at = open_splits.pop()
        if nodes[at][0] >= 0 and (nodes[at][2] < 0 or nodes[at][3] < 0):
            self.refuse("a <split> by a feature must have a left and a right one inside")
        if open_splits:
            nodes[open_splits[-1]][5] += nodes[at][5]

    def node(self, open_splits: list[int], at: int) -> list[float]:
        open_splits.append(at)
        if self.take("feature", "output").name == "output":
            return self.leaf()
        feature = self.content("feature")
        if not 1 <= feature <= MOST_FEATURES or feature != int(feature):
            self.refuse(f"a feature must be from 1 to {MOST_FEATURES}, got {feature:g}")
        self.take("threshold")
        return [feature - 1, self.content("threshold"), -1, -1, 0.0, 0]

    def leaf(self) -> list[float]:
        value = self.content("output")
        if not np.isfinite(value):
            self.refuse("an output must be finite")
        return [-1, 0.0, -1, -1, value, 1]


def _words(names: Sequence[str]) -> str:
    return " or ".join(f"<{name}>" if name else "a number" for name in names)
