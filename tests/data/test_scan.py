"""`scan`: batches and parts hold what `read` reads, whatever the files are cut into."""

from __future__ import annotations

import gzip
import pickle

import numpy as np
import pandas as pd
import pytest

import mcrank
from mcrank.data import sources, table_batches

LINES = [
    "2 qid:a 1:0.5 3:1 #docid = A",
    "0 qid:a 2:NULL",
    "# nothing",
    "1 qid:b 1:7",
    "0 qid:b",
    "3 qid:c 5:1e-3",
    "0 qid:c 1:1",
    "1 qid:c 1:2",
]


def same(one, other):
    assert one.feature_names == other.feature_names
    assert one.named == other.named
    for name in ("X", "y", "offsets", "qids"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    if other.weight is None:
        assert one.weight is None
    else:
        np.testing.assert_array_equal(one.weight, other.weight)


@pytest.fixture
def letor(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(LINES[:4]) + "\n")
    (tmp_path / "b.txt").write_text("\n".join(LINES[4:]) + "\n")
    return tmp_path / "*.txt"


@pytest.fixture
def parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    rows = 500
    columns = {
        "qid": np.sort(rng.integers(0, 40, rows)), "label": rng.integers(0, 5, rows), "w": rng.random(rows),
        "b": rng.normal(size=rows), "a": rng.integers(0, 9, rows),
    }  # fmt: skip
    table = pa.table(columns)
    for i in range(2):
        part = table.slice(250 * i, 250)
        pq.write_table(part, tmp_path / f"{i}.parquet", row_group_size=37)
        with pa.OSFile(str(tmp_path / f"{i}.arrow"), "wb") as sink, pa.ipc.new_file(sink, part.schema) as out:
            out.write_table(part, max_chunksize=90)
    return tmp_path


def test_nothing_is_read_before_it_is_asked_for(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("this is no data\n")
    plan = mcrank.scan(path)
    with pytest.raises(mcrank.DataError, match=r"x\.txt, line 1"):
        plan.read()


@pytest.mark.parametrize("chunk", [16, 40, 1 << 20])
@pytest.mark.parametrize("jobs", [1, 2])
def test_letor_text_is_what_read_reads(letor, chunk, jobs, monkeypatch):
    monkeypatch.setattr(sources, "CHUNK_BYTES", chunk)
    for options in ({}, {"absent": "missing"}, {"n_features": 6}):
        same(mcrank.scan(letor, **options).read(jobs), mcrank.read(letor, **options))


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("rows", [7, 100, 16384])
def test_tables_are_what_read_reads(parquet, suffix, rows, monkeypatch):
    monkeypatch.setattr(table_batches, "_ROWS", rows)
    for options in ({}, {"weight": "w"}, {"features": ["a"], "grade": "label"}):
        source = parquet / f"*.{suffix}"
        same(mcrank.scan(source, **options).read(), mcrank.read(source, **options))


@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
def test_parts_are_whole_queries_and_all_of_them(letor, parquet, count):
    for source in (letor, parquet / "*.parquet", parquet / "*.arrow"):
        whole = mcrank.read(source)
        parts = [pickle.loads(pickle.dumps(part)).read() for part in mcrank.scan(source).parts(count)]
        assert 1 <= len(parts) <= count
        assert sum(part.n_rows for part in parts) == whole.n_rows
        np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), whole.y)
        if "arrow" not in str(source):  # a query may run on from one file into the next
            assert sum(part.n_queries for part in parts) == whole.n_queries


