"""One entrance for tables, arrays and sparse matrices: the same rules for every verb."""

from __future__ import annotations

import datetime
import decimal
import random

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse

import mcrank
from mcrank import DataError, Dataset
from mcrank.data.tables import as_features

ROWS = 12
BASE = {
    "qid": [f"q{i // 4}" for i in range(ROWS)],
    "label": [i % 3 for i in range(ROWS)],
    "a": [float(i % 5) for i in range(ROWS)],
    "b": [i % 2 for i in range(ROWS)],
}
A_MISSING = [None if i == 5 else float(i % 5) for i in range(ROWS)]
B_MISSING = [None if i == 7 else i % 2 for i in range(ROWS)]


def arrow_frame(columns):
    return pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype)


def nullable_frame(columns):
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})
    return frame.astype({"qid": "string", "label": "Int64", "a": "Float64", "b": "boolean"})


TABLES = {
    "pandas": pd.DataFrame,
    "nullable": nullable_frame,
    "arrow-backed": arrow_frame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "mapping": dict,
}


@pytest.fixture(scope="module")
def ranker():
    return mcrank.McRank(n_estimators=3, n_jobs=1).fit(mcrank.read(BASE))


@pytest.fixture(scope="module")
def nameless():
    """A ranker of two features without names: it looks at whatever columns there are."""
    matrix = np.array([BASE["a"], BASE["b"]]).T
    return mcrank.McRank(n_estimators=3, n_jobs=1).fit(matrix, BASE["label"], qid=BASE["qid"])


@pytest.mark.parametrize("kind", TABLES)
def test_every_verb_takes_every_table(ranker, kind):
    columns = BASE | {"a": A_MISSING, "b": B_MISSING}
    table = TABLES[kind](columns)
    matrix = np.array([A_MISSING, B_MISSING], dtype=np.float32).T
    data = mcrank.read(table)
    np.testing.assert_array_equal(data.X, matrix)
    with pytest.warns(UserWarning, match="'qid', 'label'"):
        made = Dataset(table, table["label"], table["qid"])
    np.testing.assert_array_equal(made.X, matrix)
    assert made.feature_names == data.feature_names == ("a", "b")
    assert made.named
    assert data.named
    # The frame that `read` accepted, ids and grades and all, can be scored as it is.
    expected = ranker.predict(matrix)
    np.testing.assert_array_equal(ranker.predict(table), expected)
    np.testing.assert_array_equal(ranker.predict_proba(table), ranker.predict_proba(matrix))
    assert ranker.score(table, table["label"], table["qid"]) == ranker.score(data)
    with pytest.warns(UserWarning, match="'qid', 'label'"):
        fitted = mcrank.McRank(n_estimators=3, n_jobs=1).fit(table, table["label"], qid=table["qid"])
    np.testing.assert_array_equal(
        fitted.predict(matrix), mcrank.McRank(n_estimators=3, n_jobs=1).fit(data).predict(matrix)
    )
    scores = TABLES[kind]({**BASE, "a": expected.tolist()})["a"]
    graded = mcrank.Grades(table["label"], table["qid"])
    assert mcrank.evaluate(scores, graded, "ndcg@10").mean == mcrank.evaluate(expected, data, "ndcg@10").mean


