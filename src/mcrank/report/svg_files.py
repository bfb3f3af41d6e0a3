"""Figures of the page as SVG files: there is no page to style them, so each brings its style."""

from __future__ import annotations

from markupsafe import escape

from mcrank.report.palette import LIGHT
from mcrank.texts import printable

_HEADING = 24  # pixels
_STYLE = (
    "svg{background:#fff;font:11px system-ui,sans-serif}text{fill:#1c1f23}.tick,.axis-title{fill:#5a6068}"
    ".grid{stroke:#e3e5e8}.axis{stroke:#b9bec5}.line{fill:none;stroke:var(--c);stroke-width:1.8}"
    ".dash1 .line{stroke-dasharray:6 3}.dot{fill:var(--c)}.end-label{fill:var(--c);font-size:10px}"
    ".heading{font-size:13px;font-weight:600}"
    ".leader{stroke:var(--c);opacity:.5}"
    + "".join(f".s{number}{{--c:{colour}}}" for number, colour in enumerate(LIGHT))
)


def standalone(svg: str, heading: str) -> bytes:
    """Return an ``<svg>`` element of a page as a file with a style and a heading of its own."""
    rest = svg.split(">", 1)[1]
    width, height = (float(word) for word in svg.split('viewBox="0 0 ', 1)[1].split('"', 1)[0].split())
    opened = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-_HEADING} {width:g} {height + _HEADING:g}" '
        f'width="{width:g}" height="{height + _HEADING:g}" role="img">'
    )
    words = f'<text class="heading" x="0" y="{12 - _HEADING}">{escape(printable(heading))}</text>'
    return f"{opened}<style>{_STYLE}</style>{words}{rest}\n".encode()
