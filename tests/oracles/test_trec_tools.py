"""pytrec_eval and gdeval on random judgments and runs that only partly meet."""

from __future__ import annotations

import math
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import mcrank
from mcrank.errors import MeasureError
from mcrank.metrics.trec_eval import ALL_TREC
from tests.oracles.rankings import ODD_SCORES

IDS = ["a", "B", "aa", "Z", "z", "0", "10", "2", "a-b", "a_b", "A.1", "~", *(f"d{i}" for i in range(40))]
TREC = {
    "map": "map", "recip_rank": "mrr", "ndcg": "ndcg", "P_5": "precision@5", "P_30": "precision@30",
    "recall_5": "recall@5", "recall_30": "recall@30", "ndcg_cut_1": "ndcg@1", "ndcg_cut_5": "ndcg@5",
    "ndcg_cut_30": "ndcg@30", "map_cut_5": "map@5", "success_1": "success@1", "success_5": "success@5",
}  # fmt: skip

TEXTS = ("runid", "relstring", "num_q")


def judged_runs(seed, number, ids=IDS, kinds=tuple(ODD_SCORES), lowest=-1):
    """Judgments and runs as nested dicts: queries and documents missing on either side."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        judgments, run = {}, {}
        for query in map(str, rng.permutation(6) + 1):
            judged = rng.permutation(ids)[: rng.integers(1, 35)].tolist()
            grades = rng.integers(lowest, 5, len(judged)) * (
                rng.random(len(judged)) < rng.choice([1, 0.4, 0])
            )
            grades[0] = max(grades[0], 0)  # no query is without a usable judgment
            if rng.random() < 0.9:
                judgments[query] = dict(zip(judged, grades.tolist(), strict=True))
            ranked = rng.permutation(ids)[: rng.integers(1, 35)].tolist()
            scores = ODD_SCORES[rng.choice(kinds)](rng, len(ranked))
            if rng.random() < 0.9:
                run[query] = dict(zip(ranked, scores.tolist(), strict=True))
        if judgments.keys() & run.keys():
            yield judgments, run


def ours(judgments, run):
    rows = [[(q, d, v) for q, docs in side.items() for d, v in docs.items()] for side in (run, judgments)]
    np.random.default_rng(0).shuffle(rows[0])
    return mcrank.Run(*zip(*rows[0], strict=True)), mcrank.Qrels(*zip(*rows[1], strict=True))


@pytest.mark.parametrize("judged_only", [False, True])
def test_pytrec_eval(judged_only):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    asked = {
        "map",
        "recip_rank",
        "ndcg",
        "P.5,30",
        "recall.5,30",
        "ndcg_cut.1,5,30",
        "map_cut.5",
        "success.1,5",
    }
    for judgments, run in judged_runs(seed=1, number=25, ids=[*IDS, "é", "ü", "漢"]):
        printed = pytrec_eval.RelevanceEvaluator(
            judgments, asked, judged_docs_only_flag=judged_only
        ).evaluate(run)
        names = {theirs: f"{ours}[trec]" for theirs, ours in TREC.items()}
        result = mcrank.evaluate(*ours(judgments, run), list(names.values()), judged_only=judged_only)
        for theirs, name in names.items():
            values = {q: v for q, v in result.by_query(name).items() if v == v}
            assert values == {q: pytest.approx(printed[q][theirs], abs=1e-9) for q in printed}
            assert result.mean[name] == pytest.approx(
                np.mean([printed[q][theirs] for q in printed]), abs=1e-9
            )


@pytest.mark.parametrize("judged_only", [False, True])
def test_all_of_trec_eval(judged_only):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    asked = set(pytrec_eval.supported_nicknames["all_trec"]) - {"runid", "relstring", "num_q"}
    names = {name: mcrank.parse_measure(f"{name}[trec]").name for name in ALL_TREC if name not in TEXTS}
    for judgments, run in judged_runs(seed=4, number=10):
        printed = pytrec_eval.RelevanceEvaluator(
            judgments, asked, judged_docs_only_flag=judged_only
        ).evaluate(run)
        result = mcrank.evaluate(*ours(judgments, run), list(names.values()), judged_only=judged_only)
        for theirs, name in names.items():
            values = {q: v for q, v in result.by_query(name).items() if v == v}
            if theirs.startswith("gm_"):  # the tool has logarithms for single queries
                values = {q: math.log(max(v, 0.00001)) for q, v in values.items()}
            wanted = {q: printed[q][theirs] for q in printed}
            # Where nothing is left of a list the tool divides 0 by 0.
            wanted = {q: 0.0 if math.isnan(v) else v for q, v in wanted.items()}
            assert values == {q: pytest.approx(v, abs=1e-9) for q, v in wanted.items()}, theirs


# Of the compiled code of ranx itself.
@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaTypeSafetyWarning")
def test_rank_biased_precision_of_ranx():
    ranx = pytest.importorskip("ranx")
    kinds = ("plain", "rising")  # its order among ties is not defined
    for judgments, run in judged_runs(seed=3, number=10, kinds=kinds, lowest=0):
        shared = judgments.keys() & run.keys()
        judgments, run = ({q: side[q] for q in shared} for side in (judgments, run))
        printed = ranx.evaluate(ranx.Qrels(judgments), ranx.Run(run), ["rbp.80", "rbp.95-l2"])
        names = {"rbp.80": "rbp(0.8)[ranx]", "rbp.95-l2": "rbp(0.95)[ranx;relevant=>=2]"}
        result = mcrank.evaluate(*ours(judgments, run), list(names.values()))
        for theirs, name in names.items():
            assert result.mean[name] == pytest.approx(printed[theirs], abs=1e-9), theirs


def test_gdeval_refuses_the_same_grades(tmp_path):
    script = gdeval_script()
    (tmp_path / "qrels").write_text("1 0 a 1.5\n1 0 b 1\n")
    (tmp_path / "run").write_text("1 Q0 a 1 2 r\n1 Q0 b 2 1 r\n")
    done = subprocess.run(
        ["perl", str(script), str(tmp_path / "qrels"), str(tmp_path / "run"), "5"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "format error on line 1" in done.stderr
    given = mcrank.Run.read(tmp_path / "run"), mcrank.Qrels.read(tmp_path / "qrels")
    for name in ("err@5[gdeval]", "ndcg@5[gdeval]"):
        with pytest.raises(MeasureError, match="integer grades only"):
            mcrank.evaluate(*given, name)


def gdeval_script():
    spec = find_spec("ir_measures")
    if spec is None or spec.origin is None or shutil.which("perl") is None:
        pytest.skip("needs ir_measures, which has gdeval, and perl")
    return Path(spec.origin).parent / "bin" / "gdeval.pl"


def test_gdeval(tmp_path):
    script = gdeval_script()
    for judgments, run in judged_runs(seed=2, number=10):
        qrels_file, run_file = tmp_path / "qrels", tmp_path / "run"
        qrels_file.write_text(
            "".join(f"{q} 0 {d} {g}\n" for q, docs in judgments.items() for d, g in docs.items())
        )
        run_file.write_text(
            "".join(f"{q} Q0 {d} 1 {s!r} r\n" for q, docs in run.items() for d, s in docs.items())
        )
        for k in (1, 5, 20):
            done = subprocess.run(
                ["perl", str(script), str(qrels_file), str(run_file), str(k)],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            names = [f"ndcg@{k}[gdeval]", f"err@{k}[gdeval]"]
            result = mcrank.evaluate(mcrank.Run.read(run_file), mcrank.Qrels.read(qrels_file), names)
            lines = [line.split(",") for line in done.stdout.splitlines()[1:]]
            for place, name in enumerate(names, start=2):
                values = {q: v for q, v in result.by_query(name).items() if v == v}
                if place == 2:
                    assert values.keys() == {line[1] for line in lines}
                for line in lines:
                    assert abs(values[line[1]] - float(line[place])) <= 5.1e-6