TIMES = [datetime.datetime(2012, 1, 1, i) for i in range(ROWS)]
NO_NUMBERS = {
    "text": [str(i) for i in range(ROWS)],
    "times": TIMES,
    "numpy times": np.array(TIMES, dtype="M8[s]"),
    "durations": np.arange(ROWS).astype("m8[s]"),
    "pandas times": pd.Series(TIMES),
    "times with zone": pd.Series(TIMES).dt.tz_localize("UTC"),
    "arrow times": pa.array(TIMES),
    "arrow dates": pa.array([t.date() for t in TIMES]),
    "arrow durations": pa.array([datetime.timedelta(i) for i in range(ROWS)]),
    "polars times": pl.Series(TIMES),
    "polars clock": pl.Series([t.time() for t in TIMES]),
    "categories": pd.Series([i % 3 for i in range(ROWS)]).astype("category"),
    "dictionary": pa.array([float(i % 3) for i in range(ROWS)]).dictionary_encode(),
    "polars categories": pl.Series([str(i % 3) for i in range(ROWS)], dtype=pl.Categorical),
    "bytes": [b"1"] * ROWS,
    "complex": np.zeros(ROWS, dtype=complex),
    "lists": [[1]] * ROWS,
    "duration objects": [np.timedelta64(1, "s")] * ROWS,
    "mixed": [1, "2"] * (ROWS // 2),
}
CATEGORIES = ("categories", "dictionary", "polars categories")  # which features may hold, and nothing else


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_what_is_no_number_is_refused_by_every_verb(ranker, kind):
    column, rows = NO_NUMBERS[kind], np.zeros((ROWS, 1))
    said = pytest.raises(DataError, match=r"not numeric|must be real numbers")
    of_features = (
        lambda: mcrank.read(BASE | {"a": column}),
        lambda: Dataset({"a": column}, BASE["label"], BASE["qid"]),
        lambda: mcrank.McRank(n_estimators=1, n_jobs=1).fit({"a": column}, BASE["label"], qid=BASE["qid"]),
    )
    for call in (
        *(() if kind in CATEGORIES else of_features),
        lambda: mcrank.read(BASE | {"label": column}),
        lambda: mcrank.read(BASE | {"w": column}, weight="w"),
        lambda: mcrank.read(BASE, weight=column),
        lambda: mcrank.read(BASE, grade=column),
        lambda: mcrank.read(BASE | {"label": column}, unjudged="drop"),
        lambda: Dataset(rows, column, BASE["qid"]),
        lambda: Dataset(rows, BASE["label"], BASE["qid"], column),
        lambda: Dataset(rows, BASE["label"], BASE["qid"], query_weight=column[:3]),
        lambda: mcrank.Grades(column, BASE["qid"]),
        lambda: mcrank.evaluate(column, mcrank.Grades(BASE["label"], BASE["qid"]), "ndcg"),
        lambda: mcrank.McRank(n_estimators=1, n_jobs=1).fit(rows, column, qid=BASE["qid"]),
        lambda: ranker.predict({"a": column, "b": BASE["b"]}),
        lambda: ranker.predict_proba({"a": column, "b": BASE["b"]}),
        lambda: ranker.score({"a": column, "b": BASE["b"]}, BASE["label"], BASE["qid"]),
        lambda: mcrank.Qrels(BASE["qid"], range(ROWS), column),
    ):
        with said:
            call()
    for call in of_features if kind in CATEGORIES else ():
        found = call()
        names = found.categories if isinstance(found, Dataset) else found.categories_
        assert names == {0: ("0", "1", "2")}


@pytest.mark.parametrize("kind", ["nullable", "arrow-backed", "polars", "arrow"])
def test_missing_grades_and_weights_are_refused(kind):
    table = TABLES[kind](BASE | {"label": [None if i == 4 else 1 for i in range(ROWS)]})
    rows = np.ones((ROWS, 1))
    for call in (
        lambda: mcrank.read(table),
        lambda: Dataset(rows, table["label"], table["qid"]),
        lambda: Dataset(rows, BASE["label"], table["qid"], table["label"]),
        lambda: mcrank.Grades(table["label"], table["qid"]),
    ):
        with pytest.raises(DataError, match=r"nan at (row|position) 4"):
            call()
    assert len(mcrank.read(table, unjudged="drop")) == ROWS - 1
    with pytest.raises(DataError, match="NaN"):
        mcrank.evaluate(table["label"], mcrank.Grades(BASE["label"], BASE["qid"]), "ndcg")


MATRICES = {
    "one dimension": ([1.0, 2.0], r"2 dimensions .* got 1. Reshape your data: X.reshape\(1, -1\)"),
    "a series": (pd.Series([1.0, 2.0]), "2 dimensions"),
    "a polars series": (pl.Series([1.0, 2.0]), "2 dimensions"),
    "an arrow array": (pa.array([1.0, 2.0]), "2 dimensions"),
    "three dimensions": (np.zeros((2, 1, 1)), "got 3"),
    "no rows": (np.zeros((0, 2)), "is empty: 0 rows, 2 features"),
    "no rows of a frame": (pd.DataFrame({"a": []}), "is empty: 0 rows"),
    "no columns": (np.zeros((2, 0)), "is empty: 2 rows, 0 features"),
    "no rows of a sparse": (scipy.sparse.csr_matrix((0, 2)), "must have rows"),
    "ragged": ([[1.0], [1.0, 2.0]], "matrix of numbers"),
    "text": ([["1"], ["2"]], "holds text"),
    "complex": (np.zeros((2, 1), dtype=complex), "holds complex numbers"),
    "complex sparse": (scipy.sparse.csr_matrix([[1j], [1]]), "holds complex numbers"),
    "times": (np.zeros((2, 1), dtype="M8[s]"), "holds times"),
    "masked": (np.ma.array([[1.0], [2.0]], mask=[[0], [1]]), "masked at row 1"),
    "records": (np.zeros(2, dtype=[("a", float)]), "array of records"),
    "huge": (np.array([[1], [10**400]], dtype=object), "inf at row 1, column 0"),
    "beyond float32": ({"a": [1.0, -1e39]}, r"column 'a' of .* has -1e\+39 at row 1"),
    "two names": (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), "two columns 'a'"),
    "some names": (pd.DataFrame([[1, 2], [3, 4]], columns=["a", 1]), "others that are not, such as 1"),
    "levels": (pd.DataFrame([[1], [2]], columns=pd.MultiIndex.from_tuples([("a", "b")])), "several levels"),
    "lengths": ({"a": [1, 2], "b": [1]}, "column 'b' of .* has 1 rows, others have 2"),
    "lazy": (pl.DataFrame({"a": [1, 2]}).lazy(), "lazy frame"),
    "nothing": (None, "2 dimensions"),
    "ids alone": ({"qid": [1, 2], "label": [0, 1]}, "no feature columns"),
}  # fmt: skip


