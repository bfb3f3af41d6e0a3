"""SQL: a query that scores the rows of a table, by nested CASE or by walking a table of nodes."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from mcrank.arrays import FeatureArray, FloatArray
from mcrank.data.categories import WHOLE
from mcrank.export.sql_dialects import DIALECTS, Dialect
from mcrank.export.target import Consumed, ConsumerMissing, Exportable, Target
from mcrank.export.trees import Tree, base_in_leaves, breadth_first, trees_of
from mcrank.options import option
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.linear import Linear
from mcrank.scorers.odds import LEAST_SHARE

_MOST_TREES = 500  # added up in one expression: SQLite takes a depth of 1,000
_MOST_LEAVES = {"sqlite": 10_000, "duckdb": 500, "postgres": 2_000, "bigquery": 2_000}
_ROWS_A_STATEMENT = 500
_OWN = re.compile(r"(f|raw_|s|c|class_|above_|over_)[0-9]+|top|way|z|bent|score|node|feature|v")
_STEPS = re.compile(  # what a query and a walk call their parts: a table of that name would be taken for one
    r"mcrank_(nodes|scores|given|features|subtrees_[0-9]+|known|walk|outputs|classes|tops|chances|learned"
    r"|shares|ways|lines|corrected)"
)
_DEEPEST = 12  # CASE in CASE: the parser of SQLite has a stack of 100 words


class SQL(Target):
    """A query in the dialect of SQLite, DuckDB, Postgres or BigQuery."""

    name: ClassVar[str] = "sql"
    suffixes: ClassVar[tuple[str, ...]] = (".sql",)
    scorers: ClassVar[tuple[str, ...]] = ("forest", "linear")
    exactness: ClassVar[str] = (
        "trees: raw outputs equal to the last bit, walks in SQLite and BigQuery to 1e-14; linear: to 1e-15"
    )
    categories: ClassVar[Literal["", "codes", "names"]] = "names"
    missing: ClassVar[str] = "NULL (and NaN, where there is one) takes the side it took in training"

    dialect: str = option(default="sqlite", choices=tuple(DIALECTS), help="whose SQL")
    form: str = option(
        default="auto",
        choices=("auto", "case", "walk"),
        help="one query of nested CASE, or a table of nodes and a view that walks it; auto by size",
    )
    source: str = option(default="documents", help="table of the rows, with a column for each feature")
    key: str = option(default="id", help="column of that table that no two rows share")

    def refuses(self, model: Exportable) -> str | None:
        """What SQL has no word for, or one expression no room."""
        scorer = model.scorer
        if isinstance(scorer, Linear) and scorer.scaling.kind == "log":
            return "SQL has no log1p, and log(1 + x) is wrong for small x"
        if not self.source.strip() or not self.key.strip():
            return "source and key must be names, and one is empty"
        if isinstance(scorer, Forest) and self.form == "case" and _most_trees(scorer) > _MOST_TREES:
            return f"form='case' takes at most {_MOST_TREES} trees an output; use form='walk'"
        # Postgres alone tells quoted names apart by case.
        fold = str if self.dialect == "postgres" else str.lower
        if _OWN.fullmatch(fold(self.key)):
            return f"the query has a column {self.key!r} of its own; call the key otherwise, by a view, say"
        if _STEPS.fullmatch(self.source.lower()):
            return f"the query has a {self.source!r} of its own; call the table otherwise, by a view, say"
        seen: dict[str, str] = {fold(self.key): self.key}
        for name in model.feature_names:
            if fold(name) in seen:
                other = seen[fold(name)]
                return f"a table has one column for {other!r} and {name!r}; rename a feature, or the key"
            seen[fold(name)] = name
        return None

    def content(self, model: Exportable) -> bytes:
        """Return the script: a query, or a table and a view."""
        dialect = DIALECTS[self.dialect]
        about = [f"-- A model of mcrank {model.version} (ranker {model.ranker}, {model.fingerprint}),"]
        about.append(f"-- for {dialect.title}. Columns of the result: the key, score, raw_0 and so on.")
        writer = _Writer(model, dialect, self.source, self.key)
        if isinstance(model.scorer, Forest) and self._walks(model.scorer):
            lines = list(writer.walk())
        else:
            lines = list(writer.query())
        return ("\n".join([*about, *lines]) + "\n").encode()

    def _walks(self, forest: Forest) -> bool:
        if self.form != "auto":
            return self.form == "walk" and forest.n_trees > 0
        leaves = int((forest.feature < 0).sum())
        return leaves > _MOST_LEAVES[self.dialect] or _most_trees(forest) > _MOST_TREES

    def consume(self, model: Exportable, path: Path, X: FeatureArray) -> Consumed:
        """Score with SQLite or DuckDB, in memory."""
        dialect = DIALECTS[self.dialect]
        if self.dialect == "sqlite":
            connection: Any = sqlite3.connect(":memory:")
            version = f"SQLite {sqlite3.sqlite_version}"
        elif self.dialect == "duckdb":
            try:
                import duckdb
            except ImportError:
                raise ConsumerMissing("duckdb is not installed (pip install duckdb).") from None
            connection = duckdb.connect()
            version = f"DuckDB {duckdb.__version__}"
        else:
            raise ConsumerMissing(f"there is no {dialect.title} here.")
        names = [dialect.quoted(name) for name in (self.key, *model.feature_names)]
        kinds = ["INTEGER"]
        kinds += [dialect.texts if f in model.categories else dialect.double for f in range(len(names) - 1)]
        columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
        connection.execute(f"CREATE TABLE {dialect.quoted(self.source)} ({columns})")
        rows = [[i, *row] for i, row in enumerate(model.named_rows(X))]
        marks = ", ".join("?" * len(names))
        connection.executemany(f"INSERT INTO {dialect.quoted(self.source)} VALUES ({marks})", rows)
        script = path.read_text(encoding="utf-8")
        if isinstance(model.scorer, Forest) and self._walks(model.scorer):
            (connection.executescript if self.dialect == "sqlite" else connection.execute)(script)
            script = "SELECT * FROM mcrank_scores"
        found = connection.execute(script)
        scored = np.array(sorted(found.fetchall()), dtype=np.float64)
        connection.close()
        return Consumed(scored[:, 1], version, scored[:, 2:].T)


def _most_trees(forest: Forest) -> int:
    return int(np.bincount(forest.tree_output, minlength=1).max())


class _Writer:
    """Writes the parts of a query: features as they are tested, raw outputs, the score."""

    def __init__(self, model: Exportable, dialect: Dialect, source: str, key: str) -> None:
        self.model, self.dialect = model, dialect
        self.source, self.key = dialect.quoted(source), dialect.quoted(key)
        self.n_outputs = model.scorer.n_outputs

    def query(self) -> Iterator[str]:
        """One query that says all."""
        cases = _Cases(self.dialect)
        raw = [f"{self._raw(k, cases)} AS raw_{k}" for k in range(self.n_outputs)]
        yield "WITH"
        yield from self._features(self._used())
        before = "mcrank_features"
        for stage, columns in enumerate(cases.columns):
            yield from self._step(f"mcrank_subtrees_{stage}", before, columns)
            before = f"mcrank_subtrees_{stage}"
        yield from self._step("mcrank_outputs", before, raw, self.key, last=not self._steps())
        yield from self._score()

    def walk(self) -> Iterator[str]:
        """A table of nodes, and a view whose rows are walked through it."""
        forest, d = base_in_leaves(self.model.forest), self.dialect
        yield (
            f"CREATE TABLE mcrank_nodes (node {d.integer} {d.primary}, output {d.integer}, "
            f"feature {d.integer}, threshold {d.double}, missing {d.integer}, next_node {d.integer}, "
            f"leaf {d.double}, root {d.integer});"
        )
        rows = list(self._node_rows(forest))
        for first in range(0, len(rows), _ROWS_A_STATEMENT):
            yield "INSERT INTO mcrank_nodes VALUES"
            yield ",\n".join(rows[first : first + _ROWS_A_STATEMENT]) + ";"
        yield "CREATE VIEW mcrank_scores AS"
        yield "WITH RECURSIVE"
        used = self._used()
        yield from self._features(used)
        # One row for each feature. Not a UNION of as many queries: SQLite takes 500 of them.
        values = " ".join(f"WHEN {f} THEN f{f}" for f in used)
        value = f"CASE feature {values} END" if used else d.number(0.0)
        yield "mcrank_known AS ("
        yield f"  SELECT mcrank_features.{self.key}, tested.feature, {value} AS v FROM mcrank_features"
        yield "  CROSS JOIN (SELECT DISTINCT feature FROM mcrank_nodes WHERE feature >= 0) AS tested"
        yield "),"
        yield f"mcrank_walk ({self.key}, node) AS ("
        yield f"  SELECT mcrank_features.{self.key}, n.node FROM mcrank_features"
        yield "  CROSS JOIN mcrank_nodes n WHERE n.root = 1"
        yield "  UNION ALL"
        yield f"  SELECT walk.{self.key}, n.next_node + CASE WHEN known.v <= n.threshold THEN 0"
        yield "    WHEN known.v > n.threshold THEN 1 ELSE n.missing END"
        yield "  FROM mcrank_walk walk JOIN mcrank_nodes n ON n.node = walk.node"
        yield f"  JOIN mcrank_known known ON known.{self.key} = walk.{self.key} AND known.feature = n.feature"
        yield "),"
        yield f"mcrank_outputs AS{self.dialect.kept} ("
        yield f"  SELECT walk.{self.key},"
        for k in range(self.n_outputs):
            added = f"SUM(CASE WHEN n.output = {k} THEN n.leaf ELSE {d.number(0.0)} END{d.in_order})"
            yield f"    {added} AS raw_{k}{',' if k < self.n_outputs - 1 else ''}"
        yield "  FROM mcrank_walk walk JOIN mcrank_nodes n ON n.node = walk.node"
        yield f"  WHERE n.feature < 0 GROUP BY walk.{self.key}"
        yield f"){',' if self._steps() else ''}"
        yield from self._score()

    def _used(self) -> list[int]:
        """Features that are looked at."""
        scorer = self.model.scorer
        if isinstance(scorer, Forest):
            return [int(f) for f in np.unique(scorer.feature[scorer.feature >= 0])]
        assert isinstance(scorer, Linear)  # nothing else is taken
        return [int(f) for f in np.flatnonzero(scorer.weights * scorer.scaling.factor)]

    def _features(self, used: list[int]) -> Iterator[str]:
        """Columns as numbers, NULL where missing, then rounded to float32 by Veltkamp's splitting: a product
        and two differences leave the upper 24 bits, and no dialect fails on what is beyond a type.
        """
        names = self.model.feature_names
        given = [f"{self._given(f, self.dialect.quoted(names[f]))} AS f{f}" for f in used]
        yield from self._step("mcrank_given", self.source, given, self.key)
        rounded = [f"f{f} * 536870913.0 - (f{f} * 536870913.0 - f{f}) AS f{f}" for f in used]
        yield from self._step("mcrank_features", "mcrank_given", rounded, self.key)

    def _given(self, f: int, column: str) -> str:
        """A column as a number: of categories the code."""
        names = self.model.categories.get(f)
        if names is None:
            return self.dialect.known(column)
        spelled = [(name, code) for code, name in enumerate(names)]
        if all(map(WHOLE.fullmatch, names)):  # of a column of doubles 7 is written 7.0
            spelled += [(f"{name}.0", code) for name, code in spelled]
        codes = " ".join(f"WHEN {self.dialect.text(name)} THEN {code}.0" for name, code in spelled)
        return f"CASE CAST({column} AS {self.dialect.texts}) {codes} END"

    def _raw(self, output: int, cases: _Cases) -> str:
        scorer, number = self.model.scorer, self.dialect.number
        if isinstance(scorer, Forest):
            trees = [cases.text(tree) for tree in trees_of(scorer) if tree.output == output]
            return "\n    + ".join([number(scorer.base[output]), *trees])
        assert isinstance(scorer, Linear)
        s = scorer.scaling
        terms = [number(0.0)]
        for f in self._used():
            scaled = f"COALESCE((f{f} - {number(s.shift[f])}) * {number(s.factor[f])}, {number(s.fill[f])})"
            terms.append(f"{scaled} * {number(scorer.weights[f])}")
        return "\n    + ".join(terms)

    def _node_rows(self, forest: Forest) -> Iterator[str]:
        start, number = 0, self.dialect.number
        for tree in map(breadth_first, trees_of(forest)):
            for node, feature in enumerate(tree.feature.tolist()):
                inner = feature >= 0
                yield (
                    f"({start + node}, {tree.output}, {feature}, {number(tree.threshold[node])}, "
                    f"{1 - int(tree.missing_left[node])}, {start + int(tree.left[node]) if inner else -1}, "
                    f"{number(tree.value[node])}, {int(node == 0)})"
                )
            start += len(tree.feature)

    def _steps(self) -> bool:
        return self.model.values is not None

    def _score(self) -> Iterator[str]:
        """From raw outputs to the score; exponents are kept where no dialect fails on them."""
        raw = [f"raw_{k}" for k in range(self.n_outputs)]
        kind, values = self.model.head.kind, self.model.values
        d = self.dialect
        if values is None:
            score = d.exp_score("raw_0") if kind == "exp" else "raw_0"
            yield f"SELECT {self.key}, {score} AS score, {', '.join(raw)} FROM mcrank_outputs;"
            return
        chances = [f"c{k}" for k in range(len(values))]
        if kind == "cumulative":
            steps = [f"{d.sigmoid(name)} AS above_{k}" for k, name in enumerate(raw)]
            yield from self._step(
                "mcrank_learned", "mcrank_outputs", steps, last=self.model.head.odds is None
            )
            yield from self._of_above(values)
            return
        names = raw
        if kind == "base-pairs":
            n = len(values)
            sums = []
            for k in range(n):
                added = [f"raw_{k * (n - 1) + j}" for j in range(n - 1)]
                taken = [f"raw_{i * (n - 1) + k - (k > i)}" for i in range(n) if i != k]
                sums.append(f"{' + '.join(added)} - {' - '.join(taken)} AS class_{k}")
            yield from self._step("mcrank_classes", "mcrank_outputs", sums)
            names = [f"class_{k}" for k in range(n)]
        before = "mcrank_classes" if kind == "base-pairs" else "mcrank_outputs"
        if kind == "one-each":
            powers = [f"{d.sigmoid(name)} AS c{k}" for k, name in enumerate(names)]
        else:
            yield from self._step("mcrank_tops", before, [f"{d.greatest}({', '.join(names)}) AS top"])
            before = "mcrank_tops"
            powers = [f"{d.exp(f'{name} - top')} AS c{k}" for k, name in enumerate(names)]
        total = " + ".join(chances)
        odds = self.model.head.odds
        yield from self._step("mcrank_chances", before, powers, last=odds is None)
        if odds is not None:
            above = [
                f"({' + '.join(chances[k:])}) / ({total}) AS above_{k - 1}" for k in range(1, len(values))
            ]
            yield from self._step("mcrank_learned", "mcrank_chances", above)
            yield from self._of_above(values)
            return
        score = _sum(d, 0.0, zip(values.tolist(), chances, strict=True))
        yield f"SELECT {self.key}, ({score}) / ({total}) AS score, {', '.join(raw)} FROM mcrank_chances;"

    def _of_above(self, values: FloatArray) -> Iterator[str]:
        """From chances of being above each grade but the highest to the score, by the odds of one."""
        d, odds, before = self.dialect, self.model.head.odds, "mcrank_learned"
        above = [f"above_{k}" for k in range(len(values) - 1)]
        if odds is not None:
            share = _sum(d, 0.0, zip(odds.steps.tolist(), above, strict=True))
            ends = d.number(LEAST_SHARE), d.number(1 - LEAST_SHARE)
            within = f"{d.greatest}({d.least}({share}, {ends[1]}), {ends[0]})"
            yield from self._step("mcrank_shares", "mcrank_learned", [f"{within} AS way"])
            yield from self._step("mcrank_ways", "mcrank_shares", ["LN(way / (1 - way)) AS z"])
            bends = zip(odds.bends.tolist(), odds.knots.tolist(), strict=True)
            parts = [(bend, f"{d.greatest}(z - ({d.number(knot)}), {d.number(0.0)})") for bend, knot in bends]
            line = _sum(d, 0.0, [(float(odds.slopes[0]), "z"), *parts])
            yield from self._step("mcrank_lines", "mcrank_ways", [f"{line} AS bent"])
            stray, *higher = odds.strayed.tolist()
            kept = odds.learned
            columns = []
            for k, (cut, strayed) in enumerate(zip(odds.cuts.tolist(), higher, strict=True)):
                by_score = d.sigmoid(f"(bent + ({d.number(cut)}))")
                terms = [(kept, above[k]), ((1 - kept) * (1 - stray), f"({by_score})")]
                columns.append(f"{_sum(d, (1 - kept) * strayed, terms)} AS over_{k}")
            yield from self._step("mcrank_corrected", "mcrank_lines", columns, last=True)
            before, above = "mcrank_corrected", [f"over_{k}" for k in range(len(above))]
        score = _sum(d, values[0], zip(np.diff(values).tolist(), above, strict=True))
        raw = ", ".join(f"raw_{k}" for k in range(self.n_outputs))
        yield f"SELECT {self.key}, {score} AS score, {raw} FROM {before};"

    def _step(
        self, name: str, before: str, columns: list[str], taken: str = "", *, last: bool = False
    ) -> Iterator[str]:
        """A query by name: columns of the one before it, all or those ``taken``, and others."""
        yield f"{name} AS{self.dialect.kept} ("
        yield ",\n    ".join([f"  SELECT {taken or f'{before}.*'}", *columns])
        yield f"  FROM {before}"
        yield f"){'' if last else ','}"


def _sum(dialect: Dialect, first: float, terms: Any) -> str:
    return " + ".join([dialect.number(first), *(f"({dialect.number(a)}) * {b}" for a, b in terms)])


class _Cases:
    """Trees as nested CASE; what would be nested too deep is a column of an earlier query.

    A test of NULL is not true and falls to ELSE, so the child that stands there is the one of missing values.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.number = dialect.number
        self.columns: list[list[str]] = []  # of each query before, the first one first
        self._count = 0

    def text(self, tree: Tree) -> str:
        """Return the value of a row's leaf."""
        text, height, stage = [""] * len(tree.feature), [0] * len(tree.feature), [0] * len(tree.feature)
        for node in range(len(text) - 1, -1, -1):  # children come after their parents
            if tree.feature[node] < 0:
                text[node] = self.number(tree.value[node])
                continue
            left, right = int(tree.left[node]), int(tree.right[node])
            sign, then, otherwise = (">", right, left) if tree.missing_left[node] else ("<=", left, right)
            test = f"f{tree.feature[node]} {sign} {float(tree.threshold[node])!r}"
            text[node] = f"CASE WHEN {test} THEN {text[then]} ELSE {text[otherwise]} END"
            height[node] = 1 + max(height[left], height[right])
            stage[node] = max(stage[left], stage[right])
            if height[node] == _DEEPEST and node:
                self.columns += [[]] * (stage[node] + 1 - len(self.columns))
                self.columns[stage[node]] = [*self.columns[stage[node]], f"{text[node]} AS s{self._count}"]
                text[node], height[node], stage[node] = f"s{self._count}", 0, stage[node] + 1
                self._count += 1
        return text[0]
