"""Ids are identities: whatever way they come, each is exactly itself, or refused by name."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import itertools
import pickle
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import mcrank
from mcrank import DataError, Dataset
from tests.reference import ids as naive

BIG = [2**64 - 1, 2**64 - 2, 2**64 - 3]
NEAR = [2**53, 2**53 + 1, 2**53 + 2]


def dataset(qid, **options):
    rows = len(qid)
    return Dataset(np.arange(rows, dtype=np.float32)[:, None], np.zeros(rows), qid, **options)


def check(data, ids):
    """Queries and their rows are those of a dictionary of Python's own values."""
    expected = naive.grouped(ids)
    assert data.qids.tolist() == list(expected)
    assert [type(q) for q in data.qids.tolist()] == [type(q) for q in expected]
    found = np.split(data.X[:, 0].astype(int), data.offsets[1:-1])
    assert [rows.tolist() for rows in found] == list(expected.values())


words = st.one_of(
    st.integers(-(2**65), 2**65).map(str),
    st.integers(0, 12).map(str),
    st.sampled_from(
        [
            "007",
            "7",
            "1e5",
            "100000",
            "12:30",
            "12:30:00",
            "1.0",
            "1",
            "+1",
            "-0",
            "0",
            " 7",
            "7 ",
            "NA",
            "null",
            "nan",
            "True",
            "2012-01-01",
            "١",
            "1_0",
            "10",
            "a,b",
            'say "x"',
            "é",
            "18446744073709551615",
            "-1",
        ]
    ),
)
id_lists = st.one_of(
    st.lists(words, min_size=1, max_size=12),
    st.lists(st.integers(-(2**65), 2**65).map(str), min_size=1, max_size=12),
    st.lists(st.sampled_from(["7", "07", "1e5", "100000"]), min_size=1, max_size=6),
)


def csv_text(ids, delimiter=",", first=0):
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerow(["query_id", "label", "x", "doc_id"])
    writer.writerows([one, 0, first + row, one] for row, one in enumerate(ids))
    return stream.getvalue()


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(id_lists, st.integers(1, 3), st.sampled_from(["csv", "tsv"]))
@example(list(map(str, BIG)), 1, "csv")
@example(["007", "7"], 1, "csv")
@example(["1e5", "100000"], 1, "csv")
@example(["12:30", "12:30:00"], 1, "csv")
@example([str(2**53 + 1), str(2**53)], 2, "csv")
@example(["7", "x"], 2, "tsv")
def test_text_tables_equal_a_naive_reader(tmp_path, ids, files, form):
    cuts = np.linspace(0, len(ids), files + 1).astype(int)
    parts = [(ids[a:b], a) for a, b in itertools.pairwise(cuts) if b > a]
    delimiter = "\t" if form == "tsv" else ","
    contents = [csv_text(part, delimiter, int(first)) for part, first in parts]
    paths = []
    for number, content in enumerate(contents):
        paths.append(tmp_path / f"part{number}.{form}")
        paths[-1].write_text(content, encoding="utf-8", newline="")
    expected = naive.read_csv_ids(contents, "query_id", delimiter)
    data = mcrank.read(paths)
    check(data, expected)
    assert data.to_caller(data.doc_ids).tolist() == naive.read_csv_ids(contents, "doc_id", delimiter)


@pytest.mark.parametrize("without", [["pyarrow"], ["pyarrow", "polars"]])
def test_every_library_reads_the_same_texts(tmp_path, monkeypatch, without):
    import importlib

    real = importlib.import_module

    def import_module(name):
        if name in without:
            raise ImportError(name)
        return real(name)

    monkeypatch.setattr(importlib, "import_module", import_module)
    for ids in (["007", "7", "NA", "1e5", "null"], list(map(str, BIG)), ["12:30", "12:30:00"]):
        (path := tmp_path / "data.csv").write_text(csv_text(ids))
        check(mcrank.read(path), naive.of_texts(ids))
    (path := tmp_path / "data.csv").write_text("qid,label,x\n,1,2\n")
    with pytest.raises(DataError, match=r"column 'qid' of .* is missing at row 0"):
        mcrank.read(path)


def arrow_array(values):
    return pa.array(values, pa.uint64() if isinstance(values[0], int) else pa.string())


