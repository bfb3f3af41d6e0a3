"""`mcrank warmup`: after it, there is no kernel left to compile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from multiprocessing import get_all_start_methods

import pytest

from mcrank import LambdaMART, McRank, make_artificial
from mcrank.cli import warmup
from mcrank.cli.areas import AREAS, ON_DEMAND
from mcrank.cli.warmup import _chosen
from tests.cli.conftest import write_letor

pytestmark = pytest.mark.slow

# Kernels called by other kernels are compiled into them; those called from Python need signatures.
CODE = """
import importlib, json, pkgutil
import mcrank
from types import FunctionType
from mcrank.cli.areas import AREAS, FOR_CLUSTER, ON_DEMAND
from numba.core.dispatcher import Dispatcher

for area in (AREAS | ON_DEMAND | FOR_CLUSTER).values():
    area.use()
kernels = {}
for module in pkgutil.walk_packages(mcrank.__path__, "mcrank."):
    if not module.name.endswith("__main__"):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Dispatcher):
                kernels[f"{value.py_func.__module__}.{name}"] = value
called = set()
functions = [kernel.py_func for kernel in kernels.values()]
for function in functions:  # which grows: kernels call steps, which are plain functions
    named = [function.__globals__.get(name) for name in function.__code__.co_names]
    for value in named + [cell.cell_contents for cell in function.__closure__ or ()]:
        if isinstance(value, FunctionType) and id(value) not in called:
            functions.append(value)
        called.add(id(value))
cold = [name for name, kernel in kernels.items() if id(kernel) not in called and not kernel.signatures]
print("COLD", json.dumps([len(kernels), cold]))
"""


def test_every_kernel_is_compiled():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    n_kernels, cold = json.loads(done.stdout.partition("COLD")[2])
    assert n_kernels > 20
    assert cold == []


def test_the_command_times_every_area(mcrank_cli):
    code, printed, _ = mcrank_cli("warmup", "--json", "--n-jobs", "1")
    assert code == 0
    times = json.loads(printed)
    assert set(times["seconds"]) == set(AREAS)
    assert times["folder"].endswith("kernels")
    assert times["total"] >= sum(times["seconds"].values())
    code, printed, _ = mcrank_cli("warmup")
    assert [line.split()[0] for line in printed.splitlines()] == [*times["seconds"], "total", "folder"]


def test_parts_are_compiled_alone(mcrank_cli):
    code, printed, _ = mcrank_cli("warmup", "stumps", "scoring", "--json")
    assert code == 0
    assert set(json.loads(printed)["seconds"]) == {"stumps", "scoring"}
    assert set(_chosen(())) == set(AREAS)
    assert set(_chosen(("vectors", "trees"))) == {"vectors", "trees"}
    assert set(_chosen(("all",))) == set(AREAS | ON_DEMAND)
    assert not set(ON_DEMAND) & set(AREAS)
    code, printed, errors = mcrank_cli("warmup", "scorring")
    assert (code, printed) == (2, "")
    assert "There is no part 'scorring'; did you mean scoring?" in errors


NOTING = """
from numba.core.dispatcher import _FunctionCompiler

compiled, compile_one = [], _FunctionCompiler.compile

def noting(self, *about):
    compiled.append(self.py_func.__qualname__)
    return compile_one(self, *about)

_FunctionCompiler.compile = noting
"""

# What most do first, on data of their own: none of it may compile.
DEFAULTS = """
from mcrank import LambdaMART, McRank, OrdinalMcRank, RegressionRanker, make_artificial
from mcrank.cli.main import main

train, valid, test = make_artificial(n_train=300, n_valid=40, n_test=40, docs_per_query=70, n_features=70)
for ranker_class in (McRank, LambdaMART, OrdinalMcRank, RegressionRanker):
    for options in ({}, {"max_depth": 3}):
        ranker = ranker_class(n_estimators=3, **options).fit(train, valid=valid)
        ranker.predict(test.X)
        ranker.score(test)
ranker.save("model.mcrank")
with open("test.txt", "w") as rows:
    for x, grade, query in zip(test.X, test.y, test.qid):
        values = " ".join(f"{i + 1}:{value}" for i, value in enumerate(x))
        rows.write(f"{int(grade)} qid:{query} {values}\\n")
