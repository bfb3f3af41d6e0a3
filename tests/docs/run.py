"""Run a page as a reader would: its blocks, in their order, in one folder."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import mcrank
from tests.docs.files import put
from tests.docs.pages import Block, blocks_of, named_on


def there(need: str) -> bool:
    """Whether a library or a program is here."""
    return shutil.which(need) is not None or importlib.util.find_spec(need) is not None


def run_page(text: str, name: str, folder: Path) -> Iterator[tuple[Block, list[str]]]:
    """Run every block of a page that is to run; yield it with what it printed, in the ways one may see it."""
    for kind in named_on(text, "files"):
        put(kind, folder)
    settings = _settings(folder.parent / f"{folder.name}-bin")
    ports = _free_ports(text)
    names: dict[str, object] = {"__name__": "__main__"}
    with contextlib.chdir(folder), _importable(folder):
        for block in blocks_of(text):
            if block.file is not None:
                (folder / block.file).write_text(block.code)
                module = block.file.partition(".")[0]
                if block.language != "python" or re.search(
                    rf"python {module}\.py|[ ']{module}:\w|^import {module}\b", text, re.M
                ):
                    continue
            if block.runs:
                where = f"{name}, line {block.line}"
                python = block.language == "python"
                yield block, _python(block, names, where) if python else _sh(block, settings, where, ports)


def _free_ports(text: str) -> dict[str, str]:
    """Return, for the ports that services of a page listen at, others that nobody here has."""
    found = {}
    for port in sorted(set(re.findall(r"--port (\d+)", text))):
        with socket.create_server(("127.0.0.1", 0)) as free:
            found[port] = str(free.getsockname()[1])
    return found


def _settings(folder: Path) -> dict[str, str]:
    """Variables under which `mcrank` and `python` are those of this process."""
    folder.mkdir()
    for name, words in (("mcrank", " -m mcrank"), ("python", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n')
        (folder / name).chmod(0o755)
    source = str(Path(mcrank.__file__).parents[1])
    path = f"{folder}:{os.environ['PATH']}"
    return os.environ | {"PATH": path, "PYTHONPATH": source, "COLUMNS": "100"}


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let files of a folder be imported, and forgotten afterwards."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
            del sys.modules[name]


def _python(block: Block, names: dict[str, object], where: str) -> list[str]:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(block.code, where, "exec"), {"__name__": "__main__"} if block.file else names)
    return [shown.getvalue()]


def _sh(block: Block, settings: dict[str, str], where: str, ports: dict[str, str]) -> list[str]:
    """Return what a block printed: results alone, and with notes before them."""
    code = block.code
    for told, free in ports.items():
        code = re.sub(rf"\b{told}\b", free, code)
    line = ["bash", "-euo", "pipefail", "-c", code]
    done = subprocess.run(line, env=settings, capture_output=True, text=True, timeout=300)
    if done.returncode not in (0, 141):  # 141: `head` has read enough
        raise AssertionError(
            f"{where}: exit code {done.returncode}\n{block.code}\n{done.stdout}{done.stderr}"
        )
    return [done.stdout, done.stderr + done.stdout]
