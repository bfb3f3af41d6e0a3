"""`mcrank rosetta`: one ranking in the dialect of every known tool."""

from __future__ import annotations

from functools import partial

import click

from mcrank.cli.main import echo, json_option, print_json


@click.command()
@click.argument("data", type=click.Path(exists=True, dir_okay=False))
@click.argument("scores", type=click.Path(exists=True, dir_okay=False))
@click.option("-m", "--measure", default="ndcg@10", show_default=True, help="The measure to translate.")
@click.option("--value", help="A number someone printed: name the dialects that print it.")
@click.option(
    "-c", "--complete", is_flag=True, help="Count judged queries missing from the run, as 0 (qrels)."
)
@click.option("-J", "--judged-only", is_flag=True, help="Take unjudged documents out of the run (qrels).")
@json_option
def command(
    data: str, scores: str, measure: str, value: str | None, complete: bool, judged_only: bool, as_json: bool
) -> None:
    """Show the ranking of DATA by SCORES in the dialect of every tool, and why the numbers differ."""
    from mcrank.metrics.measure import parse_measure

    wanted = parse_measure(measure)

    from mcrank.cli.files import read_grades, read_scores_for, with_line
    from mcrank.metrics.rosetta import rosetta

    grades = read_grades(data)
    values = read_scores_for(scores, grades)
    ask = partial(rosetta, values, grades, wanted, value=value, complete=complete, judged_only=judged_only)
    table = with_line(data, ask)
    if value is not None:
        table.matches(value)  # a value that is no number is an error before anything is printed
    if not as_json:
        echo(str(table))
        return
    readings = {r.dialect: {"value": r.value, "reason": r.reason, "tool": r.note} for r in table.readings}
    found = {"measure": table.measure, "dialects": readings}
    print_json(found if value is None else found | {"value": value, "matches": table.printed_by})
