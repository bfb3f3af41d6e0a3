"""`mcrank learning-curve`: more queries, or deeper judgments?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mcrank.cli.cache import Unjudged, read_telling, unjudged_option
from mcrank.cli.columns import column_options
from mcrank.cli.declared import RankerCommand, given_options
from mcrank.cli.echo import echo
from mcrank.cli.inputs import InputPath, local_file
from mcrank.cli.main import json_option, print_json
from mcrank.cli.options import numbers_in, ranker_option, seed_option
from mcrank.cli.outputs import OutputFolder
from mcrank.cli.progress import announce_compilation
from mcrank.cli.volume import detail, is_quiet


@click.command("learning-curve", cls=RankerCommand)
@click.argument("data", type=InputPath(pattern=True))
@ranker_option("train")
@click.option(
    "--shares",
    default="0.125,0.25,0.5,1",
    show_default=True,
    help="Shares of the training queries, and of the rows of each; the last two are compared.",
)
@click.option(
    "--holdout",
    type=click.FloatRange(0.05, 0.9),
    default=0.3,
    show_default=True,
    help="Share of the queries that is measured on.",
)
@click.option(
    "--repeats", type=click.IntRange(min=1), default=3, show_default=True, help="Times, with other cuts."
)
@seed_option("Of all cuts.")
@click.option(
    "--out", metavar="FOLDER", type=OutputFolder(), help="Write report.html, tables and curve.json there."
)
@unjudged_option
@column_options
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    data: str,
    ranker: str,
    shares: str,
    holdout: float,
    repeats: int,
    seed: int,
    out: str | None,
    unjudged: Unjudged,
    as_json: bool,
    **declared: Any,
) -> None:
    """Train on growing shares of DATA and say whether more queries or deeper judgments buy more."""
    steps = numbers_in(shares, "--shares")
    from mcrank.report.curve_page import curve_page, curve_table
    from mcrank.tuning.learning_curve import learning_curve

    options = given_options(declared, ctx)
    n_jobs = options.pop("n_jobs", None)
    announce_compilation()
    rows = read_telling(local_file(data, table=True), unjudged=unjudged, n_jobs=n_jobs)
    found = learning_curve(
        rows, ranker, shares=steps, holdout=holdout, repeats=repeats, options=options, seed=seed,
        n_jobs=n_jobs, callback=lambda done, of: detail(f"{done}/{of} fits done"),
    )  # fmt: skip
    page = None
    if out is not None:
        from mcrank.experiments.store import json_bytes, write_file

        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        curve_page(found).write_files(folder / "tables")
        write_file(folder / "curve.json", json_bytes(found.to_json()))
        page = curve_page(found).write(folder / "report.html")
    if as_json:
        print_json({**found.to_json(), "page": None if page is None else str(page)})
    elif page is None or not is_quiet():  # without a folder it is nowhere else
        echo(curve_table(found).to_markdown())
        echo(found.sentence)
        if page is not None:
            echo(f"report: {page}")
