"""The service described as OpenAPI 3.1 has it: from the models that are loaded now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mcrank
from mcrank.serve.asked import JSON, PARAMETERS
from mcrank.serve.http import PROBLEM
from mcrank.serve.models import Model
from mcrank.serve.rows import ARROW, NPY
from mcrank.serve.settings import Settings

_LARGEST = 3.4028234663852886e38  # float32
_WORDS = {
    400: "The request cannot be read.",
    401: "A token is needed, or is wrong.",
    404: "There is no such model or query.",
    405: "Another method is needed.",
    408: "The body did not arrive in time.",
    413: "The body, or the number of rows or columns, is above a limit.",
    415: "The body is of a kind that is not read.",
    421: "The service is called by a name that it does not answer to.",
    422: "The parts of the request do not fit each other or the model.",
    503: "The service is busy, or still loading.",
}
_TITLES = {
    "/score": ("Scores of rows", "The score of each row, in the order given; higher ranks first."),
    "/rank": ("Rows in ranking order", "The rows are one query's; of equal scores the first stays first."),
    "/explain": (
        "Why one row is above another",
        "What each feature makes of the difference of two scores, adding up to it, and what would swap them.",
    ),
}


def document(models: Sequence[Model], settings: Settings, has_queries: bool) -> dict[str, Any]:
    """Return the description; without models it tells nothing of them.

    Examples
    --------
    >>> from mcrank.serve.openapi import document
    >>> from mcrank.serve.settings import Settings
    >>> sorted(document([], Settings(()), False)["paths"])[:3]
    ['/explain', '/health', '/metrics']
    """
    paths = {path: {"post": _asking(path, models, has_queries)} for path in _TITLES}
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "mcrank",
            "version": mcrank.__version__,
            "description": "Ranking, scores, probabilities of grades and explanations of learned rankers.",
        },
        "paths": paths | _reading(),
        "components": {"schemas": _schemas(models, settings)},
    }
    if settings.token is not None:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for methods in found["paths"].values():
        for operation in methods.values():
            if operation.pop("guarded") and settings.token is not None:
                operation["security"] = [{"token": []}]
    return found


def _asking(path: str, models: Sequence[Model], has_queries: bool) -> dict[str, Any]:
    title, words = _TITLES[path]
    name = path[1:]
    binary = {"schema": {"type": "string", "contentMediaType": "application/octet-stream"}}
    content: dict[str, Any] = {JSON: {"schema": _body(path, has_queries)}}
    if models:
        content[JSON]["examples"] = _examples(path, models[0])
    return {
        "operationId": name,
        "summary": title,
        "description": words,
        "guarded": True,
        "requestBody": {"required": True, "content": content | {NPY: binary, ARROW: binary}},
        "x-parameters-beside-npy-and-arrow": list(PARAMETERS[path]),
        "responses": _responses(f"#/components/schemas/{name}", 400, 401, 404, 408, 413, 415, 421, 422, 503),
    }


def _body(path: str, has_queries: bool) -> dict[str, Any]:
    """Parts of a body; exactly one of them says where the rows are."""
    parts: dict[str, Any] = {
        "model": {"$ref": "#/components/schemas/name"},
        "rows": {"$ref": "#/components/schemas/rows"},
        "columns": {"$ref": "#/components/schemas/columns"},
        "ids": {
            "type": "array",
            "items": {"type": ["string", "integer"], "minimum": -(2**53), "maximum": 2**53},
            "description": "What the rows are called; as many as there are rows.",
        },
        "relevance": {"$ref": "#/components/schemas/relevance"},
    }
    if path != "/explain":
        parts["probabilities"] = {
            "type": "boolean",
            "description": "Also tell the probability of each grade.",
        }
    if path == "/rank":
        parts["top"] = {
            "type": "integer",
            "minimum": 1,
            "maximum": 2**53 - 1,
            "description": "Tell the first only.",
        }
    if path == "/explain":
        place = {"type": ["string", "integer"], "minimum": -(2**53), "maximum": 2**53}
        parts["a"] = place | {"description": "A row's number, from 0, or its id; 0 if left out."}
        parts["b"] = place | {"description": "The other row; 1 if left out."}
    sources = ["rows", "columns"]
    if path != "/score" and has_queries:
        parts["query"] = {
            "type": ["string", "integer"], "minimum": -(2**53), "maximum": 2**53,
            "description": "The id of a query of the service's data, in place of rows.",
        }  # fmt: skip
        sources.append("query")
    one_of = [{"required": [source]} for source in sources]
    found = {"type": "object", "properties": parts, "additionalProperties": False, "oneOf": one_of}
    # The documents of a query have ids of their own.
    return found | {"not": {"required": ["query", "ids"]}} if "query" in sources else found


def _examples(path: str, model: Model) -> dict[str, Any]:
    names = list(model.ranker.feature_names_)
    known = model.ranker.categories_
    rows: list[list[Any]] = [
        [known[f][row % len(known[f])] if known.get(f) else float((row + f) % 3) for f in range(len(names))]
        for row in range(2)
    ]
    more: dict[str, Any] = {} if model.grades is None or path == "/explain" else {"probabilities": True}
    return {
        "by place": {"value": {"rows": rows, "ids": ["A", "B"]} | more},
        "by name": {
            "value": {"model": model.key, "rows": [dict(zip(names, row, strict=True)) for row in rows]}
        },
        "columns": {"value": {"columns": dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))}},
    }


def _schemas(models: Sequence[Model], settings: Settings) -> dict[str, Any]:
    value: dict[str, Any] = {
        "type": ["number", "boolean", "null"],
        "minimum": -_LARGEST,
        "maximum": _LARGEST,
        "description": "null is a missing value; true and false are 1 and 0.",
    }
    if any(model.ranker.categories_ for model in models):
        value["type"].append("string")
        value["description"] += " Texts are for features that hold categories; an unknown one is missing."
    names = [list(model.ranker.feature_names_) for model in models]
    widths = [len(one) for one in names]
    by_place: dict[str, Any] = {"type": "array", "items": {"$ref": "#/components/schemas/value"}}
    if models:
        by_place |= {"minItems": min(widths), "maxItems": max(widths)}
    shared = [name for name in names[0] if all(name in one for one in names)] if models else []
    by_name = {
        "type": "object",
        "required": shared,
        "properties": {name: {"$ref": "#/components/schemas/value"} for name in shared},
        "description": "Values by name of the feature; others are not looked at, doc_id is the row's id.",
    }
    columns = {
        "type": "object",
        "required": shared,
        "properties": {
            name: {"type": "array", "items": {"$ref": "#/components/schemas/value"}} for name in shared
        },
        "additionalProperties": {"type": "array"},
        "description": "One array for each feature, all of one length.",
    }
    rows = {
        "description": "All rows by place, or all by name.",
        "maxItems": settings.limits.rows,
        "anyOf": [{"type": "array", "items": by_place}, {"type": "array", "items": by_name}],
    }
    name: dict[str, Any] = {
        "type": "string",
        "description": "NAME or NAME@VERSION; the first model if left out.",
    }
    if models:
        name["enum"] = sorted({key for model in models for key in (model.key, model.key.partition("@")[0])})
    relevance = {
        "description": "What a grade is worth: itself, 2^grade - 1, or a number for each grade, not falling.",
        "anyOf": [
            {"enum": ["grade", "gain"]},
            {"type": "array", "minItems": 1, "maxItems": 1024, "items": {"type": "number"}},
        ],
    }
    return {
        "value": value, "rows": rows, "columns": columns, "name": name, "relevance": relevance,
        **_answers(), "problem": _PROBLEM,
    }  # fmt: skip


_PROBLEM = {
    "type": "object",
    "required": ["title", "status", "detail"],
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What, where, what was found, what to do."},
    },
}
_NUMBERS = {"type": "array", "items": {"type": "number"}}


def _answers() -> dict[str, Any]:
    """What /score, /rank, /explain, /models and /queries answer."""
    text, number, name = {"type": "string"}, {"type": "number"}, {"type": ["string", "integer"]}
    head = {"model": text, "fingerprint": text}
    entry = {
        "rank": {"type": "integer"}, "row": {"type": "integer"}, "id": name, "score": number, "grade": number,
        "probabilities": _NUMBERS,
    }  # fmt: skip
    pair = {
        "above": text, "names": {"type": "array", "items": text}, "rows": {"type": "array"},
        "scores": _NUMBERS, "difference": number, "unit": {"enum": ["grades", "score"]},
        "tied": {"type": "boolean"},
        "contributions": {"type": "array", "items": {"type": "object"}},
        "changes": {"type": "array", "items": {"type": "object"}}, "sentence": text,
    }  # fmt: skip
    model = head | {
        "ranker": text, "features": {"type": "array", "items": text},
        "categorical": {"type": "array", "items": text},
        "grades": {"type": ["array", "null"], "items": number}, "loaded": number,
        "stale": {"type": "boolean"},
    }  # fmt: skip
    query = _object({"query": text, "rows": {"type": "integer"}})
    return {
        "score": _object(
            head | {"scores": _NUMBERS},
            {
                "grades": _NUMBERS,
                "ids": {"type": "array"},
                "probabilities": {"type": "array", "items": _NUMBERS},
            },
        ),
        "rank": _object(
            head
            | {"ranking": {"type": "array", "items": _object(_part(entry, "rank", "row", "score"), entry)}},
            {"grades": _NUMBERS},
        ),
        "explain": _object(head | pair),
        "models": _object({"default": text, "models": {"type": "array", "items": _object(model)}}),
        "queries": _object(
            {
                "found": {"type": "integer"},
                "start": {"type": "integer"},
                "queries": {"type": "array", "items": query},
            }
        ),
        "status": _object({"status": text}),
    }


def _object(needed: dict[str, Any], others: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with these parts and no others."""
    parts = needed | (others or {})
    return {"type": "object", "required": list(needed), "properties": parts, "additionalProperties": False}


