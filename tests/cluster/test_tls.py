"""A cluster with certificates: workers' own connections are encrypted with them too."""

from __future__ import annotations

import subprocess

import distributed

import mcrank
from mcrank import Cluster
from mcrank.rankers.registry import to_bytes
from tests.cluster.conftest import made


def told(summons, worker, check):
    """At a worker: join as always, and leave behind whether the connections are encrypted."""
    import ssl

    from mcrank.scale import tasks

    mesh = tasks.real_mesh(summons, worker, check)
    worker.encrypted = [isinstance(peer.socket, ssl.SSLSocket) for peer in mesh._carrier._peers]
    return mesh


def watch(dask_worker):
    from mcrank.scale import tasks
    from tests.cluster.test_tls import told

    tasks.real_mesh, tasks._mesh = tasks._mesh, told


def test_encrypted_from_end_to_end(tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-subj", "/CN=mcrank", "-days", "1", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    files = {"tls_ca_file": str(cert), "require_encryption": True}
    for role in ("scheduler", "worker", "client"):
        files |= {f"tls_{role}_cert": str(cert), f"tls_{role}_key": str(key)}
    data = made(queries=20)
    options = {"n_estimators": 3, "num_leaves": 4, "n_jobs": 1}
    with (
        distributed.LocalCluster(
            2,
            threads_per_worker=1,
            host="tls://127.0.0.1",
            security=distributed.Security(**files),
            dashboard_address="127.0.0.1:0",
        ) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        assert client.scheduler.address.startswith("tls://")
        client.run(watch)
        found = mcrank.McRank(**options).fit(data, cluster=Cluster(client))
        seen = client.run(lambda dask_worker: dask_worker.encrypted)
    assert list(seen.values()) == [[True], [True]]
    assert to_bytes(found) == to_bytes(mcrank.McRank(**options).fit(data))
