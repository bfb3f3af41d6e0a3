"""`mcrank train`: data in, model file out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcrank.cli.cache import Unjudged, reading, unjudged_option
from mcrank.cli.declared import RankerCommand, given_options
from mcrank.cli.main import INTERRUPTED, json_option, print_facts, print_json
from mcrank.cli.progress import TrainingProgress, announce_compilation

if TYPE_CHECKING:
    from mcrank.data.dataset import Dataset


@click.command("train", cls=RankerCommand)
@click.argument("data")
@click.option("--ranker", default="mcrank", show_default=True, help="Which ranker to train.")
@click.option(
    "--valid", metavar="DATA", help="Validation data: measured each round, and the best round is kept."
)
@click.option("--out", required=True, metavar="FILE", help="Where to save the model.")
@unjudged_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    data: str,
    ranker: str,
    valid: str | None,
    out: str,
    unjudged: Unjudged,
    as_json: bool,
    **declared: Any,
) -> None:
    """Train a ranker on DATA (LETOR text with qid, or a table file) and save it as a model file.

    Options of the chosen ranker are listed below; `--ranker NAME --help` lists another one's. Ctrl-C ends
    training after the round under way and saves the model as it is then.
    """
    from mcrank.data.read import read
    from mcrank.rankers.base import measure_of

    check_target(out)
    untrained = ctx.meta["mcrank.ranker"](**given_options(declared, ctx))
    measure_of(untrained.checked_options())  # a wrong name should not have to wait until the data are read
    announce_compilation()
    with reading(data) as progress:
        train_data = read(data, unjudged=unjudged, progress=progress)
    valid_data = None if valid is None else read_as_wide(valid, train_data.n_features, unjudged)
    start = time.perf_counter()
    with TrainingProgress(ranker) as rounds:
        trained = untrained.fit(train_data, valid=valid_data, callback=rounds)
    seconds = time.perf_counter() - start
    trained.save(out)
    best, measure = trained.best_round_, trained.options_["measure"]
    watched = trained.history_.get(measure, [])
    facts = {
        "model": out,
        "ranker": ranker,
        "rows": train_data.n_rows,
        "queries": train_data.n_queries,
        "rounds": trained.n_rounds_,
        "best round": best,
        **({f"valid {measure}": watched[best - 1]} if 0 < best <= len(watched) else {}),
        "seconds": round(seconds, 2),
    }
    if as_json:
        print_json({name.replace(" ", "_"): value for name, value in facts.items()})
    else:
        print_facts(facts)
    if rounds.stopped:
        ctx.exit(INTERRUPTED)


def check_target(out: str) -> None:
    """Refuse a place that cannot be written before hours are spent on what should go there."""
    folder = Path(out).parent
    if not folder.is_dir():
        raise click.BadParameter(f"the folder {str(folder)!r} does not exist.", param_hint="--out")
    if Path(out).exists() and not Path(out).is_file():
        raise click.BadParameter(f"{out!r} exists and is not a regular file.", param_hint="--out")


def read_as_wide(path: str, n_features: int, unjudged: Unjudged) -> Dataset:
    """Read a data file; where its rows all leave out their last features, as LETOR text may, they are 0."""
    from mcrank.data.read import read

    with reading(path) as progress:
        data = read(path, unjudged=unjudged, progress=progress)
    return data if data.n_features >= n_features else read(path, n_features=n_features, unjudged=unjudged)
