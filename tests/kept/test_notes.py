"""Notes of kernels: true ones are believed, and nothing that would be compiled is said to be on disk."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
import time

import pytest

from mcrank.kept import files, folders, notes
from mcrank.kept.conditions import Conditions

NOW = Conditions("a" * 64, "b" * 64, 1)
KERNELS = tuple(f"mcrank.some.kernel_{number}-{'0' * 16}-{number:032x}.kernel" for number in range(3))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The only folder for kernels, with three of them and a note of the area ``trees``."""
    monkeypatch.setenv("MCRANK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "folders", lambda: iter((folders.chosen(),)))
    for name in KERNELS:
        assert files.keep(name, name.encode() * 50)
    notes.write("trees", NOW, KERNELS)
    assert said()
    return tmp_path / "cache" / "kernels"


def said(area="trees", now=NOW):
    return notes.Notes(now).say_kept(area)


def note_in(folder):
    (path,) = folder.glob("*.note")
    return path


def cut(path):
    path.write_bytes(path.read_bytes()[:-10])


def flip(path):
    content = bytearray(path.read_bytes())
    content[-10] ^= 1
    path.write_bytes(content)


def into_folder(path):
    path.unlink()
    path.mkdir()


def into_pipe(path):
    path.unlink()
    os.mkfifo(path)


DAMAGE = {
    "deleted": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut": cut,
    "one bit": flip,
    "garbage": lambda path: path.write_bytes(os.urandom(1000)),
    "a folder": into_folder,
    "a pipe": into_pipe,
    "anybody's": lambda path: path.chmod(0o666),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("which", ["kernel", "note"])
def test_a_note_is_untrue_when_a_file_is_not_what_it_was(folder, damage, which):
    damage(folder / KERNELS[1] if which == "kernel" else note_in(folder))
    assert not said()


def test_a_file_that_was_only_touched_is_what_it_was(folder):
    os.utime(folder / KERNELS[1])
    assert said()


@pytest.mark.parametrize("other", [NOW._replace(sources="c" * 64), NOW._replace(rest="c" * 64)])
def test_other_conditions_have_other_notes(folder, other):
    """As after an edit, an update, or on another machine that shares the folder."""
    assert not said(now=other)
    notes.write("trees", other, KERNELS[:1])
    assert said(now=other)
    assert said(), "both stay"
    (folder / KERNELS[1]).unlink()
    assert said(now=other)
    assert not said()


def test_a_note_is_of_one_area(folder):
    assert not said("stumps")


def test_a_note_of_another_form_is_not_looked_at(folder, monkeypatch):
    monkeypatch.setattr(notes, "_FORM", "0")
    assert not said()


def test_another_folder_has_no_notes_of_this_one(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("MCRANK_CACHE_DIR", str(tmp_path / "other"))
    assert not said()
    notes.write("trees", NOW, KERNELS)
    assert not said(), "a note without its kernels"


def test_kernels_count_wherever_training_would_find_them(folder, tmp_path, monkeypatch):
    """As with an image that has some, and a folder of the user that has the rest."""
    image, own = folders.chosen(), folders.Folder(str(tmp_path / "own"), frozenset({os.geteuid()}))
    own.make()
    os.rename(folder / KERNELS[1], tmp_path / "own" / KERNELS[1])
    assert not said()
    monkeypatch.setattr(files, "folders", lambda: iter((image, own)))
    assert said()


def test_where_nothing_can_be_written_notes_are_read(folder, monkeypatch):
    def read_only(path, content):
        raise OSError(errno.EROFS, "read-only")

    monkeypatch.setattr(files, "_write", read_only)
    assert said()
    notes.write("stumps", NOW, KERNELS)
    assert not said("stumps")


def sealed(folder, content):
    """Put a note there that is whole, whatever it says."""
    path = note_in(folder)
    path.write_bytes(files._MAGIC + hashlib.sha256(path.name.encode() + content).digest() + content)


VICTIM = f"victim-{'0' * 16}-{'0' * 32}.kernel"
HOSTILE = {
    "nothing": b"",
    "no name": b"\n",
    "one more line": "\n".join([*KERNELS, ""]).encode(),
    "a path": f"../{VICTIM}".encode(),
    "a path from the root": b"/etc/passwd",
    "a name and a path": f"{KERNELS[0]}\n../{VICTIM}".encode(),
    "another kind": note_in,
    "no text": bytes(range(256)),
    "a zero": KERNELS[0].encode() + b"\0",
    "digits of another script": KERNELS[0].replace("0" * 16, "\u0663" * 16).encode(),
    "long": "\n".join(KERNELS * 10_000).encode(),
    "one long name": b"a" * 250 + KERNELS[0].encode(),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_what_a_note_may_say(folder, content):
    (victim := folder.parent / VICTIM).write_bytes(b"damaged kernels are deleted")
    sealed(folder, content(folder).name.encode() if callable(content) else content)
    assert not said()
    assert victim.exists()


@pytest.mark.parametrize("kernels", [[], ["../a"], [*KERNELS, "a\nb"], [f"a{number}" for number in range(3)]])
def test_what_could_not_be_read_is_not_written(folder, kernels):
    notes.write("stumps", NOW, kernels)
    assert [path.name.partition("-")[0] for path in folder.glob("*.note")] == ["warmup.trees"]


def test_a_writer_that_is_killed_leaves_no_note(folder, monkeypatch):
    def killed(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        notes.write("stumps", NOW, KERNELS)
    assert not said("stumps")
    assert len(list(folder.iterdir())) == len(KERNELS) + 1
    # A process that is killed outright has no time to tidy up.
    name = notes._name("stumps", NOW)
    (folder / f"{name}.01234567.part").write_bytes(note_in(folder).read_bytes())
    assert not said("stumps")


def test_writers_at_the_same_time_do_not_disturb_readers(folder):
    done = threading.Event()

    def write():
        while not done.is_set():
            notes.write("trees", NOW, KERNELS)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        assert all(said() for _ in range(200))
    finally:
        done.set()
        for writer in writers:
            writer.join()


def test_what_is_used_is_kept_and_old_notes_go(folder):
    long_ago = time.time() - 100 * 24 * 3600
    for name in (*KERNELS, note_in(folder).name):
        os.utime(folder / name, (long_ago, long_ago))
    assert said()
    assert all(time.time() - path.stat().st_mtime < 1000 for path in folder.iterdir())
    for number in range(files.VERSIONS_KEPT + 2):
        notes.write("trees", NOW._replace(sources=str(number) * 64), KERNELS)
    left = list(folder.glob("warmup.trees-*.note"))
    assert len(left) == files.VERSIONS_KEPT
    for path in left:
        os.utime(path, (long_ago, long_ago))
    notes.write("stumps", NOW, KERNELS)
    assert [path.name.partition("-")[0] for path in folder.glob("*.note")] == ["warmup.stumps"]
