"""How much is said on standard error: progress and notes, nothing but errors (--quiet), or every step (-v).

Results go to standard output and are not spoken of here; so pipes stay clean.
"""

from __future__ import annotations

import os
import sys
from enum import IntEnum
from typing import Any

import click

from mcrank.cli.echo import echo


class Volume(IntEnum):
    """How much is said."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


class _Now:
    level = Volume.NORMAL


def set_volume(level: Volume) -> None:
    """Say so much from now on."""
    _Now.level = level


def is_quiet() -> bool:
    """Whether only errors are told."""
    return _Now.level == Volume.QUIET


def is_verbose() -> bool:
    """Whether every step is told."""
    return _Now.level == Volume.VERBOSE


def say(words: str) -> None:
    """Say something worth knowing, on standard error, unless --quiet."""
    if not is_quiet():
        echo(words, err=True)


def detail(words: str) -> None:
    """Say something only the curious want to know, on standard error, with --verbose."""
    if is_verbose():
        echo(words, err=True)


def can_move() -> bool:
    """Whether progress may be drawn: standard error is a terminal that can draw again, and not --quiet."""
    terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return terminal and not is_quiet()


def _set(level: Volume) -> Any:
    def callback(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            other = {Volume.QUIET: Volume.VERBOSE, Volume.VERBOSE: Volume.QUIET}[level]
            if _Now.level == other:
                raise click.UsageError("--quiet and --verbose do not go together.", ctx)
            set_volume(level)

    return callback


def volume_options(taken: set[str]) -> list[click.Option]:
    """Return the options --quiet and --verbose; a short form that the command has already is left to it."""
    made = []
    for short, long, level, words in (
        ("-q", "--quiet", Volume.QUIET, "Say nothing but results and errors."),
        ("-v", "--verbose", Volume.VERBOSE, "Say more about every step, on standard error."),
    ):
        names = [long] if short in taken else [short, long]
        made.append(click.Option(names, is_flag=True, expose_value=False, callback=_set(level), help=words))
    return made
