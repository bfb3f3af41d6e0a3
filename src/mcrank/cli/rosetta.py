"""`mcrank rosetta`: one ranking in the dialect of every known tool."""

from __future__ import annotations

import click

from mcrank.cli.main import json_option, print_json


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
    table = with_line(
        data, lambda: rosetta(values, grades, wanted, complete=complete, judged_only=judged_only)
    )
    matches = None if value is None else table.matches(value)
    if as_json:
        print_json(
            {
                "measure": table.measure,
                "dialects": {
                    r.dialect: {"value": r.value, "reason": r.reason, "tool": r.note} for r in table.readings
                },
            }
            | ({} if matches is None else {"value": value, "matches": matches})
        )
        return
    click.echo(str(table))
    if matches is not None:
        answer = ", ".join(matches) if matches else "no known dialect"
        click.echo(f"\n{value} is printed by: {answer}")