def _part(entry: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: entry[name] for name in names}


def _responses(schema: str | None, *statuses: int, kind: str = JSON) -> dict[str, Any]:
    problem = {PROBLEM: {"schema": {"$ref": "#/components/schemas/problem"}}}
    fine = {"schema": {"$ref": schema} if schema else {"type": "string"}}
    return {
        "200": {"description": "Done.", "content": {kind: fine}},
        **{str(status): {"description": _WORDS[status], "content": problem} for status in statuses},
    }


def _reading() -> dict[str, Any]:
    """What is read with GET."""
    schemas = "#/components/schemas/"
    find = {"name": "find", "in": "query", "schema": {"type": "string"}, "description": "Part of an id."}
    start = {
        "name": "start", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 10**15 - 1},
        "description": "The first to tell, from 0.",
    }  # fmt: skip
    found: dict[str, Any] = {}
    for path, guarded, words, responses in (
        ("/health", False, "Whether the process answers", _responses(schemas + "status", 421)),
        ("/ready", False, "Whether models are loaded and warm", _responses(schemas + "status", 421, 503)),
        ("/models", True, "What is served", _responses(schemas + "models", 401, 421)),
        ("/queries", True, "Queries of the data", _responses(schemas + "queries", 400, 401, 404, 421)),
        ("/metrics", True, "Counts, for Prometheus", _responses(None, 401, 421, kind="text/plain")),
        ("/openapi.json", False, "This description", _responses(None, 421)),
    ):
        found[path] = {
            "get": {"operationId": path[1:], "summary": words, "guarded": guarded, "responses": responses}
        }
    found["/openapi.json"]["get"]["responses"]["200"]["content"][JSON]["schema"] = {"type": "object"}
    found["/queries"]["get"]["parameters"] = [find, start]
    return found