for words in (["predict", "model.mcrank", "test.txt"], ["evaluate", "test.txt", "model.mcrank"]):
    try:
        main(words)
    except SystemExit as end:
        assert not end.code, end
"""

# What the service does: rows of JSON, scores, probabilities, a pair explained.
SERVING = """
import mcrank
from mcrank.serve.number_table import NumberTable, read_parts

found = read_parts(b'{"rows": [' + b"[0.5, 1, -2e3], " * 1000 + b"[1, null, 3]]}", "the request")["rows"]
assert isinstance(found, NumberTable), found
for name in ("grades", "pairs"):
    ranker, data = mcrank.load(f"{name}.mcrank"), mcrank.read("rows.txt")
    ranker.predict(data.X)
    ranker.predict(data.X[:1])
    if name == "grades":
        ranker.predict_proba(data.X)
    ranker.explain_pair(0, 1, query=data.X[:2])
"""


def _compiles_nothing(bare, folder, parts, code):
    """Warm up parts where nothing is compiled, then run code with what is there."""
    warmed = [sys.executable, "-m", "mcrank", "--quiet", "warmup", *parts]
    subprocess.run(warmed, env=bare, capture_output=True, text=True, check=True)
    (folder / "code.py").write_text(NOTING + code + "assert compiled == [], compiled\n")
    first = [sys.executable, "code.py"]
    done = subprocess.run(first, env=bare, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_most_do_is_compiled_without_naming_parts(tmp_path, bare):
    _compiles_nothing(bare, tmp_path, [], DEFAULTS)


def test_what_the_service_does_is_compiled_by_four_parts(tmp_path, bare):
    train = make_artificial(20, 1, 1, docs_per_query=10, n_features=3).train
    for name, ranker in (("grades", McRank), ("pairs", LambdaMART)):
        ranker(n_estimators=4, num_leaves=4, min_samples_leaf=5).fit(train).save(tmp_path / f"{name}.mcrank")
    write_letor(tmp_path / "rows.txt", train)
    _compiles_nothing(bare, tmp_path, ["reading", "scoring", "explaining", "serving"], SERVING)


@pytest.mark.parametrize("folder", ["/dev/null/cache", "file"])
def test_a_folder_that_cannot_be_had_is_an_error_at_once(mcrank_cli, monkeypatch, tmp_path, folder):
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MCRANK_CACHE_DIR", folder)
    code, printed, errors = mcrank_cli("warmup")
    assert (code, printed) == (1, "")
    assert errors.startswith("error: MCRANK_CACHE_DIR names /")
    assert "cannot be written" in errors


def test_a_long_folder_for_temporary_files_is_no_error(monkeypatch):
    """The name of a socket has some hundred bytes."""
    for folder, way in (
        ("/x", "forkserver"),
        ("/" + "x" * 64, "forkserver"),
        ("/" + "é" * 42, "spawn"),
    ):
        monkeypatch.setattr(warmup, "gettempdir", lambda folder=folder: folder)
        if way in get_all_start_methods():
            assert warmup._context().get_start_method() == way


def test_it_warns_of_nothing():
    """Its data are as small as they can be, which is nobody's concern."""
    command = [sys.executable, "-m", "mcrank", "--quiet", "warmup"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""


ASLEEP = """
import os, time
from mcrank.cli import main, warmup

def sleep():
    os.write(1, b"%d\\n" % os.getpid())  # at once: the other writes at the same time
    time.sleep(100_000)

warmup.AREAS = {"one": warmup.Area(sleep), "two": warmup.Area(sleep)}
if __name__ == "__main__":
    main.main(["warmup", "--n-jobs", "2"])
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_command(tmp_path, number):
    (script := tmp_path / "asleep.py").write_text(ASLEEP)
    command = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    left = [command.pid]
    try:
        left += [int(command.stdout.readline()) for _ in range(2)]
        command.send_signal(number)
        # The end of what they print is the end of the last process that could: nobody looks at a clock.
        assert command.communicate(timeout=600) == ("", None)
        left = []
    finally:
        for process in left:
            os.kill(process, signal.SIGKILL)
    assert command.returncode == -number