COLUMNS = {
    "list": list,
    "objects": lambda v: np.array(v, dtype=object),
    "series of objects": lambda v: pd.Series(v, dtype=object),
    "pandas": pd.Series,
    "categories": lambda v: pd.Series(v).astype("category"),
    "pandas index": pd.Index,
    "polars": lambda v: pl.Series(v, dtype=pl.UInt64 if isinstance(v[0], int) else pl.String),
    "arrow": arrow_array,
    "chunked": lambda v: pa.chunked_array([arrow_array(v[:1]), arrow_array(v[1:])]),
    "dictionary": lambda v: arrow_array(v).dictionary_encode(),
    "arrow in pandas": lambda v: pd.Series(v, dtype=pd.ArrowDtype(arrow_array(v).type)),
    "iterator": iter,
    "large texts": lambda v: pa.array(v, pa.uint64() if isinstance(v[0], int) else pa.large_string()),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("ids", [BIG, NEAR, [3, 1, 2], ["007", "7", "7.0"], ["a", "b", "a "]], ids=str)
def test_columns_of_every_library(kind, ids):
    values = [*ids, ids[0]]
    data = Dataset(np.arange(4.0)[:, None], np.zeros(4), COLUMNS[kind](values), doc_ids=COLUMNS[kind](values))
    check(data, values)
    assert data.to_caller(data.doc_ids).tolist() == values
    check(pickle.loads(pickle.dumps(data)), values)
    graded = mcrank.Grades(np.zeros(4), COLUMNS[kind](values))
    assert graded.qids.tolist() == list(naive.grouped(values))
    if kind not in ("iterator", "list", "objects"):
        table = {"qid": COLUMNS[kind](values), "label": [0] * 4, "x": np.arange(4.0)}
        check(mcrank.read(table), values)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", "f2", "f4", "f8"])
def test_numpy_integers_and_whole_floats(dtype):
    values = np.array([3, 1, 3, 120], dtype=dtype)
    check(dataset(values), [3, 1, 3, 120])
    assert dataset(values).qids.dtype == np.int64


def test_large_integers_stay_apart():
    check(dataset(np.array(BIG, dtype=np.uint64)), BIG)
    check(dataset([2**63 + 1, 2**63, -1]), [2**63 + 1, 2**63, -1])
    check(dataset([10**30, 10**30 + 1]), [10**30, 10**30 + 1])
    for nulls in (pd.array([2**53 + 1, 2**53], dtype="Int64"), pd.array(BIG, dtype="UInt64")):
        check(dataset(nulls), nulls.tolist())


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([7, "7"], r"integers \(7 at row 0\) and texts \('7' at row 1\)"),
        (["a", 1.5], r"texts .* and values of type float"),
        ([1, 1.0], "values of type float"),
        ([True, False], "bool"),
        (np.array([True, False]), "bool values"),
        ([1, True], "values of type bool"),
        ([0.5, 1.0], "the float 0.5 at row 0"),
        ([1.0, 2.0**53], r"the float 9007199254740992\.0 at row 1"),
        (np.array([1, 2**24], dtype=np.float32), r"the float 16777216\.0 at row 1"),
        ([1.0, np.inf], "the float inf at row 1"),
        ([1.0, np.nan], "missing at row 1"),
        ([1, None], "missing at row 1"),
        (["a", np.nan], "missing at row 1"),
        (["a", ""], "missing at row 1"),
        (pd.array([2**53 + 1, pd.NA], dtype="Int64"), "missing at row 1"),
        (pd.Series(["a", pd.NA], dtype="string"), "missing at row 1"),
        (pd.Series([1, None]).astype("category"), "missing at row 1"),
        (pl.Series([1, None]), "missing at row 1"),
        (pa.array([2**53 + 1, None]), "missing at row 1"),
        (pa.array(["a", None]).dictionary_encode(), "missing at row 1"),
        (pa.nulls(2), "missing at row 0"),
        (np.array(["2012-01-01", "2013-01-01"], dtype="M8[D]"), r"datetime64\[D\] values"),
        (pd.Series(pd.to_datetime(["2012-01-01", "2013-01-01"])), "ids are integers, texts"),
        ([datetime.date(2012, 1, 1)] * 2, "ids are integers, texts"),
        ([uuid.UUID(int=1)] * 2, "UUID"),
        ([1j, 2j], "complex"),
        ([[1], [2]], r"list \[1\] at row 0"),
        (np.zeros((2, 1), dtype=int), "one value per row"),
        ([decimal.Decimal("1.5"), decimal.Decimal(1)], "the decimal 1.5 at row 0"),
        ([decimal.Decimal("1e999999999"), decimal.Decimal(1)], "the decimal"),
        ([b"\xff", b"a"], "not UTF-8"),
        ([(1, "a"), ("1", "a")], r"tuple \('1', 'a'\) at row 1"),
        ([(1,), (1, 2)], r"tuple \(1, 2\) at row 1"),
        ([(1.0,), (2.0,)], "tuple"),
        ([(), ()], "tuple"),
        ("ab", "one value per row, got str"),
        ({1: 2, 3: 4}, "one value per row, got dict"),
        ({1, 2}, "one value per row, got set"),
        (5, "one value per row, got int"),
        (None, "one value per row, got NoneType"),
    ],
)  # fmt: skip
def test_what_is_no_id_is_refused(ids, message):
    X, y = np.zeros((2, 1)), [0, 1]
    with pytest.raises(DataError, match=message):
        Dataset(X, y, ids)
    with pytest.raises(DataError, match=message):
        mcrank.Grades(y, ids)
    if ids is not None and message != "missing at row 1":
        with pytest.raises(DataError, match=message.replace("missing at row 0", "missing")):
            Dataset(X, y, [1, 1], doc_ids=ids)


