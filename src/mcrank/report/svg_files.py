"""What pages show, as files: tables, and figures with a style of their own, as no page gives them one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from markupsafe import Markup, escape

from mcrank.experiments.store import write_files
from mcrank.report.environment import template_text
from mcrank.report.palette import in_style
from mcrank.report.tables import Table
from mcrank.texts import printable

_HEADING, _MARGIN = 24, 8  # pixels
_OWN = (
    "svg{background:var(--bg);font:11px var(--body)}.end-label{font-size:10px}"
    ".heading{font-size:13px;font-weight:600}"
)


@cache
def file_style() -> str:
    """The page's rules for drawings, with its colours by day and by night."""
    colours, _, rules = in_style(template_text("style.css")).partition("* { box-sizing")
    drawing = [line for line in rules.splitlines() if line.startswith(("svg ", ".s0 ", ".s4 "))]
    return "\n".join([colours.rstrip(), *drawing, _OWN])


def standalone(svg: str, heading: str) -> bytes:
    """Return an ``<svg>`` element of a page as a file with a style and a heading of its own."""
    rest = svg.split(">", 1)[1]
    width, height = (float(word) for word in svg.split('viewBox="0 0 ', 1)[1].split('"', 1)[0].split())
    wide, high = width + 2 * _MARGIN, height + _HEADING + 2 * _MARGIN
    opened = (
        '<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="{-_MARGIN} {-_HEADING - _MARGIN} {wide:g} {high:g}" width="{wide:g}" height="{high:g}" '
        'role="img">'
    )
    words = f'<text class="heading" x="0" y="{12 - _HEADING}">{escape(printable(heading))}</text>'
    return f"{opened}<style>{file_style()}</style>{words}{rest}\n".encode()


def write_parts(
    folder: str | os.PathLike[str],
    tables: Iterable[Table],
    figures: Mapping[str, Sequence[tuple[str, Markup]]],
) -> list[Path]:
    """Write every table as Markdown and CSV and every figure (titles and drawings by key) as SVG."""
    contents: dict[str, bytes] = {}
    for table in tables:
        contents[f"{table.key}.md"] = (table.to_markdown() + "\n").encode()
        contents[f"{table.key}.csv"] = table.to_csv().encode()
    for key, drawn in figures.items():
        for number, (title, svg) in enumerate(drawn, 1):
            name = f"{key}.svg" if len(drawn) == 1 else f"{key}_{number}.svg"
            contents[name] = standalone(str(svg), title)
    return write_files(folder, contents)
