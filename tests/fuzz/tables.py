"""Target of tables: CSV against the csv module, Parquet and Arrow against the values they were made of."""

from __future__ import annotations

import csv
import io
import math
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet

import mcrank
from mcrank.errors import McrankError
from tests.fuzz.mutate import ODD_NUMBERS, ODD_WORDS, compressed, damaged_bytes, damaged_lines, encoded, plain
from tests.fuzz.target import Case, Difference, Target
from tests.fuzz.texts import differ, number
from tests.reference import tables as reference

ID_POOLS: list[list[Any]] = [
    [1, 2, 3], [-1, 0, 2**53, 2**53 + 1], [2**63, 2**64 - 1, 2**64 - 2], ["a", "b", "c"], ["7", "007", "7.0"],
    ["1e5", "100000"], ["12:30", "12:30:00"], ["NA", "null", "nan", "None"], ["true", "false"],
    ["é", "e\u0301"],
    ["a b", "a,b", 'a"b', "a\tb"], ["2001-01-01", "2001-01-01 00:00:00"], ["=1+1", "@x"], [" a", "a "],
]  # fmt: skip


class Tables(Target):
    name = "tables"

    def make(self, random: Random) -> Case:
        rows = random.choice((1, 2, 5, 20))
        columns: dict[str, list[Any]] = {
            random.choice(["qid", "query_id", "QID"]): random.choices(random.choice(ID_POOLS), k=rows),
            random.choice(["label", "grade"]): [random.randrange(5) for _ in range(rows)],
        }
        if random.random() < 0.4:
            columns["doc_id"] = random.choices(random.choice(ID_POOLS), k=rows)
        for name in random.sample(["x", "y", "é", "a b", "=1", "7", "X"], random.randrange(1, 4)):
            columns[name] = [_value(random) for _ in range(rows)]
        names = list(columns)
        random.shuffle(names)
        columns = {name: columns[name] for name in names}
        if random.random() < 0.5:
            return self._text(random, columns)
        return self._binary(random, columns)

    def _text(self, random: Random, columns: dict[str, list[Any]]) -> Case:
        form, delimiter = random.choice([("csv", ","), ("tsv", "\t")])
        out = io.StringIO(newline="")
        writer = csv.writer(out, delimiter=delimiter, lineterminator="\n", quoting=random.choice([0, 0, 1]))
        writer.writerow(columns)
        texts = {name: [_text(random, value) for value in values] for name, values in columns.items()}
        writer.writerows(zip(*texts.values(), strict=True))
        text = out.getvalue()
        damage = random.random()
        if damage < 0.5:
            text = damaged_lines(random, text, delimiter + delimiter + '"')
        content = encoded(random, text) if damage < 0.6 else text.encode()
        if random.random() < 0.1:
            content = damaged_bytes(random, content)
        clean, suffix = content == out.getvalue().encode(), ""
        if random.random() < 0.1:
            content, suffix = compressed(random, content)
        return Case(f"data.{form}{suffix}", content, {"delimiter": delimiter, "clean": clean and not suffix})

    def _binary(self, random: Random, columns: dict[str, list[Any]]) -> Case:
        arrays = {name: _array(random, values) for name, values in columns.items()}
        table = pa.table(arrays)
        form = random.choice(["parquet", "arrow", "stream", "feather"])
        out = io.BytesIO()
        if form == "parquet":
            pa.parquet.write_table(
                table, out, compression=random.choice(["NONE", "snappy", "zstd", "gzip"]),
                use_dictionary=random.random() < 0.5, row_group_size=random.choice([3, 1000]),
            )  # fmt: skip
        elif form == "feather":
            pa.feather.write_feather(table, out, compression=random.choice(["uncompressed", "zstd", "lz4"]))
        else:
            new = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
            with new(out, table.schema) as writer:
                writer.write_table(table, max_chunksize=random.choice([3, 1000]))
        content = out.getvalue()
        damaged = random.random() < 0.7
        if damaged:
            content = damaged_bytes(random, content)
        options = {"values": None if damaged else {name: a.to_pylist() for name, a in arrays.items()}}
        return Case(f"data.{'arrow' if form == 'stream' else form}", content, options)

    def check(self, case: Case, path: Path) -> bool:
        if "delimiter" in case.options:
            return self._check_text(case, path)
        values = case.options["values"]
        data = mcrank.read(path)
        if values is not None:
            X, y, qids, docs = _expected(values)
            _compare(data, X, y, qids, docs)
        elif np.isinf(data.X).any() or not np.isfinite(data.y).all() or data.offsets[-1] != len(data.X):
            raise Difference("a data set that is none")
        return True

    def _check_text(self, case: Case, path: Path) -> bool:
        try:
            expected, reason = reference.read_csv(plain(case.content), case.options["delimiter"]), None
        except (reference.Bad, ValueError) as error:
            expected, reason = None, error
        try:
            data = mcrank.read(path)
        except McrankError as error:
            if case.options["clean"] and _has_numbers_only(case):
                raise Difference(f"refused, and the reference reads it: {error}") from None
            return False  # of damaged files, and of texts, it may refuse more: that is not silent
        if expected is None:
            raise Difference(f"read, and the reference refuses it: {reason!r}")
        _compare(data, *expected)
        return True


