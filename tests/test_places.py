"""mcrank where little can be relied on: nothing to write to, no home, warnings as errors, no compiler."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import mcrank

pytestmark = pytest.mark.slow

PREDICT = """
import sys
import numpy as np
import mcrank
from numba.core import event

compiled = []

class Listener(event.Listener):
    def on_start(self, happened):
        dispatcher = happened.data["dispatcher"]
        if type(dispatcher._cache).__name__ == "KernelCache":
            compiled.append(dispatcher.py_func.__name__)

    def on_end(self, happened):
        pass

event.register("numba:compile", Listener())
rows = np.load(sys.argv[1] + "/rows.npz")
ranker = mcrank.load(sys.argv[1] + "/model.mcrank")
np.testing.assert_array_equal(ranker.predict(rows["X"]), rows["scores"])
print(len(compiled))
"""


def run(*arguments, source=None, check=True, **environment):
    kept = {
        name: os.environ[name] for name in ("PATH", "PYTHONPATH", "MCRANK_CACHE_DIR") if name in os.environ
    }
    if source is not None:
        kept["PYTHONPATH"] = str(source)
    return subprocess.run(
        [sys.executable, *arguments], env=kept | environment, capture_output=True, text=True, check=check
    )


def copied(folder):
    """A copy of the package, without anything compiled."""
    package = Path(mcrank.__file__).parent
    shutil.copytree(package, folder / "mcrank", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_nothing_to_write_to_but_temporary_files(model_folder, tmp_path):
    """A read-only package and a user without a home: `load` works, and so does keeping kernels."""
    source = copied(tmp_path)
    # Files where folders would have to be: that stops root as well.
    (source / "mcrank" / "__pycache__").write_bytes(b"")
    (tmp_path / "home").write_bytes(b"")
    (temporary := tmp_path / "tmp").mkdir()
    places = {"HOME": str(tmp_path / "home"), "TMPDIR": str(temporary), "MCRANK_CACHE_DIR": "/dev/null/cache"}
    first = run("-c", PREDICT, str(model_folder), source=source, **places)
    assert (int(first.stdout) > 0, first.stderr) == (True, "")
    folder = temporary / f"mcrank-{os.geteuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    second = run("-c", PREDICT, str(model_folder), source=source, **places)
    assert (second.stdout, second.stderr) == ("0\n", "")


def test_no_home_at_all(model_folder):
    done = run("-c", PREDICT, str(model_folder))  # HOME is not set
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_an_image_that_was_warmed_up(model_folder, tmp_path):
    """What is in MCRANK_CACHE_DIR is found by whoever runs the image, although he cannot write there."""
    from mcrank.kept import folders

    kept = next(folder.path for folder in folders.folders() if folder.usable())
    shutil.copytree(kept, tmp_path / "cache" / "kernels")
    for path in [*(tmp_path / "cache").rglob("*"), tmp_path / "cache"]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    source = copied(tmp_path / "image")
    (source / "mcrank" / "__pycache__").write_bytes(b"")
    done = run("-c", PREDICT, str(model_folder), source=source, MCRANK_CACHE_DIR=str(tmp_path / "cache"))
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_warnings_as_errors(model_folder):
    done = run("-W", "error", "-c", PREDICT, str(model_folder))
    assert (done.stdout, done.stderr) == ("0\n", "")
    done = run("-W", "error", "-m", "mcrank", "warmup", "--help")
    assert done.stderr == ""


def test_without_a_compiler_the_reason_is_said_and_the_model_not_blamed(model_folder):
    done = run("-c", PREDICT, str(model_folder), NUMBA_DISABLE_JIT="1", check=False)
    assert done.returncode == 1
    assert "mcrank.errors.KernelError: mcrank cannot work with NUMBA_DISABLE_JIT=1" in done.stderr
    assert "ModelFileError" not in done.stderr
    (rows := model_folder / "rows.txt").write_text("1 qid:1 1:0.5 2:1 3:2\n")
    words = ("predict", str(model_folder / "model.mcrank"), str(rows))
    done = run("-m", "mcrank", *words, NUMBA_DISABLE_JIT="1", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: mcrank cannot work with NUMBA_DISABLE_JIT=1")
    assert run("-m", "mcrank", "--help", NUMBA_DISABLE_JIT="1").stderr == ""


COUNT = """
import numpy as np
from mcrank.data.letor_kernels import count_rows
text = np.zeros(100, dtype=np.uint8)
text[:8] = list(b" \\n1 qid\\n")
print(count_rows(text, 8), sum(count_rows.stats.cache_hits.values()))
"""


def test_an_edit_of_another_file_runs_at_once(tmp_path):
    """As after an upgrade that keeps dates and sizes: nothing compiled is deleted, and nothing old is run."""
    source = copied(tmp_path)
    place = {"source": source, "PYTHONDONTWRITEBYTECODE": "1"}  # Python itself trusts dates and sizes
    assert run("-c", COUNT, **place).stdout == "(1, 2) 0\n"
    assert run("-c", COUNT, **place).stdout == "(1, 2) 1\n"
    path = source / "mcrank" / "data" / "decimals.py"
    before, text = path.stat(), path.read_text()
    rule = "c == uint8({}) or (c >= uint8(9) and c <= uint8(13) and c != uint8(10))"
    edited = text.replace(rule.format(32), rule.format(33))  # a blank is no longer one
    assert edited != text
    path.write_text(edited)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert run("-c", COUNT, **place).stdout == "(2, 2) 0\n"
    path.write_text(text)
    assert run("-c", COUNT, **place).stdout == "(1, 2) 1\n"
