"""The first training after installing compiles with every core, once, and never stands in the way."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool

import pytest

from mcrank import make_artificial
from mcrank.cli import first_use, warmup
from mcrank.cli.areas import AREAS
from mcrank.rankers.registry import RANKERS
from tests.cli.conftest import write_letor


@pytest.fixture
def asked(monkeypatch):
    """What is compiled, on a machine of two cores that has nothing on disk."""
    found = []
    monkeypatch.setattr(first_use, "available_cores", lambda: 2)
    monkeypatch.setattr(first_use.Notes, "say_kept", lambda self, part: False)
    monkeypatch.setattr(first_use, "_compiled", set())
    monkeypatch.setattr(warmup, "have_compiled", lambda areas, n_jobs: found.append(set(areas)))
    return found


def test_parts_and_rankers_are_there():
    for ranker, parts in first_use._PARTS.items():
        assert ranker in RANKERS
        assert parts <= AREAS.keys()
    assert {"measuring", "scoring"} <= AREAS.keys()


def test_each_part_is_asked_about_once(asked):
    first_use.compile_for(["mcrank"], None, held_out=False)
    first_use.compile_for(["mcrank", "regression"], None, held_out=True)
    first_use.compile_for(["ordinal"], None, held_out=True)
    assert asked == [{"bins", "trees", "roots"}, {"measuring", "scoring"}]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("available_cores", lambda: 1),
        ("writable", lambda: None),
        ("conditions", lambda: None),
        ("_PARTS", {}),
    ],
)
def test_nothing_is_done_where_it_would_not_help(asked, monkeypatch, name, value):
    monkeypatch.setattr(first_use, name, value)
    first_use.compile_for(["mcrank"], None, held_out=True)
    assert asked == []


def test_one_thread_asked_for_is_one_core(asked):
    first_use.compile_for(["mcrank"], 1, held_out=True)
    assert asked == []


def test_nothing_is_done_where_all_is_on_disk(asked, monkeypatch):
    monkeypatch.setattr(first_use.Notes, "say_kept", lambda self, part: True)
    first_use.compile_for(["mcrank"], None, held_out=True)
    assert asked == []


@pytest.mark.parametrize(
    "error", [OSError("no semaphores"), ImportError("no _multiprocessing"), BrokenProcessPool()]
)
def test_where_no_process_can_be_had_training_goes_on(asked, monkeypatch, error):
    def fail(areas, n_jobs):
        asked.append(set(areas))
        raise error

    monkeypatch.setattr(warmup, "have_compiled", fail)
    for _ in range(2):
        first_use.compile_for(["mcrank"], None, held_out=False)
    assert asked == [{"bins", "trees", "roots"}]


@pytest.mark.slow
def test_the_first_training_compiles_and_the_second_does_not(tmp_path, bare):
    train = make_artificial(20, 1, 1, docs_per_query=10, n_features=3).train
    write_letor(tmp_path / "rows.txt", train)
    options = ["--ranker", "regression", "--n-estimators", "2", "--out", "model.mcrank"]
    told = []
    for _ in range(2):
        command = [sys.executable, "-m", "mcrank", "train", "rows.txt", *options]
        done = subprocess.run(command, env=bare, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        told.append(done.stderr.count("compiling kernels, first run only"))
    assert told == [1, 0]
    noted = [path.name for path in (tmp_path / "kept" / "kernels").glob("warmup.*")]
    assert {name.partition("-")[0] for name in noted} == {"warmup.bins", "warmup.trees"}
