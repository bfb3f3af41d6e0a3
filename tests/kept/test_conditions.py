"""Conditions: another kernel would be compiled only under other ones."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import llvmlite.binding
import pytest
from numba.core import config

from mcrank.boosting import bin_cache
from mcrank.kept import conditions as told
from mcrank.kept.conditions import are_told, conditions
from mcrank.kernels import cache
from mcrank.kernels.stamp import VERSIONS


@pytest.fixture
def package(tmp_path):
    (tmp_path / "package" / "inner").mkdir(parents=True)
    (tmp_path / "package" / "one.py").write_text("x = 1\n")
    (tmp_path / "package" / "inner" / "two.py").write_text("y = 1\n")
    return tmp_path / "package"


SOURCE_CHANGES = {
    "a character": lambda package: (package / "one.py").write_text("x = 2\n"),
    "a comment": lambda package: (package / "one.py").write_text("x = 1\n# why\n"),
    "below": lambda package: (package / "inner" / "two.py").write_text("y = 2\n"),
    "a new file": lambda package: (package / "three.py").write_text(""),
    "without source": lambda package: (package / "three.pyc").write_bytes(b""),
    "one file less": lambda package: (package / "one.py").unlink(),
    "another name": lambda package: (package / "one.py").rename(package / "three.py"),
    "another place": lambda package: (package / "one.py").rename(package / "inner" / "one.py"),
    "moved over": lambda package: (
        (package / "one.py").write_text("x = 1\ny = 1\n"),
        (package / "inner" / "two.py").write_text(""),
    ),
}


@pytest.mark.parametrize("change", SOURCE_CHANGES.values(), ids=SOURCE_CHANGES)
def test_every_change_of_a_source_counts(package, change):
    before = conditions(str(package))
    change(package)
    after = conditions(str(package))
    assert after.sources != before.sources
    assert after.rest == before.rest


def test_a_time_is_no_change_but_is_noticed(package):
    before = conditions(str(package))
    os.utime(package / "one.py", (2**32, 2**32))
    after = conditions(str(package))
    assert after.sources == before.sources
    assert after.changed > before.changed, "an edit that was taken back leaves its time"


def test_what_is_never_imported_does_not_count(package):
    before = conditions(str(package))
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "one.cpython-311.pyc").write_bytes(b"")
    (package / "page.html").write_text("")
    assert conditions(str(package)) == before


def test_a_package_that_has_no_files_has_no_conditions(tmp_path):
    assert conditions(str(tmp_path)) is None
    assert conditions(str(tmp_path / "package.zip" / "mcrank")) is None


VARIABLES = (
    "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT", "NUMBA_ENABLE_AVX", "NUMBA_BOUNDSCHECK",
    "NUMBA_DISABLE_JIT", bin_cache.VARIABLE,
)  # fmt: skip


@pytest.mark.parametrize("variable", VARIABLES)
def test_settings_count(monkeypatch, variable):
    monkeypatch.delenv(variable, raising=False)
    rests = [conditions().rest]
    for value in ("0", "1", ""):
        monkeypatch.setenv(variable, value)
        rests.append(conditions().rest)
    assert len(set(rests)) == 4
    monkeypatch.delenv(variable)
    monkeypatch.setenv("SOMETHING_ELSE", "1")
    assert conditions().rest == rests[0]


def test_all_settings_in_the_names_of_kernels_are_variables_of_numba():
    source = inspect.getsource(config)
    known = [setting for setting in cache._SETTINGS if hasattr(config, setting)]
    assert len(known) > 5
    for setting in known:
        assert re.search(rf'^ +{setting} = _readenv\(\s*"NUMBA_', source, re.MULTILINE), setting


def test_a_file_of_settings_is_not_read(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert conditions() is not None
    (tmp_path / ".numba_config.yaml").write_text("opt: 0\n")
    assert conditions() is None


def test_the_processor_counts(monkeypatch):
    before = conditions()
    with monkeypatch.context() as other:
        other.setattr(llvmlite.binding, "get_host_cpu_name", lambda: "another")
        assert conditions().rest != before.rest
    with monkeypatch.context() as other:
        features = SimpleNamespace(flatten=lambda: "+sse2,-avx512f")
        other.setattr(llvmlite.binding, "get_host_cpu_features", lambda: features)
        assert conditions().rest != before.rest

    def unknown():
        raise RuntimeError("no features")

    monkeypatch.setattr(llvmlite.binding, "get_host_cpu_features", unknown)
    assert conditions() is None


@pytest.mark.parametrize("package", ["numba", "llvmlite", "numpy"])
def test_versions_count(monkeypatch, tmp_path, package):
    before = conditions()
    name = told._VERSION_FILES[package]
    (tmp_path / name).write_text('version = "1.2.3"')
    find_spec = told.find_spec

    def find(asked):
        return (
            SimpleNamespace(submodule_search_locations=[tmp_path]) if asked == package else find_spec(asked)
        )

    monkeypatch.setattr(told, "find_spec", find)
    assert conditions().rest != before.rest
    assert are_told({package: "1.2.3"})
    assert not are_told(VERSIONS)
    (tmp_path / name).unlink()
    assert conditions() is None
    assert not are_told({package: "1.2.3"})
    monkeypatch.setattr(told, "find_spec", lambda asked: None)
    assert conditions() is None


def test_versions_are_told_by_files():
    assert are_told(VERSIONS)
    assert not are_told(VERSIONS | {"numba": VERSIONS["numba"] + ".dev1"})
    assert not are_told({"another package": "1"})


CODE = """
import sys
from mcrank.kept.conditions import conditions
from mcrank.kept.notes import Notes
now = conditions()
Notes(now).say_kept("trees")
print(now.sources, now.rest, "numba" in sys.modules or "numpy" in sys.modules)
"""


def test_they_are_the_same_in_every_process_and_take_no_compiler():
    def asked(*options):
        done = subprocess.run(
            [sys.executable, *options, "-c", CODE], capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    now = conditions()
    assert asked() == [now.sources, now.rest, "False"]
    assert asked("-O")[1] != now.rest, "byte code without assertions"
