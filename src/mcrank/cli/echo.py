"""How commands write: everything or an error, and nothing that acts on the terminal."""

from __future__ import annotations

import contextlib
import errno
import sys
from collections.abc import Iterator
from typing import IO

import click

from mcrank.texts import printable


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line or a page; the one way in which commands write, so that no text acts on the terminal.

    Names, ids and paths come from files of strangers: control characters in them are written out.

    Examples
    --------
    >>> from mcrank.cli.echo import echo
    >>> echo("feature \x1b[31mbm25")
    feature \\x1b[31mbm25
    """
    text = printable(text, lines=True)
    stream = sys.stderr if err else sys.stdout
    if not err:
        _check_open()
    if getattr(stream, "buffer", None) is None:
        click.echo(text, err=err, nl=nl)  # a closed standard error, or no real stream
        return
    encoded = (text + "\n" * nl).encode(stream.encoding or "utf-8", stream.errors or "backslashreplace")
    with _blamed("standard error" if err else "standard output"):
        stream.flush()
        _write(encoded, stream.buffer)


def standard_output() -> IO[bytes]:
    """Return standard output for bytes; an error when it is closed."""
    _check_open()
    return sys.stdout.buffer


def _check_open() -> None:
    """Raise an error where standard output is closed: a result would be lost."""
    if sys.stdout is None or sys.stdout.closed:
        raise OSError(errno.EBADF, "it is closed", "standard output")


def write_all(content: bytes) -> None:
    """Write bytes to standard output, all of them."""
    stream = standard_output()
    with _blamed("standard output"):
        _write(content, stream)


@contextlib.contextmanager
def _blamed(name: str) -> Iterator[None]:
    """Name the stream in what goes wrong with it, such as a full disk; a closed pipe is its own error."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from None


def _write(content: bytes, stream: IO[bytes]) -> None:
    # An unbuffered stream (PYTHONUNBUFFERED) takes what it can and says how much that was: without asking
    # again the rest would be lost, and a closed pipe would go unnoticed.
    rest = memoryview(content)
    while len(rest):
        rest = rest[stream.write(rest) or 0 :]
    stream.flush()
