"""Kernels on disk: damaged ones are compiled again, old ones go, and nothing about the disk is an error."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import time

import pytest

from mcrank.kept import files, folders
from mcrank.kernels import cache
from tests.kernels.sample import VALUE


def only_file(sample):
    (path,) = sample.cache.iterdir()
    return path


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def of_another(path):
    """A whole file, but of another kernel: its name is part of what is checked."""
    payload = path.read_bytes()[files._HEAD_BYTES :]
    digest = files.hashlib.sha256(b"another-1-2.kernel" + payload).digest()
    path.write_bytes(files._MAGIC + digest + payload)


def sealed(content):
    def write(path):
        digest = files.hashlib.sha256(path.name.encode() + content).digest()
        path.write_bytes(files._MAGIC + digest + content)

    return write


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": cut,
    "one bit": flip,
    "garbage": lambda path: path.write_bytes(os.urandom(5000)),
    "only its head": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "of another kernel": of_another,
    "whole but no pickle": sealed(b"not a pickle"),
    "whole but of another shape": sealed(pickle.dumps((1, 2))),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_kernel_is_compiled_again(sample, damage):
    assert sample.call() == (VALUE, False)
    damage(only_file(sample))
    assert sample.call() == (VALUE, False)
    assert sample.call() == (VALUE, True)


def test_a_folder_in_the_place_of_a_file(sample):
    assert sample.call() == (VALUE, False)
    path = only_file(sample)
    path.unlink()
    path.mkdir()
    assert sample.call() == (VALUE, False)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(sample):
    assert sample.call() == (VALUE, False)
    path = only_file(sample)
    path.unlink()
    os.mkfifo(path)
    assert sample.call() == (VALUE, False)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO])
def test_a_disk_that_takes_nothing_is_no_error(sample, monkeypatch, number):
    def fails(*arguments):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "replace", fails)
    assert sample.call() == (VALUE, False)
    assert not list(sample.cache.iterdir()), "the part written is not left behind"


def test_no_folder_at_all(sample, monkeypatch):
    monkeypatch.setattr(files, "folders", lambda: iter(()))
    assert sample.call() == (VALUE, False)
    assert sample.call() == (VALUE, False)


def test_a_folder_that_cannot_be_written_is_read_and_the_next_one_written(sample, tmp_path, monkeypatch):
    """As in an image that is read-only: what was compiled for it is used, the rest kept elsewhere."""
    assert sample.call() == (VALUE, False)
    full, other = folders.chosen(), folders.Folder(str(tmp_path / "other"), frozenset({os.geteuid()}))
    write = files._write

    def read_only(path, content):
        if path.startswith(full.path):
            raise OSError(errno.EROFS, "read-only")
        write(path, content)

    monkeypatch.setattr(files, "_write", read_only)
    monkeypatch.setattr(files, "folders", lambda: iter((full, other)))
    assert sample.call() == (VALUE, True)
    sample.edit("deep.py", "x + 1", "x + 2")
    assert sample.call() == (VALUE + 10, False)
    assert sample.call() == (VALUE + 10, True)
    assert len(os.listdir(full.path)) == len(os.listdir(other.path)) == 1


@pytest.mark.slow
def test_the_latest_versions_of_a_kernel_are_kept(sample):
    for version in range(1, files.VERSIONS_KEPT + 4):
        assert sample.call() == (VALUE + (version - 1) * 10, False)
        old = time.time() - 100 + version
        os.utime(max(sample.cache.iterdir(), key=os.path.getmtime), (old, old))
        sample.edit("deep.py", f"x + {version}", f"x + {version + 1}")
    assert len(list(sample.cache.iterdir())) == files.VERSIONS_KEPT
    sample.edit("deep.py", f"x + {version + 1}", f"x + {version}")
    assert sample.call()[1]


def test_what_was_not_used_for_long_goes_and_strange_files_stay(sample):
    assert sample.call() == (VALUE, False)
    used = only_file(sample)
    long_ago = time.time() - 100 * 24 * 3600
    names = {
        "gone.f-0123456789abcdef-0123.kernel": False,
        "gone.f-0123456789abcdef-0123.kernel.77.part": False,
        "notes.txt": True,
        "short.kernel": True,
    }
    for name in names:
        (sample.cache / name).write_bytes(b"")
        os.utime(sample.cache / name, (long_ago, long_ago))
    os.utime(used, (long_ago, long_ago))
    assert sample.call() == (VALUE, True)
    assert time.time() - used.stat().st_mtime < 1000, "its use is noted"
    sample.edit("deep.py", "x + 1", "x + 2")
    assert sample.call() == (VALUE + 10, False)
    assert {name: (sample.cache / name).exists() for name in names} == names
    assert used.exists()


def test_pruning_beside_another_process_is_no_error(sample, monkeypatch):
    """The folder vanishes between the writing and the looking."""

    def gone(folder):
        shutil.move(folder, f"{folder}-gone")
        raise FileNotFoundError(folder)

    monkeypatch.setattr(files.os, "scandir", gone)
    assert sample.call() == (VALUE, False)


def test_what_a_process_used_is_told_while_all_of_it_is_kept(sample, monkeypatch):
    monkeypatch.setattr(cache, "_used", set())
    assert sample.call() == (VALUE, False)
    assert cache.kernels_used() == {only_file(sample).name}, "one that was written"
    monkeypatch.setattr(cache, "_used", set())
    assert sample.call() == (VALUE, True)
    assert cache.kernels_used() == {only_file(sample).name}, "one that was found"
    monkeypatch.setattr(files, "keep", lambda name, content: False)
    sample.edit("deep.py", "x + 1", "x + 2")
    assert sample.call() == (VALUE + 10, False)
    assert cache.kernels_used() is None


def test_what_has_no_description_is_not_kept(sample, monkeypatch):
    def undescribed(dispatcher):
        raise cache.Undescribed("an object")

    monkeypatch.setattr(cache, "_used", set())
    monkeypatch.setattr(cache, "stamp", undescribed)
    assert sample.call() == (VALUE, False)
    assert cache.kernels_used() is None
    assert not sample.cache.exists()