@pytest.mark.parametrize("kind", MATRICES)
def test_odd_matrices_are_refused_by_every_verb(nameless, kind):
    X, message = MATRICES[kind]
    for call in (
        lambda: Dataset(X, [0, 1], [1, 1]),
        lambda: mcrank.RegressionRanker(n_estimators=1, n_jobs=1).fit(X, [0, 1], qid=[1, 1]),
        lambda: nameless.predict(X),
        lambda: nameless.predict_proba(X),
        lambda: nameless.score(X, [0, 1], [1, 1]),
    ):
        with pytest.raises(DataError, match=message):
            call()


def test_features_become_the_nearest_float32():
    given = [2**64 - 1, 2**53 + 1, 2**24 + 1, 3]
    expected = [float(2**64), float(2**53), float(2**24), 3.0]
    for column in (
        given,
        np.array(given, dtype=np.uint64),
        pd.array(given, dtype="UInt64"),
        pa.array(given, pa.uint64()),
        pl.Series(given, dtype=pl.UInt64),
        [decimal.Decimal(value) for value in given],
    ):
        assert as_features({"a": column}, "X").values[:, 0].tolist() == expected
    mixed = pd.DataFrame({"a": [2**61 + 2**37 + 1], "b": [0.5], "c": [True]})
    direct = np.array([2**61 + 2**37 + 1]).astype(np.float32)[0]
    assert as_features(mixed, "X").values.tolist() == [[direct, 0.5, 1.0]]
    assert as_features([[True, None, 2]], "X").values.tolist()[0][::2] == [1.0, 2.0]


def test_names_and_what_is_left_aside():
    frame = pd.DataFrame({"QID": ["x"], "b": [2.0], "Relevance": ["high"], "a": [1.0], "docno": [None]})
    assert as_features(frame, "X").names == ("b", "a")
    assert as_features(frame, "X", wanted=["a", "b"]).values.tolist() == [[1.0, 2.0]]
    with pytest.raises(DataError, match="X has no column 'c'; it has 'QID', 'b'"):
        as_features(frame, "X", wanted=["a", "c"])
    unnamed = as_features(pd.DataFrame([[1.0, 2.0]]), "X", wanted=["a", "b"])
    assert unnamed.names is None
    assert unnamed.values.tolist() == [[1.0, 2.0]]
    numbered = pd.DataFrame({"qid": [1], "label": [0], 0: [5.0], 1: [6.0]})
    data = mcrank.read(numbered)
    assert (data.feature_names, data.named) == (("f1", "f2"), False)
    assert data.X.tolist() == [[5.0, 6.0]]


