"""Model files that cost nothing to write and should cost nothing to refuse, and texts that do not belong."""

from __future__ import annotations

import copy
import hashlib
import os
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest

import mcrank
from mcrank.cli.main import main
from mcrank.container import ALIGNMENT, MODEL, PRELUDE, canonical, pack, unpack
from mcrank.errors import DataError, ModelFileError
from mcrank.models.file import load
from mcrank.rankers.registry import from_bytes, to_bytes

pytestmark = pytest.mark.slow

MODELLED = mcrank.BestFeature().fit([[0.0, 1.0], [1.0, 0.0]] * 10, [0, 1] * 10, qid=[1] * 20)
CONTENT = to_bytes(MODELLED)

ESCAPES = {
    "escape": "\x1b[2J", "nul": "a\0b", "backspace": "a\bb", "bell": "\a", "delete": "\x7f", "c1": "\x9b31m",
    "high half": "\ud800", "low half": "\udc00", "override": "\u202egpj", "isolate": "\u2066x",
}  # fmt: skip


def changed(path: tuple[Any, ...], value: Any) -> bytes:
    """The model with another value somewhere in its header, sealed."""
    header, arrays = unpack(CONTENT, "it")
    header = copy.deepcopy(header)
    place = header
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return pack(header, arrays)


class TestSize:
    """In a process of its own with 400 MB of address space more than it starts with."""

    CODE = """if True:
        import resource, sys, mcrank.models.file
        import mcrank
        used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (400 << 20),) * 2)
        try:
            mcrank.load(sys.argv[1])
        except mcrank.ModelFileError as error:
            print("refused", error)
    """

    def refused(self, path: Any) -> str:
        done = subprocess.run(
            [sys.executable, "-c", self.CODE, str(path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.stdout.startswith("refused"), done.stderr
        return done.stdout

    def sparse(self, path: Any, front: bytes, size: int) -> Any:
        with open(path, "wb") as file:
            file.write(front)
            file.truncate(size)
        return path

    def test_a_sparse_file_of_4_gigabytes(self, tmp_path):
        assert "does not start with" in self.refused(self.sparse(tmp_path / "m", b"", 2**32))

    def test_a_model_with_nothing_behind_it(self, tmp_path):
        assert "should have" in self.refused(self.sparse(tmp_path / "m", CONTENT, 2**32))

    def test_one_that_says_its_length(self, tmp_path):
        front = PRELUDE.pack(MODEL.magic, 1, 1000, 2**32)
        assert "header" in self.refused(self.sparse(tmp_path / "m", front, 2**32))

    def test_one_that_says_all_its_arrays(self, tmp_path):
        """Everything fits but the checksum, which is found out before memory for the arrays is taken."""
        count = 100_000_000
        header, _ = unpack(CONTENT, "it")
        text = canonical({**header, "arrays": [{"dtype": "float64", "name": "a", "shape": [count]}]})
        start = -(-(PRELUDE.size + len(text)) // ALIGNMENT) * ALIGNMENT
        size = start + -(-8 * count // ALIGNMENT) * ALIGNMENT + 32
        front = PRELUDE.pack(MODEL.magic, 1, len(text), size) + text
        assert "checksum" in self.refused(self.sparse(tmp_path / "m", front, size))

    def test_a_terabyte(self, tmp_path):
        path = self.sparse(tmp_path / "m", PRELUDE.pack(MODEL.magic, 1, 10, 2**40), 2**40)
        with pytest.raises(ModelFileError, match="at most"):
            load(path)

    def test_loading_keeps_the_bytes_once(self, tmp_path):
        header, arrays = unpack(CONTENT, "it")
        size = 16 << 20
        content = pack({**header, "extra": 1}, {**arrays, "zzz": np.zeros(size // 8)})
        (path := tmp_path / "m").write_bytes(content)
        tracemalloc.start()
        with pytest.raises(ModelFileError, match="exactly arrays, meta and ranker"):
            load(path)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 1.4 * size


def test_what_is_not_a_regular_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    os.symlink(tmp_path / "pipe", tmp_path / "link")
    for path in (tmp_path / "pipe", tmp_path / "link", tmp_path, "/dev/zero", "/dev/null"):
        with pytest.raises(ModelFileError, match="not a regular file"):
            load(path)


@pytest.mark.parametrize(
    "value",
    ["nan", "Infinity", "-inf", "1e999", "9" * 5000, "1", None, True, 10**400, [], {}, [1.0], "x", 1],
    ids=lambda value: repr(value)[:12],
)
@pytest.mark.parametrize(
    "path",
    [
        ("meta", "training", "history"),
        ("meta", "training", "history", "ndcg@10"),
        ("meta", "training", "best_round"),
        ("meta", "training", "rounds"),
        ("meta", "training"),
        ("meta", "options", "measure"),
        ("meta", "options"),
        ("meta", "provenance"),
        ("meta", "provenance", "data"),
        ("meta", "feature_names"),
        ("ranker",),
    ],
    ids=lambda path: "/".join(path),
)
def test_odd_numbers_and_texts_are_one_error(path, value):
    for odd in (value, [value], {"a": value}, {"ndcg@10": [value]}):
        try:
            content = changed(path, odd)
        except ValueError:
            continue  # too many digits to write down
        try:
            ranker = from_bytes(content)
        except ModelFileError:
            continue
        again, given = (unpack(c, "it")[0]["meta"] for c in (to_bytes(ranker), content))
        assert again | {"options": None} == given | {"options": None}
        assert given["options"].items() <= again["options"].items()  # one it lacks has its default


def test_text_for_a_number_in_the_history_is_one_error():
    for value in ("nan", "Infinity", "0.5", None, True):
        with pytest.raises(ModelFileError, match="history of 'ndcg@10' must be a list of finite numbers"):
            from_bytes(changed(("meta", "training", "history"), {"ndcg@10": [value]}))


@pytest.mark.parametrize("name", ESCAPES)
@pytest.mark.parametrize(
    "path",
    [
        ("meta", "feature_names", 0),
        ("meta", "options", "measure"),
        ("meta", "options", "odd"),
        ("meta", "provenance", "data", "fingerprint"),
        ("meta", "provenance", "versions", "python"),
        ("meta", "training", "odd"),
        ("ranker",),
    ],
    ids=lambda path: "/".join(map(str, path)),
)
def test_texts_that_act_on_a_terminal_are_refused(name, path, tmp_path, capsys):
    (file := tmp_path / "m").write_bytes(changed(path, ESCAPES[name]))
    with pytest.raises(ModelFileError):
        load(file)
    assert main(["describe", str(file)]) == 3
    assert ESCAPES[name] not in capsys.readouterr().err


@pytest.mark.parametrize("name", ESCAPES)
def test_keys_of_the_header_are_texts_too(name):
    with pytest.raises(ModelFileError, match="has the character"):
        from_bytes(changed(("meta", "provenance", "data", ESCAPES[name]), 1))


def test_duplicate_feature_names_are_refused():
    with pytest.raises(ModelFileError, match="'a' twice"):
        from_bytes(changed(("meta", "feature_names"), ["a", "a"]))


@pytest.mark.parametrize("name", ESCAPES)
def test_data_has_no_such_names_either(name):
    with pytest.raises(DataError, match="has the character"):
        mcrank.Dataset([[1.0]], [1], [1], feature_names=[ESCAPES[name]])


def test_names_of_other_scripts_and_of_spreadsheets_are_kept(tmp_path):
    names = ["prix (€)", "بحث", "價格", "two\nlines", "=1+1", "<b>"]
    ranker = mcrank.BestFeature().fit(
        mcrank.Dataset(np.eye(6), [0, 1, 0, 0, 0, 0], [1] * 6, feature_names=names)
    )
    ranker.save(tmp_path / "m")
    assert list(load(tmp_path / "m").feature_names_) == names
    assert main(["describe", str(tmp_path / "m")]) == 0


def test_a_fault_of_the_machine_is_not_blamed_on_the_file(monkeypatch):
    def fail(*arguments: Any) -> None:
        raise RuntimeError("cannot cache function")

    monkeypatch.setattr(mcrank.BestFeature, "from_state", fail)
    with pytest.raises(RuntimeError, match="cannot cache"):
        from_bytes(CONTENT)


def test_the_checksum_is_of_the_bytes_before_it():
    assert hashlib.sha256(CONTENT[:-32]).digest() == CONTENT[-32:]