def test_tuples_decimals_and_bytes():
    check(dataset([(1, "a"), (1, "b"), (1, "a")]), [(1, "a"), (1, "b"), (1, "a")])
    objects = np.empty(2, dtype=object)
    objects[:] = [(np.int64(1),), (2,)]
    check(dataset(objects), [(1,), (2,)])
    check(dataset(pd.MultiIndex.from_tuples([(1, "a"), (2, "b")])), [(1, "a"), (2, "b")])
    check(dataset([decimal.Decimal(2**64), decimal.Decimal("7.0")]), [2**64, 7])
    check(dataset(pa.array([decimal.Decimal(2**64), decimal.Decimal(7)])), [2**64, 7])
    check(dataset(np.array([b"a", "é".encode()])), ["a", "é"])
    check(dataset(pa.array([b"a", b"b"])), ["a", "b"])
    data = dataset([(1, "a"), (1, "b"), (1, "a")])
    assert data.select(np.array([True, False])).qids.tolist() == [(1, "a")]
    merged = Dataset.merge([data, dataset([(2, "a")])])
    assert merged.qids.tolist() == [(1, "a"), (1, "b"), (2, "a")]
    assert mcrank.evaluate(np.zeros(3), data, "ndcg").qids.tolist() == [(1, "a"), (1, "b")]


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_several_typed_files(tmp_path, suffix):
    def save(name, kind, values):
        table = pa.table(
            {"qid": pa.array(values, kind), "label": [0] * len(values), "x": [0.0] * len(values)}
        )
        path = str(tmp_path / f"{name}.{suffix}")
        if suffix == "parquet":
            pa.parquet.write_table(table, path)
        else:
            pa.feather.write_feather(table, path)
        return path

    signed, unsigned = save("a", pa.int64(), [2**53 + 1]), save("b", pa.uint64(), [2**53, 2**64 - 1])
    for cache in (False, True, True):
        data = mcrank.read([signed, unsigned], cache=cache)
        assert data.qids.tolist() == [2**53 + 1, 2**53, 2**64 - 1]
    text = save("c", pa.string(), ["7"])
    with pytest.raises(
        DataError, match=r"integers in column 'qid' of .*a\..* \(.*\) and texts in column 'qid'"
    ):
        mcrank.read([signed, text])
    assert mcrank.read(text).qids.tolist() == ["7"]
    with pytest.raises(DataError, match=r"column 'qid' of .*missing at row 1"):
        mcrank.read(save("d", pa.int64(), [2**53 + 1, None]))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(id_lists)
def test_letor_text_and_back(tmp_path, ids):
    ids = [one.strip() for one in ids if " " not in one.strip()] or ["7"]
    (path := tmp_path / "data.txt").write_text(
        "".join(f"0 qid:{q} 1:{i} # {q}\n" for i, q in enumerate(ids)), encoding="utf-8"
    )
    data = mcrank.read(path)
    check(data, naive.of_texts(ids))
    cached = [mcrank.read(path, cache=True) for _ in range(2)]
    for again in cached:
        check(again, naive.of_texts(ids))
    mcrank.write(data, back := tmp_path / "back.txt")
    again = mcrank.read(back)
    assert again.qid.tolist() == data.qid.tolist()
    assert again.doc_ids.tolist() == data.doc_ids.tolist()


