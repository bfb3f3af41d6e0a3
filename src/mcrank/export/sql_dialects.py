"""What SQL engines say differently: quotes, types, numbers, NaN."""

from __future__ import annotations

from typing import NamedTuple

from mcrank.scorers.heads import LARGEST_LOG

_SMALLEST_LOG = -745.0  # of the least number above 0


class Dialect(NamedTuple):
    """One engine's words.

    Attributes
    ----------
    title : str
        Its name.
    quote : str
        What stands around names.
    double, integer, primary : str
        Types of columns, and what makes one the key of its table.
    greatest, least : str
        Functions of several values.
    literal : str
        How a number of double precision is written; ``{}`` is the number.
    nan : str
        A column as a number, NULL where it is NaN; ``{}`` is the column.
    in_order : str
        What makes a sum add up in the order of the nodes, as mcrank does; empty where there is no such word.
    kept : str
        What keeps the columns of a step: without it they are computed anew wherever they are named.
    digits : str
        Format of numbers; empty for the shortest text that reads back.
    texts : str
        Type of columns of text.
    """

    title: str
    quote: str
    double: str
    integer: str
    primary: str
    greatest: str
    least: str
    literal: str
    nan: str
    in_order: str = ""
    kept: str = " MATERIALIZED"
    digits: str = ""
    texts: str = "TEXT"

    def quoted(self, name: str) -> str:
        """Return a name of a table or column, which may be any text."""
        if self.quote == "`":
            return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote

    def text(self, value: str) -> str:
        """Return a text that reads back exactly."""
        if self.quote == "`":  # BigQuery, which has escapes in texts
            plain = "".join(c if c.isprintable() and c not in "\\'" else f"\\U{ord(c):08x}" for c in value)
            return f"'{plain}'"
        return "'" + value.replace("'", "''") + "'"

    def number(self, value: float) -> str:
        """Return a number that reads back exactly, in double precision."""
        text = format(float(value), self.digits) if self.digits else repr(float(value))
        # With an exponent it is no decimal number to those who have such.
        text = text if "e" in text else f"{text}e0"
        return self.literal.format(text)

    def known(self, column: str) -> str:
        """Return a column as a number of double precision, NULL where missing."""
        return self.nan.format(column)

    def exp(self, text: str) -> str:
        """Return the exponential, of what can have one: Postgres fails where it is 0 or infinite."""
        return f"EXP({self.greatest}({self.least}({text}, {self.number(709.0)}), {self.number(-700.0)}))"

    def exp_score(self, text: str) -> str:
        """Return the exponential of a log of a score: 0 where it is as good as 0, and cut off where it would
        be infinite, as here.
        """
        highest, lowest = self.number(LARGEST_LOG), self.number(_SMALLEST_LOG)
        power = f"EXP({self.least}({text}, {highest}))"
        return f"CASE WHEN {text} < {lowest} THEN {self.number(0.0)} ELSE {power} END"

    def sigmoid(self, text: str) -> str:
        """Return 1 / (1 + exp(-x)), of small x without loss."""
        small = self.exp(f"-ABS({text})")
        return f"CASE WHEN {text} >= 0 THEN 1 / (1 + {small}) ELSE {small} / (1 + {small}) END"


DIALECTS = {
    # It reads decimals in a few bits more than doubles have: of the shortest texts, which may lie just inside
    # the half-way point to the next double, one in 20,000 becomes that. Eighteen digits lie far from there.
    "sqlite": Dialect(
        "SQLite", '"', "REAL", "INTEGER", "PRIMARY KEY", "MAX", "MIN", "{}", "CAST({} AS REAL)", digits=".18g"
    ),
    "duckdb": Dialect(
        "DuckDB", '"', "DOUBLE", "INTEGER", "PRIMARY KEY", "GREATEST", "LEAST", "{}",
        "NULLIF(CAST({} AS DOUBLE), CAST('NaN' AS DOUBLE))", " ORDER BY n.node",
    ),
    "postgres": Dialect(
        "Postgres", '"', "DOUBLE PRECISION", "INTEGER", "PRIMARY KEY", "GREATEST", "LEAST", "FLOAT8 '{}'",
        "NULLIF(CAST({} AS FLOAT8), FLOAT8 'NaN')", " ORDER BY n.node",
    ),
    "bigquery": Dialect(
        "BigQuery", "`", "FLOAT64", "INT64", "", "GREATEST", "LEAST", "{}",
        "IF(IS_NAN(CAST({0} AS FLOAT64)), NULL, CAST({0} AS FLOAT64))", kept="", texts="STRING",
    ),
}  # fmt: skip
