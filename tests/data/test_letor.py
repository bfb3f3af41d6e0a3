"""LETOR text against the naive twin, against scikit-learn, and against hostile files."""

from __future__ import annotations

import contextlib
import io
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

import mcrank
from mcrank.data import letor, sources
from tests.reference.letor import BadLine, count_rows, gather_spans, read_number, read_text

FILES = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

ODD_NUMBERS = """
0 -0 00 1. .5 -.5 +3 1e-7 1E5 1e+3 1e-45 1e-46 7e-46 1e-320 1e-400 3.4028234e38 3.4028235e38 nan NaN -nan NULL
null 0.1000000000000000055511151231257827 123456789012345678901234567890 1234567.1234567 12345678.12345678
9007199254740993 16777217 16777219 0.000000000000000000000000000000000000001 1_0 8388608.5 9999999.9999999
1.00000017881393432617187499 1.00000017881393432617187500 1.00000017881393432617187501
"""
odd_numbers = st.sampled_from(ODD_NUMBERS.split())
plain_numbers = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda v: repr(float(v))),
    st.floats(-1e30, 1e30).map(repr),
    st.decimals(-1000, 1000, places=6).map(str),
    st.integers(0, 300).map(str),
)
numbers_text = st.one_of(plain_numbers, odd_numbers)
blanks = st.sampled_from([" ", "  ", "\t", " \t ", "\x0b", "\x0c", "\r"])


