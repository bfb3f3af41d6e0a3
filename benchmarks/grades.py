"""What grades mean: calibration of McRank and OrdinalMcRank by default, on every set of `quality.py`.

One call of `fit(train, valid=valid)` for each system, nothing chosen on test parts. The runs are those of
`quality.py` and kept in the same folder.

    python benchmarks/grades.py --data DATA --seeds 4 --out docs/results/grades
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quality import NOTES, Found, by_set, compared, run
from report import machine, write
from sets import study_options

SYSTEMS = [f"{name}{how}" for name in ("mcrank", "ordinal") for how in ("", ", calibrate=False", ", folds=4")]


def main() -> None:
    args = study_options(__doc__, "build/quality").parse_args()
    write("Probabilities of grades", summary(run(SYSTEMS, args)), args.out)


def summary(found: Found) -> dict[str, Any]:
    """A row for each system and set, and what it comes to."""
    rows = []
    for name in SYSTEMS:
        for kind, values in by_set(found, name).items():
            told = [v["calibration"] for (k, _, s), v in found.items() if (k, s) == (kind, name)]
            mean = {field: float(np.mean([one[field] for one in told])) for field in told[0]}
            below = sum(one["log_loss"] < one["constant_log_loss"] for one in told)
            off = [one["mean_expected_grade"] / one["mean_grade"] - 1 for one in told]
            noise = np.sqrt(np.mean([chance(one) ** 2 for one in told]))
            rows.append(
                {
                    "system": name,
                    "set": kind,
                    "ndcg@10": float(np.nanmean(values)),
                    "top-label error": mean["top_label_error"],
                    "by chance": mean["top_label_noise"],
                    "by chance, whole queries": mean["top_label_noise_queries"],
                    "log loss": mean["log_loss"],
                    "constant guess": mean["constant_log_loss"],
                    "below it": f"{below} of {len(told)}",
                    "mean grade off": f"{np.mean(off):+.1%}",
                    "of single test parts": " ".join(f"{one:+.1%}" for one in off),
                    "by chance, each": f"{noise:.1%}",
                }
            )
    return {"machine": machine(), "rows": rows, "verdicts": [*verdicts(found), *NOTES]}


def chance(told: dict[str, float]) -> float:
    """Share that a mean grade is off by the draw of the queries it was learned from, and of the test part."""
    return float(np.hypot(told["noise_test"], told["noise_learned"]) / told["mean_grade"])


def verdicts(found: Found) -> list[str]:
    """Say how far the aims are reached, and what the correction does to the ranking."""
    lines = []
    for name in SYSTEMS:
        told = [v["calibration"] for (_, _, s), v in found.items() if s == name]
        if not told:
            continue
        off = np.array([one["mean_expected_grade"] / one["mean_grade"] - 1 for one in told])
        noise = np.array([chance(one) for one in told])
        top, whole = (
            sum(one["top_label_error"] <= 0.02 + one[field] for one in told)
            for field in ("top_label_noise", "top_label_noise_queries")
        )
        below = sum(one["log_loss"] < one["constant_log_loss"] for one in told)
        lines.append(
            f"{name}, of {len(told)} test parts: top-label error at most .02 above chance in {top}, with "
            f"the chance of whole queries in {whole}; log loss below the constant guess in {below}; "
            f"mean grade within 5 % in {(abs(off) <= 0.05).sum()}, within 5 % and two standard errors in "
            f"{(abs(off) <= 0.05 + 2 * noise).sum()}; root mean square "
            f"{np.sqrt((off**2).mean()):.1%}, by chance alone {np.sqrt((noise**2).mean()):.1%}"
        )
    for name in ("mcrank", "ordinal"):
        mean, p, sets = compared(found, name, f"{name}, calibrate=False")
        lines.append(f"NDCG@10 of {name} with the correction: {mean:+.4f} over {sets} sets (p {p:.2g})")
    return lines


if __name__ == "__main__":
    main()
