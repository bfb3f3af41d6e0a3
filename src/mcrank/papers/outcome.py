"""What a reproduction found: tables, figures, and the papers' claims with the evidence on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mcrank.arrays import FloatArray
from mcrank.experiments.store import json_bytes, write_file
from mcrank.report.panels import Figure
from mcrank.report.svg import draw
from mcrank.report.svg_files import standalone
from mcrank.report.tables import Cell, Column, Table
from mcrank.stats import holm, paired_t

LEVEL = 0.05
# What each verdict means; no other word is used for one.
VERDICTS = {
    "confirmed": f"the data at hand say so: p < {LEVEL}, corrected (Holm) where one claim needs several "
    "tests, and of the size its words name",
    "refuted": "by the same rule the data say the opposite, or the claim does not hold by construction",
    "undecided": "the data do not tell, or the answer depends on data that the paper does not describe",
    "not testable here": "it needs data or programs that are not public",
}
NO_VERDICT = "quick run: no verdict on the paper"
# Points of NDCG that a difference must exceed, significantly, to be called so.
FAR_AHEAD = 1.0
CONSIDERABLY = 0.5


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, and what the data at hand says of it.

    Examples
    --------
    >>> from mcrank.papers.outcome import Claim
    >>> Claim("McRank 6.3", "ordinal beats classification", "confirmed", "85.0 against 83.7").verdict
    'confirmed'
    """

    source: str
    claim: str
    verdict: str
    evidence: str
    any_size: bool = False  # judged by the paper's own numbers or by arithmetic: a quick run judges it too

    def at_quick_sizes(self) -> Claim:
        """What a run below the paper's sizes can say: the evidence, and no verdict on the paper."""
        return self if self.any_size else replace(self, verdict=NO_VERDICT)


