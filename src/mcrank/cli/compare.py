"""`mcrank compare`: which ranker is best on these data, and is the difference real?"""

from __future__ import annotations

import glob
import os
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcrank.cli.cache import unjudged_option
from mcrank.cli.cluster import cluster_of, cluster_options
from mcrank.cli.columns import chosen_columns, column_options
from mcrank.cli.echo import echo
from mcrank.cli.exits import CONDITION_MET
from mcrank.cli.inputs import InputPath, check_there
from mcrank.cli.main import json_option, print_json
from mcrank.cli.options import DialectName, MeasureName, jobs_option
from mcrank.cli.outputs import OutputFolder
from mcrank.cli.progress import Moving, announce_compilation, duration, passing_bar
from mcrank.cli.volume import say
from mcrank.errors import OptionError
from mcrank.texts import printable

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison
    from mcrank.experiments.schedule import Progress


@click.command("compare")
@click.argument("data", required=False, type=click.Path())
@click.argument("entries", nargs=-1, type=click.Path())
@click.option(
    "--plan",
    metavar="FILE",
    type=InputPath(standard=False),
    help="A TOML file that describes the comparison, instead of DATA and ENTRIES.",
)
@click.option(
    "--valid",
    metavar="FILE",
    type=InputPath(pattern=True, standard=False),
    help="Validation data; DATA is then the training file.",
)
@click.option(
    "--test",
    metavar="FILE",
    type=InputPath(pattern=True, standard=False),
    help="Test data; DATA is then the training file.",
)
@click.option("--folds", type=click.IntRange(min=3), help="Folds to cut a single file into.  [default: 5]")
@unjudged_option
@column_options
@click.option(
    "--drop-empty",
    is_flag=True,
    help="Leave out queries without a relevant document, in every part, and their scores in score files.",
)
@click.option(
    "-m",
    "--measure",
    "measures",
    type=MeasureName(),
    multiple=True,
    help="Measure; repeat for several, the main one first.  [default: ndcg@10, map]",
)
@click.option(
    "-d",
    "--dialect",
    "dialects",
    type=DialectName(),
    multiple=True,
    help="Dialect to give every measure in as well; repeat for several.",
)
@click.option(
    "--train-dialect",
    "train_dialects",
    type=DialectName(),
    multiple=True,
    help="Train every ranker towards this dialect; repeat for several.",
)
@click.option(
    "--out",
    metavar="FOLDER",
    type=OutputFolder(),
    help="Where everything goes; a killed comparison goes on from there.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of cuts and rankers.  [default: 0]")
@cluster_options(training=False)
@jobs_option("Rankers trained at a time")
@click.option("--baseline", metavar="KEY", help="What --fail-if compares with.  [default: the first entry]")
@click.option(
    "--fail-if",
    multiple=True,
    metavar="CONDITION",
    help="End with exit code 4 if a system's difference to the baseline meets it, as 'ndcg@10 < -0.002'.",
)
@click.option(
    "--report/--no-report", default=True, show_default=True, help="Write report.html and tables into --out."
)
@click.option("--times/--no-times", default=True, show_default=True, help="Show seconds in the report.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, data: str | None, entries: tuple[str, ...], as_json: bool, **given: Any
) -> None:
    """Compare ENTRIES on DATA and say which is best and whether the difference is real.

    DATA is a directory of folds as LETOR's, a file to be cut into folds, or (with --test) a training file.

    An entry is a ranker (`mcrank rankers` lists them), with options and values to try on validation data
    (`lambdamart:num_leaves=4|10,learning_rate=0.1`), a saved model, or a score file of another tool: one
    number per line, RankLib's scores, or a TREC run. `{fold}` in a path stands for the name of a fold, and
    `name=` before an entry names it: `lgb=predictions/{fold}.txt`.

    Choices are made on validation data; every measure is also given in the standard dialect. A comparison
    that was killed goes on where it stopped when it is called again. Exit code 4: a --fail-if condition is
    met.
    """
    announce_compilation()
    arguments, baseline, conditions = _arguments(data, entries, given)
    where = [given[name] for name in ("cluster", "workers", "insecure_cluster")]
    if arguments.get("out") is None:
        raise click.UsageError("--out is missing: name the folder for the results.")
    from mcrank.experiments.compare import DEFAULT_MEASURES, compare
    from mcrank.experiments.fail_if import FailIf

    checks = [FailIf.parse(text) for text in conditions]
    _check_baseline(arguments, baseline)
    # What conditions are about is reported too, and refused before training where it has no value.
    asked = [*arguments.get("measures", DEFAULT_MEASURES), *(check.measure for check in checks)]
    with CompareProgress() as progress:
        comparison = compare(
            **{**arguments, "measures": asked},
            cluster=cluster_of(*where),
            callback=progress,
            command=_command(data, entries, given),
        )
    out = Path(arguments["out"])
    written = _write(comparison, out, given["times"]) if given["report"] else []
    failures = [words for check in checks for words in check.failures(comparison, baseline)]
    if as_json:
        print_json(_as_dict(comparison, written, failures))
    else:
        _print(comparison, written)
    for words in failures:
        echo(f"failed: {words}", err=True)
    if failures:
        ctx.exit(CONDITION_MET)


