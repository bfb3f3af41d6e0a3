"""Files a command reads: checked before any work begins, and `-` or a pipe in place of a file.

Readers look at a file more than once (what format it is, which line an error is on), so what comes through a
pipe is kept in a temporary file first, and removed when the command ends. Messages name it as the user did.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from mcrank.cli.options import ParamType
from mcrank.cli.volume import say
from mcrank.errors import DataError

if TYPE_CHECKING:
    from mcrank.models.file import LoadedRanker

STANDARD = "-"
_SHOWN: dict[str, str] = {}  # temporary file -> what the user calls it
_SEEN, _READ = "mcrank.standard_input", "mcrank.files_read"


class InputPath(ParamType):
    """The path of a file to read; `-` is standard input, which one argument may be.

    What was named is remembered, so that no output takes its place (`files_read`).
    """

    name = "file"

    def __init__(
        self,
        *,
        pattern: bool = False,
        folder: bool | None = False,
        standard: bool = True,
        succeeded: bool = False,
    ) -> None:
        self.pattern = pattern  # a glob pattern may stand for several files
        self.folder = folder  # None: a file or a folder
        self.standard = standard
        self.succeeded = succeeded  # the output goes on from it, and may take its place

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse what is not there, before anything else is read or trained."""
        if ctx is None or ctx.resilient_parsing:
            return value
        if value == STANDARD and self.standard:
            if ctx.meta.get(_SEEN):
                self.fail("only one of the files can be -, for standard input is read once.", param, ctx)
            ctx.meta[_SEEN] = True
            return value
        check_there(value, pattern=self.pattern, folder=self.folder)
        if not self.succeeded:
            ctx.meta.setdefault(_READ, []).append((value, self.pattern))
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Let the shell complete names of files."""
        return [CompletionItem(incomplete, type="dir" if self.folder else "file")]


def check_there(path: str, *, pattern: bool = False, folder: bool | None = False) -> None:
    """Raise `DataError` for a path to read that does not exist or is of another kind; None takes either.

    Examples
    --------
    >>> from mcrank.cli.inputs import check_there
    >>> check_there("no/such/file.txt")
    Traceback (most recent call last):
    mcrank.errors.DataError: no/such/file.txt does not exist.
    """
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        if pattern and glob.has_magic(path):
            return  # `read` says whether it matches something
        raise DataError(f"{path} does not exist.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    if folder and not stat.S_ISDIR(mode):
        raise DataError(f"{path} is not a directory.")
    if folder is False and stat.S_ISDIR(mode):
        raise DataError(f"{path} is a directory; name a file in it.")


def files_read() -> list[str]:
    """Return the files that the command line names to be read, whose place no output may take."""
    context = click.get_current_context(silent=True)
    found: list[str] = []
    for path, pattern in () if context is None else context.meta.get(_READ, ()):
        there = not pattern or os.path.exists(path)
        found += [path] if there else glob.glob(path, recursive=True)
    return found


def local_file(path: str, *, table: bool = False) -> str:
    """Return a file that can be read again and again: ``path``, or a copy of what a pipe delivers.

    With ``table`` what comes may be a Parquet, Arrow, CSV or TSV table; which one shows in the copy's suffix.
    """
    if path != STANDARD and (not os.path.exists(path) or not _is_pipe(path)):
        return path
    shown = "standard input" if path == STANDARD else path
    with _blaming(f"the copy of {shown} in a temporary folder (TMPDIR)"):
        folder = tempfile.mkdtemp(prefix="mcrank-")
    context = click.get_current_context(silent=True)
    if context is not None:
        context.find_root().call_on_close(_removing(folder))
    copy = Path(folder, "input")
    _SHOWN[str(copy)] = shown
    blame = _blaming(f"the copy of {shown} in {folder} (TMPDIR)")
    with _source(path, shown) as source, blame, open(copy, "wb") as target:
        for block in _blocks(source, shown):
            target.write(block)
    return str(_as_table(copy, shown) if table else copy)


def load_model(path: str, n_jobs: int | None = None) -> LoadedRanker:
    """Load a model from a file or a pipe, to be used with so many threads; None for as many as it says."""
    from mcrank.models.file import load

    ranker = load(local_file(path))
    if n_jobs is not None:
        ranker.set_params(n_jobs=n_jobs)
    return ranker


def _removing(folder: str) -> Callable[[], None]:
    """Return what removes a folder when the command ends; it also goes when somebody ends the command."""
    signals = (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))  # Windows has no SIGHUP
    waiting = [number for number in signals if signal.getsignal(number) == signal.SIG_DFL]

    def remove() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        for number in waiting:
            signal.signal(number, signal.SIG_DFL)

    def remove_and_end(number: int, frame: FrameType | None) -> None:
        remove()
        signal.raise_signal(number)  # as if nobody had listened: the caller sees which signal it was

    for number in waiting:
        signal.signal(number, remove_and_end)
    return remove


def _is_pipe(path: str) -> bool:
    mode = os.stat(path).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


@contextlib.contextmanager
def _blaming(what: str) -> Iterator[None]:
    """Name in an error of writing what could not be written: it is not the input that is at fault."""
    try:
        yield
    except OSError as error:
        words = error.strerror or str(error)
        raise OSError(errno.EIO, f"cannot be written: {words}", what) from None


def _blocks(source: Any, shown: str) -> Iterator[bytes]:
    try:
        # Not `read`, which asks again by itself until it has all: a signal would wait for the rest.
        while block := source.read1(1 << 20):
            yield block
    except OSError as error:
        raise DataError(f"{shown} cannot be read: {error.strerror or error}.") from None


def _source(path: str, shown: str) -> AbstractContextManager[Any]:
    if path != STANDARD:
        try:
            return open(path, "rb")
        except OSError as error:
            raise DataError(f"{shown} cannot be read: {error.strerror or error}.") from None
    if sys.stdin is None or sys.stdin.closed:
        raise DataError("standard input is closed; there is nothing to read.")
    if sys.stdin.isatty():
        say("reading standard input from the terminal; Ctrl-D ends it")
    return contextlib.nullcontext(sys.stdin.buffer)


def _as_table(copy: Path, shown: str) -> Path:
    """Give a copy the suffix of its format; compressed CSV and TSV are unpacked."""
    suffix = _suffix(copy)
    if not suffix:
        return copy
    named = copy.with_suffix(suffix)
    _SHOWN[str(named)] = shown
    if suffix in (".csv", ".tsv"):
        from mcrank.data.sources import open_text

        with open_text(copy) as text, open(named, "w", encoding="utf-8") as target:
            shutil.copyfileobj(text, target)
    else:
        copy.rename(named)
    return named


def _suffix(copy: Path) -> str:
    """Suffix of what a copy looks like: of a table, or none for LETOR text and judgments."""
    from mcrank.cli.files import looks_like_qrels
    from mcrank.data.sources import open_text

    with open(copy, "rb") as file:
        magic = file.read(6)
    if magic.startswith((b"PAR1", b"ARROW1")):
        return ".parquet" if magic.startswith(b"PAR1") else ".arrow"
    try:
        with open_text(copy) as lines:
            first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    except DataError:
        return ""
    if "qid:" in first or looks_like_qrels(str(copy)):
        return ""
    return ".csv" if "," in first else ".tsv" if "\t" in first else ""


def as_called(text: str) -> str:
    """Return a message with files called what the user calls them, not what their copies are called."""
    for copy in sorted(_SHOWN, key=len, reverse=True):
        text = text.replace(copy, _SHOWN[copy])
    return text
