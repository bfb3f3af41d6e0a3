"""`mcrank train`: data in, model file out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from mcrank.cli.cache import Unjudged, read_telling, unjudged_option
from mcrank.cli.cluster import cluster_options, planned, training_place
from mcrank.cli.columns import chosen_columns, column_options
from mcrank.cli.declared import CHOSEN, RankerCommand, given_options
from mcrank.cli.exits import INTERRUPTED
from mcrank.cli.first_use import compile_for
from mcrank.cli.inputs import STANDARD, InputPath, local_file
from mcrank.cli.main import json_option, print_facts, print_json
from mcrank.cli.options import model_option, ranker_option
from mcrank.cli.outputs import check_model_target, save_model
from mcrank.cli.progress import TrainingProgress, announce_compilation
from mcrank.cli.volume import is_quiet
from mcrank.errors import MeasureError
from mcrank.memory import bytes_of

if TYPE_CHECKING:
    from mcrank.data.dataset import Dataset
    from mcrank.rankers.base import Ranker


@click.command("train", cls=RankerCommand)
@click.argument("data", type=InputPath(pattern=True))
@ranker_option("train")
@click.option(
    "--valid",
    metavar="DATA",
    type=InputPath(pattern=True),
    help="Validation data: measured each round, and the best round is kept.",
)
@model_option()
@click.option(
    "--init-model",
    metavar="MODEL",
    type=InputPath(succeeded=True),
    help="Boosted trees only: go on from the trees of this model for --n-estimators further rounds.",
)
@click.option(
    "--init-score",
    metavar="FILE",
    type=InputPath(),
    help="Boosted trees only: start from these scores, one a line; they are no part of the model.",
)
@click.option(
    "--valid-init-score", metavar="FILE", type=InputPath(), help="The same for the rows of --valid."
)
@click.option(
    "--memory",
    metavar="AMOUNT",
    help="Boosted trees only: read the data into scratch files on disk (TMPDIR) and train from there with "
    "this much memory, such as 8GB. The model is the same.",
)
@click.option(
    "--folds",
    type=click.IntRange(2, 1000),
    help="Cross-fitting: fit on all but one of so many parts of the queries in turn, keep the round that is "
    "best on all held-out queries, average the fits; queries of --valid take part.",
)
@cluster_options(training=True)
@unjudged_option
@column_options
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    data: str,
    ranker: str,
    valid: str | None,
    out: str,
    init_model: str | None,
    init_score: str | None,
    valid_init_score: str | None,
    memory: str | None,
    unjudged: Unjudged,
    as_json: bool,
    folds: int | None = None,
    **declared: Any,
) -> None:
    """Train a ranker on DATA (LETOR text with qid, a table file, or bins kept by `mcrank bin`; - is standard
    input) and save the model.

    Options of the chosen ranker are listed below; `--ranker NAME --help` lists another one's. Ctrl-C ends
    training after the round under way and saves the model as it is then.
    """
    from mcrank.data.scores import read_scores
    from mcrank.rankers.stored import measure_of

    check_model_target(out, as_json)
    place = training_place(declared, folds)
    untrained = ctx.meta[CHOSEN](**given_options(declared, ctx))
    options = untrained.checked_options()
    try:
        measure_of(options)  # a wrong name should not have to wait until the data are read
    except MeasureError as error:
        raise click.UsageError(str(error), ctx) from None
    most = None if memory is None else bytes_of(memory, "--memory")
    if memory is not None and not untrained.trains_from_disk:
        raise click.UsageError(f"--memory is for boosted trees, which {ranker} is none of.", ctx)
    announce_compilation()
    n_jobs = options["n_jobs"]
    train_data: Any = None
    valid_data: Any = None
    planning = "cluster" in place and folds is None  # folds are cut here
    if planning:
        train_data = planned(data, unjudged, n_jobs)
        valid_data = None if valid is None else planned(valid, unjudged, n_jobs)
    else:
        train_data = _training_data(data, most, unjudged, n_jobs, options.get("categorical"))
    if valid is not None and not planning:
        valid_data = read_alike(valid, train_data, unjudged, n_jobs, spill=memory is not None)
    begin: dict[str, Any] = {
        name: read_scores(local_file(path))
        for name, path in {"init_score": init_score, "valid_init_score": valid_init_score}.items()
        if path is not None
    }
    begin["init_model"] = None if init_model is None else local_file(init_model)
    if "cluster" not in place:
        compile_for([ranker], n_jobs, held_out=valid is not None or folds is not None)
    start = time.perf_counter()
    with TrainingProgress(ranker) as rounds:
        trained = untrained.fit(
            train_data, valid=valid_data, callback=rounds, memory=most, folds=folds, **begin, **place
        )
    seconds = time.perf_counter() - start
    save_model(trained, out)
    best, measure = trained.best_round_, trained.options_["measure"]
    watched = trained.history_.get(measure, [])
    facts = {
        "model": out,
        "ranker": ranker,
        "rows": trained.provenance_["data"]["rows"],
        "queries": trained.provenance_["data"]["queries"],
        "rounds": trained.n_rounds_,
        "best round": best,
        **(
            {f"{'valid' if folds is None else 'held-out'} {measure}": watched[best - 1]}
            if 0 < best <= len(watched)
            else {}
        ),
        "seconds": round(seconds, 2),
    }
    if as_json:
        print_json({name.replace(" ", "_"): value for name, value in facts.items()})
    elif not is_quiet():
        print_facts(facts, err=out == STANDARD)
    if rounds.stopped:
        ctx.exit(INTERRUPTED)


def _training_data(
    data: str, memory: int | None, unjudged: Unjudged, n_jobs: int | None, keys: Any
) -> Dataset:
    """Read what to train on: bins that are kept, or data, on disk if it is to stay there."""
    from mcrank.boosting.budget import check_rows
    from mcrank.boosting.store import are_bins, open_bins
    from mcrank.data.scan import scan

    file = local_file(data, table=True)
    if are_bins(file):
        return open_bins(file)
    if memory is None:
        return read_telling(file, unjudged=unjudged, n_jobs=n_jobs, categorical=keys)
    plan = scan(file, **chosen_columns())
    check_rows(memory, plan.known_rows, plan.where)
    return read_telling(file, spill=True, unjudged=unjudged, n_jobs=n_jobs)


def read_alike(
    path: str, model: Dataset | Ranker, unjudged: Unjudged, n_jobs: int | None = None, *, spill: bool = False
) -> Dataset:
    """Read a data file with the features of other data, or those a ranker was trained on.

    Of a table only the columns with their names are looked at, if there are names. Where all rows of LETOR
    text leave out their last features, they are 0.
    """
    from mcrank.data.dataset import Dataset
    from mcrank.data.table_files import format_of

    if isinstance(model, Dataset):
        names, named, found = model.feature_names, model.named, model.categories
    else:
        names, named, found = model.feature_names_, hasattr(model, "feature_names_in_"), model.categories_
    file = local_file(path, table=True)
    wanted = names if named and format_of(file) is not None else None
    keys = [names[f] for f in found] if wanted is not None and found else None
    data = read_telling(
        file, spill=spill, unjudged=unjudged, n_jobs=n_jobs, features=wanted, categorical=keys
    )
    if data.named or data.n_features >= len(names):
        return data
    return read_telling(file, spill=spill, n_features=len(names), unjudged=unjudged, n_jobs=n_jobs)
