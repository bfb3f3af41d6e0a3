"""`mcrank report`: make the page of a comparison again, and its tables and figures as files."""

from __future__ import annotations

from pathlib import Path

import click

from mcrank.cli.echo import echo
from mcrank.cli.inputs import STANDARD, InputPath
from mcrank.cli.main import json_option, print_facts, print_json
from mcrank.cli.outputs import OutputFolder, check_target
from mcrank.cli.progress import announce_compilation
from mcrank.cli.volume import is_quiet
from mcrank.writing import check_apart


@click.command("report")
@click.argument("folder", type=InputPath(folder=True, standard=False))
@click.option("--out", metavar="FILE", type=click.Path(), help="The page; by default report.html in FOLDER.")
@click.option("--title", default="Comparison of rankers", show_default=True, help="Heading of the page.")
@click.option(
    "--documents",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    help="Queries whose documents are in the page.",
)
@click.option("--times/--no-times", default=True, show_default=True, help="Show seconds.")
@click.option(
    "--tables",
    metavar="FOLDER",
    type=OutputFolder(),
    help="Also write every table as Markdown, LaTeX and CSV.",
)
@click.option(
    "--figures",
    metavar="FOLDER",
    type=OutputFolder(),
    help="Also write every figure as a file (needs matplotlib).",
)
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(["svg", "png", "pdf"]),
    default=("svg", "png"),
    show_default=True,
    help="Format of the figures; repeat for several.",
)
@json_option
def command(
    folder: str,
    out: str | None,
    title: str,
    documents: int,
    times: bool,
    tables: str | None,
    figures: str | None,
    formats: tuple[str, ...],
    as_json: bool,
) -> None:
    """Make the page of the comparison in FOLDER (written by `mcrank compare --out FOLDER`)."""
    from mcrank.cli.page import PageProgress
    from mcrank.experiments.comparison import Comparison
    from mcrank.experiments.folder import RunFolder
    from mcrank.report.page import write_report
    from mcrank.report.tables import write_tables

    if out == STANDARD:
        raise click.BadParameter("the page is a file; name it.", param_hint="--out")
    check_target(out or str(Path(folder) / "report.html"))
    if out is not None:
        check_apart(out, RunFolder(Path(folder)).kept(), "--out")
    announce_compilation()
    comparison = Comparison.load(folder)
    target = out or Path(folder) / "report.html"
    with PageProgress() as progress:
        page = write_report(
            comparison, target, times=times, documents=documents, title=title, callback=progress
        )
    written = [] if tables is None else write_tables(comparison, tables, times=times)
    if figures is not None:
        from mcrank.report.plots import write_figures

        written += write_figures(comparison, figures, formats=formats)
    if as_json:
        print_json(
            {"report": str(page), "bytes": page.stat().st_size, "files": [str(path) for path in written]}
        )
        return
    if is_quiet():
        return
    echo(comparison.verdict())
    print_facts({"report": page, "bytes": page.stat().st_size})
    for path in written:
        echo(str(path))
