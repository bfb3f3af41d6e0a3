r"""Tables of a comparison as Markdown, LaTeX and CSV: the numbers of the report, for papers and spreadsheets.

A `Table` holds what is printed and the number behind it; Markdown and LaTeX print the first, CSV the second.
Texts may be names that strangers chose: in each format they stay text (`csv_text`, `latex_text`,
`markdown_text`).
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcrank.texts import printable

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison

# What a spreadsheet takes for the beginning of a formula, in either width, and our own sign for text.
_FORMULA = re.compile(r"\s*[=+\-@\t\r＝＋－＠']|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
# Underscores inside a word are no emphasis, and names of options are easier to read without a backslash.
_MARKDOWN = re.compile(r"[\\`*\[\]<>&|~$#!{}]|(?<!\w)_|_(?!\w)")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
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


_NOTHING = Cell("")


def number(value: float | None, digits: int = 4, sign: bool = False) -> Cell:
    """A number with a fixed number of decimals; nothing where there is none."""
    if value is None or not math.isfinite(value):
        return _NOTHING
    text = f"{value:{'+' if sign else ''}.{digits}f}"
    if float(text) == 0.0:
        text = f"{0.0:.{digits}f}"
    return Cell(text.replace("-", "−"), float(value))


def whole(value: float | None) -> Cell:
    """A whole number with separators of thousands."""
    return _NOTHING if value is None else Cell(f"{round(value):,}", round(value))


def probability(value: float | None) -> Cell:
    """A p-value: four decimals, or that it is smaller."""
    if value is None or not math.isfinite(value):
        return _NOTHING
    return Cell("< 0.0001" if value < 0.0001 else f"{value:.4f}", float(value))


def size(value: float | None) -> Cell:
    """Bytes in the unit that makes them short."""
    if value is None:
        return _NOTHING
    amount, unit = float(value), "B"
    for larger in ("kB", "MB", "GB"):
        if amount < 1000.0:
            break
        amount, unit = amount / 1000.0, larger
    return Cell(f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}", float(value))


def seconds(value: float | None) -> Cell:
    """Seconds to three digits."""
    return (
        _NOTHING if value is None else Cell(f"{value:.3g}" if value < 100 else f"{value:,.0f}", float(value))
    )


@dataclass(frozen=True)
class Table:
    """A table with a caption; ``key`` names its files.

    Examples
    --------
    >>> from mcrank.report.tables import Cell, Column, Table
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
        lines = [markdown_text(self.caption), "", _pipes(column.name for column in self.columns)]
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
        """Return the values as CSV, numbers in full; a text that looks like a formula has ``'`` before it."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([csv_text(column.name) for column in self.columns])
        for row in self.rows:
            writer.writerow([_csv_value(*pair) for pair in zip(self.columns, row, strict=True)])
        return stream.getvalue()


def csv_text(text: str) -> str:
    """Return text that no spreadsheet takes for a formula.

    Excel, LibreOffice and Google Sheets compute a cell that begins with ``=``, ``+``, ``-`` or ``@`` (or a
    tab or a line end and one of them); with an apostrophe before it, it is text. A text that begins with an
    apostrophe gets another, so that taking one away from the cells that have one gives every name back.

    Examples
    --------
    >>> from mcrank.report.tables import csv_text
    >>> print(csv_text('=HYPERLINK("http://a")'), csv_text("a=b"))
    '=HYPERLINK("http://a") a=b
    """
    plain = printable(text, lines=True)
    return f"'{plain}" if _FORMULA.match(plain) else plain


def _csv_value(column: Column, cell: Cell) -> Any:
    value = cell.text if cell.value is None else cell.value
    number = not isinstance(value, str) or (column.numeric and _NUMBER.fullmatch(value))
    return value if number else csv_text(value)


def latex_text(text: str) -> str:
    r"""Return text with every character that LaTeX would take for a command made plain.

    Examples
    --------
    >>> from mcrank.report.tables import latex_text
    >>> print(latex_text("50% of a_b"))
    50\% of a\_b
    """
    plain = "".join(
        _LATEX.get(character, character) for character in " ".join(printable(text, lines=True).split())
    )
    # Dashes, quotes and accents side by side would melt into one sign, and what a row begins with be taken
    # for an argument of the end of the row before.
    apart = re.sub(r"([-`',!?])(?=[-`'])", r"\1{}", plain)
    return "{}" + apart if apart[:1] in ("[", "*") else apart


def markdown_text(text: str) -> str:
    r"""Return text in which Markdown finds nothing to format, link, include or compute.

    Examples
    --------
    >>> from mcrank.report.tables import markdown_text
    >>> print(markdown_text("![a](b) *c* num_leaves _d_ <e>"))
    \!\[a\](b) \*c\* num_leaves \_d\_ &lt;e&gt;
    """
    return _MARKDOWN.sub(
        lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), " ".join(printable(text, lines=True).split())
    )


def _pipes(cells: Iterable[str]) -> str:
    return "| " + " | ".join(markdown_text(cell) for cell in cells) + " |"


def write_tables(comparison: Comparison, folder: str | os.PathLike[str], *, times: bool = True) -> list[Path]:
    """Write every table of a comparison into ``folder`` as ``.md``, ``.tex`` and ``.csv``; return the paths.

    Without ``times`` the columns that differ between two runs are left out.
    """
    from mcrank.experiments.store import write_files
    from mcrank.report.comparison_tables import all_tables

    contents: dict[str, bytes] = {}
    for table in all_tables(comparison, times=times):
        contents[f"{table.key}.md"] = (table.to_markdown() + "\n").encode()
        contents[f"{table.key}.tex"] = (table.to_latex() + "\n").encode()
        contents[f"{table.key}.csv"] = table.to_csv().encode()
    return write_files(folder, contents)
