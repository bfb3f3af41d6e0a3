"""Two processes with one thread each against xgboost.dask and lightgbm.dask: CPU and wall seconds a round.

A round's cost is the difference of two trainings of different lengths, so that start-up, reading and binning
fall out; all run on the same Dask cluster of two worker processes of one thread. mcrank tells the seconds it
spent in exchanges apart. Last, the same in one process.

    python benchmarks/scale.py --rows 500000 --features 50 --leaves 10

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
from typing import Any

import numpy as np

GRADES, ROUNDS = 5, (3, 11)


def made(rows: int, features: int) -> tuple[Any, Any, Any]:
    stream = np.random.default_rng(1)
    X = stream.normal(size=(rows, features)).astype(np.float32)
    score = X[:, :8].sum(axis=1) + stream.normal(size=rows) * 2
    y = np.searchsorted(np.quantile(score, [0.55, 0.75, 0.9, 0.97]), score)
    return X, y, np.arange(rows) // 100


def worker_seconds(client: Any) -> list[float]:
    return sorted(client.run(time.process_time).values())


def cost(client: Any, fit: Any) -> dict[str, float]:
    """CPU seconds of all workers and of the busier one, and wall seconds, a round."""
    fit(2)  # compiled, loaded
    spent = []
    for rounds in ROUNDS:
        before, began = worker_seconds(client), time.perf_counter()
        fit(rounds)
        wall = time.perf_counter() - began
        used = [b - a for a, b in zip(before, worker_seconds(client), strict=True)]
        spent.append((sum(used), max(used), wall))
    apart = ROUNDS[1] - ROUNDS[0]
    both, busier, wall = ((b - a) / apart for a, b in zip(*spent, strict=True))
    return {"cpu": both, "busier": busier, "wall": wall}


def compare(args: argparse.Namespace) -> None:
    import dask.array as da
    import distributed

    import mcrank

    X, y, qid = made(args.rows, args.features)
    data = mcrank.Dataset(X, y, qid)
    options = {"num_leaves": args.leaves, "min_samples_leaf": 10}
    with (
        distributed.LocalCluster(
            2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as local,
        distributed.Client(local) as client,
    ):
        exchanged: list[float] = []

        def ours(rounds: int) -> None:
            mcrank.McRank(n_estimators=rounds, n_jobs=1, **options).fit(data, cluster=client)
            last = [event["exchange-seconds"] for _, event in client.get_events("mcrank")[-2:]]
            exchanged.append(min(last))  # the other one waited for this one

        found = {"mcrank": cost(client, ours)}
        chunks = (args.rows // 2 // 100 * 100, args.rows - args.rows // 2 // 100 * 100)
        if not args.alone:
            Xd, yd = (
                da.from_array(X, chunks=(chunks, -1)).persist(),
                da.from_array(y, chunks=(chunks,)).persist(),
            )
            found |= peers(client, Xd, yd, args.leaves)
    spent = []
    for rounds in (2, *ROUNDS):
        began, cpu = time.perf_counter(), time.process_time()
        mcrank.McRank(n_estimators=rounds, n_jobs=1, **options).fit(data)
        spent.append((time.process_time() - cpu, time.perf_counter() - began))
    apart = ROUNDS[1] - ROUNDS[0]
    cpu, wall = ((b - a) / apart for a, b in zip(spent[1], spent[2], strict=True))
    found["mcrank, one process"] = {"cpu": cpu, "busier": cpu, "wall": wall}
    found["mcrank"]["exchange"] = (exchanged[2] - exchanged[1]) / apart
    print(f"{args.rows} x {args.features}, {GRADES} grades, {args.leaves} leaves, seconds a round")
    for name, one in found.items():
        told = f", in exchanges {one['exchange']:.3f}" if "exchange" in one else ""
        print(f"  {name:24s} cpu {one['cpu']:.3f} (busier {one['busier']:.3f})  wall {one['wall']:.3f}{told}")


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
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--leaves", type=int, default=10)
    parser.add_argument("--alone", action="store_true", help="leave the peers out")
    parser.add_argument("--link", type=float, help="only the exchange, at so many Gb/s")
    parser.add_argument("--end", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.end:
        exchange_end(*json.loads(args.end))
    elif args.link:
        link(args.link)
    else:
        compare(args)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
