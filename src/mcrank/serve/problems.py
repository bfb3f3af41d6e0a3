"""What is wrong with a request: a status, and the message that every error of mcrank has."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from mcrank.errors import McrankError
from mcrank.texts import printable

_LONGEST = 1000  # letters of a message: names in it come from strangers

BAD, UNAUTHORIZED, NOT_FOUND, NOT_ALLOWED, TIMEOUT = 400, 401, 404, 405, 408
TOO_LARGE, UNSUPPORTED, MISDIRECTED, UNPROCESSABLE = 413, 415, 421, 422
TOO_LONG_HEADER, INTERNAL, UNAVAILABLE = 431, 500, 503
# Nobody waits for the answer any more; counted, never sent.
CUT = 499
STATUSES = (
    200, 304, BAD, UNAUTHORIZED, NOT_FOUND, NOT_ALLOWED, TIMEOUT, TOO_LARGE, UNSUPPORTED, MISDIRECTED,
    UNPROCESSABLE, TOO_LONG_HEADER, CUT, INTERNAL, UNAVAILABLE,
)  # fmt: skip


class Problem(McrankError):
    """A request that cannot be answered: what, where, what was found, what to do.

    Attributes
    ----------
    status : int
        Status of the answer.
    headers : dict
        Headers of the answer.
    """

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def document(self) -> dict[str, Any]:
        """Return it as RFC 9457 has it.

        Examples
        --------
        >>> from mcrank.serve.problems import Problem
        >>> Problem(404, "there is no model 'x'; models: web.").document()
        {'title': 'Not Found', 'status': 404, 'detail': "there is no model 'x'; models: web."}
        """
        return {"title": HTTPStatus(self.status).phrase, "status": self.status, "detail": shown(str(self))}


class Cut(Exception):
    """Whoever asked has gone."""


def shown(text: str) -> str:
    """A message as it is sent: of one line, not too long, with nothing in it that a terminal would obey."""
    text = printable(text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
