"""Tools: the conventions of each, as one table of dialects, and dialects by their names."""

from __future__ import annotations

from dataclasses import replace

from mcrank.errors import MeasureError, did_you_mean
from mcrank.metrics.dialect import Dialect, read_switch

_TREC = Dialect(
    "trec", gain="linear", grades="integer", ties="id-descending", score="float32", missing="skip",
    unjudged="error", ids="unique", relevant=">=1", note="trec_eval 9.0.4 to 9.0.8, pytrec_eval-terrier",
)  # fmt: skip
_LETOR4 = Dialect(
    "letor4", gain=(0, 1, 3), discount="letor", grades="integer", short="zero", ids="unique",
    relevant="1..2", note="LETOR 4.0, Eval-Score-4.0.pl",
)  # fmt: skip
_YAHOO = Dialect(
    "yahoo", gain="exp/16", discount="ln", empty=1.0, err_above_one="keep",
    note="Yahoo! challenge evaluate.py, later copies and the 2012 paper: an empty query scores 1",
)  # fmt: skip

DIALECTS: dict[str, Dialect] = {
    d.name: d
    for d in (
        Dialect("standard", note="the definition: gain 2^grade - 1, discount 1/log2(1 + rank); empty 0"),
        replace(_LETOR4, name="letor3", short="missing", precision_short="missing",
                note="LETOR 3.0, Eval-Score-3.0.pl"),
        _LETOR4,
        replace(_LETOR4, name="mslr", gain=(0, 1, 3, 7, 15), relevant="2..4", ids="any",
                note="Microsoft eval-score-mslr.pl"),
        Dialect("letor-paper", short="zero", note="equation 4 of Busa-Fekete et al. 2012 as printed"),
        _YAHOO,
        replace(_YAHOO, name="yahoo2010", empty=0.5,
                note="Yahoo! challenge evaluate.py of March 2010: an empty query scores 0.5"),
        Dialect("ranklib", grades="truncate", score="float32", precision_short="n", err_above_one="keep",
                map_cut="ignored", reciprocal="float32", mrr_default=0, note="RankLib 2.8"),
        _TREC,
        replace(_TREC, name="trec10", score="float64", missing="error", recall_points="round",
                note="trec_eval 10.0"),
        Dialect("gdeval", grades="integer", max_grade=4, empty="skip", ties="id-descending", missing="skip",
                ids="unique", relevant=">=1", note="gdeval.pl 1.3"),
        Dialect("lightgbm", grades="gain-integer", grade_precision="float32", max_grade=30, empty=1.0,
                empty_weight="one", relevant=">0.5", map_divisor="reachable", map_empty=1.0,
                note="LightGBM 4"),
        Dialect("xgboost", grades="exp-integer", grade_precision="float32", max_grade=31, empty=1.0,
                score="float32", empty_weight="one", binary="only", precision_short="n",
                map_divisor="reachable", map_empty=1.0, ndcg_default=32, precision_default=32, map_default=32,
                note="XGBoost 3: ndcg, map and pre without a cut-off are cut at 32"),
        Dialect("catboost", gain="linear", grade_precision="float32", empty=1.0, ties="worst",
                precision_weight="one", relevant=">0.5", precision_short="n", map_divisor="reachable",
                recall_empty=1.0, err="grade", err_above_one="keep", err_rest="float32",
                note="CatBoost 1.2, type=Base"),
        Dialect("sklearn", gain="linear", ties="expected", single="error", note="scikit-learn ndcg_score"),
        Dialect("ranx", gain="linear", grades="integer", missing="error", ids="unique", relevant=">=1",
                rbp="grade", note="ranx 0.3; its order among ties is not defined, file order here"),
        Dialect("rankeval", empty=1.0, score="float32",
                note="RankEval; its order among ties is not defined, file order here"),
        Dialect("allrank", empty=1.0, score="float32",
                note="allRank; its order among ties is not defined, file order here"),
        Dialect("torchmetrics", gain="linear", ties="expected", score="float32", nothing="zero",
                note="torchmetrics RetrievalNormalizedDCG, empty_target_action=neg"),
    )
}  # fmt: skip


def define_dialect(dialect: Dialect) -> None:
    """Make a dialect of your own known by name, for `parse_measure` and the command line.

    Examples
    --------
    >>> from mcrank import Dialect, define_dialect, parse_measure
    >>> define_dialect(Dialect("mine", gain="linear", discount="position"))
    >>> parse_measure("ndcg@5[mine]").dialect.discount
    'position'
    """
    if ";" in dialect.name:
        raise MeasureError(f"name of Dialect must not have ';' to be defined, got {dialect.name!r}.")
    known = DIALECTS.get(dialect.name)
    if known is not None and known != dialect and dialect.name in _BUILT_IN:
        raise MeasureError(f"dialect {dialect.name!r} is built in; choose another name.")
    DIALECTS[dialect.name] = dialect


_BUILT_IN = frozenset(DIALECTS)


def find_dialect(name: str | Dialect) -> Dialect:
    """Return the dialect of a name such as ``yahoo`` or ``xgboost;empty=0``; a `Dialect` passes through.

    Examples
    --------
    >>> from mcrank.metrics.tools import find_dialect
    >>> find_dialect("yahoo2010").empty
    0.5
    """
    if isinstance(name, Dialect):
        return name
    if not isinstance(name, str):
        raise MeasureError(f"dialect must be a name or a Dialect, got {name!r}.")
    base_name, *changes = [part.strip() for part in name.split(";")]
    base = DIALECTS.get(base_name.lower()) or DIALECTS.get(base_name)
    if base is None:
        hint = did_you_mean(base_name.lower(), DIALECTS, "dialects:")
        raise MeasureError(f"unknown dialect {base_name!r}; {hint}")
    if not changes:
        return base
    switches = {}
    for change in changes:
        switch, equals, value = change.partition("=")
        if not equals:
            raise MeasureError(f"dialect {name!r}: {change!r} must look like switch=value.")
        if switch.strip() in switches:
            raise MeasureError(f"dialect {name!r} says {switch.strip()} twice; say it once.")
        switches[switch.strip()] = read_switch(switch.strip(), value.strip())
    return base.but(**switches)
