"""The pages of docs/export say what works: their commands and programs run, in their order, in one folder.

A block of code that begins with a comment of a file's name is that file; a block of `sh` is run, and so is
a file of Python that no `sh` runs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mcrank
from tests.cli.conftest import write_letor

FOLDER = Path(__file__).parents[2] / "docs" / "export"
PAGES = sorted(FOLDER.glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(?:/\*|//|#|--) (\w+\.\w+)")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A model, data, and a `mcrank` and `python` on the path."""
    folder = tmp_path_factory.mktemp("pages")
    parts = mcrank.make_artificial(n_train=20, n_valid=8, n_test=8, docs_per_query=12, n_features=5, seed=2)
    write_letor(folder / "train.txt", parts.train)
    write_letor(folder / "test.txt", parts.test)
    mcrank.McRank(n_estimators=6, num_leaves=4, n_jobs=1).fit(mcrank.read(folder / "train.txt")).save(
        folder / "model.mcrank"
    )
    (folder / "bin").mkdir()
    for name, words in (("mcrank", " -m mcrank"), ("python", "")):
        (folder / "bin" / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n')
        (folder / "bin" / name).chmod(0o755)
    return folder


@pytest.mark.consumer
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_runs(page, place, tmp_path):
    for name in ("model.mcrank", "train.txt", "test.txt"):
        shutil.copy(place / name, tmp_path)
    path, source = f"{place / 'bin'}:{os.environ['PATH']}", str(Path(mcrank.__file__).parents[1])
    settings = os.environ | {"PATH": path, "PYTHONPATH": source}
    text = page.read_text(encoding="utf-8")
    lines = []
    for language, code in BLOCK.findall(text):
        named = FILE.match(code)
        if named:
            (tmp_path / named[1]).write_text(code)
        if language == "sh":
            lines.append(code)
        elif named and language == "python" and f"python {named[1]}" not in text:
            lines.append(f"python {named[1]}")
        else:
            continue
        line = ["bash", "-euo", "pipefail", "-c", lines[-1]]
        done = subprocess.run(line, cwd=tmp_path, env=settings, capture_output=True, text=True)
        assert done.returncode == 0, f"{lines[-1]}\n{done.stdout}\n{done.stderr}"
    assert lines


def test_every_target_has_a_page():
    from mcrank.export.registry import TARGETS

    told = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert [name for name in TARGETS if f"`{name}`" not in told] == []
