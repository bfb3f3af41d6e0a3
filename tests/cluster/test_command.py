"""`mcrank train` on a cluster: the same file as without, progress, refusals, a journal that survives."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

import pytest

import mcrank
from mcrank.cli.main import main
from mcrank.scale.journal import Journal
from tests.cluster.conftest import descendants, held, lives, made, until

OPTIONS = ["--n-estimators", "6", "--num-leaves", "5", "--min-samples-leaf", "3", "--n-jobs", "1"]


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run(*words):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(word) for word in words])
    return Done(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    paths = {"train": folder / "train.txt", "valid": folder / "valid.txt", "alone": folder / "alone.mcrank"}
    mcrank.write(made(), paths["train"])
    mcrank.write(made(queries=12, seed=2), paths["valid"])
    done = run("train", paths["train"], "--valid", paths["valid"], *OPTIONS, "--out", paths["alone"])
    assert done.returncode == 0, done.stderr
    return paths


def test_own_workers(files, tmp_path):
    out = tmp_path / "model.mcrank"
    done = run(
        "train", files["train"], "--valid", files["valid"], *OPTIONS, "--workers", 2, "--out", out, "--json"
    )
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == files["alone"].read_bytes()
    assert json.loads(done.stdout)["rows"] == made().n_rows


def test_a_cluster_and_a_journal(files, tmp_path, client):
    out, journal = tmp_path / "model.mcrank", tmp_path / "run.journal"
    words = ["train", files["train"], "--valid", files["valid"], *OPTIONS, "--out", out, "--journal", journal]
    words += ["--cluster", client.scheduler.address]
    assert run(*words).returncode == 0
    assert out.read_bytes() == files["alone"].read_bytes()
    again = run(*words)
    assert again.returncode == 2
    assert "resume" in again.stderr
    content = journal.read_bytes()
    journal.write_bytes(content[: len(content) * 2 // 3])  # cut in the middle of a record
    out.unlink()
    resumed = run(*words, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert out.read_bytes() == files["alone"].read_bytes()
    other = run(*words, "--resume", "--max-bins", "9")
    assert other.returncode == 2
    assert "another training" in other.stderr


def test_the_client_is_killed_and_training_resumed(files, tmp_path, client):
    out, journal = tmp_path / "model.mcrank", tmp_path / "run.journal"
    words = [sys.executable, "-m", "mcrank", "train", str(files["train"]), "--valid", str(files["valid"])]
    words += [*OPTIONS, "--out", str(out), "--journal", str(journal), "--cluster", client.scheduler.address]
    with (
        held(client, "mcrank.scale.worker:Telling.round", 5, tmp_path) as there,
        subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process,
    ):
        until(there.exists, "the fifth round")
        until(lambda: rounds_in(journal) >= 3, "rounds in the journal")  # the fourth may be under way
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        before = rounds_in(journal)
    assert not out.exists()
    assert before < 6
    done = subprocess.run([*words, "--resume"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert rounds_in(journal) == 6
    assert out.read_bytes() == files["alone"].read_bytes()


def rounds_in(journal):
    """Rounds that a journal has, of which the last record may be cut."""
    if not journal.exists():
        return 0
    copy = journal.with_suffix(".copy")  # reading one to go on from cuts it
    copy.write_bytes(journal.read_bytes())
    return len(Journal(copy, resume=True).rounds)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_own_workers_end_with_who_started_them(files, tmp_path, number):
    """However it ends: no process is left, and no half model."""
    out, journal = tmp_path / "model.mcrank", tmp_path / "run.journal"
    words = [sys.executable, "-m", "mcrank", "train", str(files["train"]), "--n-estimators", "1000000"]
    words += ["--n-jobs", "1", "--workers", "2", "--out", str(out), "--journal", str(journal)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until(lambda: rounds_in(journal) >= 1, "a round")
        started = descendants(process.pid)
        os.kill(process.pid, number)
        process.wait()
    assert len(started) >= 2
    until(lambda: not any(map(lives, started)), f"{started} gone")
    if number == signal.SIGKILL:
        assert not out.exists()
    else:
        assert mcrank.load(out).n_rounds_ >= 1  # what was done is kept


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--cluster", "tcp://192.0.2.1:8786"], "--insecure-cluster"),
        (["--cluster", "192.0.2.1:8786"], "without TLS"),
        (["--cluster", "tls://localhost:1", "--workers", "2"], "two clusters"),
        (["--workers", "0"], "1<=x"),
        (["--journal", "x.journal"], "--workers"),
        (["--resume"], "--workers"),
        (["--workers", "2", "--ranker", "ranknet"], "one machine"),
        (["--workers", "2", "--resume"], "journal"),
    ],
)
def test_refusals(files, tmp_path, words, said):
    done = run("train", files["train"], "--out", tmp_path / "m.mcrank", *words)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert not list(tmp_path.iterdir())
