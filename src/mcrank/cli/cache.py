"""`mcrank cache`: parse data files once, so that every later load is immediate."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import click

from mcrank.cli.columns import chosen_columns, column_options
from mcrank.cli.inputs import InputPath, as_called
from mcrank.cli.main import json_option, print_facts, print_json
from mcrank.cli.options import jobs_option
from mcrank.cli.progress import announce_compilation, passing_bar
from mcrank.cli.volume import can_move, detail, is_quiet
from mcrank.errors import OptionError
from mcrank.texts import printable

if TYPE_CHECKING:
    from mcrank.data.dataset import Dataset

Unjudged = Literal["error", "zero", "drop"]
unjudged_option = click.option(
    "--unjudged",
    type=click.Choice(["error", "zero", "drop"]),
    default="error",
    show_default=True,
    help="What to do with rows whose grade is negative or missing.",
)


@contextmanager
def reading(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """Give `mcrank.read` a progress callback that draws a bar, or none where it cannot be drawn."""
    if not can_move():
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with passing_bar(*columns) as bar:
        task = bar.add_task(printable(label), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def read_telling(path: str, *, spill: bool = False, **options: Any) -> Dataset:
    """Read a data file with a bar, into memory or to disk, and with --verbose tell what it holds."""
    from mcrank.data.read import read
    from mcrank.data.scan import scan
    from mcrank.data.spill import spilled

    start = time.perf_counter()
    name = as_called(path)
    # Whose features are named, needs none to be ignored.
    options |= chosen_columns(*(["ignore"] if options.get("features") is not None else []))
    with reading(name) as progress:
        if spill:
            n_jobs = options.pop("n_jobs", None)
            if options.pop("categorical", None) is not None:
                raise OptionError("categories are for data in memory; leave out --memory.")
            data = spilled(scan(path, **options), n_jobs, progress)
        else:
            data = read(path, progress=progress, **options)
    detail(
        f"read {name}: {data.n_rows:,} rows, {data.n_queries:,} queries, {data.n_features} "
        f"features, {time.perf_counter() - start:.2f} s"
    )
    return data


@click.command("cache")
@click.argument("data", nargs=-1, required=True, type=InputPath(pattern=True, standard=False))
@click.option(
    "--verify", is_flag=True, help="Check every byte of caches that are there; rebuild damaged ones."
)
@click.option("--remove", is_flag=True, help="Delete the caches instead.")
@unjudged_option
@column_options
@jobs_option("Threads that read LETOR text")
@json_option
def command(
    data: tuple[str, ...], verify: bool, remove: bool, unjudged: Unjudged, n_jobs: int | None, as_json: bool
) -> None:
    """Keep the parsed form of each DATA file beside it, where `read(..., cache=True)` finds it.

    A cache that fits its file is left alone; one that is stale or damaged is made again.
    """
    announce_compilation()
    results = [_drop(path) if remove else _cache(path, verify, unjudged, n_jobs) for path in data]
    if as_json:
        print_json(results)
        return
    for result in results if not is_quiet() else ():
        print_facts(result)


def _cache(path: str, verify: bool, unjudged: Unjudged, n_jobs: int | None) -> dict[str, Any]:
    from mcrank.data.cache import CacheNotKept, cache_path
    from mcrank.data.sources import find_files

    target = cache_path(find_files(path))
    before = target.stat() if target.exists() else None
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error", CacheNotKept)  # here the cache is the result
        try:
            rows = read_telling(path, cache="verify" if verify else True, unjudged=unjudged, n_jobs=n_jobs)
        except CacheNotKept as error:
            raise OSError(f"{error.__cause__ or error}".rstrip(".")) from None
    after = target.stat()
    fits = before is not None and (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    return {
        "data": path,
        "cache": str(target),
        "state": "fits" if fits else "made",
        "rows": rows.n_rows,
        "queries": rows.n_queries,
        "features": rows.n_features,
        "bytes": target.stat().st_size,
        "seconds": time.perf_counter() - start,
    }


def _drop(path: str) -> dict[str, Any]:
    from mcrank.data.cache import cache_path
    from mcrank.data.sources import find_files

    target = cache_path(find_files(path))
    existed = target.exists()
    target.unlink(missing_ok=True)
    return {"data": path, "cache": str(target), "state": "removed" if existed else "none"}
