"""Standard input and output in place of files, in processes of their own: as a shell runs them."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import json
import lzma
import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest

import mcrank
from mcrank.cli.main import main

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "mcrank"]


def run(folder, *args, data=b""):
    """Run a command in this process, with ``data`` on standard input: quick."""
    streams = {"stdin": io.TextIOWrapper(io.BytesIO(data))}
    streams |= {name: io.TextIOWrapper(io.BytesIO(), write_through=True) for name in ("stdout", "stderr")}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, stream in streams.items():
            patch.setattr(sys, name, stream)
        code = main(list(args))
    out, err = (streams[name].buffer.getvalue() for name in ("stdout", "stderr"))
    return subprocess.CompletedProcess(args, code, out, err)


def run_apart(folder, *args, **env):
    """Run a command in a process of its own, as a shell does."""
    everything = {**os.environ, **env}
    return subprocess.run([*COMMAND, *args], capture_output=True, cwd=folder, env=everything, check=False)


@pytest.fixture(scope="module")
def scored(files):
    """The folder of files with scores.txt, the model's scores of test.txt."""
    assert run(files, "predict", "model.mcrank", "test.txt", "--out", "scores.txt").returncode == 0
    return files


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_data_through_a_pipe_is_data_from_a_file(scored, compress):
    data = compress((scored / "test.txt").read_bytes())
    done = run(scored, "predict", "model.mcrank", "-", data=data)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == (scored / "scores.txt").read_bytes()


def test_a_model_through_a_pipe(scored):
    model = (scored / "model.mcrank").read_bytes()
    assert run(scored, "predict", "-", "test.txt", data=model).stdout == (scored / "scores.txt").read_bytes()
    assert b"mcrank" in run(scored, "describe", "-", data=model).stdout


def test_a_model_to_a_pipe_is_the_file_and_nothing_else(scored):
    args = ["--num-leaves", "4", "--n-estimators", "6", "--valid", "valid.txt"]
    done = run(scored, "train", "-", *args, "--out", "-", data=(scored / "train.txt").read_bytes())
    assert done.returncode == 0
    assert done.stdout == (scored / "model.mcrank").read_bytes()
    assert b"best round" in done.stderr


@pytest.mark.parametrize("command", ["evaluate", "rosetta"])
def test_grades_or_scores_through_a_pipe(scored, command):
    named = run(scored, command, "test.txt", "scores.txt", "--json")
    assert named.returncode == 0
    for args, file in (("test.txt", "-"), "scores.txt"), (("-", "scores.txt"), "test.txt"):
        piped = run(scored, command, *args, "--json", data=(scored / file).read_bytes())
        assert (piped.returncode, piped.stdout) == (0, named.stdout)
        json.loads(piped.stdout)


def test_significance_names_standard_input(scored):
    scores = (scored / "scores.txt").read_bytes()
    done = run(scored, "significance", "test.txt", "scores.txt", "-", "--json", data=scores)
    assert list(json.loads(done.stdout)["systems"]) == ["scores.txt", "standard input"]


def test_qrels_and_runs(tmp_path):
    (tmp_path / "qrels").write_text("q1 0 a 1\nq1 0 b 0\n")
    (tmp_path / "run").write_text("q1 Q0 b 1 2 r\nq1 Q0 a 2 1 r\n")
    for args, file in (("qrels", "-"), "run"), (("-", "run"), "qrels"):
        data = gzip.compress((tmp_path / file).read_bytes())
        done = run(tmp_path, "evaluate", *args, "-m", "mrr", "--json", data=data)
        assert json.loads(done.stdout)["mean"] == {"mrr": 0.5}


@pytest.mark.parametrize("form", ["csv", "csv.gz", "tsv", "parquet"])
def test_tables_through_a_pipe(scored, form, tmp_path):
    pandas = pytest.importorskip("pandas")
    data = mcrank.read(scored / "test.txt")
    frame = pandas.DataFrame(data.X, columns=data.feature_names).assign(qid=data.qid, label=data.y)
    path = tmp_path / f"table.{form}"
    if form == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if form == "tsv" else ",")
    done = run(scored, "evaluate", "-", "scores.txt", "--json", data=path.read_bytes())
    named = run(scored, "evaluate", "test.txt", "scores.txt", "--json")
    assert json.loads(done.stdout)["mean"] == json.loads(named.stdout)["mean"]


def test_messages_say_standard_input_and_its_line(scored):
    done = run(scored, "predict", "model.mcrank", "-", data=b"0 qid:1 1:0.5\n0 qid:1 x:1\n")
    assert done.returncode == 3
    assert done.stderr.startswith(b"error: standard input, line 2")
    assert b"/tmp" not in done.stderr
    assert run(scored, "evaluate", "-", "-").returncode == 2


