"""Every value and every mean of every golden file, at the tolerance its README gives."""

from __future__ import annotations

import math

import pytest

import mcrank
from tests.metrics import goldens


def compare(printed: str, ours: float, within: float) -> str | None:
    """What is wrong, if anything; a tool's refusal stands for no value (NaN)."""
    if "Error" in printed:
        return None if math.isnan(ours) else f"refused, got {ours!r}"
    return None if abs(float(printed) - ours) <= within else f"printed {printed}, got {ours!r}"


@pytest.mark.parametrize("tool", goldens.TOOLS)
def test_every_value_and_mean(tool):
    translate, _, blocks, ties_defined = goldens.TOOLS[tool]
    wrong, checked = [], 0
    for entry in goldens.load(tool)["cases"]:
        case = goldens.cases()[entry["name"]]
        for block in blocks:
            printed = entry[block] if block else entry
            data, scores = goldens.dataset(case, exp=block == "exp")
            mean_key = "mean" if "mean" in printed else "mean_of_queries_that_did_not_raise"
            names = {n for values in printed["per_query"].values() for n in values} | set(printed[mean_key])
            names = {n for n in names if translate(n) is not None}
            if goldens.is_tied(entry["name"]) and not ties_defined:
                continue
            if goldens.is_tied(entry["name"]):
                names = {n for n in names if "ignore_ties" not in n}
            measures = {n: translate(n) for n in names}
            result = mcrank.evaluate(scores, data, list(measures.values()))
            for name, measure in measures.items():
                canonical = mcrank.parse_measure(measure).name
                within = goldens.tolerance(tool, measure)
                for q, qid in enumerate(result.qids):
                    value = printed["per_query"].get(str(qid), {}).get(name)
                    if value is not None:
                        checked += 1
                        problem = compare(value, result.per_query[canonical][q], within)
                        wrong += [f"{entry['name']} {qid} {block} {name}: {problem}"] if problem else []
                if name in printed[mean_key]:
                    checked += 1
                    problem = compare(printed[mean_key][name], result.mean[canonical], within)
                    wrong += [f"{entry['name']} mean {block} {name}: {problem}"] if problem else []
    assert not wrong, f"{len(wrong)} of {checked}: " + "; ".join(wrong[:12])
    assert checked > 500
