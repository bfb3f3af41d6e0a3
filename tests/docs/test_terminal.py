"""The picture of a terminal shows what the commands print."""

from __future__ import annotations

import html
import importlib.util
import re

from tests.docs.pages import ROOT, differs


def test_the_picture_is_that_of_a_run():
    spec = importlib.util.spec_from_file_location("terminal", ROOT / "tools" / "site" / "terminal.py")
    terminal = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(terminal)
    drawn = terminal.draw(terminal.run())
    told, shown = (
        "\n".join(html.unescape(line) for line in re.findall(r"<text [^>]*>(.*?)</text>", picture))
        for picture in (terminal.PICTURE.read_text(encoding="utf-8"), drawn)
    )
    assert differs(told, shown) is None
