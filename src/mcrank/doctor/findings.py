"""What the doctor says: findings with a severity, and the report that holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from textwrap import fill
from typing import Any, Literal

Severity = Literal["broken", "warning", "note"]

_ORDER: tuple[Severity, ...] = ("broken", "warning", "note")
_GRADES = 12  # that the text lists; the values have all


@dataclass(frozen=True)
class Finding:
    """One thing the doctor noticed: which check, where, what was found, and what it means."""

    severity: Severity
    check: str
    where: str
    found: str
    meaning: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Diagnosis:
    """Summary of each data set and everything found, the worst first.

    Examples
    --------
    >>> from mcrank import Dataset, diagnose
    >>> diagnosis = diagnose(Dataset([[1.0, 5.0], [2.0, 5.0]], y=[0, 1], qid=[1, 1]))
    >>> [finding.check for finding in diagnosis.findings if finding.severity == "warning"]
    ['constant-features', 'telling-feature']
    """

    summaries: Mapping[str, Mapping[str, Any]]
    findings: Sequence[Finding]

    def __post_init__(self) -> None:
        ranked = sorted(self.findings, key=lambda finding: _ORDER.index(finding.severity))
        object.__setattr__(self, "findings", tuple(ranked))

    @property
    def broken(self) -> bool:
        """Whether something must be repaired before the data can be used."""
        return any(finding.severity == "broken" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON."""
        return {
            "broken": self.broken,
            "summaries": {name: dict(summary) for name, summary in self.summaries.items()},
            "findings": [asdict(finding) for finding in self.findings],
        }

    def __str__(self) -> str:
        lines: list[str] = []
        for name, summary in self.summaries.items():
            sizes = summary["rows_per_query"]
            shares = [
                f"{grade}: {percent(count, summary['rows'])}"
                for grade, count in summary["grade_rows"].items()
            ]
            if len(shares) > _GRADES:
                shares = [*shares[:_GRADES], f"and {len(shares) - _GRADES} more grades"]
            lines += [
                f"{name}: {summary['rows']:,} rows, {summary['queries']:,} queries, "
                f"{summary['features']} features",
                f"  grades          {'  '.join(shares)}",
                f"  rows per query  {sizes['min']} to {sizes['max']}, median {sizes['median']:g}, "
                f"mean {sizes['mean']:.1f}",
                f"  missing values  {percent(summary['missing'], summary['rows'] * summary['features'], 2)}",
                "",
            ]
        # One paragraph per kind of finding: where it was found, then once what it means.
        kinds = dict.fromkeys((finding.severity, finding.check, finding.meaning) for finding in self.findings)
        for severity, check, meaning in kinds:
            lines.append(f"{severity.upper():8}{check}")
            for finding in self.findings:
                if (finding.severity, finding.check, finding.meaning) == (severity, check, meaning):
                    lines.append(_indented(f"{finding.where}: {finding.found}"))
            lines += [_indented(meaning), ""]
        counts = {s: sum(finding.severity == s for finding in self.findings) for s in _ORDER}
        lines.append(f"{counts['broken']} broken, {counts['warning']} warnings, {counts['note']} notes.")
        return "\n".join(lines)


def _indented(text: str) -> str:
    return fill(text, 100, initial_indent=" " * 8, subsequent_indent=" " * 8, break_long_words=False)


def share_text(count: int, of: int, what: str) -> str:
    """Return a count with its share, as in ``3 of 12 queries (25.0%)``."""
    return f"{count:,} of {of:,} {what} ({percent(count, of)})"


def percent(count: int, of: int, digits: int = 1) -> str:
    """Return a share in per cent; what is there is never rounded to nothing, nor what is missing to all.

    Examples
    --------
    >>> from mcrank.doctor.findings import percent
    >>> percent(1, 8), percent(1, 9630), percent(9629, 9630), percent(0, 5)
    ('12.5%', '<0.1%', '>99.9%', '0.0%')
    """
    unit = 10.0**-digits
    share = 100 * count / of
    if 0 < share < unit / 2:
        return f"<{unit:.{digits}f}%"
    if 100 - unit / 2 <= share and count < of:
        return f">{100 - unit:.{digits}f}%"
    return f"{share:.{digits}f}%"


def listed(names: Sequence[str], of: int | None = None) -> str:
    """Return the first names of a list and the number of the others; ``of`` how many there are in all."""
    rest = (len(names) if of is None else of) - 8
    return ", ".join(names[:8]) + (f" and {rest} more" if rest > 0 else "")


def grade_text(grade: float) -> str:
    """Return a grade in the shortest form that is no other grade's.

    Examples
    --------
    >>> from mcrank.doctor.findings import grade_text
    >>> grade_text(2.0), grade_text(0.5), grade_text(1.0000001)
    ('2', '0.5', '1.0000001')
    """
    return short if float(short := f"{grade:g}") == grade else repr(float(grade))