def _arguments(
    data: str | None, entries: tuple[str, ...], given: dict[str, Any]
) -> tuple[dict[str, Any], str | None, tuple[str, ...]]:
    """Arguments of `mcrank.compare`, the baseline and the conditions; the command line goes before a plan."""
    named = {
        name: given[name]
        for name in ("measures", "dialects", "train_dialects", "out", "seed", "n_jobs", "folds")
    }
    arguments = {name: value for name, value in named.items() if value not in (None, ())}
    if given["drop_empty"]:
        arguments["drop_empty"] = True
    if given["unjudged"] != "error":
        arguments["read_options"] = {"unjudged": given["unjudged"]}
    if chosen := chosen_columns():
        arguments["read_options"] = arguments.get("read_options", {}) | chosen
    if given["plan"] is not None:
        from mcrank.experiments.plan import Plan

        if data is not None:
            raise click.UsageError("give DATA and ENTRIES, or --plan, not both.")
        plan = Plan.read(given["plan"])
        if "read_options" in arguments:
            arguments["read_options"] = {
                **plan.arguments.get("read_options", {}),
                **arguments["read_options"],
            }
        whose = _with_parts(plan.arguments["data"], given)
        _check_folds(whose, given)
        return (
            {**plan.arguments, **arguments, "data": whose},
            given["baseline"] or plan.baseline,
            given["fail_if"] or plan.fail_if,
        )
    if data is None or not entries:
        raise click.UsageError(
            "name the data and at least one entry, such as: mcrank compare MQ2008 mcrank lambdamart --out run"
        )
    if not glob.has_magic(data):
        check_there(data, folder=None)
    where: Any = data
    if given["test"] is not None:
        where = {"train": data, "test": given["test"]} | ({"valid": given["valid"]} if given["valid"] else {})
    elif given["valid"] is not None:
        raise click.UsageError("--valid is given without --test.")
    _check_folds(where, given)
    return {"rankers": entries, "data": where, **arguments}, given["baseline"], given["fail_if"]


def _with_parts(data: Any, given: dict[str, Any]) -> Any:
    """Return the data of a plan with the files of --valid and --test in place of its own."""
    parts = {part: given[part] for part in ("valid", "test") if given[part] is not None}
    if parts and not isinstance(data, dict):
        raise click.UsageError(
            f"--{next(iter(parts))} is for a plan that names train, valid and test; the data of this one are "
            "folds, or are cut into folds."
        )
    return {**data, **parts} if parts else data


def _check_folds(data: Any, given: dict[str, Any]) -> None:
    """Refuse --folds where nothing is cut, as a plan refuses kfold."""
    if given["folds"] is not None and (isinstance(data, dict) or os.path.isdir(data)):
        found = "train and test files" if isinstance(data, dict) else "a directory of folds"
        raise click.UsageError(
            f"--folds is for a single file, which is cut, and DATA is {found}; leave it out."
        )


