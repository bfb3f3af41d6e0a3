"""`mcrank reproduce`: make the tables and figures of the two papers again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mcrank.cli.echo import echo
from mcrank.cli.inputs import InputPath, check_there
from mcrank.cli.main import json_option, print_json
from mcrank.cli.options import JobsValue
from mcrank.cli.outputs import OutputFolder
from mcrank.cli.progress import announce_compilation, duration
from mcrank.cli.volume import can_move, say
from mcrank.texts import printable

if TYPE_CHECKING:
    from mcrank.experiments.schedule import Progress

# Also the keys of mcrank.papers.reproduce.TARGETS, which takes longer to import than --help may.
TARGETS = ("table1", "figure1", "figure2", "figure3", "sensitivity", "generators", "apples")
ON_OWN_DATA = ("table1", "figure1", "figure2", "figure3", "sensitivity")
PROTOCOLS = ("artificial", "web-1", "web-2", "web-3")


def _units(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    words = [] if value is None else value.split(",")
    if not all(word.strip().isdecimal() and 1 <= int(word) <= 10_000 for word in words):
        raise click.BadParameter(f"must be integers from 1 to 10000 with commas between, got {value!r}.")
    return tuple(map(int, words)) or None


@click.command("reproduce")
@click.argument("target", type=click.Choice([*TARGETS, "all"]))
@click.argument("data", required=False, type=InputPath(folder=None, standard=False))
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
    help="Boosting rounds (M) of the McRank paper's experiments; its own number, or 100 if quick.",
)
@click.option(
    "--protocol",
    type=click.Choice(PROTOCOLS),
    help="Settings the McRank paper chose for one of its data sets, for DATA of your own.  [default: web-1]",
)
@click.option(
    "--queries",
    type=click.IntRange(min=10),
    help="Training queries of the artificial data, half as many for validation.  [default: the paper's "
    "10000, or 400 if quick]",
)
@click.option(
    "--test-queries",
    type=click.IntRange(min=10),
    help="Test queries of the artificial data.  [default: the paper's 10000, or 500 if quick]",
)
@click.option(
    "--units",
    metavar="NUMBERS",
    callback=_units,
    help="Units RankNet's layers are chosen from in apples; 500 take as long as all the rest.  "
    "[default: 10,100,500]",
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
    protocol: str | None,
    queries: int | None,
    test_queries: int | None,
    units: tuple[int, ...] | None,
    seed: int,
    n_jobs: int | None,
    as_json: bool,
) -> None:
    """Make TARGET again, beside the paper's numbers, and judge the paper's claims.

    table1, figure1, figure2, figure3 and sensitivity (McRank, 2007) make their own data, or take DATA of
    yours: a directory of folds as LETOR's, or a file. generators tries the table under twenty readings of the
    artificial data. apples (the apple-to-apple comparison, 2012) needs DATA, the directory of MQ2008. all
    makes everything; apples only if DATA is named. What was trained is kept in FOLDER: a run that was killed
    goes on where it stopped, and targets that share rankers train them once.
    """
    _check_call(target, data, rounds, protocol)
    _check_sizes(target, data, {"--queries": queries, "--test-queries": test_queries}, units)
    from mcrank.papers.reproduce import reproduce
    from mcrank.papers.run import UNITS

    announce_compilation()
    # With DATA, `all` still makes the McRank paper's own experiments on artificial data.
    wanted = [t for t in TARGETS if t != "apples" or data is not None] if target == "all" else [target]
    made = {}
    for name in wanted:
        where = data if target != "all" or name == "apples" else None
        made[name] = reproduce(
            name,
            where,
            out=out,
            quick=quick,
            rounds=None if name == "apples" else rounds,
            protocol=protocol if where is not None and name != "apples" else None,
            queries=None if name == "apples" else queries,
            test_queries=None if name == "apples" else test_queries,
            units=units if units is not None and name == "apples" else UNITS,
            seed=seed,
            n_jobs=n_jobs,
            callback=_Teller(name),
        )
        if not as_json:
            echo(made[name].to_markdown())
        say(f"written: {out}/{name}.md")
    if as_json:
        print_json(made[target].to_dict() if target != "all" else {n: m.to_dict() for n, m in made.items()})


def _check_call(target: str, data: str | None, rounds: int | None, protocol: str | None) -> None:
    if target == "apples" and data is None:
        raise click.UsageError("apples needs DATA, a directory of folds such as MQ2008.")
    if data is not None and target in ("apples", "all"):
        check_there(data, folder=True)
    if data is not None and target not in (*ON_OWN_DATA, "apples", "all"):
        raise click.UsageError(f"{target} takes no DATA.")
    if rounds is not None and target == "apples":
        raise click.UsageError("--rounds is for the McRank paper; apples has settings of its own.")
    if protocol is not None and (data is None or target in ("apples", "all")):
        raise click.UsageError("--protocol is for DATA of your own: table1, figure1, figure3 or sensitivity.")


def _check_sizes(
    target: str, data: str | None, sizes: dict[str, int | None], units: tuple[int, ...] | None
) -> None:
    own = target == "apples" or (data is not None and target != "all")
    for name in [name for name, given in sizes.items() if given is not None and own]:
        raise click.UsageError(f"{name} is for artificial data; DATA of your own are as large as they are.")
    if units is not None and (target not in ("apples", "all") or data is None):
        raise click.UsageError("--units is for apples.")


class _Teller:
    """Says on standard error how far training is: one line that changes on a terminal, else one a trial.

    In a log an estimate that has halved or doubled since is said again: the first rounds may mislead.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._done: int | None = None
        self._left: float | None = None

    def _is_news(self, progress: Progress) -> bool:
        now, then = progress.seconds_left, self._left
        if now is None or then is None:
            return progress.done != self._done or now is not then
        return progress.done != self._done or not then / 2 <= now <= 2 * then

    def __call__(self, progress: Progress) -> None:
        """Show how things stand."""
        left = "" if progress.seconds_left is None else f", about {duration(progress.seconds_left)} left"
        words = f"{self._target}: {progress.done} of {progress.trials} trained{left}"
        if can_move():
            running = printable("; ".join(progress.running))
            click.echo(f"\r\x1b[K{words}  {running}"[:160], nl=progress.done == progress.trials, err=True)
        elif self._is_news(progress):
            say(words)
            self._done, self._left = progress.done, progress.seconds_left