def test_named_is_kept(tmp_path):
    import pickle

    named = mcrank.read(BASE)
    (path := tmp_path / "data.txt").write_text("0 qid:1 1:1\n1 qid:2 1:2\n-1 qid:2 1:2\n")
    plain = mcrank.read(path, unjudged="drop")
    assert plain.n_rows == 2
    for data, given in ((named, True), (plain, False), (Dataset([[1.0]], [1], [1]), False)):
        assert data.named is given
        assert data.select([0]).named is given
        assert pickle.loads(pickle.dumps(data)).named is given
        assert Dataset.merge([data]).named is given
    assert Dataset([[1.0]], [1], [1], feature_names=["a"]).named
    for _ in range(2):
        assert not mcrank.read(path, unjudged="drop", cache=True).named


def test_merge_matches_features_by_name():
    one = Dataset(pd.DataFrame({"a": [1.0], "b": [2.0]}), [0], [1])
    other = Dataset(pd.DataFrame({"b": [20.0], "a": [10.0]}), [0], [2])
    merged = Dataset.merge([one, other])
    assert merged.feature_names == ("a", "b")
    assert merged.X.tolist() == [[1.0, 2.0], [10.0, 20.0]]
    unnamed = Dataset([[5.0, 6.0]], [0], [3])
    both = Dataset.merge([unnamed, other])
    assert (both.feature_names, both.X.tolist(), both.named) == (("b", "a"), [[5.0, 6.0], [20.0, 10.0]], True)
    with pytest.raises(DataError, match=r"part 1 of merge has other features .* no 'b'"):
        Dataset.merge([one, Dataset(pd.DataFrame({"a": [1.0], "c": [2.0]}), [0], [2])])


def test_files_of_one_set_may_order_their_columns_differently(tmp_path):
    (tmp_path / "1.csv").write_text("qid,label,a,b\n1,0,1,2\n")
    (tmp_path / "2.csv").write_text("b,qid,a,label\n20,2,10,1\n")
    data = mcrank.read(str(tmp_path / "*.csv"))
    assert data.X.tolist() == [[1, 2], [10, 20]]
    assert data.y.tolist() == [0, 1]


def test_a_dataset_does_not_change_with_its_callers_arrays():
    X, y, qid = np.ones((3, 2), dtype=np.float32), np.zeros(3), np.array([1, 1, 2])
    weight, docs, by_query = np.ones(3), np.array(["a", "b", "c"], dtype=object), np.ones(2)
    data = Dataset(X, y, qid, weight, by_query, doc_ids=docs)
    frame = pd.DataFrame(X, copy=False)
    views = [Dataset(X[:, :], y, qid), Dataset(X.view(), y, qid), Dataset(frame, y, qid)]
    read_only = X.view()
    read_only.setflags(write=False)
    views.append(Dataset(read_only, y, qid))
    sparse = scipy.sparse.csr_matrix(X)
    views.append(Dataset(sparse, y, qid))
    for array, value in ((X, 5), (y, 5), (qid, 5), (weight, 5), (docs, "z"), (by_query, 5)):
        array[:] = value
    sparse.data[:] = 5
    for one in (data, *views):
        assert (one.X == 1).all()
        assert not one.X.flags.writeable
        assert one.y.tolist() == [0, 0, 0]
        assert one.qids.tolist() == [1, 2]
    assert data.weight.tolist() == [1, 1, 1]
    assert data.query_weight.tolist() == [1, 1]
    assert data.doc_ids.tolist() == ["a", "b", "c"]