def test_compressed_text_is_cut_between_files(tmp_path):
    for i, lines in enumerate((LINES[:5], LINES[5:])):
        (tmp_path / f"{i}.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    parts = mcrank.scan(tmp_path / "*.gz").parts(5)
    assert [part.read().n_rows for part in parts] == [4, 3]


@pytest.mark.parametrize("unjudged", ["error", "zero", "drop"])
def test_rows_without_a_grade(tmp_path, unjudged):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path, table = tmp_path / "x.txt", tmp_path / "x.parquet"
    path.write_text("-1 qid:1 1:1\n1 qid:1 1:2\n-1 qid:2 1:3\n0 qid:3 1:4\n")
    columns = {"qid": [1, 1, 2, 3], "label": [None, 1, -1, 0], "f": [1.0, 2, 3, 4]}
    pq.write_table(pa.table(columns), table)
    for source in (path, table):
        plan = mcrank.scan(source, unjudged=unjudged)
        if unjudged == "error":
            with pytest.raises(mcrank.DataError, match="unjudged="):
                plan.read()
        else:
            same(plan.read(), mcrank.read(source, unjudged=unjudged))


def test_nothing_left_after_dropping(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("-1 qid:1 1:1\n")
    with pytest.raises(mcrank.DataError, match="every row"):
        mcrank.scan(path, unjudged="drop").read()


def test_what_cannot_be_scanned_is_refused_at_once(tmp_path):
    (tmp_path / "x.csv").write_text("qid,label,f\n1,0,1\n")
    (tmp_path / "x.txt").write_text(LINES[0])
    with pytest.raises(mcrank.DataError, match="Parquet"):
        mcrank.scan(tmp_path / "x.csv")
    with pytest.raises(mcrank.DataError, match="scan takes paths"):
        mcrank.scan({"a": [1]}.items())
    with pytest.raises(mcrank.OptionError, match="qid of scan is for tables"):
        mcrank.scan(tmp_path / "x.txt", qid="qid")
    with pytest.raises(mcrank.OptionError, match="name of a column"):
        mcrank.scan(tmp_path / "x.txt", grade=np.zeros(1))
    with pytest.raises(mcrank.OptionError, match=r"count of Scan\.parts"):
        mcrank.scan(tmp_path / "x.txt").parts(0)


def test_files_with_other_columns_are_refused(parquet):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"qid": [1], "label": [0], "c": [1.0]}), parquet / "2.parquet")
    with pytest.raises(mcrank.DataError, match=r"2\.parquet has other columns"):
        mcrank.scan(parquet / "*.parquet").read()


def test_a_damaged_file_is_one_error(parquet):
    path = parquet / "0.parquet"
    content = bytearray(path.read_bytes())
    content[200:260] = bytes(60)
    path.write_bytes(content)
    with pytest.raises(mcrank.DataError, match=r"0\.parquet"):
        mcrank.scan(path).read()


def test_columns_to_ignore_are_ignored_by_a_ranker_too(parquet):
    plan = mcrank.scan(parquet / "0.parquet", ignore=["w"])
    ranker = mcrank.RegressionRanker(n_estimators=2, n_jobs=1)
    one = ranker.fit(plan, valid=plan).predict(plan)
    data = plan.read()
    assert data.feature_names == ("b", "a")
    np.testing.assert_array_equal(ranker.fit(data, valid=data).predict(data), one)
    assert ranker.score(plan) == ranker.score(data)


@pytest.mark.parametrize("form", ["txt", "parquet", "arrow"])
def test_a_ranker_is_measured_on_the_rows_that_have_grades(tmp_path, form):
    stream = np.random.default_rng(5)
    grades, X = stream.integers(-1, 3, 90).astype(float), stream.random((90, 3)).round(3)
    qid, names = np.repeat(np.arange(9), 10), ["a", "b", "c"]
    frame = pd.DataFrame(X, columns=names).assign(qid=qid, grade=grades)
    path = tmp_path / f"rows.{form}"
    if form == "txt":
        rows = zip(grades, qid, X, strict=True)
        path.write_text("".join(f"{g:g} qid:{q} 1:{a} 2:{b} 3:{c}\n" for g, q, (a, b, c) in rows))
    else:
        frame.to_parquet(path, index=False) if form == "parquet" else frame.to_feather(path)
    whole = mcrank.read(path, unjudged="drop")
    blend = mcrank.Blend(members=["best-feature", "ranksvm"], folds=2)  # rows of a query change its scores
    for ranker in (mcrank.RegressionRanker(n_estimators=3).fit(whole), blend.fit(whole)):
        expected = mcrank.evaluate(ranker, whole, ["map", "ndcg@10"])
        plan = mcrank.scan(path, unjudged="drop")
        assert mcrank.evaluate(ranker, plan, ["map", "ndcg@10"]).mean == expected.mean
        assert ranker.score(plan) == expected.mean["ndcg@10"]
        assert len(ranker.predict(plan)) == 90  # of rows to be scored grades are not looked at
        assert len(ranker.graded_scores(plan)[0]) == (grades >= 0).sum()
