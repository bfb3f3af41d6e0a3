"""Two processes with one thread each against xgboost.dask and lightgbm.dask: CPU and wall seconds a round.

A round's cost is the difference of two trainings of different lengths, so that start-up, reading and binning
fall out; all run on the same Dask cluster of two worker processes of one thread. mcrank tells apart the wall
and CPU seconds it spent in exchanges. Last, what two processes take that share nothing, each training on its
half alone at the same time (what they take more than one process is the machine's part), and one process.

    python benchmarks/scale.py --out docs/results/scale            # all shapes
    python benchmarks/scale.py --rows 500000 --features 50 --leaves 10
    python benchmarks/scale.py --growth                            # mcrank alone, more rows and more workers

With ``--link 1`` (or 10, Gb/s) only the exchange is measured, between two network namespaces joined by a
pair of virtual Ethernet devices with that bandwidth and a delay of 0.1 ms (iproute2's tc; as root).
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from report import machine, write

GRADES, ROUNDS, TURNS = 5, (3, 19), 3


class Shape(NamedTuple):
    """Data and trees of one comparison."""

    rows: int
    features: int
    leaves: int
    peers: bool = True

    @property
    def words(self) -> str:
        return f"{self.rows:,} x {self.features}, {self.leaves} leaves"


SHAPES = [Shape(500_000, features, leaves) for features in (50, 136) for leaves in (10, 31)]
SHAPES += [Shape(1_000_000, 50, leaves, peers=False) for leaves in (10, 31)]
GROWTH = [(rows, 2) for rows in (250_000, 500_000, 1_000_000, 2_000_000)]
GROWTH += [(1_000_000, workers) for workers in (1, 3, 4)]


def made(rows: int, features: int) -> tuple[Any, Any, Any]:
    stream = np.random.default_rng(1)
    X = stream.normal(size=(rows, features)).astype(np.float32)
    score = X[:, :8].sum(axis=1) + stream.normal(size=rows) * 2
    y = np.searchsorted(np.quantile(score, [0.55, 0.75, 0.9, 0.97]), score)
    return X, y, np.arange(rows) // 100


def worker_seconds(client: Any) -> list[float]:
    return sorted(client.run(time.process_time).values())


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """Client of a cluster of so many processes of one thread here."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


def cost(client: Any, fit: Any) -> dict[str, float]:
    """CPU seconds of all workers and of the busiest one, and wall seconds, a round: medians of the turns.

    Not the least: of differences that would be the one with the most noise.
    """
    fit(2)  # compiled, loaded
    turns = []
    for _ in range(TURNS):
        spent = []
        for rounds in ROUNDS:
            before, began = worker_seconds(client), time.perf_counter()
            fit(rounds)
            wall = time.perf_counter() - began
            used = [b - a for a, b in zip(before, worker_seconds(client), strict=True)]
            spent.append((sum(used), max(used), wall))
        turns.append([(b - a) / (ROUNDS[1] - ROUNDS[0]) for a, b in zip(*spent, strict=True)])
    both, busiest, wall = np.median(turns, axis=0).tolist()
    return {"cpu": both, "busiest": busiest, "wall": wall}


class Ours:
    """mcrank on a cluster, and what it spent in exchanges."""

    def __init__(self, client: Any, data: Any, options: dict[str, Any]) -> None:
        self._client, self._data, self._options = client, data, options
        self._spent: list[tuple[int, float, float]] = []

    def __call__(self, rounds: int) -> None:
        import mcrank

        mcrank.McRank(n_estimators=rounds, n_jobs=1, **self._options).fit(self._data, cluster=self._client)
        keys = ("exchange-seconds", "exchange-cpu-seconds")
        events = self._client.get_events("mcrank")[-len(self._client.nthreads()) :]
        last = [[event[key] for key in keys] for _, event in events]
        # Of the wall the lesser: the other one waited for this one.
        self._spent.append((rounds, min(wall for wall, _ in last), max(cpu for _, cpu in last)))

    def a_round(self) -> tuple[float, float]:
        """Wall and CPU seconds in exchanges, a round."""
        least, most = ([spent[1:] for spent in self._spent if spent[0] == rounds] for rounds in ROUNDS)
        apart = ROUNDS[1] - ROUNDS[0]
        found = [
            [(b - a) / apart for a, b in zip(*turn, strict=True)] for turn in zip(least, most, strict=True)
        ]
        wall, cpu = np.median(found, axis=0).tolist()
        return wall, cpu


def alone(data: Any, rounds: int, options: dict[str, Any]) -> None:
    """At a worker: train on what it has, with nobody."""
    import mcrank

    mcrank.McRank(n_estimators=rounds, n_jobs=1, **options).fit(data)


