"""`mcrank serve` as a process of its own."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from typing import Any


class Serving:
    """A service that runs; its log is in `lines`."""

    def __init__(self, *arguments: object, wait: bool = True, **environment: str) -> None:
        command = [sys.executable, "-m", "mcrank", "serve", *map(str, arguments)]
        if "--port" not in arguments:
            command += ["--port", "0"]
        self.process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        self.lines: list[str] = []
        self.port = 0
        self._told, self._ready = threading.Event(), threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()
        assert self._told.wait(60), self.lines
        if wait:
            assert self._ready.wait(120), self.lines

    def _listen(self) -> None:
        for line in self.process.stderr:
            self.lines.append(line)
            found = re.search(r"at http://\S+:(\d+)", line)
            if found:
                self.port = int(found[1])
                self._told.set()
            if line.rstrip().endswith("ready"):
                self._ready.set()
        self._told.set()

    def ask(self, path: str, value: Any = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            body = None if value is None else json.dumps(value)
            kind = {} if value is None else {"Content-Type": "application/json"}
            connection.request("GET" if value is None else "POST", path, body, {**kind, **headers})
            reply = connection.getresponse()
            content = reply.read()
            plain = "json" in (reply.getheader("Content-Type") or "")
            return reply.status, json.loads(content) if plain else content.decode()
        finally:
            connection.close()

    def raw(self, content: bytes, seconds: float = 20.0) -> bytes:
        """Send bytes; return all that comes back until the service ends the connection, or for so long."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as plug:
            plug.sendall(content)
            return self.rest(plug)

    @staticmethod
    def rest(plug: socket.socket) -> bytes:
        found = b""
        try:
            while part := plug.recv(65536):
                found += part
        except TimeoutError:
            pass
        return found

    def until(self, condition: Any, seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.lines
            time.sleep(0.05)

    def stop(self, number: int = 15) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(60)

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        self.process.stderr.close()
