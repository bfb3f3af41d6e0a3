"""`mcrank predict`: one score a line, in the order of the data file's rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from mcrank.cli.cluster import cluster_of, cluster_options
from mcrank.cli.columns import chosen_columns, column_options
from mcrank.cli.echo import standard_output, write_all
from mcrank.cli.inputs import STANDARD, InputPath, load_model, local_file
from mcrank.cli.main import json_option, json_text
from mcrank.cli.options import jobs_option, relevance_option
from mcrank.cli.outputs import check_target
from mcrank.cli.progress import announce_compilation
from mcrank.cli.train import read_alike
from mcrank.errors import OptionError

if TYPE_CHECKING:
    from mcrank.models.file import LoadedRanker

# Lines written at a time: enough to be fast, few enough to stay small.
_BLOCK = 65536


@click.command("predict")
@click.argument("model", type=InputPath())
@click.argument("data", type=InputPath(pattern=True))
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(),
    help="Write there instead of standard output, which is also -.",
)
@click.option(
    "--proba", is_flag=True, help="Write the probability of each grade, lowest grade first, tab-separated."
)
@relevance_option
@column_options
@cluster_options(training=False)
@jobs_option()
@json_option
def command(
    model: str,
    data: str,
    out: str | None,
    proba: bool,
    relevance: str | list[float] | None,
    cluster: str | None,
    workers: int | None,
    insecure_cluster: bool,
    n_jobs: int | None,
    as_json: bool,
) -> None:
    """Score every row of DATA with MODEL: one score a line, in the file's row order; either may be -."""
    from mcrank.data.scan import scan
    from mcrank.data.sources import find_files
    from mcrank.data.table_files import format_of
    from mcrank.data.table_sets import Columns, read_to_score
    from mcrank.writing import replace_file

    if out is None or out == STANDARD:
        out = STANDARD
        standard_output()  # a closed one is an error now, not when all is computed
    else:
        check_target(out)
    if proba and relevance is not None:
        raise click.UsageError("--proba and --relevance do not go together: probabilities have no relevance.")
    place = cluster_of(cluster, workers, insecure_cluster)
    announce_compilation()
    ranker = load_model(model, n_jobs)
    file = local_file(data, table=True)
    form = format_of(file)
    rows: Any
    if form is None and ranker.categories_:
        rows = read_alike(file, ranker, "zero", n_jobs)
    elif form in (None, "parquet", "arrow") and not ranker.categories_:
        rows = scan(file, **chosen_columns())  # scored in batches, whose grades are not looked at
    else:
        named = hasattr(ranker, "feature_names_in_")
        names = ranker.feature_names_ if named else None
        keys = None if names is None else [names[f] for f in ranker.categories_]
        chosen = chosen_columns(*([] if names is None else ["ignore"]))
        rows = read_to_score(find_files(file), Columns(features=names, categorical=keys, **chosen))
        if place is not None:
            raise click.UsageError(
                "a cluster scores LETOR text, Parquet and Arrow; write DATA as one of them."
            )
    if proba:
        values = _with_probabilities(ranker).predict_proba(rows, cluster=place)
    elif relevance is not None:
        values = _with_probabilities(ranker).predict(rows, relevance=relevance, cluster=place)
    else:
        values = ranker.predict(rows, cluster=place)
    lines = [json_text({"probabilities" if proba else "scores": values}), "\n"] if as_json else _lines(values)
    if out != STANDARD:
        replace_file(out, "".join(lines).encode("ascii"))
        return
    for block in lines:
        write_all(block.encode("ascii"))


def _with_probabilities(ranker: LoadedRanker) -> LoadedRanker:
    if not hasattr(ranker, "predict_proba"):
        raise OptionError(
            f"--proba and --relevance need a ranker with probabilities; {ranker.name} has none."
        )
    return ranker


def _lines(values: Any) -> Iterator[str]:
    """Yield blocks of lines; each number in the shortest form that reads back exactly."""
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK].tolist()
        if values.ndim == 2:
            yield "".join("\t".join(map(repr, row)) + "\n" for row in block)
        else:
            yield "\n".join(map(repr, block)) + "\n"
