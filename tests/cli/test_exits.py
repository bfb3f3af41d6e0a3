"""One meaning of exit codes in every command, what --quiet and --verbose leave and add, and completion."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mcrank
from mcrank.cli import exits
from mcrank.cli.main import COMMANDS, main
from mcrank.writing import check_suffix

READS = {
    "train": [["X", "--out", "m.mcrank"], ["train.txt", "--valid", "X", "--out", "m.mcrank"]],
    "predict": [["X", "test.txt"], ["model.mcrank", "X"]],
    "evaluate": [["X", "scores"], ["test.txt", "X"]],
    "rosetta": [["X", "scores"], ["test.txt", "X"]],
    "significance": [["X", "scores", "scores"], ["test.txt", "scores", "X"]],
    "export": [["X", "--to", "lightgbm", "--out", "m.txt"],
               ["model.mcrank", "--to", "lightgbm", "--out", "m.txt", "--verify", "X"],
               ["model.mcrank", "--to", "lightgbm", "--out", "m.txt", "--distil", "X"]],
    "describe": [["X"]],
    "import": [["X", "--out", "m.mcrank"]],
    "doctor": [["X"], ["train.txt", "X"]],
    "cache": [["X"]],
    "report": [["X"]],
    "compare": [["X", "best-feature", "--out", "c"], ["--plan", "X", "--out", "c"],
                ["train.txt", "X", "--out", "c"], ["train.txt", "best-feature", "--test", "X", "--out", "c"]],
    "reproduce": [["apples", "X", "--out", "r"]],
}  # fmt: skip
LINES = [(command, line) for command, lines in READS.items() for line in lines]


@pytest.mark.parametrize(("command", "line"), LINES)
@pytest.mark.parametrize("bad", ["missing.txt", "no/such/folder/file.txt", "train.txt/file.txt"])
def test_a_missing_file_is_the_same_code_everywhere(mcrank_cli, files, command, line, bad):
    (files / "scores").write_text("1\n")
    code, out, err = mcrank_cli(command, *(bad if word == "X" else word for word in line))
    assert (code, out) == (exits.BAD_INPUT, "")
    assert f"{bad} does not exist" in err
    assert err.count("error: ") == 1


def test_a_directory_or_another_format_is_bad_input_too(mcrank_cli, files):
    (files / "folder").mkdir(exist_ok=True)
    (files / "junk").write_bytes(bytes(range(256)))
    (files / "scores").write_text("1\n")
    for command, line in LINES:
        for bad in ("folder", "junk"):
            if command == "compare" and bad == "folder" and line[0] == "train.txt" and "--test" not in line:
                continue  # a word like any other, and no ranker
            code, _, err = mcrank_cli(command, *(bad if word == "X" else word for word in line))
            assert (code, "unexpected" in err) == (exits.BAD_INPUT, False), (command, line, bad, err)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["evaluate", "test.txt", "test.txt", "-m", "ndgc@10"], "did you mean ndcg@10"),
        (["rosetta", "test.txt", "test.txt", "-m", "ndcg@10[yaho]"], "did you mean yahoo"),
        (["significance", "test.txt", "test.txt", "test.txt", "-m", "mpa"], "did you mean map"),
        (["compare", "train.txt", "best-feature", "-d", "yaho", "--out", "c"], "did you mean yahoo"),
        (["train", "train.txt", "--out", "m.mcrank", "--measure", "ndgc"], "did you mean ndcg"),
        (["train", "train.txt", "--out", "m.onnx"], "name it m.mcrank"),
        (["train", "train.txt", "--out", "-", "--json"], "both want standard output"),
        (["predict", "model.mcrank", "test.txt", "--n-jobs", "0"], "integer >= 1, or -1"),
        (["demo", "--out", "train.txt"], "is not a folder"),
        (["-q", "rankers", "-v"], "do not go together"),
    ],
)
def test_wrong_usage_is_found_before_anything_is_read(mcrank_cli, files, line, words):
    code, out, err = mcrank_cli(*line)
    assert (code, out) == (exits.USAGE, "")
    assert words in err
    assert not (files / "m.onnx").exists()


def test_the_table_of_the_documentation_is_the_table_of_the_code():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "command_line.md").read_text()
    told = {int(code): words for code, words in re.findall(r"^\| (\d+) \| (.+?) \|$", page, re.M)}
    assert told == exits.MEANINGS


@pytest.mark.parametrize(
    "command",
    [
        name
        for name in COMMANDS
        if name not in ("describe", "import", "rankers", "completion", "report", "export")
    ],
)
def test_every_command_that_works_on_threads_takes_their_number(command, capsys):
    assert main([command, "--help"]) == 0
    assert "--n-jobs" in capsys.readouterr().out


def test_quiet_and_verbose(mcrank_cli, files):
    train = ["train", "train.txt", "--n-estimators", "2", "--num-leaves", "3", "--out", "q.mcrank"]
    assert mcrank_cli(*train, "--quiet") == (0, "", "")
    code, out, err = mcrank_cli("-v", *train)
    assert code == 0
    assert "rows" in out
    assert "read train.txt: 240 rows, 20 queries, 5 features" in err
    assert "round 2/2" in err
    code, out, _ = mcrank_cli(*train, "-q", "--json")
    assert json.loads(out)["rows"] == 240
    assert mcrank_cli("train", "missing.txt", "--out", "x", "-q")[2] == "error: missing.txt does not exist.\n"


@pytest.mark.parametrize(
    "suffix", ["onnx", "json", "txt", "pkl", "joblib", "pmml", "cbm", "ubj", "JSON", "tar.gz"]
)
def test_a_model_is_never_saved_under_a_foreign_suffix(suffix, files, tmp_path):
    ranker = mcrank.load(files / "model.mcrank")
    with pytest.raises(mcrank.OptionError, match=r"name it .*\.mcrank"):
        ranker.save(tmp_path / f"m.{suffix}")
    assert list(tmp_path.iterdir()) == []
    for name in ("m", "m.mcrank", "m.model", "m.bin", "v1.2"):
        check_suffix(name)


def completed(words, number):
    asked = {"_MCRANK_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(number)}
    done = subprocess.run(
        [sys.executable, "-m", "mcrank"],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.slow
def test_completion():
    assert completed("mcrank tr", 1) == ["plain,train"]
    assert "file,te" in completed("mcrank predict te", 2)
    assert completed("mcrank train --ranker lambdam", 3) == ["plain,lambdamart"]
    assert "plain,--learning-rate" in completed("mcrank train --ranker mcr --learn", 4)
    assert "plain,ndcg" in completed("mcrank evaluate -m nd", 3)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "_MCRANK_COMPLETE" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
