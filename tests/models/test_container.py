"""The container of a model file: what `unpack` accepts, `pack` would have written; the rest is refused."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mcrank.container import ALIGNMENT, DTYPES, MAX_DEPTH, MODEL, PRELUDE, pack, unpack
from mcrank.errors import ModelFileError

HEADER = {"ranker": "example", "meta": {"options": {"rate": 0.1, "leaves": 10}, "names": ["a", "ü", '"[{']}}
ARRAYS = {
    "value": np.linspace(-1, 1, 13),
    "feature": np.arange(7, dtype=np.int32),
    "empty": np.zeros((0, 3), dtype=np.float32),
    "matrix": np.arange(6, dtype=np.uint8).reshape(2, 3),
}
GOOD = pack(HEADER, ARRAYS)


def seal(text: bytes, blocks: bytes = b"", *, version: int = 1, magic: bytes = MODEL.magic) -> bytes:
    """A hostile writer: any header text and any blocks, with lengths and checksum in order."""
    padding = bytes(-(PRELUDE.size + len(text)) % ALIGNMENT)
    length = PRELUDE.size + len(text) + len(padding) + len(blocks) + 32
    body = PRELUDE.pack(magic, version, len(text), length) + text + padding + blocks
    return body + hashlib.sha256(body).digest()


def spelled(header: Any) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode()


def entry(name: str = "a", dtype: Any = "float64", shape: Any = (1,)) -> dict[str, Any]:
    return {"name": name, "dtype": dtype, "shape": shape}


def test_what_goes_in_comes_out():
    header, arrays = unpack(GOOD, "it")
    assert header == HEADER
    assert list(arrays) == sorted(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        np.testing.assert_array_equal(arrays[name], array)


def test_arrays_start_at_multiples_of_the_alignment_and_are_little_endian():
    at = GOOD.index(ARRAYS["value"].astype("<f8").tobytes())
    assert at % ALIGNMENT == 0
    assert pack({}, {"x": np.array([1, 2], dtype=">i4")}) == pack({}, {"x": np.array([1, 2], dtype="<i4")})


def test_same_content_same_bytes_whatever_the_order_and_layout():
    shuffled = dict(reversed(ARRAYS.items()))
    shuffled["matrix"] = np.asfortranarray(shuffled["matrix"])
    assert pack(dict(reversed(HEADER.items())), shuffled) == GOOD


def test_a_writable_buffer_gives_writable_arrays():
    _, arrays = unpack(bytearray(GOOD), "it")
    assert arrays["value"].flags.writeable


def test_every_single_byte_flip_is_refused():
    for position in range(len(GOOD)):
        for bit in (0, 3, 7):
            damaged = bytearray(GOOD)
            damaged[position] ^= 1 << bit
            with pytest.raises(ModelFileError):
                unpack(damaged, "it")


def test_every_truncation_and_every_extension_is_refused():
    for length in range(len(GOOD)):
        with pytest.raises(ModelFileError):
            unpack(GOOD[:length], "it")
    for tail in (b"\0", b"\0" * 64, GOOD):
        with pytest.raises(ModelFileError):
            unpack(GOOD + tail, "it")


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(GOOD)), st.integers(0, len(GOOD)), st.binary(max_size=80), st.booleans())
def test_splices_are_refused_or_change_nothing(start, end, middle, resealed):
    content = GOOD[: min(start, end)] + middle + GOOD[max(start, end) :]
    if resealed and len(content) >= PRELUDE.size + 32:
        # The damage of a writer who keeps length and checksum right: only the meaning can give it away.
        body = content[:16] + struct.pack("<Q", len(content)) + content[24:-32]
        content = body + hashlib.sha256(body).digest()
    try:
        header, arrays = unpack(content, "it")
    except ModelFileError:
        return
    assert pack(header, arrays) == content


@settings(max_examples=300, deadline=None)
@given(st.integers(24, len(GOOD) - 33), st.integers(0, 255))
def test_resealed_byte_changes_are_refused_or_another_valid_file(position, byte):
    body = bytearray(GOOD[:-32])
    body[position] = byte
    content = bytes(body) + hashlib.sha256(body).digest()
    try:
        header, arrays = unpack(content, "it")
    except ModelFileError:
        return
    assert pack(header, arrays) == content


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.text(max_size=5).filter(lambda k: k != "arrays"), JSON, max_size=3),
    st.dictionaries(
        st.text(max_size=5),
        st.sampled_from(sorted(DTYPES)).flatmap(
            lambda dtype: hnp.arrays(
                dtype,
                hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
                elements={"allow_nan": False, "allow_infinity": False} if dtype.startswith("float") else None,
            )
        ),
        max_size=4,
    ),
)
def test_any_header_and_arrays_survive(header, arrays):
    content = pack(header, arrays)
    header_back, arrays_back = unpack(content, "it")
    assert header_back == header
    assert arrays_back.keys() == arrays.keys()
    assert pack(header_back, arrays_back) == content


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"null",
        b'{"arrays":[]',
        b'{"arrays":[]} ',
        b'{"arrays": []}',
        b'{"arrays":[],"arrays":[]}',
        b'{"b":1,"arrays":[]}',
        b'{"arrays":[],"x":NaN}',
        b'{"arrays":[],"x":Infinity}',
        b'{"arrays":[],"x":1e999}',
        b'{"arrays":[],"x":1.50}',
        b'{"arrays":[],"x":"\xc3\xbc"}',
        b'{"arrays":[],"x":' + b"9" * 5000 + b"}",
        b'{"arrays":[],"x":' + b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1) + b"}",
        b'{"arrays":[],"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b"[" * 200_000,
        b'{"arrays":[],"x":[' + b"[]," * 200_000 + b"[]]}",
        b'{"a' + b'\\"' * 100_000,
        b'"' * 100_001,
        b"\xff\xfe\x00\x01",
    ],
    ids=lambda text: repr(text[:24]),
)
def test_hostile_header_text_is_refused(text):
    with pytest.raises(ModelFileError):
        unpack(seal(text), "it")


@pytest.mark.parametrize(
    "table",
    [
        None,
        {},
        [None],
        [[]],
        ["a"],
        [{}],
        [{**entry(), "offset": 0}],
        [entry(name=1)],
        [entry(dtype="object")],
        [entry(dtype="complex128")],
        [entry(dtype="<f8")],
        [entry(dtype=["float64"])],
        [entry(shape=None)],
        [entry(shape=1)],
        [entry(shape=[])],
        [entry(shape=[-1])],
        [entry(shape=[True])],
        [entry(shape=[1.0])],
        [entry(shape=["1"])],
        [entry(shape=[2])],
        [entry(shape=[2**62])],
        [entry(shape=[2**32, 2**32])],
        [entry(shape=[2**64 + 1])],
        [entry(shape=[10**100])],
        [entry(shape=[0, 2**40, 2**40])],
        [entry(shape=[1, 1, 1, 1, 1])],
        [entry(name="b"), entry(name="a")],
        [entry(name="a"), entry(name="a")],
        [entry(name="a"), entry(name="b"), entry(name="c")],
        [entry(name=f"{i:05d}", shape=[0]) for i in range(5000)],
    ],
    ids=lambda table: repr(table)[:50],
)
def test_hostile_tables_of_arrays_are_refused(table):
    blocks = bytes(2 * ALIGNMENT)
    with pytest.raises(ModelFileError):
        unpack(seal(spelled({"arrays": table}), blocks), "it")


def test_padding_must_be_zero():
    good = seal(spelled({"arrays": [entry()]}), bytes(64))
    assert unpack(good, "it")[1]["a"].tolist() == [0.0]
    with pytest.raises(ModelFileError, match="zero"):
        unpack(seal(spelled({"arrays": [entry()]}), bytes(63) + b"\1"), "it")


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_must_be_finite_when_read_and_when_written(number):
    block = np.array([0, number], dtype="<f8").tobytes() + bytes(48)
    with pytest.raises(ModelFileError, match="finite"):
        unpack(seal(spelled({"arrays": [entry(shape=[2])]}), block), "it")
    with pytest.raises(ModelFileError, match="finite"):
        pack({}, {"a": np.array([0, number])})
    with pytest.raises(ValueError, match="Out of range float"):
        pack({"x": float(number)}, {})


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([1j]), np.array([None]), np.zeros((1,) * 5)])
def test_arrays_that_are_not_numbers_are_not_written(array):
    with pytest.raises(ModelFileError, match="array 'a' of a model must have"):
        pack({}, {"a": array})


def test_messages_say_what_is_wrong():
    with pytest.raises(ModelFileError, match=r"^m\.mcrank is not a mcrank model file"):
        unpack(b"1 qid:1 1:0.5\n", "m.mcrank")
    with pytest.raises(ModelFileError, match="format version 2, this mcrank reads version 1"):
        unpack(seal(b'{"arrays":[]}', version=2), "m.mcrank")
    with pytest.raises(ModelFileError, match=f"should have {len(GOOD)} bytes and has {len(GOOD) - 5}"):
        unpack(GOOD[:-5], "m.mcrank")
    with pytest.raises(ModelFileError, match="checksum"):
        unpack(GOOD[:100] + bytes([GOOD[100] ^ 1]) + GOOD[101:], "m.mcrank")
    with pytest.raises(ModelFileError, match="0 bytes"):
        unpack(b"", "m.mcrank")
