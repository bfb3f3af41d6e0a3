"""Files written whole: what a kill leaves behind goes with a later write, and nobody else's file does."""

from __future__ import annotations

import os
import time

import pytest

from mcrank.atomic import written_whole


def write(path, content=b"all of it"):
    with written_whole(path) as file:
        file.write(content)


def test_what_a_kill_left_is_removed_by_a_later_write(tmp_path):
    old, fresh = tmp_path / ".model.0123abcd.part", tmp_path / ".model.0123abce.part"
    others = [tmp_path / name for name in (".model2.0123abcd.part", ".model.txt.part", "model.0123abcd.part")]
    for path in (old, fresh, *others):
        path.write_bytes(b"half")
    for path in (old, *others):
        os.utime(path, (time.time() - 7200,) * 2)
    write(tmp_path / "model")
    assert not old.exists()
    assert fresh.exists()  # somebody may be writing it
    assert all(path.exists() for path in others)
    assert (tmp_path / "model").read_bytes() == b"all of it"


def test_an_error_names_the_file_and_leaves_no_part(tmp_path):
    with pytest.raises(OSError, match="no/such/model"):
        write(tmp_path / "no" / "such" / "model")
    with pytest.raises(ZeroDivisionError), written_whole(tmp_path / "model"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_an_error_is_of_the_file_even_where_its_part_cannot_be_removed(tmp_path, monkeypatch):
    def read_only(*args, **options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("mcrank.atomic.open", read_only, raising=False)
    monkeypatch.setattr("mcrank.atomic.Path.unlink", read_only)
    with pytest.raises(OSError, match="Read-only") as told:
        write(tmp_path / "model")
    assert told.value.filename == str(tmp_path / "model")


def test_a_link_stays_one_and_what_it_leads_to_is_written(tmp_path):
    (tmp_path / "kept").mkdir()
    file, link, dangling = tmp_path / "kept" / "model", tmp_path / "current", tmp_path / "next"
    file.write_bytes(b"before")
    link.symlink_to(file)
    dangling.symlink_to("kept/new")
    write(link)
    write(dangling)
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert file.read_bytes() == (tmp_path / "kept" / "new").read_bytes() == b"all of it"
    link.unlink()
    link.symlink_to(tmp_path / "kept")
    with pytest.raises(OSError, match=r"not a regular file: .*current"):  # as the caller named it
        write(link)


def test_who_may_read_a_file_stays_as_it_was(tmp_path):
    secret, public = tmp_path / "secret", tmp_path / "public"
    for path, mode in ((secret, 0o600), (public, 0o664)):
        write(path, b"first")
        path.chmod(mode)
        write(path)
        assert path.stat().st_mode & 0o777 == mode
        assert path.read_bytes() == b"all of it"
