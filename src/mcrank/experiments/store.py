"""The folder of a comparison: JSON for people, npz for numbers, timings apart.

::

    run.json        what was compared: systems, data with fingerprints, measures, seed, versions
    results.json    means, leaderboards, choices made on validation data, the sentence
    curves.json     validation measure after each round
    values.npz      value of every query: measures x systems x queries
    scores.npz      score of every test row (systems x rows), probabilities, importances
    test.npz        test rows: grades, offsets, query ids, document ids, fold of each query
    features.npy    features of the test rows, unless there were too many to keep
    models/         one model file per system and fold
    models.json     which of them is whose: names of files are not names of systems
    timings.json    seconds; the only file that differs between two runs
    trials/, seconds/  finished parts, from which a killed comparison continues

Everything but the seconds has one spelling: equal comparisons give equal bytes.
"""

from __future__ import annotations

import io
import itertools
import json
import math
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

import mcrank
from mcrank.arrays import Array, Arrays, FeatureArray, read_only
from mcrank.errors import DataError
from mcrank.experiments.comparison import Choice, Comparison, FoldFacts, System, SystemFold, TestRows, Timing
from mcrank.experiments.leaderboard import Standing, costs
from mcrank.experiments.swaps import FEATURES, Swaps
from mcrank.texts import plain, unshown_as_json
from mcrank.writing import replace_file

FORMAT = 1
_COSTS = ("train_seconds", "train_cpu_seconds", "predict_microseconds")


def save(comparison: Comparison, folder: str | os.PathLike[str]) -> None:
    """Save a comparison; files that would not change are not touched."""
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    # It comes last, and that of another comparison goes first: a folder with a run.json is complete.
    run = json_bytes({"format": FORMAT, **comparison.environment})
    if (root / "run.json").is_file() and (root / "run.json").read_bytes() != run:
        (root / "run.json").unlink()
    rows = comparison.rows
    arrays = {
        "grades": rows.y,
        "offsets": rows.offsets,
        "fold_of_query": comparison.fold_of_query,
        **_packed("qids", rows.qids),
        **({} if rows.doc_ids is None else _packed("doc_ids", rows.doc_ids)),
        **({} if rows.query_weight is None else {"query_weight": rows.query_weight}),
    }
    write_file(root / "test.npz", npz_bytes(arrays))
    if comparison.features is not None:
        write_file(root / "features.npy", npy_bytes(np.asarray(comparison.features)))
    tables = np.stack([comparison.values[name] for name in comparison.measures])
    write_file(root / "values.npz", npz_bytes({"values": tables}))
    scores: Arrays = {"scores": comparison.scores, "levels": comparison.levels}
    for place, key in enumerate(comparison.keys):
        for name, table in (
            ("probabilities", comparison.probabilities),
            ("importances", comparison.importances),
        ):
            if key in table:
                scores[f"{name}_{place}"] = table[key]
    write_file(root / "scores.npz", npz_bytes(scores))
    if comparison.swaps is not None:
        write_file(root / "swaps.npz", npz_bytes(comparison.swaps._asdict()))
    else:
        (root / "swaps.npz").unlink(missing_ok=True)
    curves = {_joined(of): dict(curve) for of, curve in comparison.curves.items()}
    write_file(root / "curves.json", json_bytes(curves, indent=None))
    timings = {_joined(of): asdict(timing) for of, timing in comparison.timings.items()}
    write_file(root / "timings.json", json_bytes(timings))
    write_file(root / "results.json", json_bytes(_results(comparison)))
    write_file(root / "run.json", run)


def _results(comparison: Comparison) -> dict[str, Any]:
    return {
        "systems": [asdict(system) for system in comparison.systems],
        "folds": [asdict(fold) for fold in comparison.folds],
        "measures": list(comparison.measures),
        "features": list(comparison.feature_names),
        "means": {
            name: dict(zip(comparison.keys, means.tolist(), strict=True))
            for name, means in comparison.means.items()
        },
        "leaderboards": {
            name: [_without_costs(line) for line in comparison.leaderboard(name)]
            for name in comparison.measures
        },
        "verdicts": {name: comparison.verdict(name) for name in comparison.measures},
        "chosen": {_joined(of): asdict(choice) for of, choice in comparison.chosen.items()},
        "sizes": {_joined(of): size for of, size in comparison.sizes.items()},
        "notes": list(comparison.notes),
    }


