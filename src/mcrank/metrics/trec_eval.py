"""What ``trec_eval -m all_trec`` prints, line by line: its names, its order and its form of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from mcrank.data.trec import Judged, Qrels, Run, judge
from mcrank.errors import DataError, MeasureError
from mcrank.metrics.evaluate import Evaluation, evaluate
from mcrank.metrics.layout import Layout
from mcrank.metrics.measure import parse_measure
from mcrank.metrics.prepared import PreparedMeasure

_CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_WHOLE = ("num_q", "num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret")  # printed as integers
_ONLY_ALL = ("runid", "num_q", "gm_map", "gm_bpref")  # not printed for single queries
ALL_TREC: tuple[str, ...] = (
    "runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec", "bpref", "recip_rank",
    *(f"iprec_at_recall_{i / 10:.2f}" for i in range(11)),
    *(f"P_{k}" for k in _CUTS),
    "relstring",
    *(f"recall_{k}" for k in _CUTS),
    "infAP", "gm_bpref",
    *(f"Rprec_mult_{i / 5:.2f}" for i in range(1, 11)),
    "utility", "11pt_avg", "binG", "G", "ndcg", "ndcg_rel", "Rndcg",
    *(f"{name}_{k}" for name in ("ndcg_cut", "map_cut", "relative_P") for k in _CUTS),
    *(f"success_{k}" for k in (1, 5, 10)),
    "set_P", "set_relative_P", "set_recall", "set_map", "set_F", "num_nonrel_judged_ret",
)  # fmt: skip


def is_trec_report(measure: Any) -> bool:
    """Whether a name asks for all of trec_eval's measures: ``all[trec]``, ``all[trec10]``, ``all_trec``.

    Examples
    --------
    >>> from mcrank.metrics.trec_eval import is_trec_report
    >>> is_trec_report("all[trec]"), is_trec_report("all_trec"), is_trec_report("map[trec]")
    (True, True, False)
    """
    return isinstance(measure, str) and (measure == "all_trec" or measure.startswith("all["))


def trec_report(
    qrels: Qrels | Any,
    run: Run | Any,
    measure: str = "all[trec]",
    *,
    per_query: bool = False,
    complete: bool = False,
    judged_only: bool = False,
) -> str:
    """Return what trec_eval prints of a run with ``-m all_trec`` (``-q``, ``-c`` and ``-J`` likewise).

    Parameters
    ----------
    qrels, run : Qrels, Run
        Judgments and scores.
    measure : str
        ``"all[trec]"``, or with another dialect of that family and switches: ``"all[trec;relevant=>=2]"``.
    per_query : bool
        Also print the lines of every query.
    complete, judged_only : bool
        As in `evaluate`.

    Examples
    --------
    >>> from mcrank import Qrels, Run
    >>> from mcrank.metrics.trec_eval import trec_report
    >>> trec_report(Qrels([1], ["a"], [1]), Run([1], ["a"], [0.5])).splitlines()[5].split()
    ['map', 'all', '1.0000']
    """
    found = _measured(qrels, run, measure, per_query, {"complete": complete, "judged_only": judged_only})
    lines = [line for place in found.queries for line in _query_lines(found, place)]
    for name in ALL_TREC:
        if name == "runid":
            lines.append(_line(name, "all", run.tag))
        elif name != "relstring":
            lines.append(_line(name, "all", _text(name, found.result.mean[found.names[name]])))
    return "\n".join(lines)


def trec_values(
    qrels: Qrels | Any,
    run: Run | Any,
    measure: str = "all[trec]",
    *,
    per_query: bool = False,
    complete: bool = False,
    judged_only: bool = False,
) -> dict[str, Any]:
    """Return the numbers of `trec_report` unrounded, by trec_eval's names, as plain values for JSON.

    Examples
    --------
    >>> from mcrank import Qrels, Run
    >>> from mcrank.metrics.trec_eval import trec_values
    >>> found = trec_values(Qrels([1, 1], ["a", "b"], [1, 1]), Run([1], ["a"], [0.5]), per_query=True)
    >>> found["mean"]["recall_5"], found["per_query"]["relstring"]
    (0.5, {'1': '1'})
    """
    found = _measured(qrels, run, measure, per_query, {"complete": complete, "judged_only": judged_only})
    plain: dict[str, Any] = {
        "run": run.tag,
        "mean": {name: _number(name, found.result.mean[own]) for name, own in found.names.items()},
    }
    if per_query:
        qids = found.result.qids
        plain["per_query"] = {
            name: {
                str(qids[place]): found.told[place] if name == "relstring" else found.value(name, place)
                for place in found.queries
            }
            for name in ALL_TREC
            if name not in _ONLY_ALL
        }
    return plain


class _Measured(NamedTuple):
    """A run measured: trec_eval's names for its measures, and the queries that are told one by one."""

    result: Evaluation
    names: dict[str, str]
    queries: list[int]  # places among the result's queries, in trec_eval's order
    told: list[str]  # relstring of every place

    def value(self, name: str, place: int) -> float:
        """Value of a measure, by trec_eval's name, for one query."""
        return _number(name, float(self.result.per_query[self.names[name]][place]))