def test_what_nobody_can_write_to_is_not_copied(tmp_path):
    X = np.ones((3, 2), dtype=np.float32)
    X.setflags(write=False)
    assert np.shares_memory(Dataset(X, np.zeros(3), [1, 1, 2]).X, X)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.shares_memory(Dataset(mapped, np.zeros(3), [1, 1, 2]).X, mapped)
    writable = np.load(tmp_path / "X.npy", mmap_mode="r+")
    assert not np.shares_memory(Dataset(writable, np.zeros(3), [1, 1, 2]).X, writable)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "stream.arrow"])
def test_damaged_files_are_one_kind_of_error(tmp_path, suffix):
    """Every file with flipped or missing bytes is read or refused, by `DataError` with its name."""
    table = pa.table(BASE | {"a": A_MISSING})
    path = tmp_path / f"data.{suffix}"
    if suffix == "parquet":
        pa.parquet.write_table(table, path)
    elif suffix == "arrow":
        pa.feather.write_feather(table, str(path), compression="uncompressed")
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    whole, chance = path.read_bytes(), random.Random(1)
    refused = 0
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(chance.choice([1, 2, 20])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged if chance.random() < 0.8 else damaged[: chance.randrange(len(damaged))])
        try:
            mcrank.read(path)
        except DataError as error:
            refused += 1
            assert str(path) in str(error) or "of Dataset" in str(error)  # noqa: PT017 - some are read
    assert refused > 100


def test_damaged_tables_in_memory_are_refused():
    offsets = pa.py_buffer(np.array([0, 1, 10**9, 3], dtype=np.int32).tobytes())
    texts = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"abc")])
    with pytest.raises(DataError, match="column 'qid' of the table cannot be read"):
        mcrank.read({"qid": texts, "label": [0, 1, 0], "a": [1, 2, 3]})


def test_row_labels_of_a_frame_are_no_feature(tmp_path):
    frame = pd.DataFrame(BASE).sample(frac=1, random_state=0)  # has labels, which pandas writes as a column
    frame.to_parquet(tmp_path / "rows.parquet")
    table = pa.Table.from_pandas(frame)
    assert "__index_level_0__" in table.column_names
    for data in (mcrank.read(tmp_path / "rows.parquet"), mcrank.read(table)):
        assert data.feature_names == ("a", "b")
    assert as_features(table, "X").names == ("a", "b")
    frame.to_csv(tmp_path / "rows.csv")
    with pytest.raises(DataError, match="a column without a name"):
        mcrank.read(tmp_path / "rows.csv")
    assert mcrank.read(tmp_path / "rows.csv", features=["b", "a"]).feature_names == ("b", "a")


def test_ids_do_not_change_with_the_callers_array():
    docs, ids = np.arange(ROWS), np.arange(ROWS)
    data = Dataset(np.ones((ROWS, 1)), BASE["label"], ids, doc_ids=docs)
    docs[:] = 0
    ids[:] = 0
    assert data.doc_ids.tolist() == data.qids.tolist() == list(range(ROWS))


def test_query_weights_of_a_series_go_by_its_index():
    def weights(given, ids=(3, 1, 3, 2)):
        return Dataset(np.ones((4, 1)), [0, 1, 0, 1], list(ids), query_weight=given).query_weight.tolist()

    frame = pd.DataFrame({"qid": [3, 1, 3, 2], "w": [0.3, 0.1, 0.3, 0.2]})
    by_id = frame.groupby("qid")["w"].first()  # sorted by id, not as the rows are
    assert weights(by_id) == weights(by_id.to_dict()) == [0.3, 0.1, 0.2]
    assert weights(by_id.to_numpy()) == weights(by_id.reset_index(drop=True)) == [0.1, 0.2, 0.3]
    texts = by_id.rename(index=str)
    assert weights(texts, "3132") == [0.3, 0.1, 0.2]
    with pytest.raises(DataError, match="no weight for query 7 in its index"):
        weights(by_id, (7, 1, 7, 2))
    with pytest.raises(DataError, match="an id twice"):
        weights(frame.set_index("qid")["w"])
    with pytest.raises(DataError, match="in another order"):
        weights(pd.Series([0.0, 0.1, 0.2]), (2, 0, 2, 1))
