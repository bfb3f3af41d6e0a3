r"""Tables of a comparison as Markdown, LaTeX and CSV: the numbers of the report, for papers and spreadsheets.

A `Table` holds what is printed and the number behind it; Markdown and LaTeX print the first, CSV the second.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcrank.compare.result import Comparison

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "−": "$-$", "µ": r"$\mu$", "±": r"$\pm$", "…": r"\dots{}",
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A column: its name, what it means, and whether it holds numbers."""

    name: str
    meaning: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class Cell:
    """What is printed, and the value behind it."""

    text: str
    value: Any = None


@dataclass(frozen=True)
class Table:
    """A table with a caption; ``key`` names its files.

    Examples
    --------
    >>> from mcrank.compare.tables import Cell, Column, Table
    >>> table = Table("t", "Means", [Column("system", numeric=False), Column("mean")],
    ...               [[Cell("a|b"), Cell("0.50", 0.5)]])
    >>> print(table.to_markdown())
    Means
    <BLANKLINE>
    | system | mean |
    |:--|--:|
    | a\\|b | 0.50 |
    """

    key: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]

    def to_markdown(self) -> str:
        """Return the table as Markdown (with pipes)."""
        lines = [self.caption, "", _pipes(column.name for column in self.columns)]
        lines.append("|" + "|".join("--:" if column.numeric else ":--" for column in self.columns) + "|")
        lines += [_pipes(cell.text for cell in row) for row in self.rows]
        return "\n".join(lines)

    def to_latex(self) -> str:
        """Return the table as LaTeX, with the rules of the booktabs package."""
        kinds = "".join("r" if column.numeric else "l" for column in self.columns)
        head = " & ".join(latex_text(column.name) for column in self.columns)
        body = [" & ".join(latex_text(cell.text) for cell in row) + r" \\" for row in self.rows]
        return "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{latex_text(self.caption)}}}",
                rf"\begin{{tabular}}{{{kinds}}}",
                r"\toprule",
                rf"{head} \\",
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
            ]
        )

    def to_csv(self) -> str:
        """Return the values as CSV, numbers in full."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([column.name for column in self.columns])
        for row in self.rows:
            writer.writerow([cell.text if cell.value is None else cell.value for cell in row])
        return stream.getvalue()


def latex_text(text: str) -> str:
    r"""Return text with every character that LaTeX would take for a command made plain.

    Examples
    --------
    >>> from mcrank.compare.tables import latex_text
    >>> print(latex_text("50% of a_b"))
    50\% of a\_b
    """
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def _pipes(cells: Iterable[str]) -> str:
    # A line break would end the row, a pipe the cell, and < might begin HTML.
    plain = (
        " ".join(cell.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
        for cell in cells
    )
    return "| " + " | ".join(plain) + " |"


def write_tables(comparison: Comparison, folder: str | os.PathLike[str], *, times: bool = True) -> list[Path]:
    """Write every table of a comparison into ``folder`` as ``.md``, ``.tex`` and ``.csv``; return the paths.

    Without ``times`` the columns that differ between two runs are left out.
    """
    from mcrank.compare.contents import all_tables
    from mcrank.compare.store import write_file

    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    paths = []
    for table in all_tables(comparison, times=times):
        for ending, text in (
            ("md", table.to_markdown() + "\n"),
            ("tex", table.to_latex() + "\n"),
            ("csv", table.to_csv()),
        ):
            path = root / f"{table.key}.{ending}"
            write_file(path, text.encode())
            paths.append(path)
    return paths
