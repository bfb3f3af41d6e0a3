"""A real browser: Debian's chromium, driven by Playwright. Without either, these tests are skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcrank.report.page import write_report
from tests.experiments.made_up import made_up

# Chromium would otherwise look for updates and the like, and, as root, refuse to start.
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="make browser-test installs it")
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        pytest.skip("there is no chromium; make browser-test installs it")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=executable, args=FLAGS)
        yield started
        started.close()


class Visit:
    """A page that is open, and everything it asked for or complained about."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        self.context.set_default_timeout(10_000)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._dialog)
        self.path = path

    def _dialog(self, dialog: Any) -> None:
        self.complaints.append(dialog.message)
        dialog.dismiss()

    def open(self, ready: bool = True) -> Any:
        self.page.goto(self.path.as_uri())
        if ready:
            self.page.wait_for_selector("html[data-ready]")
        return self.page

    def check(self) -> None:
        """Nothing was asked for but the page itself, and nothing was complained about."""
        assert self.complaints == []
        assert [url for url in self.requests if not url.startswith("data:")] == [self.path.as_uri()]


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    visits: list[Visit] = []

    def start(path: Path, **options: Any) -> Visit:
        visits.append(Visit(browser, path, **options))
        return visits[-1]

    yield start
    for one in visits:
        one.context.close()


@pytest.fixture(scope="session")
def comparison() -> Any:
    return made_up(120, systems=4, measures=("ndcg@10", "map"), dialects=("yahoo", "trec"))


@pytest.fixture(scope="session")
def report(comparison: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(comparison, tmp_path_factory.mktemp("report") / "report.html", documents=60)


@pytest.fixture
def page(visit: Any, report: Path) -> Iterator[Any]:
    one = visit(report)
    yield one.open()
    one.check()
