"""Queries score as mcrank does: in SQLite and DuckDB, and in Postgres where a server is installed."""

from __future__ import annotations

import glob
import io
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile

import numpy as np
import pytest

import mcrank
from mcrank.errors import OptionError
from mcrank.export.hard_rows import hard_rows
from mcrank.export.sql import SQL
from mcrank.export.sql_dialects import DIALECTS
from mcrank.export.target import ConsumerMissing
from mcrank.export.write import export
from tests.export import bed

LINEAR = ("ranksvm", "coordinate-ascent", "adarank", "best-feature")
DUCKDB = pytest.param("duckdb", marks=pytest.mark.consumer)


@pytest.mark.parametrize("form", ["case", "walk"])
@pytest.mark.parametrize("dialect", ["sqlite", DUCKDB])
@pytest.mark.parametrize("name", bed.FORESTS + LINEAR)
def test_engines_score_alike(tmp_path, name, dialect, form):
    model = bed.model(name)
    X = hard_rows(model.scorer, 100)[:150]
    target = SQL(dialect=dialect, form=form)
    found = target.consume(model, export(model, target, tmp_path / "m.sql")[0], X)
    check(
        model,
        X,
        found.scores,
        found.raw,
        exact=(dialect, form) != ("sqlite", "walk") and name in bed.FORESTS,
    )


def check(model, X, scores, raw, exact=False):
    want = model.scorer.raw(X)
    assert (np.abs(raw - want) <= (0.0 if exact else 1e-14) * np.maximum(1.0, np.abs(want))).all()
    scored = model.scores(X)
    assert (np.abs(scores - scored) <= 1e-14 * np.maximum(1.0, np.abs(scored))).all()


def test_columns_are_rounded_to_float32(tmp_path):
    model = bed.model("many cuts")
    cuts = model.forest.threshold[model.forest.feature >= 0].astype(np.float64)
    wide = np.stack([cuts[:150] * (1 + 1e-9), cuts[150:300] * (1 - 1e-9)], axis=1)
    target = SQL()
    path = export(model, target, tmp_path / "m.sql")[0]
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE documents (id INTEGER, f0 REAL, f1 REAL)")
    connection.executemany(
        "INSERT INTO documents VALUES (?, ?, ?)", [(i, *row) for i, row in enumerate(wide.tolist())]
    )
    scores = np.array([row[1] for row in sorted(connection.execute(path.read_text()))])
    assert np.array_equal(scores, model.scores(wide.astype(np.float32)))
    connection.close()


@pytest.mark.parametrize("form", ["case", "walk"])
def test_many_features_are_no_trouble(tmp_path, form):
    stream = np.random.default_rng(0)
    builder = bed.ForestBuilder(900, [0.0])
    for _ in range(150):
        bed.append_random(builder, stream, 900, 8)
    model = bed.exportable(builder.build())
    X = stream.normal(size=(20, 900)).astype(np.float32)
    target = SQL(form=form)
    found = target.consume(model, export(model, target, tmp_path / "m.sql")[0], X)
    check(model, X, found.scores, found.raw)


def test_size_decides_the_form(tmp_path):
    small = export(bed.model("gbrank"), SQL(dialect="duckdb"), tmp_path / "a.sql")[0].read_text()
    large = export(bed.model("deep"), SQL(dialect="duckdb"), tmp_path / "b.sql")[0].read_text()
    assert "CREATE" not in small
    assert "CREATE VIEW mcrank_scores" in large


def test_what_sql_cannot_say_is_refused(tmp_path):
    with pytest.raises(OptionError, match="it takes trees, linear"):
        bed.ranker("ranknet").export(tmp_path / "m.sql", to="sql")
    with pytest.raises(OptionError, match="dialect of SQL must be 'sqlite' or"):
        bed.ranker("gbrank").export(tmp_path / "m.sql", to="sql", dialect="oracle")
    with pytest.raises(OptionError, match="source and key must be names"):
        bed.ranker("gbrank").export(tmp_path / "m.sql", to="sql", source=" ")


