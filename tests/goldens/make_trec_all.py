"""Record all of trec_eval's measures with pytrec_eval-terrier: ``python -m tests.goldens.make_trec_all``."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytrec_eval
from tests.oracles.test_trec_tools import judged_runs


def main() -> None:
    asked = set(pytrec_eval.supported_nicknames["all_trec"]) - {"runid", "relstring", "num_q"}
    cases = []
    for judgments, run in judged_runs(seed=11, number=3):
        printed = pytrec_eval.RelevanceEvaluator(judgments, asked).evaluate(run)
        cases.append({"qrels": judgments, "run": run, "per_query": printed})
    made = {"tool": "pytrec_eval-terrier", "version": version("pytrec_eval-terrier"), "cases": cases}
    Path(__file__).with_name("trec_all.json").write_text(json.dumps(made) + "\n")


if __name__ == "__main__":
    main()
