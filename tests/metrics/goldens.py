"""The golden files: what seventeen tools printed, and the measure that must print it too."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mcrank import Dataset

FOLDER = Path(__file__).parent.parent / "goldens"
TIED = ("signed_zero", "float32_tie", "mixed6", "rand_c")


@cache
def load(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@cache
def cases() -> dict[str, Any]:
    return {case["name"]: case for case in load("cases")["cases"]}


def is_tied(name: str) -> bool:
    return name.startswith("ties_") or name in TIED


def dataset(case: dict[str, Any], exp: bool = False) -> tuple[Dataset, np.ndarray]:
    """A case as data and scores; with ``exp`` the grades become 2^grade - 1."""
    y = np.array([label for q in case["queries"] for label in q["labels"]], dtype=float)
    qid = [q["qid"] for q in case["queries"] for _ in q["labels"]]
    docs = [doc for q in case["queries"] for doc in q["docids"]]
    scores = np.array([float(score) for q in case["queries"] for score in q["scores"]])
    return Dataset(np.zeros((len(y), 1)), 2.0**y - 1.0 if exp else y, qid, doc_ids=docs), scores


def _perl(dialect: str, name: str) -> str:
    kind, _, k = name.partition("@")
    if kind == "MeanNDCG":
        return f"meanndcg[{dialect};outside=zero]"
    label = {"P": "precision", "MAP": "map", "NDCG": "ndcg"}[kind]
    return f"{label}{'@' + k if k else ''}[{dialect}{';outside=zero' if kind == 'NDCG' else ''}]"


def _yahoo(name: str) -> str:
    if name == "ERR":
        return "err[yahoo]"
    cut = re.fullmatch(r"NDCG@(\d+)( \(empty=1\.0\))?", name)
    return f"ndcg@{cut[1]}[{'yahoo' if cut[2] else 'yahoo2010'}]"


def _ranklib(name: str) -> str:
    kind, _, k = name.partition("@")
    label = {"P": "precision", "RR": "mrr"}.get(kind, kind.lower())
    return f"{label}{'@' + k if k else ''}[ranklib]"


def _trec(dialect: str, name: str) -> str | None:
    kind, _, k = name.rpartition("_")
    if name in ("num_q", "num_rel"):
        return None
    if not k.isdigit():
        return {"map": "map", "recip_rank": "mrr", "ndcg": "ndcg"}[name] + f"[{dialect}]"
    label = {"P": "precision", "recall": "recall", "ndcg_cut": "ndcg", "map_cut": "map"}[kind]
    return f"{label}@{k}[{dialect}]"


def _ir_measures(name: str) -> str:
    kind, _, k = name.partition("@")
    cut = f"@{k}" if k else ""
    if kind == "ERR" or "exp-log2" in kind:
        return f"{'err' if kind == 'ERR' else 'ndcg'}{cut}[gdeval;empty=0;missing=zero]"
    label = {"AP": "map", "RR": "mrr", "P": "precision", "nDCG": "ndcg"}[kind]
    return f"{label}{cut}[trec;missing=zero;unjudged=zero]"


def _ranx(name: str) -> str:
    kind, _, k = name.partition("@")
    dialect = "ranx;gain=exp" if kind == "ndcg_burges" else "ranx"
    return f"{'ndcg' if kind == 'ndcg_burges' else kind}{'@' + k if k else ''}[{dialect}]"


def _sklearn(name: str) -> str:
    form, cut, *ignore = name.split()
    switches = ["sklearn"] + ["gain=exp"] * (form == "exp") + ["ties=file"] * bool(ignore) + ["single=skip"]
    return f"{cut}[{';'.join(switches)}]"


def _xgboost(name: str) -> str:
    form, cut = name.split()
    switches = ["xgboost"] + ["gain=linear"] * (form == "linear") + ["empty=0"] * cut.endswith("-")
    return f"{cut.rstrip('-')}[{';'.join(switches)}]"


def _catboost(name: str) -> str:
    kind, _, text = name.partition(":")
    options = dict(part.split("=") for part in text.split(";")) if text else {}
    cut = f"@{options['top']}" if "top" in options else ""
    if kind != "NDCG":
        return f"{'precision' if kind == 'PrecisionAt' else kind.lower()}{cut}[catboost]"
    switches = ["catboost"] + ["gain=exp"] * (options.get("type") == "Exp")
    switches += ["discount=position"] * (options.get("denominator") == "Position")
    return f"ndcg{cut}[{';'.join(switches)}]"


def _rankeval(name: str) -> str:
    form, cut = name.split()
    return f"{cut.lower()}[{'rankeval' if form == 'exp' else 'rankeval;gain=linear'}]"


def _torchmetrics(name: str) -> str:
    cut, *action = name.split(" empty_target_action=")
    empty = {"pos": ";empty=1", "skip": ";empty=skip"}.get(action[0] if action else "neg", "")
    return f"{cut.lower()}[torchmetrics{empty}]"


# file -> (measure that prints a golden name, tolerance, blocks, tie order is defined)
TOOLS: dict[str, tuple[Any, float, tuple[str, ...], bool]] = {
    "letor30": (lambda n: _perl("letor3", n), 1e-9, ("",), True),
    "letor40": (lambda n: _perl("letor4", n), 5.1e-5, ("",), True),
    "mslr": (lambda n: _perl("mslr", n), 5.1e-5, ("",), True),
    "yahoo": (_yahoo, 1e-9, ("",), True),
    "ranklib_2.8": (_ranklib, 1e-9, ("",), True),
    "trec_eval_9.0.8": (lambda n: _trec("trec", n), 5.1e-5, ("linear", "exp"), True),
    "trec_eval_10.0": (lambda n: _trec("trec10", n), 5.1e-5, ("linear", "exp"), True),
    "pytrec_eval_terrier": (lambda n: _trec("trec", n), 1e-9, ("linear", "exp"), True),
    "ir_measures": (_ir_measures, 1e-9, ("",), True),
    "ranx": (_ranx, 1e-9, ("",), False),
    "sklearn": (_sklearn, 1e-9, ("",), True),
    "lightgbm": (lambda n: f"{n}[lightgbm]", 1e-9, ("",), True),
    "xgboost": (_xgboost, 1e-9, ("",), True),
    "catboost": (_catboost, 1e-9, ("",), True),
    "rankeval": (_rankeval, 5e-6, ("",), False),
    "allrank": (lambda n: f"{n.lower()}[allrank]", 5e-6, ("",), False),
    "torchmetrics": (_torchmetrics, 5e-6, ("",), True),
}


def tolerance(tool: str, measure: str) -> float:
    """gdeval, inside ir_measures, prints 5 digits."""
    return 5.1e-6 if tool == "ir_measures" and "gdeval" in measure else TOOLS[tool][1]