@pytest.mark.parametrize(
    "ids", [[7, "", 5], [2**63, "", 2**64 - 1], ["a", "", "5"], ["007", "", "7"], ["", "", ""]]
)
@pytest.mark.parametrize("form", ["csv", "tsv", "frame", "parquet", "arrow"])
def test_a_document_without_an_id_changes_no_other(tmp_path, form, ids):
    """In text the others are integers or texts as without it; in columns of one type they are texts."""
    table = {"qid": [1, 1, 1], "label": [0, 1, 2], "x": [0.5, 1.5, 2.5], "doc_id": list(map(str, ids))}
    source = path = tmp_path / f"data.{form}"
    if form in ("csv", "tsv"):
        with path.open("w", newline="") as file:
            writer = csv.writer(file, delimiter="," if form == "csv" else "\t")
            writer.writerows([table, *zip(*table.values(), strict=True)])
    elif form == "frame":
        source = {**table, "doc_id": ids}
    else:
        ids = table["doc_id"]
        write = pa.parquet.write_table if form == "parquet" else pa.feather.write_feather
        write(pa.table(table), path)
    assert mcrank.read(source).doc_ids.tolist() == ids
    assert [type(one) for one in mcrank.read(source).doc_ids.tolist()] == [type(one) for one in ids]


def test_caches_keep_kinds(tmp_path):
    (path := tmp_path / "a.csv").write_text(
        f"qid,label,x,doc_id\n{2**64},0,1,{2**70}\n{2**64 - 1},1,1,5\n{2**64},1,1,\n"
    )
    for _ in range(2):
        data = mcrank.read(path, cache=True)
        assert data.qids.tolist() == [2**64, 2**64 - 1]
        assert data.doc_ids.tolist() == [2**70, "", 5]
        assert data.named
    (path := tmp_path / "b.csv").write_text("qid,label,x,doc_id\n1,0,1,5\n1,1,1,6\n")
    for _ in range(2):
        assert mcrank.read(path, cache=True).doc_ids.tolist() == [5, 6]


def test_merge_keeps_large_integers_apart():
    parts = [dataset([2**53 + 1]), dataset(np.array([2**53, 2**63], dtype=np.uint64)), dataset([-1])]
    assert Dataset.merge(parts).qids.tolist() == [2**53 + 1, 2**53, 2**63, -1]
    one = dataset([5], doc_ids=[2**63])
    assert Dataset.merge([one, dataset([6])]).doc_ids.tolist() == [2**63, ""]
    with pytest.raises(DataError, match="document ids are integers in part 0 of merge"):
        Dataset.merge([one, dataset([6], doc_ids=["a"])])


def test_weights_by_query():
    weights = {2**63 + 1: 2.0, 2**63: 3.0}
    assert dataset([2**63 + 1, 2**63], query_weight=weights).query_weight.tolist() == [2.0, 3.0]
    with pytest.raises(DataError, match="it has one for the text '7', but ids are integers"):
        dataset([7], query_weight={"7": 1.0})


def test_trec_ids_are_texts():
    qrels = mcrank.Qrels([2**53 + 1, 2**53], [1.0, 2.0], [1, 0])
    assert qrels.queries == {str(2**53 + 1): {"1": 1.0}, str(2**53): {"2": 0.0}}
    for qid, doc, message in [
        ([1, None], ["a", "b"], "qid of Qrels is missing at row 1"),
        ([1, 1], ["a", np.nan], "doc_id of Qrels is missing at row 1"),
        ([7, "7"], ["a", "a"], "make all ids one kind"),
        ([(1,), (2,)], ["a", "a"], "texts or integers"),
    ]:
        with pytest.raises(DataError, match=message):
            mcrank.Qrels(qid, doc, [1, 0])
    with pytest.raises(DataError, match="grade of Qrels is not numeric"):
        mcrank.Qrels([1], ["a"], ["3"])
    features = dataset([2**53 + 1, 2**53], doc_ids=[1, 2])
    joined = mcrank.join_trec(qrels, features)
    assert joined.qids.tolist() == [str(2**53 + 1), str(2**53)]
    assert joined.y.tolist() == [1, 0]


def test_folds_meet_by_what_was_written():
    from mcrank.experiments.assemble import pool_rows

    with pytest.raises(DataError, match="query '7' is in the test parts of a and b"):
        pool_rows(["a", "b"], [dataset([7, 8]), dataset(["7", "x"])])
    rows, _ = pool_rows(["a", "b"], [dataset([7, 8]), dataset(["9", "x"])])
    assert rows.qids.tolist() == ["7", "8", "9", "x"]
    rows, _ = pool_rows(["a", "b"], [dataset(BIG), dataset([7])])
    assert rows.qids.tolist() == [*map(str, BIG), "7"]


def test_a_document_may_be_number_0():
    data = Dataset([[1.0], [2.0]], [0, 1], [1, 2], doc_ids=[0, 0])
    assert mcrank.evaluate([1.0, 1.0], data, "ndcg[trec]").mean["ndcg[trec]"] == 0.5
