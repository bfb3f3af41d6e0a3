"""`mcrank reproduce`: make the tables and figures of the two papers again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mcrank.cli.echo import echo
from mcrank.cli.inputs import InputPath
from mcrank.cli.main import json_option, print_json
from mcrank.cli.options import JobsValue
from mcrank.cli.outputs import OutputFolder
from mcrank.cli.progress import announce_compilation
from mcrank.cli.volume import can_move, say
from mcrank.texts import printable

if TYPE_CHECKING:
    from mcrank.experiments.schedule import Progress

# Also the keys of mcrank.papers.reproduce.TARGETS, which takes longer to import than --help may.
TARGETS = ("table1", "figure1", "figure3", "apples")


@click.command("reproduce")
@click.argument("target", type=click.Choice(TARGETS))
@click.argument("data", required=False, type=InputPath(folder=True, standard=False))
@click.option(
    "--out",
    metavar="FOLDER",
    type=OutputFolder(),
    required=True,
    help="Folder for the outcome and what was trained.",
)
@click.option("--quick", is_flag=True, help="Small sizes: minutes instead of the papers' sizes.")
@click.option(
    "--rounds",
    type=click.IntRange(min=4),
    help="Boosting rounds on the artificial data; 1000, or 100 if quick.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of everything.")
@click.option(
    "--n-jobs", "--jobs", type=JobsValue(), help="Rankers trained at a time.  [default: every core]"
)
@json_option
def command(
    target: str,
    data: str | None,
    out: str,
    quick: bool,
    rounds: int | None,
    seed: int,
    n_jobs: int | None,
    as_json: bool,
) -> None:
    """Make TARGET again, beside the paper's numbers, and judge the paper's claims.

    table1, figure1 and figure3 (McRank, 2007) make their own data; apples (the apple-to-apple comparison,
    2012) needs DATA, the directory of MQ2008. What was trained is kept in FOLDER: a run that was killed goes
    on where it stopped, and targets that share rankers train them once.
    """
    if (target == "apples") != (data is not None):
        words = "needs DATA, a directory of folds such as MQ2008" if data is None else "takes no DATA"
        raise click.UsageError(f"{target} {words}.")
    from mcrank.papers.reproduce import reproduce

    announce_compilation()
    if rounds is not None and target == "apples":
        raise click.UsageError("--rounds is for the artificial data; apples has settings of its own.")
    made = reproduce(
        target, data, out=out, quick=quick, rounds=rounds, seed=seed, n_jobs=n_jobs, callback=_Teller()
    )
    if as_json:
        print_json(made.to_dict())
        return
    echo(made.to_markdown())
    say(f"written: {out}/{target}.md")


class _Teller:
    """Says on standard error how far training is: one line that changes on a terminal, else one a trial."""

    def __init__(self) -> None:
        self._done = -1

    def __call__(self, progress: Progress) -> None:
        """Show how things stand."""
        left = "" if progress.seconds_left is None else f", about {progress.seconds_left:.0f} s left"
        words = f"{progress.done} of {progress.trials} trained{left}"
        if can_move():
            running = printable("; ".join(progress.running))
            click.echo(f"\r\x1b[K{words}  {running}"[:160], nl=progress.done == progress.trials, err=True)
        elif progress.done != self._done:
            say(words)
        self._done = progress.done