def test_nothing_is_left_in_the_temporary_folder(scored, tmp_path, monkeypatch):
    for data in ((scored / "test.txt").read_bytes(), b"nonsense"):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        run(scored, "predict", "model.mcrank", "-", data=data)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/fd/0"), reason="needs /dev/fd")
def test_a_named_pipe_is_read_like_a_file(scored):
    read, write = os.pipe()
    os.write(write, (scored / "test.txt").read_bytes())
    os.close(write)
    args = [*COMMAND, "predict", "model.mcrank", f"/dev/fd/{read}"]
    done = subprocess.run(args, capture_output=True, cwd=scored, pass_fds=[read], check=False)
    os.close(read)
    assert done.stdout == (scored / "scores.txt").read_bytes()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_stops_ends_it_quietly(scored, tmp_path, unbuffered):
    rows = (scored / "test.txt").read_text().splitlines()
    (tmp_path / "long.txt").write_text(
        "".join(f"{row.replace('qid:', f'qid:{i}9')}\n" for i in range(120) for row in rows)
    )
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    args = [*COMMAND, "predict", str(scored / "model.mcrank"), "long.txt"]
    with subprocess.Popen(
        args, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_result_that_cannot_be_written_is_a_failure(scored):
    command = ["predict", "model.mcrank", "test.txt"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, *command], stdout=full, stderr=subprocess.PIPE, cwd=scored, check=False
        )
    assert done.returncode == 1
    assert done.stderr == b"error: standard output: No space left on device.\n"


@pytest.mark.parametrize(
    "command",
    ["predict model.mcrank test.txt", "evaluate test.txt scores.txt", "describe model.mcrank --json"],
)
def test_a_closed_standard_output_loses_no_result_silently(scored, command):
    line = f"exec {sys.executable} -m mcrank {command} >&-"
    done = subprocess.run(["sh", "-c", line], cwd=scored, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"standard output: it is closed" in done.stderr


def test_a_full_temporary_folder_is_not_the_fault_of_the_input(tmp_path, monkeypatch, capsys):
    def full(*args, **more):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    assert main(["doctor", "-"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(
        "error: the copy of standard input in a temporary folder (TMPDIR): cannot be written"
    )


def begin_input(process, folder):
    """Write some of what a command reads, and wait until it has begun to take it in."""
    process.stdin.write(b"2 qid:1 1:0.5\n" * 100_000)
    process.stdin.flush()
    until = time.monotonic() + 60
    while not list(folder.glob("mcrank-*/input")) and time.monotonic() < until:
        time.sleep(0.05)
    assert list(folder.glob("mcrank-*/input"))


def test_ctrl_c_while_waiting_for_input(scored, tmp_path):
    args = [*COMMAND, "evaluate", "-", "scores.txt"]
    with subprocess.Popen(
        args, cwd=scored, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:  # fmt: skip
        begin_input(process, tmp_path)
        process.send_signal(signal.SIGINT)
        printed = process.stdout.read(), process.stderr.read()
    assert process.returncode == 130
    assert printed[0] == b""
    assert printed[1].strip() == b"stopped."


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_ending_it_while_it_waits_for_input_leaves_nothing_behind(scored, tmp_path, number):
    args = [*COMMAND, "evaluate", "-", "scores.txt"]
    with subprocess.Popen(
        args, cwd=scored, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:  # fmt: skip
        begin_input(process, tmp_path)
        process.send_signal(number)
        assert process.wait(60) == -number
        assert process.stderr.read() == b""
    assert list(tmp_path.iterdir()) == []


def test_a_stream_without_the_letters_still_shows_the_result(tmp_path):
    (tmp_path / "data").write_text("0 qid:1 1:0\n1 qid:1 1:1\n0 qid:2 1:0\n1 qid:2 1:1\n")
    (tmp_path / "Größe").write_text("1\n2\n1\n2\n")
    (tmp_path / "b").write_text("2\n1\n1\n2\n")
    text = run_apart(tmp_path, "significance", "data", "Größe", "b", PYTHONIOENCODING="ascii")
    assert (text.returncode, text.stdout.count(b"Gr\\xf6\\xdfe")) == (0, 2)
    told = run_apart(tmp_path, "significance", "data", "Größe", "b", "--json", PYTHONIOENCODING="ascii")
    assert list(json.loads(told.stdout)["systems"]) == ["Größe", "b"]
