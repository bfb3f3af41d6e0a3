"""Tables of every kind give the same data set."""

from __future__ import annotations

import gzip
import importlib
import math
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse

import mcrank

COLUMNS = {
    "query_id": ["q1", "q2", "q1", "q2"],
    "bm25": [1.5, None, 2.5, 0.0],
    "clicks": [1, 2, 3, 4],
    "fresh": [True, False, True, False],
    "doc_id": ["a", "b", "c", "d"],
    "label": [2, 0, 1, 0],
}


class Stream:
    """Speaks Arrow and nothing else."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def check(data):
    assert data.qids.tolist() == ["q1", "q2"]
    assert data.y.tolist() == [2, 1, 0, 0]
    assert data.doc_ids.tolist() == ["a", "c", "b", "d"]
    assert data.feature_names == ("bm25", "clicks", "fresh")
    np.testing.assert_array_equal(
        data.X, np.array([[1.5, 1, 1], [2.5, 3, 1], [np.nan, 2, 0], [0, 4, 0]], dtype=np.float32)
    )
    assert data.source_rows.tolist() == [0, 2, 1, 3]


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        lambda c: pd.DataFrame(c).convert_dtypes(),
        pl.DataFrame,
        pa.table,
        lambda c: Stream(pa.table(c)),
        lambda c: pa.table(c).to_reader(),
        dict,
        lambda c: pa.concat_tables([pa.table(c).slice(0, 2), pa.table(c).slice(2)]),
    ],
    ids=["pandas", "pandas-nullable", "polars", "arrow", "stream", "reader", "mapping", "chunked"],
)
def test_tables_in_memory(make):
    check(mcrank.read(make(COLUMNS)))


WRITERS = {
    "data.parquet": lambda path: pa.parquet.write_table(pa.table(COLUMNS), path),
    "data.arrow": lambda path: pa.feather.write_feather(pa.table(COLUMNS), path, compression="uncompressed"),
    "data.csv": lambda path: pa.csv.write_csv(pa.table(COLUMNS), path),
    "data.tsv": lambda path: pd.DataFrame(COLUMNS).to_csv(path, index=False, sep="\t"),
    **{
        f"data.csv.{form}": lambda path: pd.DataFrame(COLUMNS).to_csv(path, index=False)
        for form in ("gz", "bz2", "xz", "zst")
    },
    # By its first bytes, whatever it is called.
    "gzip.csv": lambda path: pd.DataFrame(COLUMNS).to_csv(path, index=False, compression="gzip"),
    "plain.csv.gz": lambda path: pd.DataFrame(COLUMNS).to_csv(path, index=False, compression=None),
}


def hide(monkeypatch, libraries):
    """Have table libraries look as if they were not installed."""
    real = importlib.import_module

    def import_module(library):
        if library in libraries:
            raise ImportError(library)
        return real(library)

    monkeypatch.setattr(importlib, "import_module", import_module)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(
    "without", [(), ("pyarrow",), ("pyarrow", "polars"), ("pyarrow", "polars", "pandas")]
)
def test_files(tmp_path, monkeypatch, name, without):
    """Any of the three libraries will do; with none of them the message says what to install."""
    WRITERS[name](str(path := tmp_path / name))
    hide(monkeypatch, without)
    if len(without) == 3 or (len(without) == 2 and name == "data.arrow"):
        with pytest.raises(mcrank.DataError, match=r"needs a table library.*mcrank\[tables\]"):
            mcrank.read(path)
        return
    check(mcrank.read(path))


def test_an_arrow_stream_file(tmp_path):
    table = pa.table(COLUMNS)
    with (
        pa.OSFile(str(path := tmp_path / "data.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as writer,
    ):
        writer.write_table(table)
    check(mcrank.read(path))


def test_several_files_and_cache(tmp_path):
    table = pa.table(COLUMNS)
    pa.parquet.write_table(table.slice(0, 1), tmp_path / "a.parquet")
    pa.parquet.write_table(table.slice(1), tmp_path / "b.parquet")
    for _ in range(2):
        check(mcrank.read(str(tmp_path / "*.parquet"), cache=True))
    assert len(list(tmp_path.glob("*.mcrank-cache"))) == 1
    pa.parquet.write_table(table.drop_columns(["clicks"]), tmp_path / "b.parquet")
    with pytest.raises(mcrank.DataError, match="has other columns"):
        mcrank.read(str(tmp_path / "*.parquet"))
    (tmp_path / "c.txt").write_text("0 qid:1 1:1\n")
    with pytest.raises(mcrank.DataError, match="different formats"):
        mcrank.read([tmp_path / "a.parquet", tmp_path / "c.txt"])


def test_columns_named_by_the_caller():
    frame = pd.DataFrame(COLUMNS).rename(columns={"query_id": "topic", "label": "stars"})
    data = mcrank.read(frame, qid="topic", grade="stars", weight="clicks", features=["bm25"])
    assert data.feature_names == ("bm25",)
    assert data.weight.tolist() == [1, 3, 2, 4]
    arrays = mcrank.read(frame, qid=np.array([1, 1, 2, 2]), grade=[0, 1, 0, 1], features=["clicks"])
    assert arrays.qids.tolist() == [1, 2]
    assert arrays.source_rows is None


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"title": ["x", "2", "z", "w"]}, {}, "column 'title' of the table is not numeric"),
        ({"grade": [1, 1, 1, 1]}, {}, "columns 'label', 'grade'; keep one, or choose with grade= \\(--grade"),
        ({"qid": [1, 1, 1, 1]}, {}, "columns 'query_id', 'qid'; keep one, or choose with qid= \\(--qid"),
        ({"bm25": [1.0, np.inf, 0, 0]}, {}, "column 'bm25' of the table has inf at row 1"),
        ({"bm25": [1.0, 1e39, 0, 0]}, {}, r"column 'bm25' of the table has 1e\+39 at row 1"),
        ({"label": [1, 1, -1, 1]}, {}, "-1.0 at row 2"),
        ({"label": ["x", "y", "z", "w"]}, {}, "grades must be numbers"),
        ({"query_id": ["a", None, "b", "b"]}, {}, "column 'query_id' of the table is missing at row 1"),
        ({}, {"qid": "topic"}, "no column 'topic'; it has 'query_id'"),
        ({}, {"features": ["none"]}, "no column 'none'"),
        ({}, {"features": []}, "no feature columns"),
        ({}, {"qid": [1, 2]}, "qid of Dataset must have one value per row"),
    ],
)
def test_bad_tables_are_named(change, options, message):
    with pytest.raises(mcrank.DataError, match=message):
        mcrank.read(pl.DataFrame({**COLUMNS, **change}, strict=False), **options)


def test_missing_roles_and_empty_tables():
    with pytest.raises(
        mcrank.DataError,
        match="no column 'qid' or 'query_id' or 'queryid'; call it so, or name it with qid= \\(--qid",
    ):
        mcrank.read({"label": [1], "x": [1.0]})
    with pytest.raises(
        mcrank.DataError, match=r"no column 'label' or 'grade' or 'relevance'.*; did you mean ' label'"
    ):
        mcrank.read({"qid": [1], " label": [1], "x": [1.0]})
    with pytest.raises(mcrank.DataError, match=r"no column 'label'.*; it has '', 'qid', 'x'"):
        mcrank.read({"": [1], "qid": [1], "x": [1.0]})
    with pytest.raises(mcrank.DataError, match="the table is empty: 0 rows"):
        mcrank.read(pd.DataFrame({"qid": [], "label": [], "x": []}))
    with pytest.raises(mcrank.DataError, match="two columns 'x'"):
        mcrank.read(pd.DataFrame([[1, 1, 1, 2]], columns=["qid", "label", "x", "x"]))


@pytest.mark.parametrize("name", ["bad.parquet", "bad.arrow", "bad.csv"])
def test_damaged_files(tmp_path, name):
    (path := tmp_path / name).write_bytes(b"ARROW1\x00\x01 not a table,\xff\xfe\n1,2,3\n")
    with pytest.raises(mcrank.DataError, match=name):
        mcrank.read(path)


def test_unjudged_rows():
    columns = {**COLUMNS, "label": [2, None, -1, 0]}
    assert mcrank.read(columns | {"label": [2, np.nan, -1, 0]}, unjudged="zero").y.tolist() == [2, 0, 0, 0]
    dropped = mcrank.read(pl.DataFrame(columns), unjudged="drop")
    assert dropped.y.tolist() == [2, 0]
    assert dropped.doc_ids.tolist() == ["a", "d"]
    with pytest.raises(mcrank.DataError, match="every row is unjudged"):
        mcrank.read({"qid": [1], "label": [-1], "x": [1.0]}, unjudged="drop")


@pytest.mark.parametrize(
    ("column", "bad", "words"),
    [
        ("grade", -1.0, "has -1.0 at row 1; grades must be finite and >= 0 (unjudged='zero' or 'drop' reads"),
        ("grade", math.nan, "has nan at row 1; grades must be finite and >= 0 (unjudged="),
        ("grade", math.inf, "has inf at row 1; grades must be finite and >= 0."),
        ("w", -2.0, "has -2.0 at row 1; weights must be finite and >= 0."),
    ],
)
def test_a_bad_grade_or_weight_names_its_column_and_file(tmp_path, column, bad, words):
    frame = pd.DataFrame({"qid": [1, 1], "grade": [1.0, 0.0], "f": [0.5, 0.25], "w": [1.0, 2.0]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.loc[1, column] = bad
    frame.to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(mcrank.DataError) as told:
        mcrank.read(tmp_path / "?.csv", weight="w")
    assert str(told.value).startswith(f"column {column!r} of {tmp_path / 'b.csv'} {words}")
    with pytest.raises(mcrank.DataError, match=f"column {column!r} of the table has"):
        mcrank.read(frame, weight="w")


def test_sparse_matrices():
    matrix = scipy.sparse.random(6, 4, density=0.5, format="csc", random_state=0)
    data = mcrank.read(matrix, qid=[1, 1, 2, 2, 3, 3], grade=[0, 1, 0, -1, 0, 2], unjudged="drop")
    np.testing.assert_array_equal(data.X, matrix.toarray()[[0, 1, 2, 4, 5]].astype(np.float32))
    with pytest.raises(mcrank.DataError, match="give qid= as an array"):
        mcrank.read(matrix, grade=[0] * 6)


def test_options_of_the_other_kind():
    with pytest.raises(mcrank.OptionError, match="cache of read needs a file"):
        mcrank.read(COLUMNS, cache=True)


def test_named_columns_are_for_tables(tmp_path):
    (path := tmp_path / "data.txt").write_text("0 qid:1 1:1\n")
    with pytest.raises(mcrank.OptionError, match="grade of read is for tables"):
        mcrank.read(path, grade="label")


def test_lazy_frames_and_what_is_no_table():
    with pytest.raises(mcrank.DataError, match=r"lazy frame; call its collect\(\) first"):
        mcrank.read(pl.DataFrame(COLUMNS).lazy())
    for source in (np.ones((2, 2)), [1, 2], 5, None, b"x"):
        with pytest.raises(mcrank.DataError, match=r"read (takes paths and tables|was given no file)"):
            mcrank.read(source)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("column", ["x", "label"])
@pytest.mark.parametrize("text", ["0x10", "0X1f"])
def test_hexadecimal_digits_are_no_numbers_in_csv(tmp_path, suffix, column, text):
    """One table library reads them as numbers, in columns of whole numbers only; the others do not."""
    values = {"x": "3", "label": "1"} | {column: text}
    content = f"qid,label,x\n1,{values['label']},{values['x']}\n1,2,4\n".encode()
    (path := tmp_path / f"data.csv{suffix}").write_bytes(gzip.compress(content) if suffix else content)
    with pytest.raises(
        mcrank.DataError, match=f"column '{column}' of .* not numeric: it holds text '{text}' at row 0"
    ):
        mcrank.read(path)


def test_hexadecimal_ids_and_unused_texts_are_texts(tmp_path):
    (path := tmp_path / "data.csv").write_text("qid,label,x,note\n0x10,1,2,0x1\n0x11,0,3,b\n")
    data = mcrank.read(path, features=["x"])
    assert data.qids.tolist() == ["0x10", "0x11"]


def test_truth_values_and_numbers_do_not_mix_in_csv(tmp_path):
    (path := tmp_path / "data.csv").write_text("qid,label,x\n1,1,TRUE\n1,0,0\n")
    with pytest.raises(mcrank.DataError, match=r"column 'x' .* is not numeric"):
        mcrank.read(path)
    path.write_text("qid,label,x\n1,1,TRUE\n1,0,false\n")
    assert mcrank.read(path).X.tolist() == [[1.0], [0.0]]


def test_the_text_that_is_no_number_is_named_and_not_the_first(tmp_path):
    """One such makes texts of a whole column; the others are numbers, and look it."""
    (path := tmp_path / "data.csv").write_text("qid,label,x\n1,1,1\n1,0,2.5\n1,0,1O\n1,1,3\n")
    with pytest.raises(mcrank.DataError, match=r"column 'x' of .* it holds str '1O' at row 2"):
        mcrank.read(path)
    with pytest.raises(mcrank.DataError, match=r"column 'x' of the table .* it holds str '1' at row 0"):
        mcrank.read({"qid": [1, 1], "label": [1, 0], "x": ["1", "2"]})
    with pytest.raises(mcrank.DataError, match=r"scores .* it holds str 'x' at row 1"):
        mcrank.evaluate(["1", "x"], mcrank.Grades([1, 0], [1, 1]))


@pytest.mark.parametrize("keys", [["day", "zip"], [1, 2], ["1", "zip"]])
@pytest.mark.parametrize("without", [(), ("pyarrow",), ("pyarrow", "polars")])
def test_categories_of_csv_are_as_written_however_they_are_chosen(tmp_path, monkeypatch, keys, without):
    """By number too: 007 and 7 are two, and a day is no time."""
    (path := tmp_path / "data.csv").write_text(
        "zone,qid,label,weight,age,day,zip\nx,1,0,1,2,2020-01-01,007\ny,1,1,2,3,2020-01-02,7\n"
    )
    hide(monkeypatch, without)
    data = mcrank.read(path, categorical=keys, weight="weight", ignore=["zone"])
    assert data.feature_names == ("age", "day", "zip")
    assert data.categories == {1: ("2020-01-01", "2020-01-02"), 2: ("007", "7")}
    data = mcrank.read(path, categorical=[0], features=["zip", "age"])
    assert data.categories == {0: ("007", "7")}


@pytest.mark.parametrize("nothing", ["", "NA", "NaN", "nan", "-nan", "null", "None", "#N/A"])
@pytest.mark.parametrize("without", [(), ("pyarrow",), ("pyarrow", "polars")])
def test_no_word_for_nothing_makes_numbers_of_texts_in_csv(tmp_path, monkeypatch, nothing, without):
    """Some of them look like numbers; beside texts they are none."""
    (path := tmp_path / "data.csv").write_text(
        f"qid,label,brand,price\n1,0,oak,1.5\n1,1,{nothing},{nothing}\n1,0,elm,2\n"
    )
    hide(monkeypatch, without)
    data = mcrank.read(path)
    assert data.categories == {0: ("elm", "oak")}
    np.testing.assert_array_equal(data.X, np.float32([[1, 1.5], [np.nan, np.nan], [0, 2]]))


def test_whole_numbers_of_an_arrow_dictionary_are_exact():
    """Beside a missing one, too, where the library itself would make floats of them."""
    big = pa.chunked_array([pa.array([2**60 + 1, None]), pa.array([2**60 + 2, 2**60 + 1])])
    table = pa.table({"qid": [1, 1, 1, 1], "label": [0, 1, 2, 0], "shop": big.dictionary_encode()})
    data = mcrank.read(table)
    assert data.categories == {0: (str(2**60 + 1), str(2**60 + 2))}
    np.testing.assert_array_equal(data.X[:, 0], np.float32([0, np.nan, 1, 0]))


@pytest.mark.parametrize("kind", [list, tuple, iter, pd.Index, np.array, lambda names: dict.fromkeys(names)])
def test_names_of_columns_may_be_in_anything(kind, tmp_path):
    frame = pd.DataFrame(COLUMNS)
    assert mcrank.read(frame, features=kind(["clicks"])).feature_names == ("clicks",)
    assert mcrank.read(frame, ignore=kind(["clicks", "fresh"])).feature_names == ("bm25",)
    frame.to_parquet(path := tmp_path / "data.parquet")
    assert mcrank.scan(path, ignore=kind(["clicks", "fresh"])).read().feature_names == ("bm25",)
    for bad in ("clicks", [1], 5, ["clicks", None]):
        with pytest.raises(mcrank.DataError, match="features of read must be a sequence of names, got"):
            mcrank.read(frame, features=bad)
        with pytest.raises(mcrank.OptionError, match="ignore of scan must be a sequence of names, got"):
            mcrank.scan(path, ignore=bad)


@pytest.mark.parametrize("without", [(), ("pyarrow",), ("pyarrow", "polars")])
@pytest.mark.parametrize(
    "times", [("2024-01-02", "2024-02-03"), ("12:30", "13:45"), ("2024-01-02T10:00:00", "")]
)
def test_times_in_csv_are_texts_to_every_library(tmp_path, monkeypatch, times, without):
    hide(monkeypatch, without)
    (path := tmp_path / "rows.csv").write_text(
        "qid,label,seen\n" + "".join(f"1,{i},{time}\n" for i, time in enumerate(times))
    )
    found = mcrank.read(path)
    assert found.categories == {0: tuple(sorted(filter(None, times)))}
    assert np.isnan(found.X[:, 0]).tolist() == [not time for time in times]


@pytest.mark.parametrize(
    "texts", [["2,5", "3,25"], ["10%", "7 %"], ["1,000", "12,500.75"], ["$3.50", "€4"], ["1'000", ""]]
)
@pytest.mark.parametrize("without", [(), ("pyarrow",), ("pyarrow", "polars")])
def test_numbers_as_people_write_them_are_no_categories_unasked(tmp_path, monkeypatch, texts, without):
    hide(monkeypatch, without)
    (path := tmp_path / "rows.csv").write_text(
        "qid,label,price\n" + "".join(f'1,{i},"{text}"\n' for i, text in enumerate(texts)), encoding="utf-8"
    )
    with pytest.raises(mcrank.DataError, match=r"column 'price' of .* is not numeric: it holds"):
        mcrank.read(path)
    assert mcrank.read(path, categorical=["price"]).categories == {0: tuple(sorted(filter(None, texts)))}


def test_texts_with_digits_are_categories():
    frame = {"qid": [1, 1], "label": [0, 1], "size": ["10-20", "20-30"], "made": ["3.11.7", "10 %x"]}
    assert set(mcrank.read(pd.DataFrame(frame)).categories) == {0, 1}


@pytest.mark.parametrize("part", ["1", "1,", " ", "1 000", "$"])
def test_long_texts_are_looked_at_in_no_time(part):
    """Where what may be repeated meets itself, a pattern takes the square of the length, or hours."""
    frame = {"qid": [1, 1], "label": [0, 1], "note": [part * 200_000 + "x", "y"]}
    began = time.monotonic()
    assert set(mcrank.read(pd.DataFrame(frame)).categories) == {0}
    assert time.monotonic() - began < 10