def _has_numbers_only(case: Case) -> bool:
    try:
        reference.read_csv(plain(case.content), case.options["delimiter"], categories=False)
    except (reference.Bad, ValueError):
        return False
    return True


def _compare(data: mcrank.Dataset, X: Any, y: Any, qids: Any, docs: Any) -> None:
    if data.X.shape != X.shape:
        raise Difference(f"shape {data.X.shape} against {X.shape}")
    found = data.to_caller(data.X)
    if not np.array_equal(found, X, equal_nan=True):
        row, column = np.argwhere((found != X) & ~(np.isnan(found) & np.isnan(X)))[0]
        raise Difference(f"feature {column} of row {row}: {found[row, column]!r} against {X[row, column]!r}")
    # Minus nothing is nothing: as text it is a whole number in some columns and a float in others.
    differ("grades", (data.to_caller(data.y) + 0.0).tolist(), [float(grade) + 0.0 for grade in y])
    differ("query ids", data.to_caller(data.qid).tolist(), qids)
    differ("documents", None if data.doc_ids is None else data.to_caller(data.doc_ids).tolist(), docs)


def _value(random: Random) -> Any:
    if random.random() < 0.1:
        return None
    return random.choice([random.randrange(10), random.uniform(-1, 1), random.uniform(-1e30, 1e30)])


def _text(random: Random, value: Any) -> str:
    if value is None:
        return random.choice(["", "NA", "nan", "NULL"])
    if isinstance(value, float) and random.random() < 0.05:
        return random.choice([random.choice(ODD_NUMBERS), random.choice(ODD_WORDS), number(random)])
    return str(value)


def _array(random: Random, values: list[Any]) -> pa.Array:
    """Values in some Arrow type that holds them, or in one that should be refused."""
    types = [
        pa.int8(), pa.int32(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.string(),
        pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int8(), pa.string()),
        pa.decimal128(38, 3), pa.bool_(), pa.timestamp("us"), pa.list_(pa.float64()), pa.null(), pa.date32(),
    ]  # fmt: skip
    for kind in random.sample(types, 3):
        try:
            return pa.array(values, kind)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            continue
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array(list(map(str, values)))


def _expected(columns: dict[str, list[Any]]) -> tuple[Any, Any, Any, Any]:
    """What the values of an undamaged file mean, one at a time; only asked when they were accepted."""
    names = {name.lower(): name for name in columns}
    qid = next(names[n] for n in ("qid", "query_id") if n in names)
    label = next(names[n] for n in ("label", "grade") if n in names)
    features = [name for name in columns if name not in (qid, label, "doc_id")]
    with np.errstate(over="ignore"):
        X = np.array([[_number(v) for v in columns[name]] for name in features]).T.astype(np.float32)
    docs = [_id(value) for value in columns["doc_id"]] if "doc_id" in columns else None
    return X, [_number(v) for v in columns[label]], [_id(value) for value in columns[qid]], docs


def _number(value: Any) -> float:
    if not isinstance(value, (int, float, Decimal, type(None))):
        raise Difference(f"{value!r} became a number")
    return math.nan if value is None else float(value)


def _id(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (float, Decimal)) and value == int(value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        if value is None:
            return ""
        raise Difference(f"{value!r} became an id")
    return value
