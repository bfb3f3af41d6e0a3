"""Files a command writes: refused before the work when they cannot be written; `-` is standard output."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcrank.cli.echo import standard_output, write_all
from mcrank.cli.inputs import STANDARD, files_read
from mcrank.writing import check_apart, check_suffix

if TYPE_CHECKING:
    from mcrank.rankers.base import Ranker


class OutputFolder(click.Path):
    """A folder to write into; refused before the work when it cannot be one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse `-`, and what is there and is no folder."""
        if value == STANDARD:
            self.fail("several files are written: name a folder, not standard output.", param, ctx)
        if os.path.lexists(value) and not os.path.isdir(value):
            self.fail(f"{value!r} exists and is not a folder.", param, ctx)
        return value


def check_target(out: str, *, binary: bool = False) -> None:
    """Refuse a place that cannot be written before hours are spent on what should go there; and one where a
    file lies that the command reads, which would be lost.
    """
    if out == STANDARD:
        if binary and standard_output().isatty():
            raise click.BadParameter(
                "a model is not for a terminal to show; name a file, or pipe it on.", param_hint="--out"
            )
        return
    target = Path(os.path.realpath(out)) if os.path.islink(out) else Path(out)  # a link stays one
    folder = target.parent
    if not folder.is_dir():
        raise click.BadParameter(f"the folder {str(folder)!r} does not exist.", param_hint="--out")
    if target.exists() and not target.is_file():
        raise click.BadParameter(f"{out!r} exists and is not a regular file.", param_hint="--out")
    if not os.access(folder, os.W_OK):
        raise click.BadParameter(f"the folder {str(folder)!r} cannot be written to.", param_hint="--out")
    check_apart(out, files_read(), "--out")


def check_model_target(out: str, as_json: bool) -> None:
    """Refuse a place where a model cannot go; a result as JSON cannot go to the same one."""
    check_suffix(out)
    check_target(out, binary=True)
    if as_json and out == STANDARD:
        raise click.UsageError("--json and --out - both want standard output; save the model to a file.")


def save_model(ranker: Ranker, out: str) -> None:
    """Write a model file where the user wants it."""
    from mcrank.rankers.registry import to_bytes

    if out == STANDARD:
        write_all(to_bytes(ranker))
    else:
        ranker.save(out)