class Apart:
    """Both workers at the same time, each on half of the queries, without a word to the other."""

    def __init__(self, client: Any, data: Any, options: dict[str, Any]) -> None:
        self._client, self._options = client, options
        halves = np.array_split(np.arange(data.n_queries), 2)
        self._parts = [
            (worker, client.scatter(data.select(half), workers=[worker]))
            for worker, half in zip(sorted(client.nthreads()), halves, strict=True)
        ]

    def __call__(self, rounds: int) -> None:
        submit, options = self._client.submit, self._options
        tasks = [submit(alone, part, rounds, options, workers=[w], pure=False) for w, part in self._parts]
        self._client.gather(tasks)


def here(data: Any, options: dict[str, Any]) -> dict[str, float]:
    """The same in one process."""
    import mcrank

    turns = []
    for turn in range(TURNS + 1):  # the first compiles and loads
        spent = []
        for rounds in ROUNDS if turn else (2, 2):
            began, cpu = time.perf_counter(), time.process_time()
            mcrank.McRank(n_estimators=rounds, n_jobs=1, **options).fit(data)
            spent.append((time.process_time() - cpu, time.perf_counter() - began))
        turns.append([(b - a) / (ROUNDS[1] - ROUNDS[0]) for a, b in zip(*spent, strict=True)])
    cpu, wall = np.median(turns[1:], axis=0).tolist()
    return {"cpu": cpu, "busiest": cpu, "wall": wall}


def compare(shape: Shape) -> list[dict[str, Any]]:
    """Rows of the table for one shape of data and trees."""
    import dask.array as da

    import mcrank

    X, y, qid = made(shape.rows, shape.features)
    data, options = mcrank.Dataset(X, y, qid), {"num_leaves": shape.leaves, "min_samples_leaf": 10}
    with cluster(2) as client:
        ours = Ours(client, data, options)
        found: dict[str, dict[str, Any]] = {"mcrank": cost(client, ours)}
        wall, cpu = ours.a_round()
        found["mcrank"] |= {"exchange wall": wall, "exchange cpu": cpu}
        found["mcrank, two apart"] = cost(client, Apart(client, data, options))
        if shape.peers:
            cut = shape.rows // 2 // 100 * 100
            chunks = (cut, shape.rows - cut)
            Xd = da.from_array(X, chunks=(chunks, -1)).persist()
            found |= peers(client, Xd, da.from_array(y, chunks=(chunks,)).persist(), shape.leaves)
    found["mcrank, one process"] = here(data, options)
    empty: dict[str, Any] = {"exchange wall": None, "exchange cpu": None}
    return [{"data": shape.words, "system": name, **empty, **one} for name, one in found.items()]


def grown(rows: int, workers: int) -> dict[str, Any]:
    """What rows and workers cost: 50 features, 10 leaves, CPU seconds a round."""
    import mcrank

    data = mcrank.Dataset(*made(rows, 50))
    with cluster(workers) as client:
        ours = Ours(client, data, {"num_leaves": 10, "min_samples_leaf": 10})
        found, (_, exchange) = cost(client, ours), ours.a_round()
    return {"rows": f"{rows:,}", "workers": workers, **found, "exchange cpu": exchange}


def verdicts(rows: list[dict[str, Any]]) -> list[str]:
    """What the table says about each shape."""
    said = []
    for shape in dict.fromkeys(row["data"] for row in rows):
        by = {row["system"]: row for row in rows if row["data"] == shape}
        ours, one, apart = by["mcrank"], by["mcrank, one process"], by["mcrank, two apart"]
        share = ours["exchange cpu"] / ours["busiest"], ours["exchange wall"] / ours["wall"]
        words = f"{shape}: exchanges {share[0]:.1%} of the busiest worker's CPU, {share[1]:.1%} of the wall"
        words += f"; one process takes {one['wall'] / ours['wall']:.2f} times the wall time of two"
        more = ours["cpu"] / one["cpu"], apart["cpu"] / one["cpu"]
        words += f", which take {more[0]:.2f} times its CPU time ({more[1]:.2f} where they share nothing)"
        others = [row for name, row in by.items() if not name.startswith("mcrank")]
        for key, what in (("cpu", "CPU"), ("wall", "wall")) if others else ():
            best = min(others, key=lambda row: row[key])
            words += f"; {best['system']}, the faster peer, {best[key] / ours[key]:.2f} times our {what} time"
        said.append(words)
    return said


def peers(client: Any, X: Any, y: Any, leaves: int) -> dict[str, dict[str, float]]:
    import lightgbm
    import xgboost.dask

    matrix = xgboost.dask.DaskQuantileDMatrix(client, X, y, max_bin=256)

    def theirs(rounds: int) -> None:
        settings = {
            "objective": "multi:softprob", "num_class": GRADES, "tree_method": "hist", "max_leaves": leaves,
            "grow_policy": "lossguide", "max_depth": 0, "nthread": 1,
        }  # fmt: skip
        xgboost.dask.train(client, settings, matrix, num_boost_round=rounds)

    def lights(rounds: int) -> None:
        lightgbm.DaskLGBMClassifier(
            n_estimators=rounds, num_leaves=leaves, max_bin=255, n_jobs=1, client=client, verbose=-1,
            tree_learner="data", min_child_samples=10,
        ).fit(X, y)  # fmt: skip

    return {"xgboost.dask": cost(client, theirs), "lightgbm.dask": cost(client, lights)}


