"""The report: a comparison as one HTML file that needs nothing else, ever.

Everything printed is computed here; the page's script only chooses, sorts and draws what it finds there.
The same comparison gives the same bytes (leave out the times to compare two runs of it).
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mcrank.experiments.dialect_orders import DialectOrder
from mcrank.experiments.leaderboard import family
from mcrank.metrics.measure import parse_measure
from mcrank.metrics.tools import DIALECTS
from mcrank.report import comparison_tables
from mcrank.report.comparison_figures import all_figures, difference_counts, difference_edges
from mcrank.report.drilldown import add_documents, choose_documents
from mcrank.report.environment import page_environment, render_page, template_text
from mcrank.report.leaderboard import board_columns, board_view, pair_words
from mcrank.report.panels import Figure
from mcrank.report.payload import Payload, decimals_for, packed_size, quantize
from mcrank.report.svg import draw
from mcrank.report.tables import Table, number
from mcrank.texts import printable

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison

_WIDE, _SMALL = (500, 320), (330, 230)


@dataclass(frozen=True)
class Room:
    """How much a page may hold.

    Attributes
    ----------
    documents : int
        Queries whose documents are included.
    rows : int
        Documents in all.
    bytes : int
        Size that per-query values of further measures must not push the page above; the main measure is
        always there.
    """

    documents: int
    rows: int
    bytes: int

    @classmethod
    def for_queries(cls, queries: int, documents: int | None = None) -> Room:
        """Room for a number of queries: below 1 MB for 2,000, and in proportion beyond."""
        wanted = 200 if documents is None else documents
        return cls(wanted, 30 * wanted, 940_000 + 300 * max(0, queries - 2_000))


@dataclass(frozen=True)
class Step:
    """What the callback of `write_report` is told: steps that are done, of how many, and what comes now."""

    done: int
    of: int
    words: str


class _Steps:
    """Counts the steps of a page and tells the callback."""

    def __init__(self, measures: int, callback: Callable[[Step], Any] | None) -> None:
        self._done, self._of, self._callback = 0, 2 * measures + 5, callback

    def __call__(self, words: str) -> None:
        if self._callback is not None:
            self._callback(Step(self._done, self._of, words))
        self._done += 1


def write_report(
    comparison: Comparison,
    path: str | os.PathLike[str],
    *,
    times: bool = True,
    documents: int | None = None,
    title: str = "Comparison of rankers",
    callback: Callable[[Step], Any] | None = None,
) -> Path:
    """Write the report of a comparison as one HTML file and return its path.

    Parameters
    ----------
    comparison : Comparison
        What `mcrank.compare` returned, or `Comparison.load` loaded.
    path : path
        The file; written whole or not at all.
    times : bool
        Show seconds; without them equal comparisons give equal bytes.
    documents : int, optional
        Queries whose documents are included for looking at (default 200), those that differ most first.
    title : str
        Heading of the page.
    callback : callable, optional
        Told a `Step` before each part of the page is made.

    Examples
    --------
    >>> import mcrank, tempfile
    >>> from mcrank.report.page import write_report
    >>> data = mcrank.make_artificial(n_train=12, n_valid=1, n_test=1, docs_per_query=6, n_features=3).train
    >>> found = mcrank.compare(["best-feature", "regression:n_estimators=2"], data, folds=3, n_jobs=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(found, folder + "/report.html")
    ...     "regression" in page.read_text(encoding="utf-8")
    True
    """
    from mcrank.experiments.store import write_file

    target = Path(path)
    page = render_report(comparison, times=times, documents=documents, title=title, callback=callback)
    write_file(target, page.encode())
    return target


def render_report(
    comparison: Comparison,
    *,
    times: bool = True,
    documents: int | None = None,
    title: str = "Comparison of rankers",
    callback: Callable[[Step], Any] | None = None,
) -> str:
    """Return the page that `write_report` writes."""
    environment = page_environment()
    step = _Steps(len(comparison.measures), callback)
    step("dialects")
    orders = comparison.dialect_orders
    step("cut-offs and probabilities")
    found = comparison.calibrations
    boards = {}
    for name in comparison.measures:
        step(f"leaderboard of {name}")
        boards[name] = board_view(comparison, name, times)
    step("figures and tables")
    script = "".join(template_text(f"{part}.js") for part in ("labels", "payload", "histogram", "report"))
    page: dict[str, Any] = {
        "title": title,
        "script": script,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "comparison": comparison,
        "times": times,
        "main": comparison.measures[0],
        "boards": boards,
        "family": family(len(comparison.keys) - 1),
        "switch": _switch(comparison.measures),
        "columns": board_columns(times, len(comparison.keys) - 1),
        "figures": _figures(comparison),
        "tables": {table.key: table for table in _detail_tables(comparison)},
        "orders": orders,
        "flips": _flips(orders),
        "found": found,
        "pair": _first_pair(comparison),
        "data": _data(comparison),
        "repeat": _repeat(comparison),
    }
    facts = _facts(comparison, boards, environment.get_template("fragments.html").module, step)
    step("documents")
    page["first"] = facts["measures"][comparison.measures[0]]["pairs"]
    room = Room.for_queries(comparison.n_queries, documents)
    template = environment.get_template("report.html")
    bare = len(render_page(template, **page, payload="", cut=_Cut(0, 0, (), room)).encode())
    payload, cut = _payload(comparison, facts, room, bare)
    step("page")
    return render_page(template, **page, payload=payload, cut=cut)


@dataclass(frozen=True)
class _Cut:
    """What a page holds of what there is, for the sentences that say so."""

    documents: int
    rows: int
    without_values: tuple[str, ...]
    room: Room


def _figures(comparison: Comparison) -> dict[str, dict[str, Any]]:
    sizes = {
        "cutoffs": _WIDE,
        "training": _SMALL,
        "dialects": _bump_size(comparison),
        "reliability": (400, 320),
        "positions": (400, 260),
        "importances": _SMALL,
        "differences": (500, 240),
        "wins": (500, 0),
    }  # the leaderboard has its intervals in its table
    figures = all_figures(comparison)
    return {figure.key: _drawn(figure, sizes[figure.key]) for figure in figures if figure.key in sizes}


def _flips(orders: list[DialectOrder]) -> list[dict[str, Any]]:
    """Dialects that change the order; those that do so in the same words stand together."""
    groups: dict[tuple[tuple[str, str], ...], list[DialectOrder]] = {}
    for order in orders:
        if order.moved.any() and np.isfinite(order.values).all():
            groups.setdefault(order.why, []).append(order)
    return [
        {"names": [o.dialect for o in same], "tools": [o.tool for o in same], "why": why}
        for why, same in groups.items()
    ]


def _bump_size(comparison: Comparison) -> tuple[int, int]:
    shown = sum(bool(np.isfinite(order.values).all()) for order in comparison.dialect_orders)
    return min(1112, 220 + 60 * shown), 120 + 26 * len(comparison.keys)


def _drawn(figure: Figure, size: tuple[int, int]) -> dict[str, Any]:
    panels = [
        {"title": panel.title, "svg": draw(panel, f"{figure.key}-{number}", figure.text, size)}
        for number, panel in enumerate(figure.panels)
    ]
    return {"title": figure.title, "text": figure.text, "panels": panels}


def _detail_tables(comparison: Comparison) -> list[Table]:
    return [
        comparison_tables.fold_table(comparison, comparison.measures[0]),
        comparison_tables.cutoff_table(comparison),
        comparison_tables.choice_table(comparison),
        comparison_tables.calibration_table(comparison),
        comparison_tables.reliability_table(comparison),
        comparison_tables.position_table(comparison),
    ]


def _switch(measures: tuple[str, ...]) -> dict[str, list[dict[str, str]]]:
    """Measures by their standard name, each with the dialects there are: the page's two switches."""
    switch: dict[str, list[dict[str, str]]] = {}
    for name in measures:
        measure = parse_measure(name)
        base = replace(measure, dialect=DIALECTS["standard"]).name
        switch.setdefault(base, []).append({"dialect": measure.switches.name, "name": name})
    return switch


def _first_pair(comparison: Comparison) -> tuple[int, int]:
    """The pair a page opens with: the best, and the one that comes next."""
    lines = comparison.leaderboard()
    best = comparison.place(lines[0].system)
    return best, comparison.place(lines[1].system) if len(lines) > 1 else best


def _pair_facts(comparison: Comparison, measure: str, step: _Steps) -> dict[str, Any]:
    """Every pair of systems: difference, tests, wins, and the histogram of differences."""
    step(f"pairs, {measure}")
    values = comparison.counted(measure)
    edges = difference_edges(values)
    return {
        "edge": float(edges[-1]),
        "pairs": {
            f"{pair.first},{pair.second}": {
                "difference": number(pair.test.difference, sign=True).text,
                "reverse": number(-pair.test.difference, sign=True).text,
                "test": pair_words(comparison, measure, pair),
                "counts": [pair.wins, pair.ties, pair.losses],
                "columns": difference_counts(values, pair.first, pair.second, edges).tolist(),
            }
            for pair in comparison.pairs(measure)
        },
    }


def _facts(comparison: Comparison, boards: dict[str, Any], fragments: Any, step: _Steps) -> dict[str, Any]:
    return {
        "systems": list(comparison.keys),
        "folds": [printable(fold.name) for fold in comparison.folds],
        "qids": [printable(str(query)) for query in comparison.qids.tolist()],
        "measures": {
            name: {
                "board": str(fragments.board_rows(board)),
                "wins": str(fragments.win_rows(board)),
                "verdict": board["verdict"],
                "definition": board["definition"],
                "higher": board["higher"],
                **_pair_facts(comparison, name, step),
            }
            for name, board in boards.items()
        },
    }


def _payload(comparison: Comparison, facts: dict[str, Any], room: Room, bare: int) -> tuple[str, _Cut]:
    """Pack what the page's script needs: the main measure and documents, then measures while they fit."""
    payload = Payload()
    payload.add("sizes", np.diff(comparison.offsets).astype(np.uint32))
    payload.add("folds", comparison.fold_of_query.astype(np.uint16))
    main = comparison.measures[0]
    documents = choose_documents(comparison, main, room.documents, room.rows)
    facts["documents"] = add_documents(comparison, documents, payload)
    _add_values(comparison, main, payload, facts)
    used = bare + len(payload.text(facts))
    left_out = []
    for name in comparison.measures[1:]:
        used += _add_values(comparison, name, payload, facts)
        if used > room.bytes:
            used -= packed_size(payload.arrays.pop(f"values {name}"))
            del facts["measures"][name]["decimals"]
            left_out.append(name)
    text = payload.text(facts)
    return text, _Cut(len(documents.queries), len(documents.rows), tuple(left_out), room)


def _add_values(comparison: Comparison, name: str, payload: Payload, facts: dict[str, Any]) -> int:
    """Add the values of every query; return the bytes they take in the page."""
    values = comparison.per_query(name)
    decimals = decimals_for(values)
    facts["measures"][name]["decimals"] = decimals
    payload.add(f"values {name}", quantize(values, decimals))
    return packed_size(payload.arrays[f"values {name}"])


def _data(comparison: Comparison) -> dict[str, Any]:
    """What the doctor says of the test rows of all folds together, and the sizes of every part."""
    from mcrank.data.dataset import Dataset
    from mcrank.doctor.diagnose import diagnose

    if comparison.features is None:
        return {"diagnosis": None}
    rows = np.repeat(np.arange(comparison.n_queries), np.diff(comparison.offsets))
    data = Dataset(
        np.asarray(comparison.features),
        y=comparison.grades,
        qid=comparison.qids[rows],
        feature_names=list(comparison.feature_names),
        doc_ids=comparison.doc_ids,
    )
    return {"diagnosis": diagnose(data, names=["test rows"])}


def _repeat(comparison: Comparison) -> list[tuple[str, str]]:
    """Command, versions, seeds and the like; systems and folds have tables of their own."""
    lines: list[tuple[str, str]] = []

    def walk(name: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, inner in sorted(value.items()):
                walk(f"{name} {key}".strip(), inner)
        elif isinstance(value, (list, tuple)):
            if not any(isinstance(inner, Mapping) for inner in value):
                lines.append((name, ", ".join(map(str, value))))
        else:
            lines.append((name, str(value)))

    walk("", comparison.environment)
    # What to type comes first.
    return sorted(lines, key=lambda line: line[0] != "command")
