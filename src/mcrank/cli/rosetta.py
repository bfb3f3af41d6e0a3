"""`mcrank rosetta`: one ranking in the dialect of every known tool."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from mcrank.cli.cache import Unjudged, unjudged_option
from mcrank.cli.columns import column_options
from mcrank.cli.echo import echo
from mcrank.cli.inputs import InputPath
from mcrank.cli.main import json_option, print_json
from mcrank.cli.options import jobs_option, measure_option, rows_options


@click.command()
@click.argument("data", type=InputPath(pattern=True))
@click.argument("scores", type=InputPath())
@measure_option("The measure to translate.")
@click.option("--value", help="A number someone printed: name the dialects that print it.")
@rows_options
@unjudged_option
@column_options
@jobs_option()
@json_option
def command(
    data: str,
    scores: str,
    measure: str,
    value: str | None,
    complete: bool,
    judged_only: bool,
    unjudged: Unjudged,
    n_jobs: int | None,
    as_json: bool,
) -> None:
    """Show the ranking of DATA by SCORES in the dialect of every tool, and why the numbers differ.

    DATA is LETOR text or a table with SCORES one number per line or a model; or TREC qrels with
    SCORES a run. One of them may be -, standard input.
    """
    from mcrank.metrics.measure import parse_measure

    wanted = parse_measure(measure)

    from mcrank.cli.files import read_grades, read_scores_for, with_line
    from mcrank.metrics.rosetta import rosetta

    file, grades = read_grades(data, True, n_jobs, unjudged)
    values = read_scores_for(scores, grades, file, unjudged)
    options: dict[str, Any] = {"complete": complete, "judged_only": judged_only, "n_jobs": n_jobs or -1}
    translate = partial(rosetta, values, grades, wanted, value=value, **options)
    table = with_line(file, translate, unjudged)
    if value is not None:
        table.matches(value)  # a value that is no number is an error before anything is printed
    if not as_json:
        echo(str(table))
        return
    readings = {r.dialect: {"value": r.value, "reason": r.reason, "tool": r.note} for r in table.readings}
    found = {"measure": table.measure, "dialects": readings}
    print_json(found if value is None else found | {"value": value, "matches": table.printed_by})
