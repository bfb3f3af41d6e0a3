"""Whether two checkouts of mcrank learn, score, evaluate and compare alike, to the last bit.

    python benchmarks/equality.py record OLD/src --out old.json
    python benchmarks/equality.py record src --out new.json
    python benchmarks/equality.py diff old.json new.json

A record holds, of every ranker under many options on several data sets, the scores, the probabilities, the
header of the model file (apart from where it comes from) and a digest of each of its arrays; and what
`evaluate`, `compare` and `reproduce --quick` say. A difference is told with its size and its kind, so that a
change made on purpose can be told from an accident. Real data is used where MQ2008 is given.

The old code gave gradients up to 30 bits where the new one gives 24, and lambda gradients as many for splits
as for leaves. With ``--gradient-bits 24`` the old code does the one, with ``--whole-curvatures`` the new one
the other as before; what still differs has another cause.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# Options whose defaults have changed, as they were: a record is one of code, not of defaults.
PINNED = {"min_samples_leaf": 10, "calibrate": False, "target": "gain", "signs": False}
PINNED_OF: dict[str, dict[str, Any]] = {"McRank": {"init": "zero"}, "OrdinalMcRank": {"init": "zero"}}
FOLDLESS = (
    "Blend",
)  # cross-fit with validation data, too, unless folds are None, which the old code refuses
TREES = {"n_estimators": 12, "num_leaves": 8, "n_jobs": 2}
RANKERS: list[tuple[str, dict[str, Any]]] = [
    ("McRank", TREES),
    ("McRank", TREES | {"split": "newton", "init": "prior", "binning": "quantile", "learning_rate": 0.1}),
    ("McRank", TREES | {"sequential": True}),
    ("McRank", TREES | {"base_class": "adaptive", "base_gap": 2, "base_search": 3}),
    ("McRank", TREES | {"subsample": 0.6, "colsample": 0.5, "random_state": 7}),
    ("McRank", TREES | {"max_bins": 1024, "num_leaves": 31, "min_samples_leaf": 3}),
    ("McRank", TREES | {"max_bins": 16, "early_stopping_rounds": 3, "measure": "map"}),
    ("OrdinalMcRank", TREES),
    ("OrdinalMcRank", TREES | {"split": "newton", "init": "prior", "subsample": 0.5}),
    ("RegressionRanker", TREES),
    ("RegressionRanker", TREES | {"loss": "lad", "target": "grade"}),
    ("RegressionRanker", TREES | {"split": "newton", "num_leaves": 64, "min_samples_leaf": 1}),
    ("GBRank", TREES),
    ("GBRank", TREES | {"form": "average"}),
    ("LambdaMART", TREES | {"truncation": 10, "norm": False}),
    ("LambdaMART", TREES | {"measure": "map", "truncation": 5, "norm": False}),
    ("LambdaMART", TREES | {"norm": True, "dialect": "yahoo", "split": "mse", "truncation": 10}),
    ("LambdaMART", TREES | {"measure": "err", "subsample": 0.7, "colsample": 0.4, "norm": False}),
    ("LambdaMART", TREES | {"measure": "map", "truncation": 5, "norm": False, "split": "mse"}),
    ("LambdaMART", TREES | {"measure": "err", "subsample": 0.7, "norm": False, "split": "mse"}),
    ("BestFeature", {}),
    ("AdaRank", {"n_estimators": 20}),
    ("AdaRank", {"n_estimators": 20, "update": "paper", "signs": True, "scaling": "zscore"}),
    ("RankSVM", {}),
    ("RankSVM", {"loss": "plain", "pairs": "query", "scaling": "log"}),
    ("RankNet", {"epochs": 6}),
    ("RankNet", {"epochs": 4, "hidden": "8,4", "activation": "relu", "optimizer": "sgd"}),
    ("LambdaRank", {"epochs": 6, "measure": "map"}),
    ("RankBoost", {"n_estimators": 15}),
    ("RankBoost", {"n_estimators": 15, "criterion": "z", "thresholds": 10}),
    ("CoordinateAscent", {"restarts": 2, "max_sweeps": 3}),
    ("CoordinateAscent", {"restarts": 2, "max_sweeps": 2, "search": "grid", "measure": "err"}),
    ("FRank", {"n_estimators": 10}),
    ("FRank", {"n_estimators": 10, "scorer": "trees"}),
    ("Blend", {"members": ("RankSVM", "BestFeature", "CoordinateAscent")}),
    ("Blend", {"members": ("RegressionRanker", "RankSVM"), "method": "nnls", "standard": "query"}),
]
ALSO_ALONE = [pair for pair in RANKERS if pair[1] == TREES or pair[0] == "RankNet"]  # without held-out data
MEMBERS: dict[str, dict[str, Any]] = {"CoordinateAscent": {"restarts": 1, "max_sweeps": 2}}
MEMBERS["RegressionRanker"] = TREES
ENTRIES = ["ranksvm", "rankboost:n_estimators=5", "coordinate-ascent:restarts=1", "best-feature"]
MEASURES = [
    "ndcg@10", "ndcg", "ndcg@5[yahoo]", "ndcg@10[letor4;outside=zero]", "map", "mrr", "err@10", "p@5",
    "recall@10", "rbp", "kendall", "dcg@10",
]  # fmt: skip


def digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def sets(mcrank: Any, mq2008: str | None) -> dict[str, tuple[Any, Any, Any]]:
    """Data sets as (train, valid, test): made up, made up with holes and weights, two grades, real."""
    import numpy as np

    made: dict[str, tuple[Any, Any, Any]] = {}
    made["artificial"] = mcrank.make_artificial(n_train=40, n_valid=15, n_test=15, seed=3)
    stream = np.random.Generator(np.random.PCG64(5))
    parts = []
    for queries in (60, 20, 20):
        sizes = stream.integers(1, 40, queries)
        rows = int(sizes.sum())
        X = stream.normal(size=(rows, 12)).round(1)
        X[stream.random(X.shape) < 0.1] = np.nan
        y = np.clip(np.nansum(X[:, :3], axis=1) + stream.normal(size=rows), 0, 3.9).astype(int)
        parts.append(
            mcrank.Dataset(
                X,
                y,
                np.repeat(np.arange(queries), sizes),
                stream.random(rows) + 0.5,
                stream.random(queries) + 0.5,
            )
        )
    made["weighted"] = (parts[0], parts[1], parts[2])
    X = stream.normal(size=(900, 5)).astype(np.float32)
    y = (X[:, 0] + stream.normal(size=900) > 1).astype(float)
    two = [
        mcrank.Dataset(X[s], y[s], np.arange(900)[s] // 15)
        for s in (slice(600), slice(600, 750), slice(750, 900))
    ]
    made["binary"] = (two[0], two[1], two[2])
    if mq2008:
        folder = Path(mq2008, "Fold1")
        made["MQ2008"] = tuple(mcrank.read(folder / f"{part}.txt") for part in ("train", "vali", "test"))  # type: ignore[assignment]
    return made


def model_parts(content: bytes) -> tuple[dict[str, Any], dict[str, str]]:
    """Header of a model file, without provenance and versions, and a digest of each array."""
    try:
        from mcrank.container import unpack
    except ImportError:
        from mcrank.models.container import unpack
    header, arrays = unpack(bytearray(content), "model")
    for meta in (header, header.get("meta", {})):
        meta.pop("provenance", None)
    parts = {name: digest(array.tobytes()) for name, array in arrays.items() if not name.startswith("member")}
    return header, parts


def made(mcrank: Any, kind: str, options: dict[str, Any]) -> Any:
    """Return an unfitted ranker with these options, and those pinned that it has."""
    declared = getattr(mcrank, kind).declared_options
    pinned = {name: value for name, value in PINNED.items() if name in declared} | PINNED_OF.get(kind, {})
    if (
        kind == "Blend" and "None" in declared["folds"].requirement
    ):  # None: as the old code does, which refuses it
        pinned["folds"] = None
    if "members" in options:
        members = [made(mcrank, member, MEMBERS.get(member, {})) for member in options["members"]]
        options = options | {"members": members}
    return getattr(mcrank, kind)(**pinned | options)


def record_rankers(mcrank: Any, mq2008: str | None, only: str | None) -> dict[str, Any]:
    try:
        from mcrank.rankers.registry import to_bytes
    except ImportError:
        from mcrank.models.file import to_bytes

    found: dict[str, Any] = {}
    for name, (train, valid, test) in sets(mcrank, mq2008).items():
        for kind, options in RANKERS:
            if only and only.lower() != kind.lower():
                continue
            for held_out in (valid, None) if (kind, options) in ALSO_ALONE else (valid,):
                key = f"{name} {kind} {options} {'valid' if held_out is not None else 'no valid'}"
                ranker = made(mcrank, kind, options).fit(train, valid=held_out)
                header, parts = model_parts(to_bytes(ranker))
                entry = {"header": header, "parts": parts, "scores": ranker.predict(test).tolist()}
                if hasattr(ranker, "predict_proba"):
                    entry["proba"] = ranker.predict_proba(test).ravel().tolist()
                found[key] = entry
                print(key[:100], file=sys.stderr, flush=True)
    return found


def run(arguments: list[str]) -> str:
    done = subprocess.run([sys.executable, "-m", "mcrank", *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"mcrank {' '.join(arguments)}: {done.stderr[-500:]}")
    return done.stdout


def numbers_only(value: Any) -> Any:
    """JSON values without what may differ between two runs: times, versions, paths, commands."""
    if isinstance(value, dict):
        drop = ("seconds", "versions", "code", "command", "path", "times", "timing", "cpu_seconds", "folder")
        return {k: numbers_only(v) for k, v in value.items() if k not in drop}
    return [numbers_only(v) for v in value] if isinstance(value, list) else value


def table_of(path: Path) -> dict[str, Any]:
    """Cells of a CSV file by row and name of the column."""
    with path.open(newline="") as file:
        return {str(number): row for number, row in enumerate(csv.DictReader(file))}


def record_commands(mcrank: Any, mq2008: str | None) -> dict[str, Any]:
    """What `evaluate`, `compare` and `reproduce --quick` say, as JSON; of scores that no training decides."""
    import numpy as np

    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (train, valid, test) in sets(mcrank, None).items():
            for part, data in (("train", train), ("vali", valid), ("test", test)):
                target = Path(folder, name, "Fold1", f"{part}.txt")
                target.parent.mkdir(parents=True, exist_ok=True)
                mcrank.write(data, target)
            base = f"{folder}/{name}/Fold1"
            scores = np.nan_to_num(test.X[:, 0]).round(1).tolist()
            Path(base, "scores.txt").write_text("".join(f"{score!r}\n" for score in scores))
            measures = [word for m in MEASURES for word in ("-m", m)]
            said = run(["evaluate", f"{base}/test.txt", f"{base}/scores.txt", *measures, "--json"])
            found[f"evaluate {name}"] = numbers_only(json.loads(said))
            compared = Path(folder, f"compared {name}")
            run(
                [
                    "compare",
                    f"{folder}/{name}",
                    *ENTRIES,
                    "--out",
                    f"{compared}",
                    "--n-jobs",
                    "1",
                    "--no-times",
                ]
            )
            found[f"compare {name}"] = numbers_only(json.loads((compared / "results.json").read_text()))
            for table in sorted((compared / "tables").glob("*.csv")):
                found[f"compare {name} {table.name}"] = table_of(table)
        for target in (["table1"], ["figure1"], *([["apples", mq2008]] if mq2008 else [])):
            quick = ["--quick", "--out", f"{folder}/papers", "--json"]
            rounds = ["--rounds", "10"] if len(target) == 1 else []
            said = run(["reproduce", *target, *rounds, *quick])
            found[f"reproduce {target[0]}"] = numbers_only(json.loads(said))
    return found


def difference(old: dict[str, Any], new: dict[str, Any], brief: bool) -> int:
    """Say what differs, and how often each kind of difference is met; return how many records differ."""
    kinds: dict[tuple[str, str], list[float]] = {}
    for key in sorted({*old, *new}):
        a, b = old.get(key), new.get(key)
        if isinstance(a, dict) and isinstance(b, dict) and "parts" in a and "parts" in b:
            kind, size, said = kind_of_difference(a, b)
            kinds.setdefault((key.split()[1], kind), []).append(size)
            if "proba" in a:
                apart = relative(a["proba"], b["proba"])
                kinds.setdefault((key.split()[1], PROBABILITIES), []).append(apart)
                said.append(f"probabilities: {apart:.1e}")
        else:
            kind, size, said = kind_of_answers(a, b)
            kinds.setdefault((key, kind), []).append(size)
        if kind != EQUAL and not brief:
            print(f"{kind} ({size:.1e})  {key}", *said[:8], sep="\n      ")
    for (what, kind), sizes in kinds.items():
        print(f"{what:<18} {kind:<24} {len(sizes):>3}  largest {max(sizes):.1e}")
    return sum(len(sizes) for (_, kind), sizes in kinds.items() if kind != EQUAL)


ROUNDING = 1e-12
EQUAL, HISTORY, GAINS, NUMBERS = "equal", "scores equal, history not", "scores equal", "same splits"
TREES_DIFFER, PROBABILITIES = "other splits", "probabilities"


def kind_of_difference(a: dict[str, Any], b: dict[str, Any]) -> tuple[str, float, list[str]]:
    """Kind of a difference of two models; its size (of scores, as a share of their spread); what differs."""
    parts = [n for n in sorted({*a["parts"], *b["parts"]}) if a["parts"].get(n) != b["parts"].get(n)]
    for options in (
        entry["header"]["meta"]["options"] for entry in (a, b)
    ):  # one that is new has no old value
        for name in {*a["header"]["meta"]["options"]} ^ {*b["header"]["meta"]["options"]}:
            options.pop(name, None)
    said = leaves_that_differ(a["header"], b["header"])
    size = relative(a["scores"], b["scores"])
    if not parts and size == 0.0:
        pairs = [line.split(": ")[-1].split(" | ") for line in said]
        sizes = [abs(float(x) - float(y)) for x, y in pairs if is_number(x) and is_number(y)]
        return (HISTORY if said else EQUAL), max(sizes, default=0.0), said
    structure = {"feature", "threshold", "missing_left", "tree_offsets", "categories"}
    kind = TREES_DIFFER if structure & {*parts} else NUMBERS if size else GAINS
    return kind, size, [f"parts: {parts}", *said]


def relative(a: list[float], b: list[float]) -> float:
    """Largest difference, as a share of the spread of the first."""
    if len(a) != len(b):
        return float("inf")
    return max((abs(x - y) for x, y in zip(a, b, strict=True)), default=0.0) / (max(a) - min(a) or 1.0)


def is_number(text: str | None) -> bool:
    try:
        float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def kind_of_answers(a: Any, b: Any) -> tuple[str, float, list[str]]:
    """Kind of a difference of what a command said; the largest of its numbers; what differs by more."""
    old, new = leaves(a), leaves(b)
    apart = {
        k: abs(float(old[k]) - float(new[k])) for k in old if is_number(old[k]) and is_number(new.get(k))
    }
    size = max(apart.values(), default=0.0)
    said = [
        f"{k}: {old[k]} | {new[k]}" for k in old if k in new and apart.get(k, old[k] != new[k]) > ROUNDING
    ]
    gone, come = [[k for k in x if k not in y] for x, y in ((old, new), (new, old))]
    said += [f"no longer said ({len(gone)}): {gone[:3]}"] if gone else []
    said += [f"also said ({len(come)}): {come[:3]}"] if come else []
    if not said:
        return (EQUAL if old == new else "rounding"), size, said
    return f"equal {sum(old[k] == new.get(k) for k in old)} of {len(old)}", size, said


def leaves(value: Any, where: str = "") -> dict[str, str]:
    """Every value that is no list and no dictionary, as a text, by the way to it."""
    if not isinstance(value, (dict, list)):
        return {where: str(value)}
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    return {place: leaf for k, v in inside for place, leaf in leaves(v, f"{where}/{k}").items()}


def leaves_that_differ(a: Any, b: Any) -> list[str]:
    old, new = leaves(a), leaves(b)
    return [f"{k}: {old.get(k)} | {new.get(k)}" for k in sorted({*old, *new}) if old.get(k) != new.get(k)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    record = verbs.add_parser("record", help="write the record of a checkout")
    record.add_argument("source", help="the src folder of the checkout")
    record.add_argument("--out", required=True)
    record.add_argument("--mq2008", help="folder of MQ2008, for real data")
    record.add_argument("--only", help="only the ranker of this name, and no commands; or only 'commands'")
    record.add_argument("--gradient-bits", type=int, help="bits of the old code's gradients")
    record.add_argument(
        "--whole-curvatures", action="store_true", help="splits by lambdas with all their bits"
    )
    differ = verbs.add_parser("diff", help="compare two records")
    differ.add_argument("old")
    differ.add_argument("new")
    differ.add_argument("--brief", action="store_true", help="only how often each kind is met")
    arguments = parser.parse_args()
    if arguments.verb == "diff":
        old, new = (json.loads(Path(p).read_text()) for p in (arguments.old, arguments.new))
        sys.exit(difference(old, new, arguments.brief) > 0)
    source = str(Path(arguments.source).resolve())
    if (
        os.environ.get("PYTHONPATH") != source
    ):  # started again, so that this checkout and no other is imported
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"PYTHONPATH": source})
    import mcrank

    if not str(Path(mcrank.__file__).resolve()).startswith(source):
        sys.exit(f"mcrank was imported from {mcrank.__file__}, not from {source}")
    if arguments.gradient_bits:
        import mcrank.losses.quantize

        mcrank.losses.quantize.MOST_BITS = arguments.gradient_bits
    if arguments.whole_curvatures:
        from mcrank.losses.lambdas import LambdaLoss

        LambdaLoss.rounded_curvature = False
    commands = arguments.only == "commands"
    found = {} if commands else record_rankers(mcrank, arguments.mq2008, arguments.only)
    if commands or not arguments.only:
        found |= record_commands(mcrank, arguments.mq2008)
    Path(arguments.out).write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