def _without_costs(line: Standing) -> dict[str, Any]:
    return {name: value for name, value in asdict(line).items() if name not in _COSTS}


def load(folder: str | os.PathLike[str]) -> Comparison:
    """Load a saved comparison; a folder that does not hold one, or a damaged one, is a `DataError`."""
    root = Path(folder)
    if not (root / "run.json").is_file():
        unfinished = (root / "trials").is_dir()
        words = "is not finished yet; run it again to go on" if unfinished else "holds no comparison"
        raise DataError(f"{root} {words}: it has no run.json.")
    try:
        return _load(root)
    except (OSError, KeyError, TypeError, ValueError, BadZipFile, zlib.error) as error:
        if isinstance(error, DataError):
            raise
        words = f"{type(error).__name__}: {error}"
        raise DataError(f"{root} holds a damaged comparison ({words}); run the comparison again.") from None


def _load(root: Path) -> Comparison:
    run, results = read_json(root / "run.json"), read_json(root / "results.json")
    if run.pop("format") != FORMAT:
        raise DataError(f"{root} was written by another version of mcrank; run the comparison again.")
    systems = tuple(System(**system) for system in results["systems"])
    keys = [system.key for system in systems]
    test, kept = read_npz(root / "test.npz"), read_npz(root / "scores.npz")
    tables, scores = read_npz(root / "values.npz")["values"], kept["scores"]
    rows = TestRows(
        test["grades"],
        test["offsets"],
        _unpacked(test, "qids"),
        _unpacked(test, "doc_ids") if {"doc_ids", "doc_ids_text"} & set(test) else None,
        test.get("query_weight"),
    )
    by_system = [
        {key: kept[f"{name}_{at}"] for at, key in enumerate(keys) if f"{name}_{at}" in kept}
        for name in ("probabilities", "importances")
    ]
    measures = tuple(results["measures"])
    if (
        scores.shape != (len(keys), len(rows.y))
        or tables.shape != (len(measures), len(keys), len(rows.qids))
        or len(rows.offsets) != len(rows.qids) + 1
    ):
        raise ValueError("its tables do not fit together")
    comparison = Comparison(
        systems=systems,
        folds=tuple(FoldFacts(**fold) for fold in results["folds"]),
        rows=rows,
        fold_of_query=test["fold_of_query"],
        measures=measures,
        values=dict(zip(measures, tables, strict=True)),
        means={
            name: np.array([_number(means[key]) for key in keys]) for name, means in results["means"].items()
        },
        scores=scores,
        feature_names=tuple(results["features"]),
        features=_features(root),
        levels=kept["levels"],
        probabilities=by_system[0],
        importances=by_system[1],
        curves=_by_system_fold(read_json(root / "curves.json"), _curve),
        chosen=_by_system_fold(results["chosen"], _choice),
        timings=_by_system_fold(_timings(root), lambda timing: Timing(**timing)),
        sizes=_by_system_fold(results["sizes"], int),
        environment=run,
        notes=tuple(results["notes"]),
        swaps=_swaps(root, len(keys), len(rows.y)),
    )
    if run.get("versions", {}).get("mcrank") == mcrank.__version__:
        for measure, lines in results["leaderboards"].items():
            standings = _standings(comparison, lines)
            if standings is not None:
                comparison.keep_leaderboard(measure, standings)
    return comparison


def _swaps(root: Path, systems: int, rows: int) -> Swaps | None:
    """Explained pairs, where there are some that fit the comparison."""
    if not (root / "swaps.npz").is_file():
        return None
    arrays = read_npz(root / "swaps.npz")
    if "apart_rows" not in arrays:  # saved when pairs on which systems disagree were not explained yet
        queries = len(arrays["queries"])
        arrays["apart_rows"] = np.empty((queries, 0, 2), dtype=np.int64)
        arrays["apart_features"] = np.empty((queries, 0, systems, FEATURES), dtype=np.int64)
        arrays["apart_parts"] = np.empty((queries, 0, systems, FEATURES + 1))
    swaps = Swaps(**arrays)
    shape = (len(swaps.queries), systems)
    apart = (len(swaps.queries), swaps.apart_rows.shape[1])
    fits = (
        swaps.rows.shape == (*shape, 2)
        and swaps.features.shape == (*shape, FEATURES)
        and swaps.parts.shape == (*shape, FEATURES + 1)
        and swaps.grades.shape == (systems,)
        and bool((swaps.rows < rows).all())
        and swaps.apart_rows.shape == (*apart, 2)
        and swaps.apart_features.shape == (*apart, systems, FEATURES)
        and swaps.apart_parts.shape == (*apart, systems, FEATURES + 1)
        and bool((swaps.apart_rows < rows).all())
    )
    if not fits:
        raise ValueError("its explanations do not fit")
    return swaps


