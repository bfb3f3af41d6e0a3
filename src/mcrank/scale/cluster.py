"""`Cluster`: the Dask cluster of a training, checked, and what to do when something goes wrong there."""

from __future__ import annotations

import ipaddress
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from mcrank.errors import ClusterError, OptionError

_MISSING = "a cluster needs Dask: pip install 'mcrank[dask]'."


@dataclass(frozen=True)
class Cluster:
    """A Dask cluster to work on; a client, an address or a number of local processes alone do as well.

    Parameters
    ----------
    where : distributed.Client, str or int
        A client; the address of a scheduler; or so many processes of an own cluster on this machine, which
        listens on 127.0.0.1 only and ends with the call.
    limit : float
        Seconds in which nothing is heard from a worker in an exchange before it is given up.
    insecure : bool
        Use a scheduler on another machine without TLS. Whoever reaches such a scheduler or worker can run
        any code there, and read what they send.
    workers : int or sequence of str, optional
        How many workers of the cluster to use, or their addresses; all by default.
    carrier : {"sockets", "dask"}
        What carries histograms: connections of their own between workers, or, where only Dask's ports are
        open, Dask's.

    Examples
    --------
    >>> from mcrank import Cluster
    >>> Cluster("tcp://192.0.2.7:8786").check()
    Traceback (most recent call last):
    mcrank.errors.OptionError: cluster tcp://192.0.2.7:8786 is another machine without TLS: ...
    """

    where: Any
    limit: float = 60.0
    insecure: bool = False
    workers: Any = None
    carrier: Literal["sockets", "dask"] = "sockets"

    @classmethod
    def of(cls, given: Any) -> Cluster:
        """Return what a caller gave as a cluster, checked."""
        cluster = given if isinstance(given, cls) else cls(given)
        cluster.check()
        return cluster

    def check(self) -> None:
        """Raise `OptionError` where it cannot be used."""
        where = self.where
        if isinstance(where, bool) or not (
            isinstance(where, (str, int)) or (hasattr(where, "submit") and hasattr(where, "scheduler"))
        ):
            raise OptionError(
                "cluster must be a distributed.Client, the address of a scheduler (tls://host:8786) or a "
                f"number of local workers, got {type(where).__name__}."
            )
        if isinstance(where, int) and not 1 <= where <= 1024:
            raise OptionError(f"cluster must be 1 to 1024 local workers, got {where}.")
        if not 0 < self.limit <= 86400:
            raise OptionError(f"limit of Cluster must be seconds up to a day, got {self.limit!r}.")
        if self.workers is not None and (
            isinstance(self.workers, (bool, str)) or (isinstance(self.workers, int) and self.workers < 1)
        ):
            raise OptionError(
                f"workers of Cluster must be a number of workers or their addresses, got {self.workers!r}."
            )
        if self.carrier not in ("sockets", "dask"):
            raise OptionError(f"carrier of Cluster must be sockets or dask, got {self.carrier!r}.")
        if isinstance(where, str):
            self._check_address(where)
        elif not isinstance(where, int):
            self._check_address(getattr(where.scheduler, "address", ""))

    def chosen(self, there: Sequence[str]) -> list[str]:
        """Return the workers to use, of those there are."""
        if self.workers is None or isinstance(self.workers, int):
            return sorted(there)[: self.workers]
        return [worker for worker in sorted(there) if worker in self.workers]

    def _check_address(self, address: str) -> None:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        if self.insecure or parts.scheme in ("tls", "wss", "inproc") or _is_loopback(parts.hostname or ""):
            return
        raise OptionError(
            f"cluster {address} is another machine without TLS: whoever reaches a Dask port runs code there, "
            "and data would go over the network in the clear. Use tls:// with certificates, or say "
            "insecure=True (--insecure-cluster) on a network where nobody else is."
        )

    @contextmanager
    def client(self) -> Iterator[Any]:
        """Give a client of the cluster; what is started here ends here."""
        try:
            import distributed
        except ImportError:
            raise ClusterError(_MISSING) from None
        if not isinstance(self.where, (str, int)):
            yield self.where
            return
        if isinstance(self.where, str):
            try:
                client = distributed.Client(self.where, set_as_default=False)
            except (OSError, TimeoutError, ValueError, TypeError) as error:
                raise ClusterError(f"cluster {self.where} cannot be reached: {error}.") from None
            with client:
                yield client
            return
        own = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "processes": True}
        try:
            local = distributed.LocalCluster(n_workers=self.where, **own)
        except (RuntimeError, OSError, TimeoutError) as error:
            raise ClusterError(f"{self.where} workers cannot be started here: {error}.") from error
        with local, distributed.Client(local, set_as_default=False) as client:
            client.run(_leave_ctrl_c)
            yield client


def _leave_ctrl_c() -> None:
    """In a worker of one's own: Ctrl-C is for who started it, who then ends the training."""
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
