"""`mcrank warmup` that finds everything on disk says so at once, and never when something is missing."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys

import pytest

from mcrank.cli import warmup
from mcrank.cli.areas import Area
from mcrank.kept import notes
from mcrank.kept.conditions import Conditions, conditions

NOW = Conditions("a" * 64, "b" * 64, 1)
KERNEL = f"mcrank.some.kernel-{'0' * 16}-{'1' * 32}.kernel"


class Watched:
    """Stands for compiling and for notes: which areas were compiled, and which noted."""

    def __init__(self, monkeypatch, conditions, kernels=frozenset({KERNEL}), kept=()):
        self.compiled, self.noted = [], []
        told = iter(conditions)
        monkeypatch.setattr(warmup, "conditions", lambda: next(told))
        monkeypatch.setattr(notes.Notes, "say_kept", lambda _, area: area in kept)
        monkeypatch.setattr(
            notes, "write", lambda area, now, names: self.noted.append((area, now, set(names)))
        )

        def compile_all(areas, n_jobs):
            self.compiled += areas
            return {area: warmup.Use(3.0, kernels) for area in areas}

        monkeypatch.setattr(warmup, "_compiled", compile_all)

    def seconds(self):
        return warmup.have_compiled({area: Area(lambda: None) for area in ("one", "two")}, None)


def test_only_what_has_no_true_note_is_compiled(monkeypatch):
    watched = Watched(monkeypatch, [NOW, NOW], kept={"one"})
    seconds = watched.seconds()
    assert list(seconds) == ["one", "two"]
    assert seconds["one"] < seconds["two"] == 3.0
    assert watched.compiled == ["two"]
    assert watched.noted == [("two", NOW, {KERNEL})]


def test_nothing_is_compiled_or_noted_where_all_is_kept(monkeypatch):
    watched = Watched(monkeypatch, [NOW], kept={"one", "two"})
    assert max(watched.seconds().values()) < 3.0
    assert (watched.compiled, watched.noted) == ([], [])


@pytest.mark.parametrize(
    "told",
    [
        [NOW, NOW._replace(sources="c" * 64)],
        [NOW, NOW._replace(rest="c" * 64)],
        [NOW, NOW._replace(changed=2)],
        [NOW, None],
        [None],
    ],
    ids=["edited", "updated", "edited and taken back", "not to be told any more", "not to be told"],
)
def test_nothing_is_noted_of_conditions_that_did_not_stay(monkeypatch, told):
    watched = Watched(monkeypatch, told)
    watched.seconds()
    assert watched.compiled == ["one", "two"]
    assert watched.noted == []


def test_kernels_that_could_not_be_kept_are_not_noted(monkeypatch):
    watched = Watched(monkeypatch, [NOW, NOW], kernels=None)
    watched.seconds()
    assert watched.noted == [("one", NOW, set()), ("two", NOW, set())]


SCRIPT = """
from mcrank.cli import main, warmup

NUMBER = int("{number}")

def use_one():
    from mcrank.kernels import kernel

    @kernel()
    def new(x):
        return x + NUMBER  # of nobody before, so that it is in no other folder

    new(1)

warmup.AREAS = {"one": warmup.Area(use_one)}
compiled = warmup._compiled

def tell(areas, n_jobs):
    print("COMPILED", *areas, flush=True)
    return compiled(areas, n_jobs)

warmup._compiled = tell
if __name__ == "__main__":
    main.main(["--quiet", "warmup", "--n-jobs", "1"])
"""


@pytest.fixture
def command(tmp_path):
    (script := tmp_path / "script.py").write_text(SCRIPT.replace("{number}", str(secrets.randbits(40))))

    def start(**environment):
        places = {"MCRANK_CACHE_DIR": str(tmp_path / "cache"), **environment}
        return subprocess.Popen(
            [sys.executable, script], env=os.environ | places, stdout=subprocess.PIPE, text=True, cwd=tmp_path
        )

    return start


def compiled(process):
    printed = process.communicate(timeout=300)[0]
    assert process.returncode == 0
    return printed.split()


@pytest.mark.slow
def test_a_second_run_uses_nothing_and_one_with_less_on_disk_does(command, tmp_path):
    first, beside = command(), command()
    assert compiled(first) == compiled(beside) == ["COMPILED", "one"]
    folder = tmp_path / "cache" / "kernels"
    assert not list(folder.glob("*.part"))
    (kernel,) = folder.glob("*.kernel")
    assert compiled(command()) == []
    assert compiled(command(NUMBA_OPT="2")) == ["COMPILED", "one"], "another key"
    assert compiled(command(MCRANK_CACHE_DIR=str(tmp_path / "other"))) == ["COMPILED", "one"]
    kernel.write_bytes(kernel.read_bytes()[:-1])
    assert compiled(command()) == ["COMPILED", "one"]
    assert kernel.exists(), "it is there again"
    assert compiled(command()) == []


TRAIN = """
import mcrank
from numba.core import event

compiled = []

class Listener(event.Listener):
    def on_start(self, happened):
        compiled.append(happened.data["dispatcher"].py_func.__qualname__)

    def on_end(self, happened):
        pass

event.register("numba:compile", Listener())
train, valid, test = mcrank.make_artificial(n_train=30, n_valid=10, n_test=5, docs_per_query=10)
for ranker in (mcrank.McRank, mcrank.RegressionRanker, mcrank.LambdaMART, mcrank.FRank, mcrank.RankNet):
    size = {"epochs": 2} if ranker is mcrank.RankNet else {"n_estimators": 3}
    ranker(**size, n_jobs=1).fit(train, valid=valid).predict(test.X)
print(compiled)
"""


@pytest.mark.slow
def test_after_a_run_that_believed_its_notes_training_compiles_nothing(mcrank_cli, monkeypatch):
    assert mcrank_cli("--quiet", "warmup")[0] == 0
    now = conditions()
    assert now is not None

    def never(areas, n_jobs):
        raise AssertionError(f"{[*areas]} have no note")

    monkeypatch.setattr(warmup, "_compiled", never)
    code, printed, _ = mcrank_cli("warmup", "--json")
    assert code == 0
    assert set(json.loads(printed)["seconds"]) == set(warmup.AREAS)
    done = subprocess.run([sys.executable, "-c", TRAIN], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
