"""`mcrank significance`: compare rankings of the same data, query by query."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from mcrank.cli.cache import Unjudged, unjudged_option
from mcrank.cli.columns import column_options
from mcrank.cli.echo import echo
from mcrank.cli.inputs import InputPath
from mcrank.cli.main import json_option, print_json
from mcrank.cli.options import jobs_option, measure_option
from mcrank.errors import MeasureError
from mcrank.stats.power import power_sentence


@click.command()
@click.argument("data", type=InputPath(pattern=True))
@click.argument("systems", nargs=-1, required=True, type=InputPath())
@measure_option("The measure to compare by.")
@click.option(
    "--test", type=click.Choice(["t", "randomization", "wilcoxon"]), default="t", show_default=True,
    help="Paired test against the first system; p-values are corrected by Holm's rule.",
)  # fmt: skip
@click.option(
    "--alternative", type=click.Choice(["two-sided", "greater", "less"]), default="two-sided",
    show_default=True, help="greater: is a system better than the first?",
)  # fmt: skip
@click.option("--tukey", is_flag=True, help="Also compare all pairs by randomized Tukey HSD.")
@click.option(
    "--level", type=float, default=0.95, show_default=True, help="Level of the bootstrap intervals."
)
@click.option("--rounds", type=int, default=10_000, show_default=True, help="Draws of randomized methods.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of randomized methods.")
@click.option("-c", "--complete", is_flag=True, help="Count judged queries missing from a run, as 0 (qrels).")
@unjudged_option
@column_options
@jobs_option()
@json_option
def command(
    data: str,
    systems: tuple[str, ...],
    measure: str,
    test: str,
    alternative: str,
    tukey: bool,
    level: float,
    rounds: int,
    seed: int,
    complete: bool,
    unjudged: Unjudged,
    n_jobs: int | None,
    as_json: bool,
) -> None:
    """Compare SYSTEMS with the first of them on the grades of DATA.

    SYSTEMS are score files, or runs when DATA is TREC qrels. One of the files may be -, standard input.
    """
    if len(systems) < 2:
        raise click.UsageError("give at least two systems to compare.")
    from mcrank.metrics.measure import parse_measure

    wanted = parse_measure(measure)
    if wanted.summary == "geometric":
        raise MeasureError(
            f"{wanted.name} is a geometric mean over queries, and the tests here are of plain means: their "
            "numbers would be others than evaluate's. Compare by a measure with a plain mean, such as "
            f"{wanted.name.removeprefix('gm_')}."
        )

    from mcrank import stats
    from mcrank.cli.files import read_grades, read_scores_for, system_names, with_line
    from mcrank.metrics.evaluate import evaluate
    from mcrank.stats.many import compare_columns

    file, grades = read_grades(data, wanted.tells_documents, n_jobs, unjudged)
    values: dict[str, stats.Values] = {}
    counted: dict[str, stats.Values] = {}
    for name, path in zip(system_names(systems), systems, strict=True):
        scores = read_scores_for(path, grades, file, unjudged)
        options: dict[str, Any] = {"complete": complete, "n_jobs": n_jobs or -1}
        result = with_line(file, partial(evaluate, scores, grades, wanted, **options), unjudged)
        values[name] = result.by_query(wanted, in_mean=True)
        counted[name] = result.by_query(wanted, counted=True)
    queries, columns = stats.align(*values.values())
    rows = compare_columns(
        dict(zip(values, columns, strict=True)),
        next(iter(values)),
        test=test,
        alternative=alternative,
        level=level,
        rounds=rounds,
        seed=seed,
        won=dict(zip(counted, stats.align(*counted.values())[1], strict=True)),
    )
    pairs = stats.tukey(values, rounds=rounds, seed=seed) if tukey else {}
    if as_json:
        print_json(_as_dict(wanted.name, test, len(queries), rows, pairs))
        return
    echo(_as_table(wanted.name, test, len(queries), level, rows))
    for (first, second), p in pairs.items():
        echo(f"Tukey HSD over all {len(pairs)} pairs  {first} - {second}: p = {p:.4g}")


def _as_dict(measure: str, test: str, queries: int, rows: Any, pairs: Any) -> dict[str, Any]:
    systems = {
        row.system: {
            "mean": row.interval.mean,
            "interval": [row.interval.low, row.interval.high],
            "difference": row.difference,
            "effect": row.effect,
            "p": row.p,
            "corrected_p": row.corrected_p,
            "detectable": row.detectable,
            "wins": row.wins,
            "ties": row.ties,
            "losses": row.losses,
        }
        for row in rows
    }
    tukey = [{"systems": list(pair), "p": p} for pair, p in pairs.items()]
    found = {
        "measure": measure,
        "test": test,
        "queries": queries,
        "baseline": rows[0].system,
        "correction": {"rule": "holm", "tests": len(rows) - 1, "family": f"each against {rows[0].system}"},
        "systems": systems,
    }
    return found | ({"tukey": tukey} if tukey else {})


def _as_table(measure: str, test: str, queries: int, level: float, rows: Any) -> str:
    width = max(6, *(len(row.system) for row in rows))
    interval = f"{100 * level:.6g}% interval"
    lines = [
        f"{measure} over {queries} queries; paired {test} test against {rows[0].system}; corrected "
        f"by Holm's rule over {'this 1 test' if len(rows) == 2 else f'these {len(rows) - 1} tests'}",
        f"{'system':<{width}}  {'mean':>7}  {interval:>18}  {'difference':>10}  {'effect':>7}  {'p':>9}  "
        f"{'corrected':>9}  {'detectable':>10}  wins/ties/losses",
    ]
    for row in rows:
        bounds = f"[{row.interval.low:.4f}, {row.interval.high:.4f}]"
        line = f"{row.system:<{width}}  {row.interval.mean:7.4f}  {bounds:>18}"
        if row.p is not None:
            line += f"  {row.difference:+10.4f}  {row.effect:+7.3f}  {row.p:9.3g}  {row.corrected_p:9.3g}"
            shown = "" if row.detectable is None else f"{row.detectable:.4f}"
            line += f"  {shown:>10}  {row.wins}/{row.ties}/{row.losses}"
        lines.append(line)
    words = f"paired {test} test" if len(rows) == 2 else f"paired {test} tests corrected for {len(rows) - 1}"
    return "\n".join([*lines, power_sentence([row.detectable for row in rows[1:]], queries, words)])
