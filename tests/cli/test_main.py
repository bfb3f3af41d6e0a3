"""The command group: instant help, and one mapping from errors to messages and exit codes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time

import click
import pytest

from mcrank import errors
from mcrank.cli import main as cli


def run(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mcrank", *args],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        check=False,
    )


@pytest.fixture
def raising(monkeypatch):
    """Make `mcrank doctor` raise what the test wants."""

    def install(error):
        @click.command("doctor")
        def command():
            raise error

        monkeypatch.setattr(cli.CommandTable, "get_command", lambda self, ctx, name: command)

    return install


def test_help_lists_every_command_and_imports_none_of_them():
    code = (
        "import sys; from mcrank.cli.main import main; main(['--help']); "
        "print('LOADED', *{m.split('.')[0] for m in sys.modules}, *[m for m in sys.modules if 'cli.' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    listing, _, loaded = done.stdout.partition("LOADED")
    for name, (module, line) in cli.COMMANDS.items():
        assert f"  {name} " in listing
        assert line in listing
        assert module not in loaded.split()
    assert not {"numba", "sklearn", "scipy", "numpy", "rich", "pandas", "jinja2"} & set(loaded.split())


def test_help_takes_less_than_three_tenths_of_a_second():
    def seconds() -> float:
        # Processor time: that of a process that only computes, and a busy machine does not stretch it.
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert run("--help").returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(5)) < 0.3


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_of_the_table_exists_and_has_help(name, capsys):
    assert cli.main([name, "--help"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"Usage: mcrank {name}")
    assert "--json" in printed


def test_no_arguments_is_help_and_version_is_the_packages(capsys):
    assert cli.main([]) == 0
    assert capsys.readouterr().out.startswith("Usage: mcrank")
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"mcrank, version {cli.__version__}\n"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["trian"], "there is no command 'trian'; did you mean train?"),
        (["zzz"], "there is no command 'zzz'; commands: demo, train"),
        (["--nope"], "No such option"),
        (["predict"], "Missing argument"),
    ],
)
def test_usage_errors_exit_with_2_and_say_what_to_do(args, words, capsys):
    assert cli.main(args) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert "error: " in captured.err
    assert "Usage: mcrank" in captured.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.DataError("bad row."), 3),
        (errors.MeasureError("bad measure."), 3),
        (errors.ModelFileError("bad model."), 3),
        (errors.OptionError("bad option."), 2),
        (errors.NotFittedError("not fitted."), 1),
        (errors.McrankError("other."), 1),
        (click.UsageError("bad usage."), 2),
    ],
)
def test_errors_on_purpose_are_one_line_with_their_exit_code(error, code, raising, capsys):
    raising(error)
    assert cli.main(["doctor"]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[-1] == f"error: {error}"
    assert "Traceback" not in captured.err


def test_unexpected_errors_are_one_line_with_a_hint(raising, capsys, monkeypatch):
    raising(ZeroDivisionError("two\nlines"))
    assert cli.main(["doctor"]) == 1
    line, _, rest = capsys.readouterr().err.partition("\n")
    assert line.startswith("error: unexpected ZeroDivisionError: two lines. Add --traceback")
    assert rest == ""
    assert cli.main(["doctor", "--traceback"]) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err
    for switch, shown in (("1", True), ("0", False), ("", False)):
        monkeypatch.setenv("MCRANK_TRACEBACK", switch)
        assert cli.main(["doctor"]) == 1
        assert ("Traceback (most recent call last)" in capsys.readouterr().err) is shown


def test_system_errors_name_the_file(raising, capsys):
    raising(PermissionError(13, "Permission denied", "model.mcrank"))
    assert cli.main(["doctor"]) == 1
    assert capsys.readouterr().err == "error: model.mcrank: Permission denied.\n"


def test_memory_errors_have_words(raising, capsys):
    raising(MemoryError())
    assert cli.main(["doctor"]) == 1
    assert "not enough memory" in capsys.readouterr().err


def test_ctrl_c_exits_with_130(raising, capsys):
    raising(KeyboardInterrupt())
    assert cli.main(["doctor"]) == 130
    assert capsys.readouterr().err.strip() == "stopped."


class Interrupted:
    """Where it ends, Python cannot raise a Ctrl-C: as where a library calls back."""

    def __del__(self):
        raise KeyboardInterrupt


@pytest.mark.parametrize("fails", [True, False])
def test_ctrl_c_that_could_not_be_raised_is_not_lost(monkeypatch, capsys, fails):
    @click.command("doctor")
    def command():
        Interrupted()
        if fails:
            raise RuntimeError("what a compiler makes of it")
        time.sleep(60)

    monkeypatch.setattr(cli.CommandTable, "get_command", lambda self, ctx, name: command)
    hook = sys.unraisablehook
    began = time.monotonic()
    assert cli.main(["doctor"]) == 130
    assert time.monotonic() - began < 30
    assert capsys.readouterr().err.strip() == "stopped."
    assert sys.unraisablehook is hook


def test_a_closed_pipe_is_quiet():
    command = f"{sys.executable} -m mcrank --help | true"
    for _ in range(5):
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        assert done.stderr == ""


def test_json_output_is_strict_json(capsys):
    import numpy as np

    cli.print_json(
        {"a": np.arange(2), "b": np.float32(0.5), "c": [float("nan"), float("inf")], 1: (None, "ü", True)}
    )
    printed = capsys.readouterr().out
    assert "ü" in printed
    assert json.loads(printed, parse_constant=pytest.fail) == {
        "a": [0, 1],
        "b": 0.5,
        "c": [None, None],
        "1": [None, "ü", True],
    }
