"""`mcrank cache` and `mcrank doctor` from outside: output, JSON, exit codes."""

from __future__ import annotations

import json

import pytest

from mcrank.cli.main import main

GOOD = "".join(f"{i % 3} qid:{i // 12} 1:{(i * 37) % 101} 2:{(i * 53) % 97}.5\n" for i in range(120))


@pytest.fixture
def path(tmp_path):
    (path := tmp_path / "data.txt").write_text(GOOD)
    return path


def test_cache(path, capsys):
    states = []
    for arguments in ([], [], ["--verify"], ["--remove"], ["--remove"]):
        assert main(["cache", str(path), "--json", *arguments]) == 0
        (result,) = json.loads(capsys.readouterr().out)
        states.append(result["state"])
    assert states == ["made", "fits", "fits", "removed", "none"]
    assert main(["cache", str(path)]) == 0
    assert "rows      120" in capsys.readouterr().out


def test_cache_of_a_damaged_cache(path, capsys):
    assert main(["cache", str(path)]) == 0
    beside = path.with_name("data.txt.mcrank-cache")
    content = bytearray(beside.read_bytes())
    content[len(content) // 2] ^= 1
    beside.write_bytes(content)
    capsys.readouterr()
    assert main(["cache", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)[0]["state"] == "made"


def test_bad_files_are_exit_code_3(path, tmp_path, capsys):
    path.write_text("0 qid:1 0:1\n")
    for command in ("cache", "doctor"):
        assert main([command, str(path)]) == 3
        assert "data.txt, line 1: feature '0:1' is below the first index" in capsys.readouterr().err
        assert main([command, str(tmp_path / "none")]) == 3
    assert main(["doctor"]) == 2


def test_doctor(path, tmp_path, capsys):
    assert main(["doctor", str(path)]) == 0
    assert "120 rows, 10 queries, 2 features" in capsys.readouterr().out
    assert main(["doctor", "--json", str(path), str(path)]) == 3
    report = json.loads(capsys.readouterr().out)
    assert report["broken"]
    assert report["findings"][0]["check"] == "leakage"
    (negative := tmp_path / "negative.txt").write_text(GOOD + "-1 qid:0 1:1\n")
    assert main(["doctor", str(negative)]) == 3
    assert main(["doctor", "--unjudged", "drop", "--cache", str(negative)]) == 0
