"""`mcrank bin`: data binned once and kept in a file, which `mcrank train` trains on from disk."""

from __future__ import annotations

import os
import time

import click

from mcrank.cli.cache import Unjudged, reading, unjudged_option
from mcrank.cli.columns import chosen_columns, column_options
from mcrank.cli.inputs import InputPath, as_called, local_file
from mcrank.cli.main import json_option, print_result
from mcrank.cli.options import jobs_option
from mcrank.cli.outputs import check_target
from mcrank.cli.progress import announce_compilation


@click.command("bin")
@click.argument("data", type=InputPath(pattern=True))
@click.option("--out", required=True, metavar="FILE", type=click.Path(), help="Where to keep the bins.")
@click.option(
    "--max-bins",
    type=click.IntRange(2, 65536),
    default=256,
    show_default=True,
    help="Most bins of a feature, as of the rankers to be trained.",
)
@click.option(
    "--binning",
    type=click.Choice(["adaptive", "adaptive-refined", "quantile"]),
    default="adaptive",
    show_default=True,
    help="How features are cut into bins.",
)
@unjudged_option
@column_options
@jobs_option()
@json_option
def command(
    data: str, out: str, max_bins: int, binning: str, unjudged: Unjudged, n_jobs: int | None, as_json: bool
) -> None:
    """Bin DATA (LETOR text with qid, Parquet or Arrow; a pattern names several files) and keep the bins.

    DATA is read once and need not fit into memory. `mcrank train FILE` trains boosted trees on the bins, from
    disk; their models are those of training on DATA.
    """
    from mcrank.boosting.store import open_bins, write_bins
    from mcrank.data.scan import scan

    check_target(out, binary=True)
    announce_compilation()
    start = time.perf_counter()
    file = local_file(data, table=True)
    with reading(as_called(file)) as progress:
        plan = scan(file, unjudged=unjudged, **chosen_columns())
        write_bins(plan, out, max_bins=max_bins, binning=binning, n_jobs=n_jobs, progress=progress)
    kept = open_bins(out)
    facts = {
        "bins": out,
        "rows": kept.n_rows,
        "queries": kept.n_queries,
        "features": kept.n_features,
        "bytes": os.path.getsize(out),
        "seconds": round(time.perf_counter() - start, 2),
    }
    print_result(facts, as_json)
