"""The site, built as `make docs` builds it."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT


def build(folder: Path) -> Path:
    """Build the site into a folder; whatever mkdocs warns of is an error."""
    line = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    settings = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(line, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def squeezed(text: str) -> str:
    """Text without blanks and marks of code, by which words are found whoever set them."""
    return re.sub(r"[\s`*\\]+", "", text)


def words_of(page: Path) -> str:
    """The words of a page, squeezed."""
    source = re.sub(r"<(script|style).*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return squeezed(html.unescape(re.sub(r"<[^>]+>", "", source)))
