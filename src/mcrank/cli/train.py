"""`mcrank train`: data in, model file out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from mcrank.cli.declared import RankerCommand, given_options
from mcrank.cli.main import json_option, print_json
from mcrank.cli.progress import announce_compilation, training_progress


@click.command("train", cls=RankerCommand)
@click.argument("data")
@click.option("--ranker", default="mcrank", show_default=True, help="Which ranker to train.")
@click.option(
    "--valid", metavar="DATA", help="Validation data: measured each round, and the best round is kept."
)
@click.option("--out", required=True, metavar="FILE", help="Where to save the model.")
@click.option(
    "--measure", default="ndcg@10", show_default=True, help="What is measured on the validation data."
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    data: str,
    ranker: str,
    valid: str | None,
    out: str,
    measure: str,
    as_json: bool,
    **declared: Any,
) -> None:
    """Train a ranker on DATA (LETOR text with qid) and save it as a model file.

    Options of the chosen ranker are listed below; `--ranker NAME --help` lists another one's.
    """
    from mcrank.data.read import read
    from mcrank.metrics.measure import parse_measure

    check_target(out)
    parsed = parse_measure(measure)
    untrained = ctx.meta["mcrank.ranker"](**given_options(declared, ctx))
    announce_compilation()
    train_data = read(data)
    valid_data = None if valid is None else read(valid)
    start = time.perf_counter()
    with training_progress(untrained.name) as callback:
        trained = untrained.fit(train_data, valid=valid_data, measure=parsed, callback=callback)
    seconds = time.perf_counter() - start
    trained.save(out)
    summary = {
        "model": out,
        "ranker": trained.name,
        "rows": train_data.n_rows,
        "queries": train_data.n_queries,
        "rounds": trained.n_rounds_,
        "trees": trained.n_trees_,
        "seconds": round(seconds, 3),
        "scores": {
            name: values[trained.best_round_ - 1] for name, values in trained.history_.items() if values
        },
    }
    if as_json:
        print_json(summary)
        return
    for name, value in summary.items():
        for line in _lines(name, value):
            click.echo(line)


def check_target(out: str) -> None:
    """Refuse a place that cannot be written before hours are spent on what should go there."""
    folder = Path(out).parent
    if not folder.is_dir():
        raise click.BadParameter(f"the folder {str(folder)!r} does not exist.", param_hint="--out")
    if Path(out).exists() and not Path(out).is_file():
        raise click.BadParameter(f"{out!r} exists and is not a regular file.", param_hint="--out")


def _lines(name: str, value: Any) -> list[str]:
    if isinstance(value, dict):
        return [f"{key:<12}{score:.5f}" for key, score in value.items()]
    return [f"{name:<12}{value}"]
