"""Places of a training as threads of one process, which talk through a mesh of socket pairs."""

from __future__ import annotations

import threading
from contextlib import suppress

from mcrank.rankers.cluster import Asked, Conduct
from mcrank.rankers.stored import measure_of
from mcrank.scale.frames import PeerLost
from mcrank.scale.launch import Whole
from mcrank.scale.mesh import Mesh
from mcrank.scale.sockets import pairs
from mcrank.scale.worker import Orders, train_place
from mcrank.sums import ALONE


def in_mesh(parts, task, limit=600.0):  # a place may be busy compiling
    """Run ``task(part, mesh)`` in a thread for each part; return what each gave, or raise what one raised."""
    given, errors = [None] * len(parts), []
    meshes = [Mesh(carrier) for carrier in pairs(len(parts), limit)]

    def work(rank):
        try:
            given[rank] = task(parts[rank], meshes[rank])
        except BaseException as error:
            errors.append(error)
        finally:
            meshes[rank].close()

    threads = [threading.Thread(target=work, args=[rank]) for rank in range(len(parts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = [error for error in errors if not isinstance(error, PeerLost)]
    if errors:
        raise (told or errors)[0]
    return given


def fitted(
    ranker, parts, valid_parts=None, *, split=True, done=0, init_model=None, n_jobs=1, categorical=None
):
    """Fit a ranker on parts in a mesh; with ``done`` rounds, twice: the second time from the journal."""
    options = ranker.checked_options()
    options["measure"] = measure_of(options)
    conduct = Conduct(ranker, options, Asked(None, init_model=init_model), None, categorical)
    features = max(part.n_features for part in parts)
    sizes = [sum(getattr(part, name) for part in parts) for name in ("n_rows", "n_queries")]
    whole = Whole(*sizes, features, parts[0].select([0]), ())
    held_out = [None] * len(parts) if valid_parts is None else valid_parts
    for stop in [done, None] if done else [None]:
        opening, rounds = conduct.journal.opening, [entry.trees for entry in conduct.journal.rounds]
        job = conduct.job(whole)
        orders = Orders(job, split, None if opening is None else opening.bins, rounds, n_jobs)

        def check(stop=stop):
            if stop is not None and len(conduct.journal.rounds) >= stop:
                raise InterruptedError

        def work(part, mesh, orders=orders, check=check):
            sums = mesh if mesh.size > 1 else ALONE
            return train_place(orders, part, held_out[mesh.rank], sums, conduct.journal.take, check)

        with suppress(InterruptedError):
            in_mesh(parts, work)
    return ranker._adopt(*conduct.outcome(whole, False))
