"""`mcrank tune`: good options for a ranker, within minutes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcrank.cli.cache import Unjudged, read_telling, unjudged_option
from mcrank.cli.cluster import cluster_of, cluster_options
from mcrank.cli.columns import column_options
from mcrank.cli.declared import CHOSEN, RankerCommand, given_options
from mcrank.cli.echo import echo
from mcrank.cli.inputs import InputPath, local_file
from mcrank.cli.main import json_option, print_facts, print_json
from mcrank.cli.options import ranker_option, seed_option
from mcrank.cli.outputs import OutputFolder
from mcrank.cli.progress import Moving, announce_compilation, duration
from mcrank.cli.train import read_alike
from mcrank.cli.volume import is_quiet, say
from mcrank.errors import MeasureError

if TYPE_CHECKING:
    from mcrank.tuning.result import Tuning
    from mcrank.tuning.tune import TuneProgress


class _TuneCommand(RankerCommand):
    """A search cuts folds of its own, also of a ranker that has an option of that name (`Blend`)."""

    own = frozenset({"--folds"})


@click.command("tune", cls=_TuneCommand)
@click.argument("data", type=InputPath(pattern=True))
@ranker_option("tune")
@click.option("--minutes", type=float, help="Stop after so many minutes, all in all.  [default: 20]")
@click.option("--trials", type=click.IntRange(min=1), help="Stop after so many trials.")
@click.option(
    "--folds", type=click.IntRange(min=2), default=4, show_default=True, help="Parts of the queries."
)
@click.option(
    "--holdout",
    type=click.FloatRange(0.0, 0.9),
    default=0.2,
    show_default=True,
    help="Share of the queries that take no part in the search, for an honest estimate; 0 for none.",
)
@click.option(
    "--test",
    metavar="DATA",
    type=InputPath(pattern=True),
    help="Queries for that estimate, instead of a share of DATA.",
)
@click.option(
    "--range",
    "ranges",
    metavar="OPTION=RANGE",
    multiple=True,
    help="Search another range, as num_leaves=4..32, l2=0.1..10,log, split=mse|newton or subsample=fixed; "
    "repeat for several.",
)
@click.option(
    "--out",
    metavar="FOLDER",
    type=OutputFolder(),
    help="Model, page and study; a killed search goes on from there.  [default: tuned-RANKER]",
)
@seed_option("Of cut and search.")
@cluster_options(training=False)
@unjudged_option
@column_options
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    data: str,
    ranker: str,
    minutes: float | None,
    trials: int | None,
    folds: int,
    holdout: float,
    test: str | None,
    ranges: tuple[str, ...],
    out: str | None,
    seed: int,
    cluster: str | None,
    workers: int | None,
    insecure_cluster: bool,
    unjudged: Unjudged,
    as_json: bool,
    **declared: Any,
) -> None:
    """Search for good options of a ranker on DATA, say how good they are, and save the model.

    Every option of the ranker that declares a range is searched (`mcrank rankers NAME` lists them), unless
    it is given here: `--num-leaves 20` stays 20. Needs the extra tune: pip install 'mcrank[tune]'.

    FOLDER gets model.mcrank, report.html, tuning.json and the study itself. A search that was killed goes on
    where it stopped when it is called again, and comes to the same trials; more minutes or trials go on from
    a finished one.
    """
    from mcrank.tuning.space import space_of
    from mcrank.tuning.study import optuna_there
    from mcrank.tuning.tune import tune

    optuna_there()
    place = cluster_of(cluster, workers, insecure_cluster)
    options = given_options(declared, ctx)
    n_jobs = options.pop("n_jobs", None)
    searched = dict(map(_named_range, ranges))
    try:
        space_of(ranker, options, searched)  # before anything is read
    except MeasureError as error:
        raise click.UsageError(str(error), ctx) from None
    announce_compilation()
    folder = Path(out or f"tuned-{ctx.meta[CHOSEN].name}")
    rows = read_telling(local_file(data, table=True), unjudged=unjudged, n_jobs=n_jobs)
    held = None if test is None else read_alike(test, rows, unjudged, n_jobs)
    with _Progress() as progress:
        tuned = tune(
            rows, ranker, minutes=minutes, trials=trials, folds=folds, holdout=holdout, test=held,
            options=options, ranges=searched, out=folder, seed=seed, n_jobs=n_jobs, cluster=place,
            callback=progress,
        )  # fmt: skip
    found: Tuning = tuned.tuning_
    page = _write(found, folder)
    if as_json:
        print_json({**_facts(found, folder), "page": str(page), **found.to_json()})
    elif not is_quiet():
        print_facts({**_facts(found, folder), "page": page})
        echo(found.sentence)
    for note in found.notes:
        say(f"note: {note}")


def _facts(found: Tuning, folder: Path) -> dict[str, Any]:
    states = [trial.state for trial in found.trials]
    return {
        "model": str(folder / "model.mcrank"),
        "ranker": found.ranker,
        "trials": f"{len(states)} ({states.count('pruned')} stopped early, {states.count('failed')} failed)",
        "options": " ".join(
            f"--{name.replace('_', '-')} {value:.4g}" if isinstance(value, float) else
            f"--{name.replace('_', '-')} {value}"
            for name, value in found.options.items()
        ),
        f"out-of-fold {found.measure}": found.trials[found.best].value,
        "seconds": round(found.seconds, 1),
    }  # fmt: skip


def _write(found: Tuning, folder: Path) -> Path:
    from mcrank.report.tuning_page import tuning_page

    page = tuning_page(found)
    page.write_files(folder / "tables")
    return page.write(folder / "report.html")


def _named_range(text: str) -> tuple[str, str]:
    name, sign, words = text.partition("=")
    if not sign or not name.strip() or not words.strip():
        raise click.BadParameter(f"must be like num_leaves=4..32, got {text!r}.", param_hint="--range")
    return name.strip().replace("-", "_"), words.strip()


class _Progress(Moving):
    """The callback of `mcrank.tune`: a line that moves on a terminal, else one for each tenth trial."""

    _last = -1

    def _draw(self) -> Any:
        from rich.console import Console
        from rich.live import Live

        return Live(console=Console(stderr=True), transient=True)

    def __call__(self, progress: TuneProgress) -> None:
        """Show where things stand."""
        of = f"/{progress.trials}" if progress.trials else ""
        words = f"trial {progress.trial + 1}{of}, round {progress.round}"
        words += "" if progress.value is None else f": {progress.value:.4f}"
        words += "" if progress.best is None else f"  best {progress.best:.4f}"
        if progress.seconds_left < float("inf"):
            words += f"  {duration(max(0.0, progress.seconds_left))} left"
        if self._drawn is not None:
            self._drawn.update(words)
        elif progress.trial // 10 != self._last:
            self._last = progress.trial // 10
            say(words)
