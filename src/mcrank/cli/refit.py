"""`mcrank refit`: a model with the same splits, its leaves refitted on other data."""

from __future__ import annotations

import click

from mcrank.cli.cache import Unjudged, unjudged_option
from mcrank.cli.columns import column_options
from mcrank.cli.inputs import STANDARD, InputPath, load_model, local_file
from mcrank.cli.main import json_option, print_result
from mcrank.cli.options import jobs_option, model_option
from mcrank.cli.outputs import check_model_target, save_model
from mcrank.cli.progress import announce_compilation
from mcrank.cli.train import read_alike
from mcrank.errors import OptionError


@click.command("refit")
@click.argument("model", type=InputPath(succeeded=True))
@click.argument("data", type=InputPath(pattern=True))
@click.option(
    "--decay", type=float, default=0.9, show_default=True, help="Share of the old value of a leaf, 0 to 1."
)
@click.option(
    "--init-score",
    metavar="FILE",
    type=InputPath(),
    help="Start from these scores, one a line: where training had --init-score.",
)
@model_option()
@unjudged_option
@column_options
@jobs_option()
@json_option
def command(
    model: str,
    data: str,
    decay: float,
    init_score: str | None,
    out: str,
    unjudged: Unjudged,
    n_jobs: int | None,
    as_json: bool,
) -> None:
    """Refit the leaves of MODEL on DATA: decay x old value + (1 - decay) x new; its splits stay."""
    from mcrank.data.scores import read_scores
    from mcrank.rankers.trees import TreeRanker

    check_model_target(out, as_json)
    announce_compilation()
    ranker = load_model(model, n_jobs)
    if not isinstance(ranker, TreeRanker):
        raise OptionError(
            f"{model} holds a {type(ranker).__name__}; only boosted trees have leaves to refit."
        )
    rows = read_alike(data, ranker, unjudged, n_jobs)
    start = None if init_score is None else read_scores(local_file(init_score))
    found = ranker.refit(rows, decay=decay, init_score=start)
    save_model(found, out)
    facts = {"model": out, "ranker": ranker.name, "rows": rows.n_rows, "trees": found.forest_.n_trees}
    print_result(facts, as_json, err=out == STANDARD)