def exchange_end(rank: int, addresses: list[list[Any]], token: str) -> None:
    """One end of the measured exchange, in its own namespace."""
    import socket

    from mcrank.scale.mesh import Mesh
    from mcrank.scale.sockets import Invitation, join

    listener = socket.create_server((addresses[rank][0], addresses[rank][1]))
    invitation = Invitation(rank, tuple((h, p) for h, p in addresses), bytes.fromhex(token), 30.0)
    while True:
        try:
            mesh = Mesh(join(invitation, listener))
            break
        except ConnectionError:  # the other end is not there yet
            time.sleep(0.2)
            listener = socket.create_server((addresses[rank][0], addresses[rank][1]))
    found = {}
    for counters in (128, 12_800, 64_000, 174_080):  # 1 KB, 100 KB, 500 KB (5 trees x 50 features), 1.4 MB
        hists, took = np.ones((1, counters), dtype=np.int64), []
        for _ in range(30):
            began = time.perf_counter()
            mesh.scatter(hists, [0, counters // 2, counters])
            mesh.add(np.ones(128, dtype=np.int64))
            took.append(time.perf_counter() - began)
        found[8 * counters] = (min(took), float(np.median(took)))
    mesh.close()
    if rank == 0:
        for size, (least, median) in found.items():
            print(f"  step of {size:>9,} bytes: {1e3 * least:.2f} ms at best, {1e3 * median:.2f} median")


def link(gigabits: float) -> None:
    """Measure the exchange between two namespaces with limited bandwidth."""
    names, token = ("mcrank-a", "mcrank-b"), secrets.token_hex(32)
    addresses = [["10.77.0.1", 7700], ["10.77.0.2", 7701]]
    set_up = [f"ip netns add {name}" for name in names]
    set_up.append(f"ip link add veth-a netns {names[0]} type veth peer name veth-b netns {names[1]}")
    for name, device, (host, _) in zip(names, ("veth-a", "veth-b"), addresses, strict=True):
        inside = f"ip netns exec {name}"
        limit = f"tbf rate {gigabits}gbit burst 256kb latency 50ms"
        set_up += [
            f"{inside} ip addr add {host}/24 dev {device}", f"{inside} ip link set {device} up",
            f"{inside} ip link set lo up", f"{inside} tc qdisc add dev {device} root handle 1: {limit}",
        ]  # fmt: skip
    ends: list[subprocess.Popen[bytes]] = []
    try:
        for command in set_up:
            subprocess.run(command.split(), check=True)
        delay = "tc qdisc add dev {} parent 1: handle 2: netem delay 0.1ms"
        later = [
            subprocess.run(
                ["ip", "netns", "exec", name, *delay.format(device).split()], check=False, capture_output=True
            ).returncode
            for name, device in zip(names, ("veth-a", "veth-b"), strict=True)
        ]
        print(
            f"{gigabits:g} Gb/s, {'no delay (a kernel without netem)' if any(later) else '0.1 ms each way'}"
        )
        for rank, name in enumerate(names):
            words = [sys.executable, __file__, "--end", json.dumps([rank, addresses, token])]
            ends.append(subprocess.Popen(["ip", "netns", "exec", name, *words]))
        for end in ends:
            end.wait(120)
    finally:
        for end in ends:
            if end.poll() is None:
                end.kill()
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, help="one shape only; all of them without")
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--leaves", type=int, default=10)
    parser.add_argument("--alone", action="store_true", help="leave the peers out")
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    parser.add_argument("--growth", action="store_true", help="only how cost grows with rows and workers")
    parser.add_argument("--link", type=float, help="only the exchange, at so many Gb/s")
    parser.add_argument("--end", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.end:
        exchange_end(*json.loads(args.end))
    elif args.link:
        link(args.link)
    elif args.growth:
        rows = [grown(*one) for one in GROWTH]
        title = "On a cluster, with rows and workers: 50 features, 5 grades, 10 leaves, seconds a round"
        write(title, {"machine": machine(), "rows": rows, "verdicts": []}, args.out)
    else:
        one = None if args.rows is None else [Shape(args.rows, args.features, args.leaves)]
        shapes = [shape._replace(peers=shape.peers and not args.alone) for shape in one or SHAPES]
        rows = [row for shape in shapes for row in compare(shape)]
        title = f"On a cluster of two processes of one thread: {GRADES} grades, seconds a round"
        write(title, {"machine": machine(), "rows": rows, "verdicts": verdicts(rows)}, args.out)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
