"""What `write` writes, `read` reads back: the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import load_svmlight_file

import mcrank


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 8), st.integers(1, 6)),
        elements=st.floats(width=32, allow_infinity=False),
    ),
    st.data(),
    st.booleans(),
    st.sampled_from(["", ".gz", ".xz", ".bz2"]),
)
def test_round_trip(tmp_path, X, data, sparse, suffix):
    rows = len(X)
    y = data.draw(st.lists(st.floats(0, 1e6), min_size=rows, max_size=rows))
    qid = data.draw(st.lists(st.sampled_from(["a", "b:1", "é"]), min_size=rows, max_size=rows))
    docs = data.draw(
        st.lists(st.sampled_from(["", "GX-1", "free text", "docid x"]), min_size=rows, max_size=rows)
    )
    given_data = mcrank.Dataset(X, y, qid, doc_ids=docs)
    mcrank.write(given_data, path := tmp_path / f"data.txt{suffix}", sparse=sparse)
    again = mcrank.read(path, n_features=X.shape[1])
    expected = np.where(given_data.X == 0, np.float32(0), given_data.X) if sparse else given_data.X
    np.testing.assert_array_equal(again.X, expected)
    if not sparse:
        finite = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(again.X[finite]), np.signbit(expected[finite]))
    np.testing.assert_array_equal(again.y, given_data.y)
    assert again.qid.tolist() == given_data.qid.tolist()
    if any(docs):
        assert again.doc_ids.tolist() == given_data.doc_ids.tolist()


@pytest.mark.parametrize("last", [0.0, -0.0, 2.0, float("nan")])
def test_sparse_text_keeps_the_number_of_features(tmp_path, last):
    """A feature that is 0 everywhere would not be in the file, nor would its reader know of it."""
    data = mcrank.Dataset([[1.0, 0.0, 0.0], [0.0, 0.0, last]], [1, 0], ["a", "b"])
    mcrank.write(data, path := tmp_path / "data.txt", sparse=True)
    np.testing.assert_array_equal(mcrank.read(path).X, data.X)
    assert path.read_text().count(":") == 4  # two of queries, two of features
    mcrank.write(data.select([0]), path, sparse=True)
    assert path.read_text() == "1 qid:a 1:1 3:0\n"


def test_others_can_read_it(tmp_path):
    data = mcrank.make_artificial(3, 1, 1, n_features=7).train
    mcrank.write(data, path := tmp_path / "data.txt")
    X, y, qid = load_svmlight_file(str(path), query_id=True)
    np.testing.assert_array_equal(X.toarray().astype(np.float32), data.X)
    np.testing.assert_array_equal(y, data.y)
    np.testing.assert_array_equal(qid, data.qid)


def test_zstandard(tmp_path):
    pytest.importorskip("zstandard")
    data = mcrank.make_artificial(3, 1, 1, n_features=7).train
    mcrank.write(data, path := tmp_path / "data.txt.zst")
    assert path.read_bytes()[:4] == b"\x28\xb5\x2f\xfd"
    np.testing.assert_array_equal(mcrank.read(path).X, data.X)


@pytest.mark.parametrize(
    ("qid", "doc", "message"),
    [
        ("a b", "x", "query id 'a b'"),
        ("a#", "x", "query id"),
        ("", "x", "qid of Dataset is missing"),
        ("a", "x\ny", "line end"),
        ("a", "docid = x", "'docid =' at its start"),
        ("a", " x", "no blank at its ends"),
        ("a", (1, 2), "must be text"),
        ("a", "\ud800", "document id"),
        ("\ud800", "x", "query id"),
        ((1,), "x", "query id"),
    ],
)
def test_what_cannot_be_written_leaves_nothing_behind(tmp_path, qid, doc, message):
    path = tmp_path / "data.txt"
    path.write_text("old")
    with pytest.raises(mcrank.DataError, match=message):
        mcrank.write(mcrank.Dataset([[1.0]], [1], [qid], doc_ids=[doc]), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_no_such_directory(tmp_path):
    with pytest.raises(mcrank.DataError, match="cannot be written"):
        mcrank.write(mcrank.Dataset([[1.0]], [1], [1]), tmp_path / "none" / "data.txt")


@pytest.mark.parametrize("name", ["x.parquet", "x.CSV", "x.arrow", "x.npz", "x.json"])
def test_a_name_that_promises_another_format_is_refused(tmp_path, name):
    data = mcrank.Dataset([[1.0]], y=[1], qid=["a"])
    with pytest.raises(mcrank.OptionError, match="what is written is LETOR text"):
        mcrank.write(data, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
