"""Workers that die, stop or fail: the model of an undisturbed run, or one clear error, in bounded time."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from contextlib import contextmanager

import pytest

import mcrank
from mcrank import Cluster, ClusterError
from mcrank.rankers.registry import to_bytes
from tests.cluster.conftest import PATIENCE, addresses, armed, kill, made, until

OPTIONS = {"n_estimators": 8, "num_leaves": 5, "min_samples_leaf": 3, "max_bins": 9, "n_jobs": 1}
DATA, VALID = made(), made(queries=12, seed=2)


def ranker():
    return mcrank.McRank(**OPTIONS)


@pytest.fixture(scope="module")
def alone():
    return to_bytes(ranker().fit(DATA, valid=VALID))


PLACES = {
    "before bins": ("mcrank.scale.tasks:train_place", 1),
    "in bins": ("mcrank.boosting.shared_cuts:first_beyond", 3),
    "in a step": ("mcrank.scale.mesh:Mesh.scatter", 7),
    "between two messages of a step": ("mcrank.scale.mesh:Mesh.agree", 9),
    "after a round": ("mcrank.scale.worker:Telling.round", 3),
    "in the last round": ("mcrank.scale.worker:Telling.round", 8),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_worker_that_is_killed(client, alone, place):
    with armed(client, *PLACES[place]) as worker:
        found = ranker().fit(DATA, valid=VALID, cluster=client)
        assert worker not in addresses(client)
    assert to_bytes(found) == alone


def test_the_first_worker_is_killed(client, alone):
    with armed(client, "mcrank.scale.worker:Telling.round", 3, which=0) as worker:
        found = ranker().fit(DATA, valid=VALID, cluster=client)
        assert worker not in addresses(client)
    assert to_bytes(found) == alone


def test_two_workers_are_killed_one_after_the_other(client, alone):
    with (
        armed(client, "mcrank.scale.worker:Telling.round", 2, which=1) as first,
        armed(client, "mcrank.scale.worker:Telling.round", 5, which=2) as second,
    ):
        found = ranker().fit(DATA, valid=VALID, cluster=client)
        assert not {first, second} & set(addresses(client))
    assert to_bytes(found) == alone


def test_a_worker_that_is_stopped_is_given_up(client, alone):
    with armed(client, "mcrank.scale.mesh:Mesh.scatter", 12, signal.SIGSTOP) as worker:
        found = ranker().fit(DATA, valid=VALID, cluster=Cluster(client, limit=5))
        assert worker in addresses(client)  # Dask does not know, and never would
    assert to_bytes(found) == alone


def test_a_worker_that_only_computes_for_long_is_not_given_up(client, alone):
    def slow():
        from mcrank.boosting import boost

        real = boost.Booster.round

        def round(self, number):
            if number == 2:
                time.sleep(5)
            return real(self, number)

        boost.Booster.round = round

    def told():
        return [event for _, event in client.get_events("mcrank") if event["worker"] == worker]

    worker = addresses(client)[1]
    before = {event["training"] for event in told()}
    client.run(slow, workers=[worker])
    try:
        found = ranker().fit(DATA, valid=VALID, cluster=Cluster(client, limit=2))
        # Events take their own way to the scheduler.
        until(lambda: told()[-1]["rounds"] == OPTIONS["n_estimators"], "its last round")
        assert len({event["training"] for event in told()} - before) == 1  # in one attempt
    finally:
        (pid,) = client.run(os.getpid, workers=[worker]).values()
        kill(client, worker, pid)
    assert to_bytes(found) == alone


def test_the_same_error_twice_ends_training_with_the_workers_own_words(client):
    def broken(scores, grades, offsets):
        raise MemoryError("no more memory here")

    data = made(queries=9)
    with pytest.raises(mcrank.McrankError, match="no more memory here"):
        mcrank.CustomRanker(loss=broken, n_estimators=3, n_jobs=1).fit(data, cluster=client)


def test_an_error_in_the_engine_is_told_after_the_second_time(client):
    def spoil():
        from mcrank.boosting import boost

        real = boost.Booster.round

        def round(self, number):
            if number == 3:
                raise RuntimeError("the disk is on fire")
            return real(self, number)

        boost.Booster.round = round

    workers = addresses(client)
    client.run(spoil, workers=workers[:1])
    try:
        with pytest.raises(ClusterError, match=r"failed twice in round 3.*the disk is on fire"):
            ranker().fit(DATA, cluster=client)
    finally:
        (pid,) = client.run(os.getpid, workers=workers[:1]).values()
        kill(client, workers[0], pid)


def lie(times):
    """At a worker: give frames the wrong turn, so many times from the thirtieth on."""
    from mcrank.scale import mesh

    real, made = mesh.frame, [0]

    def frame(kind, sender, turn, array):
        made[0] += 1
        return real(kind, sender, turn + (30 <= made[0] < 30 + times), array)

    mesh.frame = frame


def forget_the_token():
    """At a worker: prove nothing."""
    from mcrank.scale import sockets

    sockets._proof = lambda *of: bytes(32)


@contextmanager
def spoilt(client, *what):
    """Have a worker do what spoils it; afterwards it is gone."""
    worker = addresses(client)[1]
    (pid,) = client.run(os.getpid, workers=[worker]).values()
    client.run(*what, workers=[worker])
    try:
        yield worker
    finally:
        kill(client, worker, pid)


def test_a_worker_that_sends_a_wrong_frame_once(client, alone):
    with spoilt(client, lie, 1):
        found = ranker().fit(DATA, valid=VALID, cluster=Cluster(client, limit=20))
    assert to_bytes(found) == alone


def test_a_worker_that_goes_on_sending_wrong_frames(client):
    with spoilt(client, lie, 10**9), pytest.raises(ClusterError, match=r"sent a frame .* was due"):
        ranker().fit(DATA, valid=VALID, cluster=Cluster(client, limit=20))


def test_a_worker_that_does_not_know_the_token(client, alone):
    """Nobody lets it join: all goes over Dask's connections, which it is part of."""
    with spoilt(client, forget_the_token), pytest.warns(UserWarning, match="cannot connect with each other"):
        found = ranker().fit(DATA, valid=VALID, cluster=Cluster(client, limit=20))
    assert to_bytes(found) == alone