def _standings(comparison: Comparison, lines: list[dict[str, Any]]) -> list[Standing] | None:
    """A saved leaderboard; None where it is not what `_results` writes of finite numbers."""
    kept: list[Standing] = []
    for line in lines:
        numbers, whole = ["mean", "ci_low", "ci_high"], ["rank"]
        if kept:  # the first is what the others are compared with
            numbers += ["difference", "effect", "p", "corrected_p"]
            whole += ["tests", "wins", "ties", "losses"]
        if (
            any(type(line.get(name)) is not float for name in numbers)
            or any(type(line.get(name)) is not int for name in whole)
            or line.get("mark") not in ("best", "***", "**", "*", "")
        ):
            return None
        kept.append(Standing(**line | costs(comparison, line["system"])))
    return kept if sorted(line.system for line in kept) == sorted(comparison.keys) else None


def _features(root: Path) -> FeatureArray | None:
    path = root / "features.npy"
    return np.load(path, mmap_mode="r") if path.is_file() else None


def _timings(root: Path) -> dict[str, Any]:
    path = root / "timings.json"
    return read_json(path) if path.is_file() else {}


def _curve(curve: Mapping[str, Iterable[float | None]]) -> dict[str, list[float]]:
    return {name: [_number(value) for value in values] for name, values in curve.items()}


def _choice(choice: dict[str, Any]) -> Choice:
    return Choice(**choice | {"tried": tuple((options, value) for options, value in choice["tried"])})


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _joined(of: SystemFold) -> str:
    return "\t".join(of)


def _by_system_fold(table: Mapping[str, Any], make: Any) -> dict[SystemFold, Any]:
    found = {}
    for name, value in table.items():
        system, _, fold = name.partition("\t")
        found[system, fold] = make(value)
    return found


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; not touched when it has this content already."""
    if path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content:
        return
    replace_file(path, content)


def write_files(folder: str | os.PathLike[str], contents: Mapping[str, bytes]) -> list[Path]:
    """Write files by name into a folder, which is made if it is not there; return their paths."""
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_file(root / name, content)
    return [root / name for name in contents]


def json_bytes(value: Any, indent: int | None = 1) -> bytes:
    """JSON with one spelling: keys sorted, NaN and infinities null."""
    text = json.dumps(plain(value), sort_keys=True, indent=indent, ensure_ascii=False, allow_nan=False)
    return (unshown_as_json(text) + "\n").encode()


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def npz_bytes(arrays: Mapping[str, Array]) -> bytes:
    """Bytes of an npz file; numpy dates every member 1980, so equal arrays give equal bytes."""
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **dict(arrays))
    return stream.getvalue()


def read_npz(path: Path) -> Arrays:
    """Read all arrays of an npz file."""
    with np.load(io.BytesIO(path.read_bytes())) as kept:
        return {name: read_only(kept[name]) for name in kept.files}


def npy_bytes(array: Array) -> bytes:
    """Bytes of an npy file."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def _packed(name: str, ids: Array) -> Arrays:
    """Ids as arrays without Python objects: integers as they are, anything else as texts."""
    if ids.dtype.kind in "iu":
        return {name: ids.astype(np.int64)}
    texts = [str(text).encode("utf-8", "surrogatepass") for text in ids.tolist()]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return {f"{name}_text": np.frombuffer(b"".join(texts), dtype=np.uint8), f"{name}_ends": ends}


def _unpacked(kept: Mapping[str, Array], name: str) -> Array:
    if name in kept:
        return kept[name]
    text, ends = kept[f"{name}_text"].tobytes(), kept[f"{name}_ends"].tolist()
    ids = np.empty(len(ends) - 1, dtype=object)
    ids[:] = [text[start:end].decode("utf-8", "surrogatepass") for start, end in itertools.pairwise(ends)]
    return ids
