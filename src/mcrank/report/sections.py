"""Pages made of sections, each with a text, figures and tables: one HTML file that runs no script."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from mcrank.experiments.store import write_file
from mcrank.report.environment import page_environment, template_text
from mcrank.report.palette import in_style
from mcrank.report.panels import Panel
from mcrank.report.svg import draw
from mcrank.report.svg_files import standalone
from mcrank.report.tables import Table
from mcrank.texts import printable


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
        template = page_environment().get_template("sections.html")
        page = template.render(
            title=self.title,
            style=in_style(template_text("style.css")),
            verdict=self.verdict,
            numbers=self.numbers,
            sections=self.sections,
        )
        # Names come from files: what could not be encoded, or would reorder the text, is written out.
        return printable(page, lines=True)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page as a file; return its path."""
        target = Path(path)
        write_file(target, self.render().encode())
        return target

    def write_files(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write every table as Markdown and CSV and every figure as SVG into a folder; return the paths."""
        root = Path(folder)
        root.mkdir(parents=True, exist_ok=True)
        contents: dict[str, bytes] = {}
        for section in self.sections:
            for table in section.tables:
                contents[f"{table.key}.md"] = (table.to_markdown() + "\n").encode()
                contents[f"{table.key}.csv"] = table.to_csv().encode()
            for number, (title, svg) in enumerate(section.figures, 1):
                name = f"{section.key}.svg" if len(section.panels) == 1 else f"{section.key}_{number}.svg"
                contents[name] = standalone(str(svg), title)
        for name, content in contents.items():
            write_file(root / name, content)
        return [root / name for name in contents]
