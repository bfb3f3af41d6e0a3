"""Options of commands that may run on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mcrank.cli.cache import Unjudged, read_telling
from mcrank.cli.columns import chosen_columns
from mcrank.cli.inputs import local_file

if TYPE_CHECKING:
    from mcrank.scale.cluster import Cluster

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--cluster",
        metavar="ADDRESS",
        help="Use the Dask cluster of this scheduler, such as tls://head:8786; workers read DATA themselves.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(1, 1024),
        metavar="N",
        help="Use so many worker processes on this machine, which listen on 127.0.0.1 only.",
    ),
    click.option(
        "--insecure-cluster",
        is_flag=True,
        help="Allow --cluster tcp:// on another machine, where whoever reaches it runs code and reads data.",
    ),
)
_TRAINING = (
    click.option(
        "--journal",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="On a cluster, or with --folds (FILE.1, FILE.2, ...): keep every round in this file.",
    ),
    click.option("--resume", is_flag=True, help="Go on from the rounds in --journal, if it is there."),
    click.option(
        "--regroup", is_flag=True, help="On a cluster: bring rows of a query together that lie apart."
    ),
)


def cluster_options(*, training: bool) -> Callable[[F], F]:
    """Declare the options about a cluster, and those that only training has."""

    def declare(command: F) -> F:
        for option in reversed(_OPTIONS + (_TRAINING if training else ())):
            command = option(command)
        return command

    return declare


def cluster_of(cluster: str | None, workers: int | None, insecure_cluster: bool) -> Cluster | None:
    """Return the cluster that options name, if they name one."""
    if cluster is not None and workers is not None:
        raise click.UsageError("--cluster and --workers are two clusters; give one of them.")
    if cluster is None and workers is None:
        if insecure_cluster:
            raise click.UsageError("--insecure-cluster is for --cluster.")
        return None
    from mcrank.scale.cluster import Cluster

    return Cluster.of(Cluster(cluster if workers is None else workers, insecure=insecure_cluster))


def training_place(declared: dict[str, Any], folds: int | None) -> dict[str, Any]:
    """Take the options about a cluster out of those of a command; return what `fit` is told of it."""
    own = ("cluster", "workers", "insecure_cluster")
    place = cluster_of(*(declared.pop(name) for name in own))
    rest = {name: declared.pop(name) for name in ("journal", "resume", "regroup")}
    if place is not None:
        return {"cluster": place, **rest}
    if rest["regroup"] or (folds is None and any(rest.values())):
        raise click.UsageError(
            "--journal and --resume are for --folds, --cluster or --workers, --regroup for the last two."
        )
    return rest


def planned(path: str, unjudged: Unjudged, n_jobs: int | None) -> Any:
    """Return data for a cluster: a plan that workers read, or what only this machine can read."""
    from mcrank.data.scan import scan
    from mcrank.data.sources import find_files
    from mcrank.data.table_files import table_format

    file = local_file(path, table=True)
    if {table_format(found) for found in find_files(file)} <= {None, "parquet", "arrow"}:
        return scan(file, unjudged=unjudged, **chosen_columns())
    return read_telling(file, unjudged=unjudged, n_jobs=n_jobs)