def _measured(
    qrels: Qrels | Any, run: Run | Any, measure: str, per_query: bool, options: dict[str, bool]
) -> _Measured:
    if not isinstance(qrels, Qrels) or not isinstance(run, Run):
        raise DataError(f"{measure} prints what trec_eval prints of qrels and a run; give it those two.")
    dialect = "trec" if measure == "all_trec" else measure.removeprefix("all[").removesuffix("]")
    if dialect.split(";")[0] not in ("trec", "trec10"):
        raise MeasureError(f"{measure} must name a dialect of trec_eval: all[trec] or all[trec10].")
    names = {
        name: parse_measure(f"{name}[{dialect}]").name
        for name in ALL_TREC
        if name not in ("runid", "relstring")
    }
    result = evaluate(run, qrels, list(names.values()), **options)
    if result.mean[names["num_q"]] == 0:
        raise DataError("no query of the run is judged; compare how run and qrels write their query ids.")
    if not per_query:
        return _Measured(result, names, [], [])
    # With -c version 9 counts the queries that a run misses, version 10 prints them too.
    all_told = options["complete"] and dialect.startswith("trec10")
    places = [q for q, qid in enumerate(result.qids) if all_told or str(qid) in run.queries]
    places.sort(key=lambda q: str(result.qids[q]).encode())
    return _Measured(result, names, places, relstrings(judge(qrels, run, **options), names["map"]))


def relstrings(judged: Judged, measure: str) -> list[str]:
    """Return the grades of the first ten ranks of each query as trec_eval's relstring.

    A digit is a grade, ``>`` one above 9, ``-`` a document outside the judgments, ``.`` one judged below 0.

    Examples
    --------
    >>> from mcrank import Qrels, Run
    >>> from mcrank.data.trec import judge
    >>> from mcrank.metrics.trec_eval import relstrings
    >>> run = Run([1, 1, 1], ["a", "u", "b"], [3.0, 2.0, 1.0])
    >>> relstrings(judge(Qrels([1, 1], ["a", "b"], [2, -1]), run), "map[trec]")
    ['2-.']
    """
    prepared = PreparedMeasure(parse_measure(measure), Layout.of(judged))
    order = prepared.ranking(prepared.scores_of(judged.scores)).order
    strings = []
    for start, end in zip(judged.offsets[:-1].tolist(), judged.ranked_ends.tolist(), strict=True):
        strings.append("".join(_sign(judged, row) for row in order[start:end][:10].tolist()))
    return strings


def _sign(judged: Judged, row: int) -> str:
    if judged.outside[row]:
        return "-"
    if judged.unjudged_rows[row]:
        return "."
    return ">" if judged.y[row] > 9 else str(int(judged.y[row]))


def _query_lines(found: _Measured, place: int) -> Iterator[str]:
    query = str(found.result.qids[place])
    for name in ALL_TREC:
        if name == "relstring":
            yield _line(name, query, f"'{found.told[place]}'")
        elif name not in _ONLY_ALL:
            yield _line(name, query, _text(name, found.value(name, place)))


def _number(name: str, value: float) -> float:
    return int(value) if name in _WHOLE else value


def _text(name: str, value: float) -> str:
    return f"{int(value)}" if name in _WHOLE else f"{value:6.4f}"


def _line(name: str, query: str, value: str) -> str:
    return f"{name:<22}\t{query}\t{value}"