@dataclass(frozen=True, eq=False)
class Reproduction:
    """Outcome of `mcrank.reproduce`.

    Attributes
    ----------
    target, title : str
    setting : str
        What was run, in a sentence or two.
    tables : sequence of Table
    figures : sequence of Figure
    claims : sequence of Claim
        Each with one of `VERDICTS`, or none where a quick run cannot tell.
    notes : sequence of str
    tried_on : str
        The data, and whether they are the paper's own.
    command : str
        What makes it.
    """

    target: str
    title: str
    setting: str
    tables: Sequence[Table]
    figures: Sequence[Figure]
    claims: Sequence[Claim]
    notes: Sequence[str] = ()
    tried_on: str = "data of our own"
    command: str = ""

    def at_quick_sizes(self) -> Reproduction:
        """The same without verdicts that need the paper's sizes."""
        return replace(self, claims=[claim.at_quick_sizes() for claim in self.claims])

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the figures as plain values, for JSON."""
        return {
            "target": self.target,
            "title": self.title,
            "command": self.command,
            "setting": self.setting,
            "tables": {
                table.key: [
                    {
                        column.name: cell.text if cell.value is None else cell.value
                        for column, cell in zip(table.columns, row, strict=True)
                    }
                    for row in table.rows
                ]
                for table in self.tables
            },
            "tried_on": self.tried_on,
            "claims": [asdict(claim) for claim in self.claims],
            "notes": list(self.notes),
        }

    def to_markdown(self) -> str:
        """Return the outcome as a page; its figures are files beside it."""
        made = [f"Made by `{self.command}`."] if self.command else []
        parts = [f"# {self.title}", *made, self.setting, *(table.to_markdown() for table in self.tables)]
        for figure in self.figures:
            images = " ".join(
                f"![{panel.title}]({self._figure_name(figure, number)})"
                for number, panel in enumerate(figure.panels)
            )
            parts += [f"## {figure.title}", figure.text, images]
        used = {claim.verdict for claim in self.claims}
        words = [f"- *{word}*: {meaning}." for word, meaning in VERDICTS.items() if word in used]
        parts += ["## Claims", f"Tried on {self.tried_on}.", claims_table(self.claims).to_markdown()]
        if words:
            parts.append("\n".join(words))
        if self.notes:
            parts += ["## Notes", "\n".join(f"- {note}" for note in self.notes)]
        return "\n\n".join(parts) + "\n"

    def _figure_name(self, figure: Figure, number: int) -> str:
        return f"{self.target}-{figure.key}-{number + 1}.svg"

    def write(self, folder: Path) -> None:
        """Write page, JSON, figures and tables; the same outcome gives the same bytes."""
        tables = folder / "tables"
        tables.mkdir(parents=True, exist_ok=True)
        for figure in self.figures:
            for number, panel in enumerate(figure.panels):
                key = f"{figure.key}-{number}"
                write_file(
                    folder / self._figure_name(figure, number),
                    standalone(draw(panel, key, figure.text), panel.title),
                )
        for table in self.tables:
            write_file(tables / f"{self.target}-{table.key}.tex", (table.to_latex() + "\n").encode())
            write_file(tables / f"{self.target}-{table.key}.csv", table.to_csv().encode())
        write_file(folder / f"{self.target}.json", json_bytes(self.to_dict()))
        # Last: where there is a page, the rest is there too.
        write_file(folder / f"{self.target}.md", self.to_markdown().encode())

    def __str__(self) -> str:
        return self.to_markdown()


def claims_table(claims: Sequence[Claim]) -> Table:
    """Return claims as a table."""
    columns = [Column(name, numeric=False) for name in ("paper", "claim", "verdict", "evidence")]
    rows = [[Cell(c.source), Cell(c.claim), Cell(c.verdict), Cell(c.evidence)] for c in claims]
    return Table("claims", "Claims of the paper that this data can test", columns, rows)


def judged(source: str, claim: str, holds: bool | None, evidence: str, *, any_size: bool = False) -> Claim:
    """Make a claim that holds (True), does not (False), or cannot be told (None)."""
    verdict = "undecided" if holds is None else "confirmed" if holds else "refuted"
    return Claim(source, claim, verdict, evidence, any_size)


def larger(p_larger: float, p_smaller: float, level: float = LEVEL) -> bool | None:
    """Judge "a is larger than b" by two one-sided tests: True, False, or None where neither is significant.

    Examples
    --------
    >>> from mcrank.papers.outcome import larger
    >>> larger(0.01, 0.99), larger(0.99, 0.01), larger(0.4, 0.6)
    (True, False, None)
    """
    return True if p_larger < level else False if p_smaller < level else None


def all_larger(pairs: Sequence[tuple[float, float]]) -> bool | None:
    """Judge "each of these is larger" by pairs of one-sided p-values, corrected for their number (Holm).

    True when all are larger, False when one is smaller, else None.

    Examples
    --------
    >>> from mcrank.papers.outcome import all_larger
    >>> all_larger([(0.01, 0.99), (0.02, 0.98)]), all_larger([(0.01, 0.99), (0.04, 0.96), (0.03, 0.97)])
    (True, True)
    >>> all_larger([(0.01, 0.99), (0.3, 0.7)]), all_larger([(0.01, 0.99), (0.99, 0.01)])
    (None, False)
    """
    # "All" needs every single test, which no correction makes safer; "one is smaller" is one of several.
    if any(p < LEVEL for p in holm([smaller for _, smaller in pairs])):
        return False
    return True if all(p < LEVEL for p, _ in pairs) else None


def about(low: float, high: float, least: float, most: float) -> bool | None:
    """Judge "it is about so much" by an interval: True inside the bounds, False outside, None across one.

    Examples
    --------
    >>> from mcrank.papers.outcome import about
    >>> about(0.8, 1.3, 0.5, 1.5), about(1.6, 4.0, 0.5, 1.5), about(0.4, 0.9, 0.5, 1.5)
    (True, False, None)
    """
    return True if least <= low and high <= most else False if high < least or low > most else None


def larger_by(a: Mapping[Any, float], b: Mapping[Any, float], size: float = 0.0) -> tuple[float, float]:
    """One-sided p-values of "a exceeds b by more than ``size``" and of "by less", query by query."""
    moved = {query: value - size for query, value in a.items()}
    greater, less = (paired_t(moved, b, side).p for side in ("greater", "less"))
    return greater, less


def larger_at(a: FloatArray, b: FloatArray, size: float = 0.0) -> tuple[float, float]:
    """The same of two arrays that have the same queries in the same places."""
    return larger_by(dict(enumerate(a.tolist())), dict(enumerate(b.tolist())), size)


def p_words(p: float) -> str:
    """Return a p-value as people print it.

    Examples
    --------
    >>> from mcrank.papers.outcome import p_words
    >>> p_words(0.0213), p_words(1e-30), p_words(0.0)
    ('0.021', '1e-30', '< 1e-300')
    """
    return "< 1e-300" if p < 1e-300 else f"{p:.2g}"
