"""Rows that a kernel reads are those that orjson, `float` and NumPy make, and so is what is refused."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.serve import number_table
from mcrank.serve.number_table import NumberTable, read_parts
from mcrank.serve.problems import Problem
from mcrank.serve.rows import Wanted, from_json
from mcrank.serve.settings import Limits
from mcrank.serve.strict_json import read_object

NAMES = ("a", "b c", "é")


@pytest.fixture(autouse=True)
def every_body(monkeypatch):
    monkeypatch.setattr(number_table, "_WORTH", 0)


def outcome(read, body, names=NAMES):
    """What comes of a body: bits, ids and the other parts; or the words that refuse it."""
    wanted = Wanted(names, "the model", "rows of /rank", Limits())
    try:
        parts = read(body, "/rank")
        if not {"rows", "columns"} & set(parts):
            return sorted(parts)
        rows = from_json(parts, wanted)
    except Problem as problem:
        return str(problem)
    rest = {name: value for name, value in parts.items() if name not in ("rows", "columns")}
    return rows.values.shape, rows.values.tobytes(), rows.ids, rest


def agree(body, names=NAMES):
    found = outcome(read_parts, body, names)
    assert found == outcome(read_object, body, names)
    return found


HARD = """
0 -0 -0.0 0.0 0e5 -0e5 0.000 1 -1 12345678 123456789 1.5 1e5 1E+5 1e-5 1.0e05 0e999999 9007199254740993
18446744073709551615 18446744073709551616 0.1 0.30000001192092896 1234567890123456789 12345678901234567890
0.1234567890123456789 0.12345678901234567890123 16777217 16777217.0 16777219 1.00000005960464477539062500
1.0000000596046448 1.1920929e-7 3.4028234663852886e38 3.4028235e38 3.4028235677973366e38 3.40282357e38 1e39
-1e39 1e308 1e309 1e400 1e99999 1e999999 1e-45 7e-46 7.006492321624085e-46 7.006492321624086e-46 1e-310 1e-400
1.1754943e-38 5e-324 123456789012345678e-17 000 01 -01 1. .5 -.5 +1 - 1e 1e+ 1.e5 1.5.5 1-2 --1 0x10 1_0 NaN
nan Infinity -Infinity null nul nulls None true false "1" "x [1] {} 1, ,1 1// \u0661
"""


@pytest.mark.parametrize("text", [*HARD.split(), "", "1 2", "1\u00a0", "1\x00"])
def test_every_spelling_of_a_number_is_read_or_refused_alike(text):
    for form in (
        '{"rows": [[%s, 2, 3]]}',
        '{"rows": [[1, 2, %s]], "top": 1}',
        '{"rows": [{"a": 1, "b c": %s, "é": 0}]}',
        '{"columns": {"a": [1, %s], "b c": [1, 2], "é": [3, 4]}}',
    ):
        agree((form % text).encode())


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=30),
    st.sampled_from(["%r", "%.9g", "%.17g", "%.8e", "%f"]),
)
def test_numbers_have_the_bits_that_json_and_numpy_give_them(bits, form):
    numbers = [struct.unpack("<d", struct.pack("<Q", one))[0] for one in bits]
    singles = [float(np.uint32(one & 0xFFFFFFFF).view(np.float32)) for one in bits]
    texts = [form % one for one in numbers + singles if np.isfinite(one) and abs(one) < 3e38]
    if texts:
        body = b'{"rows": [%b]}' % ",".join(f"[{text}]" for text in texts).encode()
        parts = read_parts(body, "/rank")
        found = from_json(parts, Wanted(("x",), "m", "rows", Limits())).values[:, 0]
        # As json reads them: -0 is an integer there, and integers have no sign of zero.
        expected = np.array([float(json.loads(text)) for text in texts]).astype(np.float32)
        assert found.tobytes() == expected.tobytes()


def forms(rows):
    named = [dict(zip(NAMES, row, strict=True)) for row in rows]
    yield {"rows": rows}
    yield {"rows": named}
    yield {"rows": [row | {"doc_id": f"D{n}é", "color": "red", "more": 7} for n, row in enumerate(named)]}
    yield {"rows": [row | {"doc_id": n} for n, row in enumerate(named)]}
    yield {"rows": [row | {"doc_id": n if n % 2 else "x"} for n, row in enumerate(named)]}
    yield {"rows": [row if n % 2 else dict(reversed(row.items())) for n, row in enumerate(named)]}
    columns = {name: [row[k] for row in rows] for k, name in reversed(list(enumerate(NAMES)))}
    yield {"columns": columns}
    yield {"columns": columns | {"doc_id": [f"D{n}" for n in range(len(rows))]}}
    yield {"model": "rows", "ids": ["rows", "columns"], "rows": rows, "top": 3}
    yield {"model": 'x"rows": [[1]', "rows": rows}


@pytest.mark.parametrize("layout", [{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}])
def test_every_form_of_rows_is_read_as_the_ordinary_way_reads_it(layout):
    rows = [[0.1 * k + n / 7 if (n + k) % 5 else None for k in range(3)] for n in range(40)]
    for value in forms(rows):
        found = agree(json.dumps(value, **layout).encode())
        assert found[0] == (40, 3)


def test_the_kernel_reads_what_programs_write():
    rows = [[n / 3, -n, None] for n in range(9)]
    kinds = [
        type(read_parts(json.dumps(value, ensure_ascii=False).encode(), "/rank").get("rows"))
        for value in forms(rows)
    ]
    assert kinds[:5] == [NumberTable] * 5
    assert kinds[5] is list
    assert kinds[8] is NumberTable


@settings(deadline=None, max_examples=400)
@given(st.data())
def test_damaged_bodies_are_read_or_refused_alike(data):
    rows = [[n / 3, -n, None] for n in range(3)]
    value = data.draw(st.sampled_from(list(forms(rows))))
    body = bytearray(json.dumps(value, ensure_ascii=data.draw(st.booleans())).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body) - 1))
        what = data.draw(st.sampled_from(["cut", "put", "swap", "double"]))
        piece = data.draw(
            st.sampled_from(
                [
                    b'"',
                    b"[",
                    b"]",
                    b"{",
                    b"}",
                    b",",
                    b":",
                    b"\\",
                    b"0",
                    b"-",
                    b".",
                    b"e",
                    b" ",
                    b"\xc3",
                    b"\x01",
                    b"\n",
                ]
            )
        )
        if what == "cut":
            del body[at : at + data.draw(st.integers(1, 3))]
        elif what == "put":
            body[at:at] = piece
        elif what == "swap":
            body[at : at + 1] = piece
        else:
            body[at:at] = body[at : at + data.draw(st.integers(1, 40))]
        if not body:
            return
    agree(bytes(body))


@pytest.mark.parametrize(
    "body",
    [
        b'{"rows": [[1, 2, 3]], "rows": [[4, 5, 6]]}',
        b'{"x": {"rows": [[1, 2, 3]]}, "rows": [[4, 5, 6]]}',
        b'{"columns": {"rows": [1, 2]}}',
        b'{"rows": [[1, 2, 3]], "columns": {"a": [1]}}',
        b'{"rows": {"a": [1], "b c": [1], "\xc3\xa9": [1]}}',
        b'{"columns": [[1, 2, 3]]}',
        b'{"rows": [{"a": 1, "a": 2, "b c": 3, "\xc3\xa9": 4}]}',
        b'{"columns": {"a": [1], "b c": [1], "\xc3\xa9": [1], "a": [2]}}',
        b'{"rows": [{"a": 1, "b c": 3, "\xc3\xa9": 4, "\xff": 5}]}',
        b'{"rows": [{"a": "1", "b c": 3, "\xc3\xa9": 4}]}',
        b'{"rows": [[1, 2, 3], [1, 2]]}',
        b'{"rows": [[1, 2, 3], [1, 2, 3, 4]]}',
        b'{"rows": [[1, 2]]}',
        b'{"rows": [[]]}',
        b'{"rows": []}',
        b'{"rows": [[1, 2, 3], {"a": 1, "b c": 3, "\xc3\xa9": 4}]}',
        b'{"rows": [[1, 2, 3]]',
        b'{"rows": [[1, 2, 3]]}}',
        b'["rows": [[1, 2, 3]]]',
        b'{"rows": [[1, 2, 3]], "ids": ["\\"rows\\": [1]"]}',
        b'{"rows" :\n\t[ [ 1 , 2 ,\r\n 3 ] ] }',
    ],
)  # fmt: skip
def test_odd_bodies_are_read_or_refused_alike(body):
    agree(body)


def test_the_last_byte_may_be_a_digit():
    for cut in range(1, 40):
        agree((b'{"rows": [[1.2345678901234567890' + b"1" * cut)[: 12 + cut])