@st.composite
def good_lines(draw, sorted_features=False):
    """One line that must be read, as text without its end."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from(["", "  ", "\t", "# a comment alone", " #", "\r"]))
    indices = draw(st.lists(st.integers(1, 12), unique=True, max_size=8))
    if sorted_features:
        indices.sort()
    words = [draw(st.sampled_from(["0", "1", "2", "4", "0.5", "3e0", "1e-7", "12345678901234567"]))]
    words.append("qid:" + draw(st.sampled_from(["1", "2", "30", "q", "1:2", "é", "-7", "007"])))
    words += [f"{index}:{draw(numbers_text)}" for index in indices]
    line = draw(st.sampled_from(["", " ", "\t"])) + "".join(w + draw(blanks) for w in words[:-1]) + words[-1]
    return line + draw(
        st.sampled_from(["", " ", "\r", "#x", " # free text ", " #docid = GX1 inc = 1", "#docid=", "#"])
    )


def file_of(lines, final_newline):
    return ("\n".join(lines) + ("\n" if final_newline else "")).encode()


def compare(data, expected):
    X, y, ids, docs = expected
    np.testing.assert_array_equal(data.to_caller(data.X).view(np.uint32) & 0x7FFFFFFF, _bits(X))
    np.testing.assert_array_equal(
        np.signbit(data.to_caller(data.X))[~np.isnan(X)], np.signbit(X)[~np.isnan(X)]
    )
    np.testing.assert_array_equal(data.to_caller(data.y), y)
    assert [str(q) for q in data.to_caller(data.qid)] == ids
    assert (data.doc_ids is None) == (not any(docs))
    if data.doc_ids is not None:
        assert data.to_caller(data.doc_ids).tolist() == docs


def _bits(X):
    return np.where(np.isnan(X), np.float32(np.nan), X).view(np.uint32) & 0x7FFFFFFF


@FILES
@given(st.lists(good_lines(), min_size=1, max_size=12), st.booleans())
def test_equals_the_naive_twin(tmp_path, lines, final_newline):
    path = tmp_path / "data.txt"
    path.write_bytes(content := file_of(lines, final_newline))
    try:
        expected = read_text(content)
    except BadLine as bad:
        with pytest.raises(mcrank.DataError, match=rf"data\.txt, line {bad.args[0]}\b"):
            mcrank.read(path)
        return
    if 0 in expected[0].shape:
        with pytest.raises(mcrank.DataError, match=r"has no (rows|features)"):
            mcrank.read(path)
        return
    compare(mcrank.read(path), expected)


@pytest.mark.slow
@FILES
@given(st.lists(good_lines(sorted_features=True), min_size=1, max_size=12), st.booleans())
def test_equals_scikit_learn(lines, final_newline):
    lines = [re.sub(r"qid:\S+?(?=[\s#]|$)", "qid:3", line) for line in lines]
    # What scikit-learn has no word for.
    lines = [re.sub(r"(?i)null", "nan", line) for line in lines]
    content = file_of(lines, final_newline)
    try:
        X, y, qid = load_svmlight_file(io.BytesIO(content), query_id=True, zero_based=False)
    except ValueError:
        return
    if 0 in X.shape or "inf" in str(X.max()):
        return
    chunk_text = np.zeros(len(content) + 1 + sources.PADDING, dtype=np.uint8)
    chunk_text[: len(content)] = np.frombuffer(content, dtype=np.uint8)
    chunk_text[len(content)] = 10
    rows, _ = letor.kernels.count_rows(chunk_text, len(content) + 1)
    assert rows == len(y) == len(qid)
    got_X, got_y = np.empty((rows, X.shape[1]), dtype=np.float32), np.empty(rows)
    parsed = letor.parse(
        sources.Chunk("x", chunk_text, len(content) + 1, 1), got_X, got_y, letor.LetorOptions()
    )
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got_X, X.toarray().astype(np.float32))
    np.testing.assert_array_equal(got_y, y)
    assert parsed.largest <= X.shape[1]


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.one_of(
            numbers_text,
            st.from_regex(r"-?[0-9]{1,8}(\.[0-9]{0,8})?", fullmatch=True),
            st.from_regex(r"[+-]?[0-9]{0,25}\.?[0-9]{0,25}([eE][+-]?[0-9]{1,3})?", fullmatch=True),
        )
    )
)
def test_every_number_is_pythons(texts):
    words, values = [], []
    for text in texts:
        try:
            values.append(read_number(text.encode()))
            words.append(text)
        except ValueError:
            continue
    line = "0 qid:1 " + " ".join(f"{i + 1}:{word}" for i, word in enumerate(words)) + "\n"
    size = len(line)
    text = np.zeros(size + sources.PADDING, dtype=np.uint8)
    text[:size] = np.frombuffer(line.encode(), dtype=np.uint8)
    X = np.empty((1, len(words)), dtype=np.float32)
    letor.parse(sources.Chunk("x", text, size, 1), X, np.empty(1), letor.LetorOptions())
    np.testing.assert_array_equal(X[0], np.array(values, dtype=np.float32))
    finite = ~np.isnan(X[0])
    np.testing.assert_array_equal(
        np.signbit(X[0][finite]), np.signbit(np.array(values, dtype=np.float32)[finite])
    )


@pytest.mark.parametrize("seed", range(3))
def test_long_decimals_near_float32_ties(seed):
    """Values whose float32 rounding hangs on the last digits, where a rounded intermediate would go wrong."""
    stream = np.random.default_rng(seed)
    single = stream.uniform(1, 2, 300).astype(np.float32)
    middle = (single.astype(np.float64) + np.nextafter(single, np.float32(3)).astype(np.float64)) / 2
    texts = []
    for m in middle:
        for shift in (-1, 0, 1):
            texts.append(f"{np.nextafter(m, m + shift) if shift else m:.{stream.integers(14, 19)}f}")
    line = "0 qid:1 " + " ".join(f"{i + 1}:{t}" for i, t in enumerate(texts)) + "\n"
    text = np.zeros(len(line) + sources.PADDING, dtype=np.uint8)
    text[: len(line)] = np.frombuffer(line.encode(), dtype=np.uint8)
    X = np.empty((1, len(texts)), dtype=np.float32)
    letor.parse(sources.Chunk("x", text, len(line), 1), X, np.empty(1), letor.LetorOptions())
    np.testing.assert_array_equal(X[0], np.array([float(t) for t in texts]).astype(np.float32))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1", "must be followed by qid:"),
        ("1 1:2", "must be followed by qid: and the query's id, got '1:2'"),
        ("1 qid: 1:2", "must be followed by qid:"),
        ("1 qid", "must be followed by qid:"),
        ("x qid:1 1:2", "grade 'x' is not a number"),
        ("qid:1 1:2", "grade 'qid:1' is not a number|must be followed"),
        ("-1 qid:1 1:2", "grade -1 must be finite and >= 0 .unjudged="),
        ("nan qid:1 1:2", "grade nan must be finite"),
        ("inf qid:1 1:2", "grade inf must be finite"),
        ("1 qid:1 2", "feature '2' has no colon"),
        ("1 qid:1 1:2 3", "feature '3' has no colon"),
        ("1 qid:1 :2", "does not start with a feature index"),
        ("1 qid:1 a:2", "does not start with a feature index"),
        ("1 qid:1 1x:2", "does not start with a feature index"),
        ("1 qid:1 -1:2", "does not start with a feature index"),
        ("1 qid:1 0:2", "feature '0:2' is below the first index 1 .first_index=0"),
        ("1 qid:1 100001:2", "beyond the last index, 100000 .max_features"),
        ("1 qid:1 99999999999999999999999:2", "beyond the last index"),
        ("1 qid:1 18446744073709551617:2", "beyond the last index"),
        ("1 qid:1 1:2 1:3", "feature '1:3' repeats an index"),
        ("1 qid:1 2:2 1:3 2:1", "feature '2:1' repeats an index"),
        ("1 qid:1 1:abc", "value 'abc' is not a number"),
        ("1 qid:1 1:1.2.3", "value '1.2.3' is not a number"),
        ("1 qid:1 1:inf", "value 'inf' does not fit float32"),
        ("1 qid:1 1:1e39", "value '1e39' does not fit float32"),
        ("1 qid:1 1:-1e999", "value '-1e999' does not fit float32"),
        ("1 qid:1 1:0x10", "value '0x10' is not a number"),
        ("1 qid:1 1:1e", "value '1e' is not a number"),
        ("1 qid:1 1:\x00", "is not a number"),
        ("1 qid:\udcff 1:1", "is not UTF-8"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named(tmp_path, line, message):
    path = tmp_path / "bad.txt"
    good = b"0 qid:1 1:1 2:2\n# comment\n\n1 qid:1 1:0.25\n"
    path.write_bytes(good + line.encode("utf-8", "surrogateescape") + b"\n1 qid:2 1:2\n")
    with pytest.raises(mcrank.DataError, match=message) as caught:
        mcrank.read(path)
    assert str(caught.value).startswith(f"{path}, line 5: ")


def test_the_first_of_several_bad_lines_is_named(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_text("0 qid:1 1:1\n0 qid:1 1:x\n0 qid:1 0:1\n")
    with pytest.raises(mcrank.DataError, match="line 2: value 'x'"):
        mcrank.read(path)


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_binary_junk_is_read_or_refused(tmp_path, junk):
    path = tmp_path / "junk.txt"
    path.write_bytes(junk)
    try:
        read_text(junk)
    except BadLine:
        with pytest.raises(mcrank.DataError, match=r"junk\.txt"):
            mcrank.read(path, n_jobs=1)
    else:
        # Nothing but blank lines and comments, or a line that hypothesis got right.
        with contextlib.suppress(mcrank.DataError):
            assert mcrank.read(path, n_jobs=1).n_rows > 0


def test_choices(tmp_path):
    (path := tmp_path / "data.txt").write_text("-1 qid:1 2:5\n2 qid:1 1:3\nNULL qid:2 1:1\n1 qid:2 1:7\n")
    assert mcrank.read(path, unjudged="zero").y.tolist() == [0, 2, 0, 1]
    dropped = mcrank.read(path, unjudged="drop")
    assert dropped.y.tolist() == [2, 1]
    assert dropped.X.tolist() == [[3, 0], [7, 0]]
    missing = mcrank.read(path, unjudged="zero", absent="missing", n_features=3)
    assert np.isnan(missing.X).tolist() == [[True, False, True]] + [[False, True, True]] * 3
    with pytest.raises(mcrank.DataError, match=r"beyond the last index, 1 \(n_features"):
        mcrank.read(path, unjudged="zero", n_features=1)
    path.write_text("1 qid:1 0:5 2:1\n")
    zero_based = mcrank.read(path, first_index=0)
    assert zero_based.X.tolist() == [[5, 0, 1]]
    assert zero_based.feature_names == ("f0", "f1", "f2")
    for bad in ({"absent": "x"}, {"unjudged": 1}, {"first_index": 2}, {"n_jobs": 0}, {"max_features": True}):
        with pytest.raises(mcrank.OptionError, match=next(iter(bad))):
            mcrank.read(path, **bad)


def test_query_ids_are_numbers_only_when_nothing_is_lost(tmp_path):
    path = tmp_path / "data.txt"
    for texts, kind in [
        (["1", "20"], "i"),
        (["1", "02"], "O"),
        (["1", "x"], "O"),
        (["9" * 30], "O"),
        (["1_0"], "O"),
    ]:
        path.write_text("".join(f"0 qid:{text} 1:1\n" for text in texts))
        data = mcrank.read(path)
        assert data.qids.dtype.kind == kind
        assert [str(q) for q in data.qids] == texts


@pytest.mark.parametrize(
    ("content", "line"),
    [
        # An id that is not UTF-8 before a line without a query (found by fuzzing).
        (b"1 qid:\xa1\xdf 2:1e-4\n\n# c\n2 qid\xc6\x94 1:1\n", 1),
        (b"-1 qid:1 1:1\n0 qid:1 1:x\n0 qid:1 0:1\n", 1),
        (b"1 qid:1 1:1\n0 qid:1 1:x\n-1 qid:\xff 1:1\n", 2),
    ],
)
def test_mistakes_of_different_kinds_are_told_in_order(tmp_path, content, line):
    (path := tmp_path / "bad.txt").write_bytes(content)
    with pytest.raises(mcrank.DataError, match=rf"line {line}: "):
        mcrank.read(path)


def padded(content: bytes):
    text = np.zeros(len(content) + sources.PADDING, dtype=np.uint8)
    text[: len(content)] = np.frombuffer(content, dtype=np.uint8)
    return text


@given(st.lists(st.text(alphabet="0 #\t\rq", max_size=80)))
def test_counting_equals_its_twin(lines):
    content = "".join(line + "\n" for line in lines).encode()
    assert letor.kernels.count_rows(padded(content), len(content)) == count_rows(content)


@given(st.binary(max_size=60), st.data())
def test_gathering_equals_its_twin(content, data):
    place = st.integers(0, len(content))
    spans = data.draw(st.lists(st.tuples(place, place).map(sorted)))
    expected = gather_spans(content, spans)
    out = np.zeros(len(expected), dtype=np.uint8)
    letor.kernels.gather_spans(padded(content), np.array(spans, dtype=np.int32).reshape(-1, 2), out)
    assert out.tobytes() == expected


def test_a_comment_may_end_the_file_with_a_colon(tmp_path):
    """Only a feature that ends there looks cut off."""
    (path := tmp_path / "data.txt").write_text("1 qid:1 1:2 # see:")
    assert mcrank.read(path).doc_ids.tolist() == ["see:"]
    path.write_text("1 qid:1 1:")
    with pytest.raises(mcrank.DataError, match="cut off"):
        mcrank.read(path)
