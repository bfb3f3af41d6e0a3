"""What a service is told when it starts: models, address, limits."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from mcrank.errors import OptionError
from mcrank.texts import check_text

TOKEN_VARIABLE = "MCRANK_SERVE_TOKEN"
_SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class Limits:
    """What one request, and all of them together, may cost.

    Attributes
    ----------
    body : int
        Bytes of a request's body.
    rows, columns : int
        Rows of a request, and columns of a row: those the model wants and others.
    seconds : float
        Time for a body to arrive, and again for its answer to be found.
    header_seconds : float
        Time for the lines before a body to arrive.
    header_bytes : int
        Bytes of those lines.
    waiting : int
        Bytes of all bodies that are being received or answered.
    """

    body: int = 16 << 20
    rows: int = 100_000
    columns: int = 10_000
    seconds: float = 30.0
    header_seconds: float = 10.0
    header_bytes: int = 32 << 10
    waiting: int = 256 << 20


class ModelFile(NamedTuple):
    """A model to serve: its name (``NAME`` or ``NAME@VERSION``) and its file."""

    key: str
    path: str

    @property
    def name(self) -> str:
        """The name without a version."""
        return self.key.partition("@")[0]


@dataclass(frozen=True)
class Settings:
    """All of it, in a form that can be given to another process.

    Attributes
    ----------
    models : tuple of ModelFile
        The first answers where a request names none; of several versions of a name the last answers to it.
    data : str or None
        A data file whose queries the page shows.
    hosts : tuple of str
        Names a request may call the service by; any where it is empty.
    token : bytes or None
        SHA-256 of the token a request must bring.
    threads : int
        Large requests answered at a time.
    reload_seconds : float
        How often files are looked at; 0 for never.
    workers : int
        Processes.
    counters : str or None
        A file in which they count together.
    slot : int
        Which of them this one is.
    """

    models: tuple[ModelFile, ...]
    data: str | None = None
    hosts: tuple[str, ...] = ()
    token: bytes | None = None
    threads: int = 1
    reload_seconds: float = 1.0
    workers: int = 1
    counters: str | None = None
    slot: int = 0
    verbose: bool = False
    limits: Limits = field(default_factory=Limits)

    def admits(self, token: bytes) -> bool:
        """Whether a token is the right one; takes as long for a nearly right one as for any other.

        Examples
        --------
        >>> from mcrank.serve.settings import Settings, digest
        >>> settings = Settings((), token=digest("a token of sixteen letters or more"))
        >>> settings.admits(b"a token of sixteen letters or more"), settings.admits(b"another")
        (True, False)
        """
        return self.token is not None and hmac.compare_digest(hashlib.sha256(token).digest(), self.token)


def digest(token: str) -> bytes:
    """Return what `Settings` keeps of a token; one that could be guessed is an `OptionError`."""
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise OptionError(
            f"The token must have {_SHORTEST_TOKEN} or more letters, digits or signs of ASCII, got "
            f"{len(token)} characters; make one with: openssl rand -hex 32."
        )
    return hashlib.sha256(token.encode()).digest()


def read_token(path: str | None, environment: Mapping[str, str]) -> bytes | None:
    """Return the digest of the token in a file, or else in `TOKEN_VARIABLE`; None where there is neither."""
    if path is not None:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            what = getattr(error, "strerror", None) or "it is not text"
            raise OptionError(f"--token-file {path} cannot be read: {what}.") from None
        return digest(text.strip())
    text = environment.get(TOKEN_VARIABLE, "")
    return digest(text.strip()) if text else None


def model_files(texts: Sequence[str]) -> tuple[ModelFile, ...]:
    """Return the models that arguments of the form ``FILE``, ``NAME=FILE`` or ``NAME@VERSION=FILE`` name.

    Examples
    --------
    >>> from mcrank.serve.settings import model_files
    >>> [model.key for model in model_files(["runs/web.mcrank", "shop@2=b.mcrank"])]
    ['web', 'shop@2']
    """
    found: dict[str, ModelFile] = {}
    for text in texts:
        key, sign, path = text.partition("=")
        if not sign or os.path.exists(text):
            key, path = Path(text).stem, text
        check_text(key, "the name of the model")
        name, sign, version = key.partition("@")
        if not name.strip() or not path or (sign and not version.strip()) or len(key) > 200:
            raise OptionError(
                f"A model must be FILE, NAME=FILE or NAME@VERSION=FILE with a name of at most 200 letters, "
                f"got {text!r}."
            )
        if key in found:
            raise OptionError(
                f"Two models are called {key!r}: {found[key].path} and {path}; name them, as in "
                f"{key}@1={found[key].path} {key}@2={path}."
            )
        found[key] = ModelFile(key, path)
    return tuple(found.values())


def is_loopback(host: str) -> bool:
    """Whether all addresses of a host are this machine's own; an unknown host is an `OptionError`.

    Examples
    --------
    >>> from mcrank.serve.settings import is_loopback
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise OptionError(f"--host {host} is no address of this machine: {error}.") from None
    return all(ipaddress.ip_address(str(one[4][0]).partition("%")[0]).is_loopback for one in found)
