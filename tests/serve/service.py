"""A service without a network: requests go to the application as a server would give them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from mcrank.serve.app import Service
from mcrank.serve.settings import Settings, model_files

JSON = "application/json"


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def detail(self) -> str:
        assert self.headers["content-type"] == "application/problem+json"
        found = self.json
        assert found["status"] == self.status
        assert set(found) == {"title", "status", "detail"}
        assert "Traceback" not in found["detail"]
        return found["detail"]


class Client:
    """Asks an application."""

    def __init__(self, *models: object, warm: bool = True, **settings: Any) -> None:
        self.app = Service(Settings(model_files([str(model) for model in models]), **settings))
        if warm:
            self.app.models.warm()

    def get(self, path: str, **headers: str) -> Reply:
        return self.send("GET", path, headers=headers)

    def post(self, path: str, value: Any, kind: str = JSON, **headers: str) -> Reply:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self.send("POST", path, [body], {"content-type": kind, **headers})

    def send(self, method: str, path: str, parts: list[bytes] | None = None, headers: Any = None) -> Reply:
        """Send a request whose body comes in parts; None as the last part is a client that leaves."""
        waiting = list(parts or [b""])
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if not waiting:
                await asyncio.sleep(3600)
            part = waiting.pop(0)
            if part is None:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": part, "more_body": bool(waiting)}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        path, _, query = path.partition("?")
        lines = {"host": "localhost", **(headers or {})}
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.replace("_", "-").encode(), text.encode()) for name, text in lines.items()],
        }
        asyncio.run(self.app(scope, receive, send))
        if not sent:
            return Reply(0, {}, b"")
        found = {name.decode(): text.decode() for name, text in sent[0]["headers"]}
        assert int(found["content-length"]) == len(sent[1]["body"])
        return Reply(sent[0]["status"], found, sent[1]["body"])
