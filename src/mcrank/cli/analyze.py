"""`mcrank analyze`: a model as a whole, as a page."""

from __future__ import annotations

import click

from mcrank.cli.cache import Unjudged, unjudged_option
from mcrank.cli.columns import column_options
from mcrank.cli.echo import echo
from mcrank.cli.explain import load_explainable
from mcrank.cli.inputs import STANDARD, InputPath
from mcrank.cli.main import json_option, print_facts, print_json
from mcrank.cli.options import jobs_option, seed_option
from mcrank.cli.outputs import OutputFolder, check_target
from mcrank.cli.page import PageProgress
from mcrank.cli.progress import announce_compilation
from mcrank.cli.train import read_alike
from mcrank.cli.volume import is_quiet


@click.command("analyze")
@click.argument("model", type=InputPath())
@click.argument("data", type=InputPath(pattern=True))
@click.option("--out", metavar="FILE", type=click.Path(), required=True, help="The page, one HTML file.")
@click.option(
    "--files",
    metavar="FOLDER",
    type=OutputFolder(),
    help="Also write every table as Markdown and CSV, and every figure as SVG.",
)
@click.option(
    "--group",
    "groups",
    metavar="NAME=F1,F2",
    multiple=True,
    help="Features to shuffle together; repeat for several groups.",
)
@click.option("--title", default="Analysis of a model", show_default=True, help="Heading of the page.")
@seed_option("Of all shuffles.")
@unjudged_option
@column_options
@jobs_option()
@json_option
def command(
    model: str,
    data: str,
    out: str,
    files: str | None,
    groups: tuple[str, ...],
    title: str,
    seed: int,
    unjudged: Unjudged,
    n_jobs: int | None,
    as_json: bool,
) -> None:
    """Show what matters to MODEL on DATA, how it reacts to features and where it is weak, as one page.

    DATA needs grades, and is best data that the model was not trained on.
    """
    if out == STANDARD:
        raise click.BadParameter("the page is a file; name it.", param_hint="--out")
    check_target(out)
    named: dict[str, list[str]] = {}
    for name, members in map(_group, groups):
        if name in named:
            raise click.BadParameter(f"{name!r} is the name of two groups.", param_hint="--group")
        named[name] = members
    from mcrank.analysis.analysis import analyze
    from mcrank.report.analysis_page import write_analysis, write_analysis_files

    announce_compilation()
    ranker = load_explainable(model, n_jobs)
    rows = read_alike(data, ranker, unjudged, n_jobs)
    with PageProgress() as progress:
        found = analyze(ranker, rows, groups=named, seed=seed, callback=progress)
    page = write_analysis(found, out, title=title)
    written = [] if files is None else write_analysis_files(found, files)
    if as_json:
        print_json(
            {
                "page": str(page),
                "bytes": page.stat().st_size,
                "files": [str(path) for path in written],
                "measure": found.measure,
                "mean": found.mean[0],
                "importances": [one._asdict() for one in found.importances],
                "groups": [one._asdict() for one in found.groups],
            }
        )
        return
    if is_quiet():
        return
    print_facts(
        {
            "page": page,
            "bytes": page.stat().st_size,
            found.measure: found.mean_words,
            **{f"shuffling {one.name}": f"{-one.loss:+.4f}" for one in found.importances[:5]},
        }
    )
    for path in written:
        echo(str(path))


def _group(text: str) -> tuple[str, list[str]]:
    name, sign, members = text.partition("=")
    found = [member.strip() for member in members.split(",") if member.strip()]
    if not sign or not name.strip() or not found:
        raise click.BadParameter(f"must be like NAME=F1,F2, got {text!r}.", param_hint="--group")
    return name.strip(), found
