"""The first training after installing: what it takes is compiled by every core, as `mcrank warmup` does it.

Else it would be compiled where it is met, by one core, and without the shortcuts that only processes which do
nothing else may take.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Timer

from mcrank.cli.progress import say_compiling
from mcrank.cores import available_cores
from mcrank.kept.conditions import conditions
from mcrank.kept.folders import writable
from mcrank.kept.notes import Notes

# Parts of `mcrank warmup` by the ranker that is trained with default options; what others take is compiled
# where it is met.
_BOOSTED = frozenset({"bins", "trees"})
_PARTS = {
    "regression": _BOOSTED,
    "mcrank": _BOOSTED | {"roots"},
    "ordinal": _BOOSTED | {"roots"},
    "lambdamart": _BOOSTED | {"pairs"},
}
# To find all on disk takes two seconds where nobody has noted that it is there; of that nothing is told.
_QUIET_SECONDS = 3.0
_compiled: set[str] = set()  # parts that this process need not ask about again


def compile_for(rankers: Iterable[str], n_jobs: int | None, *, held_out: bool) -> None:
    """Have on disk what training these rankers takes; with rows held out measuring and scoring, too.

    Where one core is all that may be used, nothing can be kept, or no process started, nothing is done: then
    kernels are compiled where they are met.
    """
    parts: set[str] = set().union(*(_PARTS.get(ranker, frozenset()) for ranker in rankers))
    cores = available_cores()
    workers = cores if n_jobs is None or n_jobs < 1 else min(n_jobs, cores)
    if not parts or workers < 2:
        return
    parts |= {"measuring", "scoring"} if held_out else set()
    parts -= _compiled
    if not parts or (now := conditions()) is None:
        return
    _compiled.update(parts)
    known = Notes(now)
    if all(known.say_kept(part) for part in parts) or writable() is None:
        return
    from concurrent.futures.process import BrokenProcessPool

    from mcrank.cli.areas import AREAS
    from mcrank.cli.warmup import have_compiled

    told = Timer(_QUIET_SECONDS, say_compiling)
    told.daemon = True
    told.start()
    try:
        have_compiled({name: area for name, area in AREAS.items() if name in parts}, workers)
    except (OSError, ImportError, BrokenProcessPool):  # no semaphores, say, or no memory for a process more
        return
    finally:
        told.cancel()
