"""`mcrank warmup`: compile and cache kernels, so that no later run has to."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import time
import warnings
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from multiprocessing import get_all_start_methods, get_context, parent_process
from tempfile import gettempdir
from threading import Thread
from typing import Any, NamedTuple

import click

from mcrank.cli.areas import AREAS, FOR_CLUSTER, ON_DEMAND, Area
from mcrank.cli.main import json_option, print_facts, print_json
from mcrank.cli.options import jobs_option
from mcrank.cli.volume import is_quiet
from mcrank.cores import available_cores
from mcrank.errors import KernelError, did_you_mean
from mcrank.kept import notes
from mcrank.kept.conditions import are_told, conditions
from mcrank.kept.folders import VARIABLE, chosen, writable

_ALL = "all"  # every part, in place of a name
# Bytes of the folder for temporary files: the name of a socket has 104 and more, multiprocessing's part 33.
_LONGEST_FOLDER = 70


@click.command("warmup")
@click.argument("parts", nargs=-1, metavar="[PART]...")
@click.option(
    "--for-cluster", is_flag=True, help="Also what only training on a cluster uses: run it where workers are."
)
@jobs_option("Areas compiled at a time")
@json_option
def command(parts: tuple[str, ...], for_cluster: bool, n_jobs: int | None, as_json: bool) -> None:
    """Compile all kernels and keep them on disk; run it while building a container image.

    With one PART or more only those: reading and scoring are what predicting takes; bins, trees, roots,
    pairwise, pairs, stumps, linear, nets and measuring what training does. The rest is compiled when it is
    first used, as without this command. Explanations (explaining), rows of JSON in the service (serving),
    what only multi_output="tree" uses (vectors), only trees with limits on splits (l2, monotone and the like,
    not max_depth), of categories or of more than 256 bins (limits), only training on pairs in queries of
    4,096 documents or more (long), only training on four grades or more and 58,000 rows or more (large), and
    only lambdas of MAP, ERR and other measures but NDCG (general), is compiled if it is named, or everything
    is: all. An image of the service takes reading, scoring, explaining and serving.

    What is on disk is not compiled again: if that is everything, the command takes a fraction of a second.

    Kernels are kept in the folder MCRANK_CACHE_DIR, if it is set, else beside the package, in the user's
    folder for caches, or in one for temporary files: the first that can be written.
    """
    start = time.perf_counter()
    areas = _chosen(parts) | (FOR_CLUSTER if for_cluster else {})
    folder = _folder()
    seconds = have_compiled(areas, n_jobs)
    total = round(time.perf_counter() - start, 3)
    if as_json:
        print_json({"seconds": seconds, "total": total, "folder": folder})
    elif not is_quiet():
        times = {area: f"{value:7.2f} s" for area, value in {**seconds, "total": total}.items()}
        print_facts({**times, "folder": folder})


def _chosen(parts: tuple[str, ...]) -> dict[str, Area]:
    """Areas of these names; without any, all but those that few need."""
    every = AREAS | ON_DEMAND
    for name in parts:
        if name != _ALL and name not in every:
            raise click.UsageError(
                f"There is no part {name!r}; {did_you_mean(name, [*every, _ALL], 'parts:')}"
            )
    chosen = set(every if _ALL in parts else parts or AREAS)
    return {name: area for name, area in every.items() if name in chosen}


def _folder() -> str:
    """Return the folder that kernels will be kept in; an error if it is not the one asked for, or none."""
    asked, found = chosen(), writable()
    if asked is not None and asked != found and not (os.path.isdir(asked.path) and os.listdir(asked.path)):
        raise KernelError(
            f"{VARIABLE} names {os.path.dirname(asked.path)}, which cannot be written, so compiled kernels "
            "cannot be kept there. Make it a folder this user may write to, or unset it."
        )
    if found is None:
        raise KernelError(
            "There is no folder in which compiled kernels can be kept: neither beside the package nor in the "
            f"user's folder for caches nor for temporary files. Name one that can be written in {VARIABLE}."
        )
    return found.path


def have_compiled(areas: dict[str, Area], n_jobs: int | None = None) -> dict[str, float]:
    """Have the kernels of all areas on disk; return the seconds that each took."""
    now = conditions()
    known = notes.Notes(now) if now is not None else None
    seconds = {}
    for area in areas if known is not None else ():
        start = time.perf_counter()
        if known is not None and known.say_kept(area):
            seconds[area] = round(time.perf_counter() - start, 3)
    left = {area: what for area, what in areas.items() if area not in seconds}
    if left:
        uses = _compiled(left, n_jobs)
        seconds |= {area: use.seconds for area, use in uses.items()}
        # A source that was edited meanwhile may have been loaded before that or after.
        if now is not None and conditions() == now:
            for area, use in uses.items():
                notes.write(area, now, use.kernels or ())
    return {area: seconds[area] for area in areas}


class Use(NamedTuple):
    """A use of an area: seconds, and the kernels its process has used so far; None if they will not stay."""

    seconds: float
    kernels: frozenset[str] | None


def _compiled(areas: dict[str, Area], n_jobs: int | None) -> dict[str, Use]:
    """Use every area in a process that compiles what is not on disk."""
    # Processes, because Numba compiles on one thread at a time.
    workers = n_jobs or min(len(areas), available_cores())
    with ProcessPoolExecutor(workers, mp_context=_context(), initializer=_begin) as pool:
        return _in_order(pool, workers, areas)


def _context() -> Any:
    """How processes start: from one that has imported the compiler, where the system can, and the name of the
    socket by which it is asked is not too long for a socket's.
    """
    if "forkserver" not in get_all_start_methods() or len(os.fsencode(gettempdir())) > _LONGEST_FOLDER:
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(["mcrank.kernels"])
    return context


def _begin() -> None:
    """Prepare a process that compiles."""
    signal.signal(signal.SIGINT, _end)  # Ctrl-C is for the command, which says what it has to say
    # A compiler makes many small objects and keeps most of them: looking for garbage took an eighth.
    gc.disable()
    with contextlib.suppress(ImportError, AttributeError):  # a Numba that lacks what they change: without
        from mcrank.kernels.shortcuts import take_shortcuts

        take_shortcuts()
    # Whoever waits for work of a process that was killed waits forever.
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        _end()


def _end(*about: Any) -> None:
    """End this process at once, without a word."""
    os._exit(1)


def _in_order(pool: Executor, workers: int, areas: dict[str, Area]) -> dict[str, Use]:
    """Use every area as soon as what it needs is compiled."""
    uses: dict[str, Use] = {}
    running: dict[Future[Use], str] = {}
    while len(uses) < len(areas):
        begun = {*uses, *running.values()}
        for area, (_, needs) in areas.items():
            # No more than there are processes: a later area may be free to begin by then, and matter more.
            if len(running) < workers and area not in begun and needs & areas.keys() <= uses.keys():
                running[pool.submit(timed, area)] = area
        for done in wait(running, return_when=FIRST_COMPLETED).done:
            uses[running.pop(done)] = done.result()
    return uses


def timed(area: str) -> Use:
    """Use one area; return the seconds it took and the kernels it needed, perhaps with those before it."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of data as small as these, which nobody will use
        (AREAS | ON_DEMAND | FOR_CLUSTER)[area].use()
    seconds = round(time.perf_counter() - start, 3)
    from mcrank.kernels.cache import kernels_used
    from mcrank.kernels.stamp import VERSIONS

    return Use(seconds, kernels_used() if are_told(VERSIONS) else None)
