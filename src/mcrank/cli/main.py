"""The `mcrank` command: a table of commands loaded when called, and one place where errors become messages.

Exit codes are in `mcrank.cli.exits`.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from mcrank import __version__
from mcrank.cli.echo import echo
from mcrank.cli.exits import FINE, INTERRUPTED, PIPE_CLOSED, SUMMARY, code_of
from mcrank.cli.volume import Volume, is_quiet, say, set_volume, volume_options
from mcrank.errors import McrankError, did_you_mean
from mcrank.texts import plain, printable, unshown_as_json

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_LATER = 0.02  # seconds: LLVM calls back for less

# Command -> (module that holds `command`, its line in `mcrank --help`). No module here is imported before its
# command is called, which keeps `mcrank --help` instant.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("mcrank.cli.demo", "Train three rankers on artificial data and show who wins."),
    "train": ("mcrank.cli.train", "Train a ranker and save it as a model file."),
    "tune": ("mcrank.cli.tune", "Find good options for a ranker within minutes."),
    "learning-curve": ("mcrank.cli.learning_curve", "Say whether more queries or deeper judgments buy more."),
    "refit": ("mcrank.cli.refit", "Give a model's leaves new values from other data."),
    "predict": ("mcrank.cli.predict", "Score every row of a data file with a model."),
    "evaluate": ("mcrank.cli.evaluate", "Measure scores or a run against the grades of a data file."),
    "export": ("mcrank.cli.export", "Write a model as another system scores with it."),
    "explain": ("mcrank.cli.explain", "Say why documents are ranked as a model ranks them."),
    "analyze": ("mcrank.cli.analyze", "Show what matters to a model and where it is weak."),
    "describe": ("mcrank.cli.describe", "Show what a model file holds."),
    "import": ("mcrank.cli.imports", "Take over a model of LightGBM, XGBoost, CatBoost or RankLib."),
    "serve": ("mcrank.cli.serve", "Serve models over HTTP, with a page of their rankings."),
    "rankers": ("mcrank.cli.rankers", "List every ranker, or tell all about one."),
    "rosetta": ("mcrank.cli.rosetta", "Show one ranking in the dialect of every known tool."),
    "significance": ("mcrank.cli.significance", "Test whether one ranking is better than another."),
    "compare": ("mcrank.cli.compare", "Compare rankers, models and score files on the same data."),
    "report": ("mcrank.cli.report", "Make the page, tables and figures of a comparison again."),
    "doctor": ("mcrank.cli.doctor", "Look for what is wrong with a data file."),
    "bin": ("mcrank.cli.bin", "Bin data once and keep the bins, to train on from disk."),
    "cache": ("mcrank.cli.cache", "Keep the parsed form of a data file, which loads at once."),
    "reproduce": ("mcrank.cli.reproduce", "Make the tables and figures of the two papers again."),
    "warmup": ("mcrank.cli.warmup", "Compile and cache every kernel, for container images."),
    "completion": ("mcrank.cli.completion", "Print the script with which a shell completes mcrank."),
}


class PipeClosed(Exception):
    """Whoever read standard output has closed it. Not an OSError: click would take that for a failure."""


@contextlib.contextmanager
def _pipe_noticed() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise PipeClosed from error


class CommandTable(click.Group):
    """A group that knows its commands by name and help line, and imports one only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the table."""
        return list(COMMANDS)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse the command line; printing help is part of it."""
        with _pipe_noticed():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _pipe_noticed():
            return super().invoke(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        if not isinstance(command, click.Command):
            raise TypeError(f"command of {COMMANDS[cmd_name][0]} must be a click.Command, got {command!r}.")
        return with_volume(command)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command from the table alone, and options as click does."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        from click.shell_completion import CompletionItem

        return [
            CompletionItem(name, help=line)
            for name, (_, line) in COMMANDS.items()
            if name.startswith(incomplete)
        ]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command to call; an unknown one is answered with the nearest name."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            hint = did_you_mean(name, COMMANDS, "commands:")
            raise click.UsageError(f"there is no command {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def with_volume(command: click.Command) -> click.Command:
    """Return a command with the options --quiet and --verbose, which all of them have."""
    taken = {flag for param in command.params for flag in param.opts}
    if "--quiet" not in taken:
        command.params += volume_options(taken)
    return command


@click.group(
    cls=CommandTable,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"Results go to standard output, progress and notes to standard error. {SUMMARY}",
)
@click.version_option(__version__, prog_name="mcrank")
@click.option(
    "--traceback",
    is_flag=True,
    expose_value=False,
    help="Show where an error arose; anywhere on the line (also: MCRANK_TRACEBACK=1).",
)
def group() -> None:
    """Learning to rank by the probability of every grade, and evaluation that every tool would sign."""


with_volume(group)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; the console script's entry point.

    Examples
    --------
    >>> from mcrank.cli.main import main
    >>> main(["--version"])  # doctest: +ELLIPSIS
    mcrank, version ...
    0
    """
    args = list(sys.argv[1:] if argv is None else argv)
    with_traceback = "--traceback" in args or os.environ.get("MCRANK_TRACEBACK", "0") not in ("", "0")
    args = [arg for arg in args if arg != "--traceback"] or ["--help"]
    set_volume(Volume.NORMAL)
    _show_anything()
    lost: list[threading.Timer] = []
    try:
        with warnings.catch_warnings(), _lost_interrupts(lost):
            warnings.showwarning = _show_warning
            code = group.main(args, prog_name="mcrank", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()  # so that a closed pipe shows itself here, not while the interpreter ends
    except (click.Abort, KeyboardInterrupt):
        echo("stopped.", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx is not None:
            echo(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n", err=True)
        echo(f"error: {_words_of(error)}", err=True)
        return error.exit_code
    except (PipeClosed, BrokenPipeError):
        _drop_output()
        return PIPE_CLOSED
    except Exception as error:
        if lost:  # what the compiler makes of a Ctrl-C is an error of its own
            echo("stopped.", err=True)
            return INTERRUPTED
        if isinstance(error, OSError) and error.filename == "standard output":
            _drop_output()  # what a full disk did not take is not tried again while the interpreter ends
        return report(error, with_traceback)
    return code if isinstance(code, int) else FINE


@contextlib.contextmanager
def _lost_interrupts(lost: list[threading.Timer]) -> Iterator[None]:
    """Note each Ctrl-C that came where LLVM calls back, from where Python cannot raise it, and have it come
    again.
    """
    before = sys.unraisablehook

    def note(about: Any) -> None:
        if isinstance(about.exc_value, KeyboardInterrupt):
            lost.append(threading.Timer(_LATER, _interrupt))
            lost[-1].start()
        else:
            before(about)

    sys.unraisablehook = note
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in lost:
            timer.cancel()


def _interrupt() -> None:
    """Interrupt the main thread, also where it waits."""
    import _thread
    import signal

    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _words_of(error: click.ClickException) -> str:
    """What click says, and of an option that other libraries have, what it is called here."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        from mcrank.synonyms import word_for

        params = error.ctx.command.get_params(error.ctx)
        flags = {flag.lstrip("-").replace("-", "_"): flag for param in params for flag in param.opts}
        ours = word_for(error.option_name, flags)
        if ours is not None:
            return f"No such option '{error.option_name}'; here it is {flags[ours]}."
    return error.format_message()


def _show_anything() -> None:
    """Let a stream whose encoding lacks a character show its number: a name must not end a command."""
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) == "strict":
            with contextlib.suppress(AttributeError, ValueError):
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _drop_output() -> None:
    """Let what is still to be written to standard output go nowhere."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report(error: Exception, with_traceback: bool) -> int:
    """Tell the user about an error on standard error and return the exit code it stands for."""
    if with_traceback:
        import traceback

        echo("".join(traceback.format_exception(error)), err=True, nl=False)
    if isinstance(error, McrankError):
        words = str(error)
    elif isinstance(error, OSError):
        words = _os_words(error)
    elif isinstance(error, MemoryError):
        words = "not enough memory for this."
    else:
        hint = "" if with_traceback else " Add --traceback (or set MCRANK_TRACEBACK=1) to see where."
        words = f"unexpected {type(error).__name__}: {' '.join(str(error).split())}.{hint}"
    echo(f"error: {_called(words)}", err=True)
    return code_of(error)


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    say(f"warning: {_called(str(message))}")


def _called(text: str) -> str:
    from mcrank.cli.inputs import as_called  # which imports more than `mcrank --help` needs

    return as_called(text)


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
    """Return what `print_json` prints; in ASCII where standard output has no other letters."""
    import json

    ascii_only = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8"
    text = json.dumps(plain(value), indent=2, ensure_ascii=ascii_only, allow_nan=False)
    # What is left after JSON's own escapes, such as half a character: in JSON's spelling, so nothing is lost.
    return unshown_as_json(text)


def print_result(facts: Mapping[str, Any], as_json: bool, err: bool = False) -> None:
    """Print facts as JSON, or as `print_facts` does unless nothing is to be said."""
    if as_json:
        print_json(facts)
    elif not is_quiet():
        print_facts(facts, err)


def print_facts(facts: Mapping[str, Any], err: bool = False) -> None:
    """Print names and values, one a line, in two columns.

    Examples
    --------
    >>> from mcrank.cli.main import print_facts
    >>> print_facts({"rows": 1000, "ndcg@10": 0.123456789})
    rows     1000
    ndcg@10  0.12346
    """
    shown = {printable(name): value for name, value in facts.items()}
    width = max(map(len, shown), default=0) + 2
    for name, value in shown.items():
        words = f"{value:.5g}" if isinstance(value, float) else printable(str(value))
        echo(f"{name:<{width}}{words}", err=err)
