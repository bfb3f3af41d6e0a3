"""`Dataset`: grouping, checks, selection, merging."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import mcrank
from mcrank import DataError, Dataset, OptionError
from mcrank.data.fingerprint import fingerprint

ids = st.one_of(
    st.lists(st.integers(0, 5), min_size=1, max_size=30),
    st.lists(st.sampled_from([2**53, 2**53 + 1, 2**63, 2**64 - 1, 2**64, -1]), min_size=1, max_size=30),
    st.lists(st.sampled_from(["a", "b", "é", "a\0", "7", "07"]), min_size=1, max_size=30),
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from(["0", "1"])), min_size=1, max_size=30),
    st.lists(st.integers(-2, 2).map(float), min_size=1, max_size=30),
)


@given(ids)
def test_grouping_equals_a_dictionary(qid):
    rows = {}
    for i, q in enumerate(qid):
        rows.setdefault(q, []).append(i)
    order = [i for group in rows.values() for i in group]
    X = np.arange(len(qid), dtype=np.float32)[:, None]
    data = Dataset(X, np.arange(len(qid)), qid, doc_ids=[f"d{i}" for i in range(len(qid))])
    assert data.qids.tolist() == list(rows)
    assert data.sizes.tolist() == [len(group) for group in rows.values()]
    assert data.X[:, 0].tolist() == order
    assert data.doc_ids.tolist() == [f"d{i}" for i in order]
    np.testing.assert_array_equal(data.to_caller(data.y), np.arange(len(qid)))
    np.testing.assert_array_equal(data.to_grouped(np.arange(len(qid))), order)
    assert (data.source_rows is None) == (order == sorted(order))
    assert data.qid.tolist() == [qid[i] for i in order]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0], [np.inf]], [0, 1], [1, 1]), "X of Dataset has inf at row 1, column 0"),
        (([[1.0], [1e39]], [0, 1], [1, 1]), r"X of Dataset has 1e\+39 at row 1, column 0"),
        (([["a"]], [0], [1]), "X of Dataset is not numeric: it holds text"),
        (([1.0], [0], [1]), "2 dimensions"),
        ((np.empty((0, 3)), [], []), "is empty: 0 rows, 3 features"),
        ((np.empty((2, 0)), [0, 0], [1, 1]), "is empty: 2 rows, 0 features"),
        (([[1.0]], [0, 1], [1]), "one grade per row: 1 rows"),
        (([[1.0]], [np.nan], [1]), "y of Dataset has nan at row 0"),
        (([[1.0]], [-1], [1]), "y of Dataset has -1.0 at row 0"),
        (([[1.0]], [np.inf], [1]), "y of Dataset has inf at row 0"),
        (([[1.0]], ["x"], [1]), "y of Dataset must be numbers"),
        (([[1.0]], [1], [1, 2]), "qid of Dataset must have one value per row"),
        (([[1.0], [2.0]], [1, 1], [1.0, np.nan]), "qid of Dataset is missing at row 1"),
        (([[1.0], [2.0]], [1, 1], ["a", None]), "qid of Dataset is missing at row 1"),
        (
            ([[1.0], [2.0]], [1, 1], pd.array([1, pd.NA], dtype="Int64")),
            "qid of Dataset is missing.* at row 1",
        ),
        (([[1.0], [2.0]], [1, 1], [[1], [2]]), r"qid of Dataset has list \[1\] at row 0"),
        (([[1.0]], [1], [1], [-1.0]), "weight of Dataset has -1.0 at position 0"),
        (([[1.0]], [1], [1], [0.0]), "weight of Dataset is zero everywhere"),
        (([[1.0]], [1], [1], ["x"]), "weight of Dataset must be numbers"),
        (([[1.0]], [1], [1], None, {2: 1.0}), "no weight for query 1"),
        (([[1.0]], [1], [1], None, [1.0, 2.0]), "query_weight of Dataset must have 1 values"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(DataError, match=message):
        Dataset(*arguments)


def test_names():
    frame = pd.DataFrame({"bm25": [1.0, 2.0], "age": [3, 4]})
    assert Dataset(frame, [0, 1], [1, 1]).feature_names == ("bm25", "age")
    assert Dataset(frame.to_numpy(), [0, 1], [1, 1]).feature_names == ("f1", "f2")
    assert Dataset(frame, [0, 1], [1, 1], feature_names=["age", "bm25"]).X.tolist() == [[3, 1], [4, 2]]
    with pytest.raises(DataError, match="X of Dataset has no column 'a'"):
        Dataset(frame, [0, 1], [1, 1], feature_names=["a"])
    for names, message in [(["a"], "must name 2 features, got 1"), (["a", "a"], "'a' twice")]:
        with pytest.raises(DataError, match=message):
            Dataset(frame.to_numpy(), [0, 1], [1, 1], feature_names=names)


def test_the_callers_arrays_stay_theirs():
    X, docs = np.ones((2, 1), dtype=np.float32), np.array(["a", "b"])
    data = Dataset(X, [0, 1], [1, 1], doc_ids=docs)
    X[0, 0], docs[0] = 5, "c"
    assert data.X[0, 0] == 1
    assert data.doc_ids[0] == "a"
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 3
    with pytest.raises(AttributeError, match="frozen"):
        data.X = X


def test_sparse_matrices_become_dense():
    dense = np.array([[0, 1.5], [0, 0], [2, 0]])
    for kind in (scipy.sparse.csr_matrix, scipy.sparse.coo_matrix, scipy.sparse.csc_array):
        np.testing.assert_array_equal(Dataset(kind(dense), [0, 1, 2], [1, 1, 1]).X, dense)
    with pytest.raises(DataError, match="inf at row 1, column 0"):
        Dataset(scipy.sparse.csr_matrix([[0.0], [np.inf]]), [0, 1], [1, 1])


@pytest.fixture
def data():
    return Dataset(
        np.arange(12, dtype=np.float32).reshape(6, 2), [0, 0, 1, 2, 0, 0], ["a", "a", "b", "b", "c", "b"],
        weight=[1, 2, 3, 4, 5, 6], query_weight={"a": 1, "b": 2, "c": 3}, doc_ids=list("uvwxyz"),
    )  # fmt: skip


def test_select(data):
    for chosen in ([2, 1], np.array([2, 1], dtype=np.uint8)):
        part = data.select(chosen)
        assert part.qids.tolist() == ["c", "b"]
        assert part.doc_ids.tolist() == ["y", "w", "x", "z"]
        assert part.weight.tolist() == [5, 3, 4, 6]
        assert part.query_weight.tolist() == [3, 2]
        assert part.row_weight.tolist() == [15, 6, 8, 12]
        assert part.X[:, 0].tolist() == [8, 4, 6, 10]
        assert part.source_rows is None
    assert data.select([True, False, True]).doc_ids.tolist() == ["u", "v", "y"]
    assert data.select([0, 1]).X.base is not None
    for bad in ([], [3], [-1], [0, 0], [0.5], [True], "ab"):
        with pytest.raises(DataError, match="queries of select"):
            data.select(bad)


def test_sample(data):
    assert data.sample(2, seed=3).n_queries == 2
    assert data.sample(1.0).qids.tolist() == ["a", "b", "c"]
    assert data.sample(0.01).n_queries == 1
    assert {tuple(data.sample(1, seed=s).qids) for s in range(20)} == {("a",), ("b",), ("c",)}
    assert data.sample(2, seed=5).qids.tolist() == data.sample(2, seed=5).qids.tolist()
    assert data.sample(np.float32(0.5)).n_queries == data.sample(np.int8(2)).n_queries == 2
    for bad in (0, 4, 0.0, 1.5, True, "2", None, np.float32(2)):
        with pytest.raises(DataError, match="queries of sample"):
            data.sample(bad)
    with pytest.raises(OptionError, match="seed of sample must be an integer >= 0, got -1"):
        data.sample(2, seed=-1)


def test_drop_empty_queries(data):
    kept = data.drop_empty_queries()
    assert kept.qids.tolist() == ["b"]
    assert kept.dropped_queries == 2
    assert kept.select([0]).dropped_queries == 2
    assert kept.drop_empty_queries().dropped_queries == 2
    with pytest.raises(DataError, match="no query of this Dataset has a relevant row"):
        data.select([0]).drop_empty_queries()


def test_merge(data):
    other = Dataset([[1.0, 2.0], [3.0, 4.0]], [1, 1], ["d", "a"])
    merged = Dataset.merge([data, other], same_query="join")
    assert merged.qids.tolist() == ["a", "b", "c", "d"]
    assert merged.doc_ids.tolist() == ["u", "v", "", "w", "x", "z", "y", ""]
    assert merged.weight.tolist() == [1, 2, 1, 3, 4, 6, 5, 1]
    assert merged.query_weight.tolist() == [1, 2, 3, 1]
    with pytest.raises(DataError, match="query 'a' is in two parts"):
        Dataset.merge([data, other])
    with pytest.raises(DataError, match="weights 2 and 1"):
        Dataset.merge([data, Dataset([[1.0, 2.0]], [1], ["b"])], same_query="join")
    with pytest.raises(DataError, match="part 1 of merge has other features"):
        Dataset.merge([data, Dataset([[1.0]], [1], ["z"])])
    with pytest.raises(DataError, match="no Dataset"):
        Dataset.merge([])
    with pytest.raises(DataError, match="same_query"):
        Dataset.merge([data], same_query="x")
    with pytest.raises(DataError, match=r"integers in part 0 of merge \(1\) and texts in part 1"):
        Dataset.merge([Dataset([[1.0]], [1], [1]), Dataset([[1.0]], [1], ["1"])])


def test_pickle_keeps_everything(data):
    again = pickle.loads(pickle.dumps(data.drop_empty_queries()))
    assert again.dropped_queries == 2
    assert again.feature_names == data.feature_names
    whole = pickle.loads(pickle.dumps(data))
    np.testing.assert_array_equal(whole.to_caller(whole.X), np.arange(12).reshape(6, 2))
    assert not whole.X.flags.writeable


def test_missing_values_are_kept():
    data = mcrank.Dataset([[np.nan, 1.0]], [1], [1])
    assert np.isnan(data.X[0, 0])


def test_the_fingerprint_stays_what_it_was():
    """Model files have it: another digest of the same data would be other bytes of the same model."""
    one = Dataset([[1.0], [2.0], [3.0]], y=[0, 1, 2], qid=["a", "b", "b"])
    assert fingerprint(one) == "79e13e3a89a83c313832b493b2be1c6b"
    weighted = Dataset([[1.0], [2.0], [3.0]], [0, 1, 2], ["a", "b", "b"], [1, 2, 3], [4, 5])
    assert fingerprint(weighted) == "fa3380dcc384f8f70b46fde94bb36ca9"