def test_a_worker_with_another_version_is_named(client):
    def pretend():
        import mcrank

        mcrank.__version__, real = "0.0.1", mcrank.__version__
        return real

    worker = addresses(client)[1]
    client.run(pretend, workers=[worker])
    try:
        with pytest.raises(ClusterError, match=rf"worker {worker} has mcrank 0\.0\.1"):
            ranker().fit(DATA, cluster=client)
    finally:
        (pid,) = client.run(os.getpid, workers=[worker]).values()
        kill(client, worker, pid)


def test_nothing_listens_and_nothing_is_held_afterwards(client):
    def ports():
        from mcrank.scale import streams, tasks

        found = set()
        for name in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
            with open(name) as table:
                lines = [line.split() for line in table.readlines()[1:]]
            open_ = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
            mine = {os.readlink(path) for path in open_ if os.path.islink(path)}
            found |= {row[1] for row in lines if row[3] == "0A" and f"socket:[{row[9]}]" in mine}
        return sorted(found), len(tasks._listeners), len(streams._boxes)

    # What a training that was refused let go of is let go of in its own time.
    until(lambda: all(tuple(held) == (0, 0) for _, *held in client.run(ports).values()), "nothing held")
    before = client.run(ports)
    ranker().fit(DATA, valid=VALID, cluster=client)
    assert client.run(ports) == before
    for listening, held, boxes in before.values():
        assert all(not address.startswith("00000000:") for address in listening)
        assert (held, boxes) == (0, 0)


def test_a_training_ends_when_its_client_does(client, workers):
    """Workers stop within seconds once nobody waits for them."""
    import distributed

    other = distributed.Client(workers.cluster, set_as_default=False)
    slow = mcrank.McRank(**OPTIONS | {"n_estimators": 100_000})
    ended = []

    def fit():
        try:
            slow.fit(DATA, cluster=other)
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=fit, daemon=True)
    thread.start()

    def training(dask_worker):
        return any(name.startswith("mcrank-") for name in dask_worker.metrics)

    until(lambda: all(client.run(training).values()), "training")
    other.close()
    until(lambda: not any(client.run(training).values()), "an end")
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert ended


def test_every_address_is_this_machines(client):
    for worker in addresses(client):
        assert socket.gethostbyname(worker.split("//")[1].split(":")[0]).startswith("127.")
