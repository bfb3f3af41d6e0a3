"""Where compiled kernels are kept, and whose files may be run.

They are looked for in all of these folders, in this order, and put into the first that can be written:

1. ``$MCRANK_CACHE_DIR/kernels``, if it is set: a folder of an image, say, filled by ``mcrank warmup``;
2. ``__pycache__/kernels`` beside the package, as Python does with byte code;
3. ``mcrank/kernels`` in the user's folder for caches;
4. ``mcrank-<user number>/kernels`` in the folder for temporary files.

Where none can be written, kernels are compiled in every process. Nothing of this is ever an error.

A kept kernel is code, so nobody may put one there who could not change what we run anyway. A file counts if
its owner is the user, root, the owner of the package or, for ``MCRANK_CACHE_DIR``, of the folder named, and
if not everybody may write to it. The temporary folder, in a place where everybody may make one, must be the
user's own and closed to all others.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

VARIABLE = "MCRANK_CACHE_DIR"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Folder(NamedTuple):
    """A folder for kernels: its path, the users whose files count, and whether nobody else may enter it."""

    path: str
    owners: frozenset[int]
    private: bool = False

    def usable(self) -> bool:
        """Whether the folder is there and is what it has to be."""
        try:
            found = os.lstat(self.path) if self.private else os.stat(self.path)
        except OSError:
            return False
        if not stat.S_ISDIR(found.st_mode):
            return False
        if not self.private or os.name != "posix":
            return True
        return found.st_uid in self.owners and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)

    def make(self) -> None:
        """Make the folder if it is not there; `OSError` if it cannot be had."""
        if self.private:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            if not Folder(os.path.dirname(self.path), self.owners, private=True).usable():
                raise PermissionError(f"{os.path.dirname(self.path)} belongs to somebody else")
        os.makedirs(self.path, mode=0o700 if self.private else 0o777, exist_ok=True)
        if not self.usable():
            raise PermissionError(f"{self.path} cannot be used")

    def trusts(self, file: os.stat_result) -> bool:
        """Whether a file in it may be run."""
        if not stat.S_ISREG(file.st_mode):
            return False
        if os.name != "posix":
            return True  # folders of users are closed to others there, and files have no owner's number
        return file.st_uid in self.owners and not file.st_mode & stat.S_IWOTH


def chosen() -> Folder | None:
    """Return the folder that ``MCRANK_CACHE_DIR`` names, if it does.

    Examples
    --------
    >>> import os
    >>> from mcrank.kept.folders import chosen
    >>> os.environ["MCRANK_CACHE_DIR"] = "/srv/cache"
    >>> chosen().path
    '/srv/cache/kernels'
    >>> del os.environ["MCRANK_CACHE_DIR"]
    """
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    top = os.path.abspath(os.path.expanduser(named))
    return Folder(os.path.join(top, "kernels"), _owners() | _owner(top))


def folders() -> Iterator[Folder]:
    """Give every folder in which kernels may be, the first to look at first."""
    named = chosen()
    if named is not None:
        yield named
    yield Folder(os.path.join(_PACKAGE, "__pycache__", "kernels"), _owners())
    home = _user_folder()
    if home is not None:
        yield Folder(os.path.join(home, "mcrank", "kernels"), _owners())
    temporary = _temporary_folder()
    if temporary is not None:
        own = f"mcrank-{os.geteuid()}" if hasattr(os, "geteuid") else "mcrank"
        yield Folder(os.path.join(temporary, own, "kernels"), _own(), private=True)


def writable() -> Folder | None:
    """Return the folder that new kernels go to, made if need be; None where there is none.

    Examples
    --------
    >>> from mcrank.kept.folders import writable
    >>> writable() is not None
    True
    """
    for folder in folders():
        try:
            folder.make()
            tempfile.TemporaryFile(dir=folder.path).close()
        except OSError:
            continue
        return folder
    return None


def _own() -> frozenset[int]:
    return frozenset({os.geteuid()} if hasattr(os, "geteuid") else ())


def _owners() -> frozenset[int]:
    """Users whose word counts here: this one, root, and the owner of the code that is running."""
    return _own() | {0} | _owner(_PACKAGE)


def _owner(path: str) -> frozenset[int]:
    try:
        return frozenset({os.stat(path).st_uid})
    except OSError:
        return frozenset()


def _user_folder() -> str | None:
    """Return the folder where programs keep what they can make again; None where the user has no home."""
    if sys.platform == "win32":
        folder = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        folder = os.path.expanduser("~/Library/Caches")
    else:
        folder = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(folder):
            folder = os.path.expanduser("~/.cache")
    if os.environ.get("HOME") == "" and folder == "/.cache":
        return None  # no home is not the home "/"
    return folder if os.path.isabs(folder) else None


@cache
def _temporary_folder() -> str | None:
    asked_for = [os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")]
    try:
        folder = tempfile.gettempdir()
        # Its last resort is the working directory, which is no place for a cache.
        unasked = folder == os.getcwd() and folder not in (*asked_for, "/tmp", "/var/tmp", "/usr/tmp")
    except OSError:
        return None  # none can be written
    return None if unasked else folder