def test_a_log_is_refused(tmp_path):
    import mcrank

    ranker = mcrank.RankSVM(scaling="log").fit(bed.data())
    with pytest.raises(OptionError, match="no log1p"):
        ranker.export(tmp_path / "m.sql", to="sql")


def test_bigquery_is_written_and_not_run(tmp_path):
    model = bed.model("mcrank")
    target = SQL(dialect="bigquery", form="case", source="project.set.documents", key="doc`id")
    path = export(model, target, tmp_path / "m.sql")[0]
    text = path.read_text()
    assert "FROM `project.set.documents`" in text
    assert "`doc\\`id`" in text
    assert "IF(IS_NAN(CAST(`page rank` AS FLOAT64)), NULL," in text
    with pytest.raises(ConsumerMissing, match="no BigQuery here"):
        target.consume(model, path, np.zeros((1, 8), dtype=np.float32))


def servers():
    return sorted(glob.glob("/usr/lib/postgresql/*/bin")) if shutil.which("runuser") else []


@pytest.fixture(scope="module")
def psql():
    """Run SQL in a Postgres of its own: a socket in a folder, no port."""
    if not servers():
        pytest.skip("no Postgres server is installed")
    programs, folder = servers()[-1], tempfile.mkdtemp(prefix="mcrank-postgres-")
    as_user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    if as_user:
        shutil.chown(folder, "postgres")

    def run(*words, **more):
        return subprocess.run(
            [*as_user, *words], check=True, capture_output=True, text=True, cwd=folder, **more
        )

    run(
        f"{programs}/initdb",
        "-D",
        f"{folder}/data",
        "-E",
        "UTF8",
        "--locale=C",
        "-A",
        "trust",
        "-U",
        "postgres",
    )
    settings = f"-c listen_addresses='' -c unix_socket_directories={folder}"
    control = [f"{programs}/pg_ctl", "-D", f"{folder}/data", "-w"]
    # The server keeps what it writes to open: a pipe would never end.
    run(*control, "-l", f"{folder}/log", "-o", settings, "start")
    try:
        yield lambda text: run(
            f"{programs}/psql", "-h", folder, "-U", "postgres", "-d", "postgres", "-qAt", "-F", ",",
            "-v", "ON_ERROR_STOP=1", "-f", "-", input=text,
        ).stdout  # fmt: skip
    finally:
        run(*control, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.consumer
@pytest.mark.parametrize("form", ["case", "walk"])
@pytest.mark.parametrize("name", bed.FORESTS + LINEAR)
def test_postgres_scores_alike(tmp_path, psql, name, form):
    model = bed.model(name)
    X = hard_rows(model.scorer, 100)[:150]
    text = export(model, SQL(dialect="postgres", form=form), tmp_path / "m.sql")[0].read_text()
    quoted = DIALECTS["postgres"].quoted
    columns = ", ".join(f"{quoted(n)} DOUBLE PRECISION" for n in model.feature_names)
    rows = io.StringIO()
    for i, row in enumerate(X.tolist()):
        # Missing is NULL in one row and NaN in the next.
        print(i, *(("" if i % 2 else "NaN") if v != v else repr(v) for v in row), sep=",", file=rows)
    start = "DROP VIEW IF EXISTS mcrank_scores; DROP TABLE IF EXISTS documents, mcrank_nodes;\n"
    start += f"CREATE TABLE documents (id INTEGER PRIMARY KEY, {columns});\nCOPY documents FROM STDIN CSV;\n"
    end = "SELECT * FROM mcrank_scores;\n" if "CREATE VIEW" in text else ""
    found = psql(f"SET client_min_messages = error;\n{start}{rows.getvalue()}\\.\n{text}{end}")
    table = np.array(sorted([float(word) for word in line.split(",")] for line in found.splitlines()))
    check(model, X, table[:, 1], table[:, 2:].T, exact=name in bed.FORESTS)


def test_sqlite_reads_every_number_back():
    random = np.random.default_rng(5)
    values = random.normal(size=20_000) * 10.0 ** random.choice([-40, -3, 0, 0, 0, 3, 38], 20_000)
    values = [
        *values,
        0.3744935453302424,
        3.4028234663852886e38,
        1e-45,
    ]  # the first is misread from its shortest text
    connection = sqlite3.connect(":memory:")
    number = DIALECTS["sqlite"].number
    for value in values:
        assert connection.execute(f"SELECT {number(value)}").fetchone() == (value,)


@pytest.mark.parametrize(
    ("names", "dialect", "said"),
    [
        (["price", "Price"], "sqlite", "'price' and 'Price'"),
        (["price", "Price"], "bigquery", "'price' and 'Price'"),
        (["price", "Price"], "postgres", None),
        (["price", "ID"], "duckdb", "'id' and 'ID'"),
        (["price", "id"], "postgres", "'id' and 'id'"),
    ],
)
def test_names_that_a_table_cannot_tell_apart_are_refused(tmp_path, names, dialect, said):
    data = mcrank.Dataset([[1.0, 0.0], [0.0, 1.0]], y=[1, 0], qid=[1, 1], feature_names=names)
    ranker = mcrank.RegressionRanker(n_estimators=1, min_samples_leaf=1, n_jobs=1).fit(data)
    if said is None:
        assert ranker.export(tmp_path / "m.sql", to="sql", dialect=dialect)
        return
    with pytest.raises(OptionError, match=said):
        ranker.export(tmp_path / "m.sql", to="sql", dialect=dialect)
    assert not (tmp_path / "m.sql").exists()


@pytest.mark.parametrize("form", ["case", "walk"])
@pytest.mark.parametrize("name", ["mcrank", "ordinal", "abc", "one each", "deep", "ranksvm"])
def test_every_column_of_a_query_is_known_as_its_own(name, form):
    """A key of such a name would make two columns of one."""
    text = SQL(form=form).content(bed.model(name)).decode()
    own = set(re.findall(r" AS ([a-z_]+[0-9]*)\b", text))
    steps = steps_of(text) | {"tested", "MATERIALIZED"}
    assert {"score", "raw_0"} <= own
    for column in own - steps:
        with pytest.raises(OptionError, match="of its own"):
            SQL(key=column).check(bed.model(name))


def steps_of(text):
    """What parts of a query, and a walk, are called."""
    return set(re.findall(r"^([a-z_0-9]+) (?:\(.*\) )?AS ", text, flags=re.MULTILINE))


@pytest.mark.parametrize("form", ["case", "walk"])
@pytest.mark.parametrize("dialect", ["sqlite", DUCKDB])
@pytest.mark.parametrize(
    "source", ["features", "outputs", "given", "known", "walk", "nodes", "classes", "chances", "learned"]
)
def test_a_table_may_be_called_what_a_step_does(tmp_path, source, dialect, form):
    model = bed.model("abc")
    X = hard_rows(model.scorer, 100)[:20]
    target = SQL(dialect=dialect, form=form, source=source)
    found = target.consume(model, export(model, target, tmp_path / "m.sql")[0], X)
    check(model, X, found.scores, found.raw)


@pytest.mark.parametrize("dialect", ["sqlite", DUCKDB])
@pytest.mark.parametrize(
    "key", ["root", "output", "threshold", "missing", "leaf", "next_node", "rowid", "n", "walk"]
)
def test_a_key_may_be_called_what_a_column_of_nodes_is(tmp_path, key, dialect):
    model = bed.model("lambdamart")
    X = hard_rows(model.scorer, 100)[:20]
    target = SQL(dialect=dialect, form="walk", key=key)
    found = target.consume(model, export(model, target, tmp_path / "m.sql")[0], X)
    check(model, X, found.scores, found.raw)


@pytest.mark.parametrize("name", ["mcrank", "ordinal", "abc", "one each", "deep", "ranksvm"])
def test_a_table_of_the_very_name_of_a_step_is_refused(name):
    model = bed.model(name)
    forms = ("case", "walk") if name != "ranksvm" else ("case",)
    steps = set().union(*(steps_of(SQL(form=form).content(model).decode()) for form in forms))
    for step in steps | {"mcrank_nodes", "mcrank_scores"}:
        with pytest.raises(OptionError, match="call the table otherwise"):
            SQL(source=step).check(model)
    SQL(source="mcrank_documents").check(model)
