"""Pages made of sections, each with a text, figures and tables: one HTML file that runs no script."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from mcrank.experiments.store import write_file
from mcrank.report.environment import page_environment, render_page
from mcrank.report.panels import Panel
from mcrank.report.svg import draw
from mcrank.report.svg_files import write_parts
from mcrank.report.tables import Table


@dataclass(frozen=True)
class Section:
    """A heading with what it shows; ``key`` is its anchor, and names its figures' files."""

    key: str
    title: str
    text: str
    panels: Sequence[Panel] = ()
    tables: Sequence[Table] = ()
    size: tuple[int, int] = (500, 300)

    @property
    def figures(self) -> list[tuple[str, Markup]]:
        """Each panel with its title, drawn."""
        drawn = [draw(panel, f"{self.key}-{n}", "", self.size) for n, panel in enumerate(self.panels)]
        return [(panel.title, svg) for panel, svg in zip(self.panels, drawn, strict=True)]


@dataclass(frozen=True)
class Page:
    """A title, a verdict in a sentence or two, a few numbers, and sections.

    Examples
    --------
    >>> from mcrank.report.sections import Page, Section
    >>> page = Page("Title", "It is so.", {"Rows": "10"}, [Section("why", "Why", "Because.")])
    >>> '<h2 id="why-h">Why</h2>' in page.render()
    True
    """

    title: str
    verdict: str
    numbers: Mapping[str, str]
    sections: Sequence[Section]

    def render(self) -> str:
        """Return the page as HTML."""
        return render_page(
            page_environment().get_template("sections.html"),
            title=self.title,
            verdict=self.verdict,
            numbers=self.numbers,
            sections=self.sections,
        )

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page as a file; return its path."""
        target = Path(path)
        write_file(target, self.render().encode())
        return target

    def write_files(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write every table as Markdown and CSV and every figure as SVG into a folder; return the paths."""
        tables = [table for section in self.sections for table in section.tables]
        return write_parts(folder, tables, {section.key: section.figures for section in self.sections})
