"""Whether two checkouts of mcrank learn, score, evaluate and compare alike, to the last bit.

    python benchmarks/equality.py record OLD/src --out old.json
    python benchmarks/equality.py record src --out new.json
    python benchmarks/equality.py diff old.json new.json

A record holds digests: of the model file, of the scores and of the probabilities of every ranker under many
options on several data sets, and of what `evaluate`, `compare` and `reproduce --quick` say. Where a model
file differs, the record also tells which of its parts do (its header apart from versions, and each array), so
that a change made on purpose can be told from an accident. Real data is used where MQ2008 is given.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# Options whose defaults have changed, as they were: a record is one of code, not of defaults.
PINNED = {"min_samples_leaf": 10, "init": "zero", "calibrate": False, "target": "gain", "signs": False}
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
    ("Blend", {"members": "regression,ranksvm,best-feature"}),
    ("Blend", {"members": "regression,ranksvm", "method": "nnls", "standard": "query"}),
]
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


def model_parts(mcrank: Any, content: bytes) -> dict[str, str]:
    """Digests of the parts of a model file: header without provenance and versions, and each array."""
    try:
        from mcrank.container import unpack
    except ImportError:
        from mcrank.models.container import unpack
    header, arrays = unpack(bytearray(content), "model")
    for meta in (header, header.get("meta", {})):
        meta.pop("provenance", None)
    parts = {name: digest(array.tobytes()) for name, array in arrays.items() if name != "members"}
    return {"header": digest(json.dumps(header, sort_keys=True).encode()), **parts}


def record_rankers(mcrank: Any, mq2008: str | None, only: str | None) -> dict[str, Any]:
    import numpy as np

    try:
        from mcrank.rankers.registry import to_bytes
    except ImportError:
        from mcrank.models.file import to_bytes

    found: dict[str, Any] = {}
    for name, (train, valid, test) in sets(mcrank, mq2008).items():
        for number, (kind, options) in enumerate(RANKERS):
            if only and only.lower() not in kind.lower():
                continue
            for held_out in (valid, None) if number in (0, 7, 14, 23) else (valid,):
                key = f"{name} {kind} {options} {'valid' if held_out is not None else 'no valid'}"
                declared = getattr(mcrank, kind).declared_options
                pinned = {name: value for name, value in PINNED.items() if name in declared}
                ranker = getattr(mcrank, kind)(**pinned | options)
                try:
                    ranker.fit(train, valid=held_out)
                except mcrank.McrankError as error:
                    found[key] = {"error": str(error)}
                    continue
                content = to_bytes(ranker)
                scores = ranker.predict(test)
                entry: dict[str, Any] = {
                    "file": digest(content),
                    "scores": digest(scores.tobytes()),
                    "first": [float(x) for x in scores[:3]],
                    "ndcg": float(np.float64(mcrank.NDCG(k=10).on(test).mean(test.to_grouped(scores)))),
                    "parts": model_parts(mcrank, content),
                }
                if hasattr(ranker, "predict_proba"):
                    entry["proba"] = digest(ranker.predict_proba(test).tobytes())
                found[key] = entry
                print(key[:100], entry["file"], file=sys.stderr, flush=True)
    return found


def run(arguments: list[str]) -> str:
    done = subprocess.run([sys.executable, "-m", "mcrank", *arguments], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else f"exit {done.returncode}: {done.stderr[-300:]}"


def numbers_only(value: Any) -> Any:
    """JSON values without what may differ between two runs: times, versions, paths, commands."""
    if isinstance(value, dict):
        drop = ("seconds", "versions", "code", "command", "path", "times", "timing", "cpu_seconds", "folder")
        return {k: numbers_only(v) for k, v in value.items() if k not in drop}
    return [numbers_only(v) for v in value] if isinstance(value, list) else value


def record_commands(mcrank: Any, mq2008: str | None) -> dict[str, Any]:
    """What `evaluate`, `compare` and `reproduce --quick` say, as JSON."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (train, valid, test) in sets(mcrank, None).items():
            for part, data in (("train", train), ("vali", valid), ("test", test)):
                target = Path(folder, name, "Fold1", f"{part}.txt")
                target.parent.mkdir(parents=True, exist_ok=True)
                mcrank.write(data, target)
            base = f"{folder}/{name}/Fold1"
            ranker = mcrank.RegressionRanker(n_estimators=5, n_jobs=1).fit(train)
            Path(base, "scores.txt").write_text("".join(f"{s!r}\n" for s in ranker.predict(test).tolist()))
            measures = [word for m in MEASURES for word in ("-m", m)]
            said = run(["evaluate", f"{base}/test.txt", f"{base}/scores.txt", *measures, "--json"])
            found[f"evaluate {name}"] = digest(said.encode())
            if name == "artificial":
                entries = ["regression:n_estimators=5", "mcrank:n_estimators=5", "ranksvm"]
                run(
                    [
                        "compare",
                        f"{folder}/{name}",
                        *entries,
                        "--out",
                        f"{folder}/compared",
                        "--n-jobs",
                        "1",
                        "--no-times",
                    ]
                )
                results = Path(folder, "compared", "results.json")
                found["compare"] = numbers_only(json.loads(results.read_text())) if results.exists() else None
                for table in sorted(Path(folder, "compared", "tables").glob("*.csv")):
                    found[f"compare {table.name}"] = table.read_text().splitlines()
        for target in ("table1", "figure1"):
            said = run(
                ["reproduce", target, "--quick", "--rounds", "10", "--out", f"{folder}/papers", "--json"]
            )
            found[f"reproduce {target}"] = numbers_only(json.loads(said)) if said.startswith("{") else said
        if mq2008:
            said = run(["reproduce", "apples", mq2008, "--quick", "--out", f"{folder}/papers", "--json"])
            found["reproduce apples"] = numbers_only(json.loads(said)) if said.startswith("{") else said
    return found