def _check_baseline(arguments: dict[str, Any], baseline: str | None) -> None:
    """Refuse a baseline that is not there before anything is trained."""
    from mcrank.experiments.entries import entries_of, systems_of

    systems = systems_of(entries_of(arguments["rankers"]), arguments.get("train_dialects"))
    keys = [system.key for system, _ in systems]
    if baseline is not None and baseline not in keys:
        raise OptionError(f"the baseline {baseline!r} is not among the entries: {', '.join(keys)}.")


def _command(data: str | None, entries: tuple[str, ...], given: dict[str, Any]) -> str:
    """The command that repeats the comparison, without what changes no result."""
    words = ["mcrank", "compare", *([] if data is None else [data]), *entries]
    flags = {"measures": "-m", "dialects": "-d", "train_dialects": "--train-dialect", "fail_if": "--fail-if"}
    for name in (
        "plan",
        "valid",
        "test",
        "folds",
        "measures",
        "dialects",
        "train_dialects",
        "seed",
        "baseline",
        "fail_if",
    ):
        value = given[name]
        for one in value if isinstance(value, tuple) else [] if value is None else [value]:
            words += [flags.get(name, f"--{name}"), str(one)]
    if given["unjudged"] != "error":
        words += ["--unjudged", given["unjudged"]]
    for name, value in chosen_columns().items():
        words += [f"--{name.replace('_', '-')}", value if isinstance(value, str) else ",".join(value)]
    if given["drop_empty"]:
        words.append("--drop-empty")
    return shlex.join(words)


def _write(comparison: Comparison, out: Path, times: bool) -> list[str]:
    from mcrank.cli.page import PageProgress
    from mcrank.report.page import write_report
    from mcrank.report.tables import write_tables

    with PageProgress() as progress:
        page = write_report(comparison, out / "report.html", times=times, callback=progress)
    write_tables(comparison, out / "tables", times=times)
    return [str(page)]


def _print(comparison: Comparison, written: list[str]) -> None:
    echo(str(comparison))
    for system in comparison.systems:
        if system.kind == "scores":
            echo(f"{system.key}: {system.source}")
    for note in comparison.notes:
        say(f"note: {note}")
    for path in written:
        echo(f"report: {path}")


def _as_dict(comparison: Comparison, written: list[str], failures: list[str]) -> dict[str, Any]:
    return {
        "queries": comparison.n_queries,
        "folds": [fold.name for fold in comparison.folds],
        "systems": [asdict(system) for system in comparison.systems],
        "leaderboards": {
            name: [asdict(line) for line in comparison.leaderboard(name)] for name in comparison.measures
        },
        "verdict": comparison.verdict(),
        "notes": list(comparison.notes),
        "report": written[0] if written else None,
        "failures": failures,
    }


class CompareProgress(Moving):
    """The callback of `mcrank.compare`: a bar with the time left on a terminal, else a line per tenth."""

    _tenths = -1

    def _draw(self) -> Any:
        from rich.progress import BarColumn, TextColumn

        bar = passing_bar(
            BarColumn(bar_width=30),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.fields[running]}", markup=False),  # names of strangers
        )
        self._task = bar.add_task("", total=None, left="", running="")
        return bar

    def __call__(self, progress: Progress) -> None:
        """Show where things stand."""
        left = "" if progress.seconds_left is None else f"about {duration(progress.seconds_left)} left"
        if self._drawn is not None:
            running = printable("  ".join(progress.running))
            self._drawn.update(
                self._task, completed=progress.done, total=progress.trials, left=left, running=running
            )
            return
        tenths = 10 * progress.done // max(1, progress.trials)
        if tenths != self._tenths:
            self._tenths = tenths
            say(f"{progress.done}/{progress.trials} done{f', {left}' if left else ''}")
