"""Where kernels are kept, and whose are run."""

from __future__ import annotations

import os
import stat

import pytest

import mcrank
from mcrank.kept import folders
from tests.kernels.sample import VALUE

PACKAGE = os.path.dirname(mcrank.__file__)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.delenv("MCRANK_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setattr(folders, "_temporary_folder", lambda: str(tmp_path / "tmp"))
    return tmp_path


def test_the_order(elsewhere, monkeypatch):
    own = f"tmp/mcrank-{os.geteuid()}/kernels"
    rest = [f"{PACKAGE}/__pycache__/kernels", f"{elsewhere}/user/mcrank/kernels", f"{elsewhere}/{own}"]
    assert [folder.path for folder in folders.folders()] == rest
    monkeypatch.setenv("MCRANK_CACHE_DIR", "")
    assert [folder.path for folder in folders.folders()] == rest
    monkeypatch.setenv("MCRANK_CACHE_DIR", f"{elsewhere}/named")
    assert [folder.path for folder in folders.folders()] == [f"{elsewhere}/named/kernels", *rest]


@pytest.mark.parametrize("home", [None, "", "relative"])
def test_without_a_home_there_is_no_folder_in_it(elsewhere, monkeypatch, home):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("HOME", home)
    # A user number that no table of users has, as containers give them.
    monkeypatch.setattr("pwd.getpwuid", lambda number: {}[number])
    assert len(list(folders.folders())) == 2
    assert all(os.path.isabs(folder.path) for folder in folders.folders())


def test_the_working_directory_is_no_folder_for_temporary_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # what it falls back to
    assert folders._temporary_folder.__wrapped__() is None
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert folders._temporary_folder.__wrapped__() == str(tmp_path)


def test_the_folder_for_temporary_files_is_private(elsewhere):
    *_, folder = folders.folders()
    (elsewhere / "tmp").mkdir()
    folder.make()
    for path in (folder.path, os.path.dirname(folder.path)):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
    assert folder.usable()


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o777])
def test_one_that_others_may_enter_is_not_used(elsewhere, mode):
    *_, folder = folders.folders()
    os.makedirs(os.path.dirname(folder.path))
    os.chmod(os.path.dirname(folder.path), mode)
    with pytest.raises(OSError, match="somebody else"):
        folder.make()
    os.makedirs(folder.path)
    os.chmod(folder.path, mode)
    assert not folder.usable()


def test_one_of_somebody_else_is_not_used(elsewhere, monkeypatch):
    *_, folder = folders.folders()
    (elsewhere / "tmp").mkdir()
    folder.make()
    assert not folder._replace(owners=frozenset({os.geteuid() + 1})).usable()
    link = folder._replace(path=str(elsewhere / "link"))
    os.symlink(folder.path, link.path)
    assert not link.usable()


def test_a_kernel_that_others_may_have_written_is_not_run(sample):
    assert sample.call() == (VALUE, False)
    (path,) = sample.cache.iterdir()
    assert not stat.S_IMODE(path.stat().st_mode) & 0o022
    path.chmod(0o646)
    assert sample.call() == (VALUE, False)
    assert sample.call() == (VALUE, True), "it was replaced"


def test_whose_kernels_count(tmp_path, monkeypatch):
    monkeypatch.setenv("MCRANK_CACHE_DIR", str(tmp_path))
    owners = {str(tmp_path): frozenset({77}), folders._PACKAGE: frozenset({88})}
    monkeypatch.setattr(folders, "_owner", owners.get)
    monkeypatch.setattr(folders.os, "geteuid", lambda: 99)
    named, beside, *_, temporary = folders.folders()
    (file := tmp_path / "file").write_bytes(b"")
    file.chmod(0o644)

    def owned(user):
        found = list(file.stat())
        found[stat.ST_UID] = user
        return os.stat_result(found)

    users = (0, 66, 77, 88, 99)
    assert [named.trusts(owned(user)) for user in users] == [True, False, True, True, True]
    assert [beside.trusts(owned(user)) for user in users] == [True, False, False, True, True]
    assert [temporary.trusts(owned(user)) for user in users] == [False, False, False, False, True]


def test_a_loose_umask_makes_no_loose_kernels(sample):
    before = os.umask(0)
    try:
        assert sample.call() == (VALUE, False)
    finally:
        os.umask(before)
    assert sample.call() == (VALUE, True)


def test_the_first_that_can_be_written(elsewhere, monkeypatch):
    monkeypatch.setenv("MCRANK_CACHE_DIR", f"{elsewhere}/named")
    assert folders.writable().path == f"{elsewhere}/named/kernels"
    (elsewhere / "file").write_text("")
    monkeypatch.setenv("MCRANK_CACHE_DIR", f"{elsewhere}/file")
    monkeypatch.setattr(folders, "_PACKAGE", f"{elsewhere}/file")
    assert folders.writable().path == f"{elsewhere}/user/mcrank/kernels"
    monkeypatch.setenv("XDG_CACHE_HOME", f"{elsewhere}/file")
    (elsewhere / "tmp").mkdir()
    assert folders.writable().path == f"{elsewhere}/tmp/mcrank-{os.geteuid()}/kernels"
    monkeypatch.setattr(folders, "_temporary_folder", lambda: None)
    assert folders.writable() is None