def difference(old: dict[str, Any], new: dict[str, Any]) -> int:
    """Say what differs; return how many records do."""
    count = 0
    for key in sorted({*old, *new}):
        a, b = old.get(key), new.get(key)
        if a == b:
            continue
        count += 1
        print(f"DIFFERS  {key}")
        if isinstance(a, dict) and isinstance(b, dict) and "parts" in a and "parts" in b:
            names = sorted({*a["parts"], *b["parts"]})
            print("    parts:", [n for n in names if a["parts"].get(n) != b["parts"].get(n)])
            print(
                "    scores equal:", a["scores"] == b["scores"], a["first"], b["first"], a["ndcg"], b["ndcg"]
            )
        else:
            print("    ", *leaves_that_differ(a, b)[:6], sep="\n      ")
    print(f"{count} of {len({*old, *new})} differ")
    return count


def leaves_that_differ(a: Any, b: Any, where: str = "") -> list[str]:
    if isinstance(a, dict) and isinstance(b, dict):
        return [w for k in sorted({*a, *b}) for w in leaves_that_differ(a.get(k), b.get(k), f"{where}/{k}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [
            w
            for i, (x, y) in enumerate(zip(a, b, strict=True))
            for w in leaves_that_differ(x, y, f"{where}/{i}")
        ]
    return [] if a == b else [f"{where}: {str(a)[:120]} | {str(b)[:120]}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    record = verbs.add_parser("record", help="write the record of a checkout")
    record.add_argument("source", help="the src folder of the checkout")
    record.add_argument("--out", required=True)
    record.add_argument("--mq2008", help="folder of MQ2008, for real data")
    record.add_argument("--only", help="only rankers whose name has this in it, and no commands")
    differ = verbs.add_parser("diff", help="compare two records")
    differ.add_argument("old")
    differ.add_argument("new")
    arguments = parser.parse_args()
    if arguments.verb == "diff":
        old, new = (json.loads(Path(p).read_text()) for p in (arguments.old, arguments.new))
        keys = set(old) & set(new) if len(old) != len(new) else set(old) | set(new)
        sys.exit(
            difference(
                {k: v for k, v in old.items() if k in keys}, {k: v for k, v in new.items() if k in keys}
            )
            > 0
        )
    source = str(Path(arguments.source).resolve())
    if (
        os.environ.get("PYTHONPATH") != source
    ):  # started again, so that this checkout and no other is imported
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"PYTHONPATH": source})
    import mcrank

    if not str(Path(mcrank.__file__).resolve()).startswith(source):
        sys.exit(f"mcrank was imported from {mcrank.__file__}, not from {source}")
    found = record_rankers(mcrank, arguments.mq2008, arguments.only)
    if not arguments.only:
        found |= record_commands(mcrank, arguments.mq2008)
    Path(arguments.out).write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
