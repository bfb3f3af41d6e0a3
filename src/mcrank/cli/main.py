"""The `mcrank` command: a table of commands loaded when called, and one place where errors become exit codes.

Exit codes: 0 fine, 1 failure, 2 usage, 3 bad data or model file,
4 a condition of `compare --fail-if` is met; 130 after Ctrl-C.
"""

from __future__ import annotations

import difflib
import importlib
import json
import math
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from mcrank import __version__
from mcrank.errors import DataError, McrankError, MeasureError, ModelFileError, OptionError
from mcrank.texts import printable, unshown_as_json

FAILURE, USAGE, BAD_FILE, INTERRUPTED = 1, 2, 3, 130

# Command -> (module that holds `command`, its line in `mcrank --help`). No module here is imported before its
# command is called, which keeps `mcrank --help` instant.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("mcrank.cli.demo", "Train three rankers on artificial data and show who wins."),
    "train": ("mcrank.cli.train", "Train a ranker and save it as a model file."),
    "predict": ("mcrank.cli.predict", "Score every row of a data file with a model."),
    "evaluate": ("mcrank.cli.evaluate", "Measure scores or a run against the grades of a data file."),
    "describe": ("mcrank.cli.describe", "Show what a model file holds."),
    "rankers": ("mcrank.cli.rankers", "List every ranker, or tell all about one."),
    "rosetta": ("mcrank.cli.rosetta", "Show one ranking in the dialect of every known tool."),
    "significance": ("mcrank.cli.significance", "Test whether one ranking is better than another."),
    "compare": ("mcrank.cli.compare", "Compare rankers, models and score files on the same data."),
    "report": ("mcrank.cli.report", "Make the page, tables and figures of a comparison again."),
    "doctor": ("mcrank.cli.doctor", "Look for what is wrong with a data file."),
    "cache": ("mcrank.cli.cache", "Keep the parsed form of a data file, which loads at once."),
    "reproduce": ("mcrank.cli.reproduce", "Make the tables and figures of the two papers again."),
    "warmup": ("mcrank.cli.warmup", "Compile and cache every kernel, for container images."),
}


class CommandTable(click.Group):
    """A group that knows its commands by name and help line, and imports one only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        if not isinstance(command, click.Command):
            raise TypeError(f"command of {COMMANDS[cmd_name][0]} must be a click.Command, got {command!r}.")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command to call; an unknown one is answered with the nearest name."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"commands: {', '.join(COMMANDS)}."
            raise click.UsageError(f"there is no command {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(
    cls=CommandTable,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Results go to standard output, progress to standard error. "
    "Exit codes: 0 fine, 1 failure, 2 usage, 3 bad data or model file, 4 a condition of compare is met.",
)
@click.version_option(__version__, prog_name="mcrank")
@click.option(
    "--traceback",
    is_flag=True,
    expose_value=False,
    help="Show where an error arose; anywhere on the line (also: MCRANK_TRACEBACK=1).",
)
def group() -> None:
    """Learning to rank with calibrated grades, and evaluation that every tool would sign."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; the console script's entry point.

    Examples
    --------
    >>> from mcrank.cli.main import main
    >>> main(["--version"])
    mcrank, version 0.1.0
    0
    """
    args = list(sys.argv[1:] if argv is None else argv)
    with_traceback = "--traceback" in args or bool(os.environ.get("MCRANK_TRACEBACK"))
    args = [arg for arg in args if arg != "--traceback"] or ["--help"]
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = group.main(args, prog_name="mcrank", standalone_mode=False)
        sys.stdout.flush()  # so that a closed pipe shows itself here, not while the interpreter ends
    except click.Abort:
        echo("stopped.", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx is not None:
            echo(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n", err=True)
        echo(f"error: {error.format_message()}", err=True)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except Exception as error:
        return report(error, with_traceback)
    return code if isinstance(code, int) else 0


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line or a page; the one way in which commands write, so that no text acts on the terminal.

    Names, ids and paths come from files of strangers: control characters in them are written out.

    Examples
    --------
    >>> from mcrank.cli.main import echo
    >>> echo("feature \x1b[31mbm25")
    feature \\x1b[31mbm25
    """
    click.echo(printable(text, lines=True), err=err, nl=nl)


def report(error: Exception, with_traceback: bool) -> int:
    """Tell the user about an error on standard error and return the exit code it stands for."""
    if with_traceback:
        echo("".join(traceback.format_exception(error)), err=True, nl=False)
    if isinstance(error, McrankError):
        echo(f"error: {error}", err=True)
    elif isinstance(error, OSError):
        echo(f"error: {_os_words(error)}", err=True)
    elif isinstance(error, MemoryError):
        echo("error: not enough memory for this.", err=True)
    else:
        words = " ".join(str(error).split())
        hint = "" if with_traceback else " Add --traceback (or set MCRANK_TRACEBACK=1) to see where."
        echo(f"error: unexpected {type(error).__name__}: {words}.{hint}", err=True)
    if isinstance(error, OptionError):
        return USAGE
    return BAD_FILE if isinstance(error, (DataError, MeasureError, ModelFileError)) else FAILURE


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    echo(f"warning: {message}", err=True)


def _os_words(error: OSError) -> str:
    what = error.strerror or str(error)
    return f"{error.filename}: {what}." if error.filename else f"{what}."


def json_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option ``--json``, passed to it as ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")(function)


def print_json(value: Any) -> None:
    """Print ``value`` as JSON on standard output; numpy values become plain ones, NaN and infinities null.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.cli.main import print_json
    >>> print_json({"mean": np.float64(0.5), "worst": float("nan")})
    {
      "mean": 0.5,
      "worst": null
    }
    """
    echo(json_text(value))


def json_text(value: Any) -> str:
    """Return what `print_json` prints."""
    text = json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False)
    # What is left after JSON's own escapes, such as half a character: in JSON's spelling, so nothing is lost.
    return unshown_as_json(text)


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, one a line, in two columns.

    Examples
    --------
    >>> from mcrank.cli.main import print_facts
    >>> print_facts({"rows": 1000, "ndcg@10": 0.123456789})
    rows     1000
    ndcg@10  0.12346
    """
    width = max(map(len, facts), default=0) + 2
    for name, value in facts.items():
        words = f"{value:.5g}" if isinstance(value, float) else printable(str(value))
        echo(f"{printable(name):<{width}}{words}")


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
