"""What a request asks for: its parts, each checked, from JSON or from parameters beside a binary body."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcrank.serve.number_table import read_parts
from mcrank.serve.problems import BAD, UNPROCESSABLE, UNSUPPORTED, Problem
from mcrank.serve.rows import ARROW, NPY, Rows, Wanted, check_ids, from_arrow, from_json, from_npy
from mcrank.serve.strict_json import kind_of, whole

if TYPE_CHECKING:
    from mcrank.serve.http import Request
    from mcrank.serve.models import Model
    from mcrank.serve.settings import Limits

JSON = "application/json"
# Parts of a JSON body that each endpoint knows; the others are refused.
PARTS = {
    "/score": ("model", "rows", "columns", "ids", "relevance", "probabilities"),
    "/rank": ("model", "rows", "columns", "query", "ids", "relevance", "probabilities", "top"),
    "/explain": ("model", "rows", "columns", "query", "ids", "relevance", "a", "b"),
}
_SOURCES = ("rows", "columns", "query")
# Parameters beside a body of rows; /explain has none, as its rows are few.
PARAMETERS = {
    "/score": ("model", "relevance", "probabilities"),
    "/rank": ("model", "relevance", "probabilities", "top"),
    "/explain": ("model", "relevance", "a", "b"),
}
_MOST_GRADES = 1024
_NUMBERS = ("top", "query", "a", "b")


@dataclass
class Asked:
    """What is asked, but for the rows, which only the model can make sense of."""

    path: str
    kind: str
    body: bytes
    parts: dict[str, Any] = field(default_factory=dict)

    @property
    def model(self) -> str | None:
        """Name of the model; None for the first."""
        return None if self.parts.get("model") is None else str(self.parts["model"])

    @property
    def relevance(self) -> str | list[float] | None:
        """What each grade is worth: "grade", "gain" or numbers."""
        found: str | list[float] | None = self.parts.get("relevance")
        return found

    def rows(self, model: Model, limits: Limits) -> Rows:
        """Return the rows as the model takes them."""
        word = "columns" if "columns" in self.parts else "rows"
        wanted = Wanted.of(model.ranker, f"model {model.key!a}", f"{word} of {self.path}", limits)
        if self.kind == NPY:
            return from_npy(self.body, wanted)
        if self.kind == ARROW:
            return from_arrow(self.body, wanted)
        rows = from_json(self.parts, wanted)
        ids = self.parts.get("ids")
        if ids is None:
            return rows
        ids = check_ids(ids, f"ids of {self.path}")
        if len(ids) != len(rows.values):
            raise Problem(
                UNPROCESSABLE,
                f"ids of {self.path} must be as many as the rows, got {len(ids)} for {len(rows.values)}.",
            )
        return Rows(rows.values, ids)


def read_asked(request: Request, body: bytes) -> Asked:
    """Take a request apart, or raise `Problem`."""
    path, kind = request.path, request.kind
    if kind in (NPY, ARROW):
        asked = Asked(path, kind, body, _from_parameters(request))
    elif kind == JSON:
        request.query(())
        asked = Asked(path, kind, b"", read_parts(body, path))
        _check_parts(asked.parts, path)
    else:
        raise Problem(
            UNSUPPORTED,
            f"The body of {path} must be {JSON}, {NPY} or {ARROW}, got {kind[:80]!a}; say which in "
            "Content-Type.",
        )
    _check_values(asked)
    return asked


def _check_parts(parts: dict[str, Any], path: str) -> None:
    odd = next((name for name in parts if name not in PARTS[path]), None)
    if odd is not None:
        raise Problem(
            BAD, f"The body of {path} has no part {odd[:80]!a}; it may have {', '.join(PARTS[path])}."
        )
    known = [name for name in _SOURCES if name in PARTS[path]]
    given = [name for name in known if name in parts]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        raise Problem(BAD, f"The body of {path} must have one of {', '.join(known)}, got {found}.")
    if "query" in given and "ids" in parts:
        raise Problem(
            BAD, f"The body of {path} must not have ids beside query, whose documents have their own."
        )
    null = next((name for name, value in parts.items() if value is None), None)
    if null is not None:
        raise Problem(BAD, f"{null} of {path} must not be null; leave it out.")


def _from_parameters(request: Request) -> dict[str, Any]:
    found: dict[str, Any] = dict(request.query(PARAMETERS[request.path]))
    relevance = found.get("relevance", "grade")
    if relevance not in ("grade", "gain"):
        with contextlib.suppress(ValueError):  # told by the check that follows
            found["relevance"] = [float(part) for part in relevance.split(",")]
    if found.get("probabilities") in ("true", "false"):
        found["probabilities"] = found["probabilities"] == "true"
    for name in ("top", "a", "b"):
        if found.get(name, "").isascii() and found.get(name, "").isdigit() and len(found[name]) < 18:
            found[name] = int(found[name])
    return found


def _check_values(asked: Asked) -> None:
    """Raise `Problem` where a part beside the rows is of another kind than it must be."""
    parts, path = asked.parts, asked.path
    for name in _NUMBERS:
        if name in parts:
            parts[name] = whole(parts[name])
    if not isinstance(parts.get("model", ""), str):
        raise Problem(BAD, f"model of {path} must be a text, got {kind_of(parts['model'])}.")
    if not isinstance(parts.get("probabilities", False), bool):
        raise Problem(
            BAD, f"probabilities of {path} must be true or false, got {kind_of(parts['probabilities'])}."
        )
    top = parts.get("top", 1)
    if type(top) is not int or not 1 <= top < 2**53:
        raise Problem(BAD, f"top of {path} must be a whole number from 1, got {kind_of(top)}.")
    relevance = parts.get("relevance", "grade")
    if relevance not in ("grade", "gain") and not _is_numbers(relevance):
        raise Problem(
            BAD,
            f"relevance of {path} must be 'grade', 'gain' or an array of 1 to {_MOST_GRADES} numbers, one "
            f"for each grade, got {kind_of(relevance)}.",
        )
    if type(parts.get("query", "")) not in (str, int):
        raise Problem(BAD, f"query of {path} must be the id of a query, got {kind_of(parts['query'])}.")
    for name in ("a", "b"):
        if type(parts.get(name, 0)) not in (str, int):
            raise Problem(
                BAD,
                f"{name} of {path} must be a row's number, from 0, or its id, got {kind_of(parts[name])}.",
            )


def _is_numbers(value: Any) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and 0 < len(value) <= _MOST_GRADES
        and all(type(entry) in (int, float) for entry in value)
    )
