"""Figures of the page as SVG files: there is no page to style them, so each brings its style."""

from __future__ import annotations

from functools import cache

from markupsafe import escape

from mcrank.report.environment import template_text
from mcrank.report.palette import in_style
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
