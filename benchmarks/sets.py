"""Studies of quality: data sets of a directory, artificial ones of several kinds, and results that are kept.

No ranker's options are ever chosen on the test part of a set from the directory: `development` has only the
queries of its training and validation files.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mcrank
from mcrank.data.folds import find_folds

# Kind -> queries, rows of each, features, noise, share of zero features, shares of the grades.
KINDS: dict[str, tuple[int, int, int, float, float, tuple[float, ...]]] = {
    "plain": (150, 30, 20, 0.5, 0.0, (0.5, 0.25, 0.15, 0.07, 0.03)),
    "noisy": (150, 30, 20, 2.0, 0.0, (0.5, 0.25, 0.15, 0.07, 0.03)),
    "sparse": (150, 30, 40, 0.5, 0.8, (0.5, 0.25, 0.15, 0.07, 0.03)),
    "skewed": (200, 25, 20, 0.7, 0.0, (0.93, 0.05, 0.02)),
    "few queries": (50, 40, 20, 0.7, 0.0, (0.5, 0.3, 0.2)),
    "long queries": (30, 200, 20, 0.7, 0.0, (0.7, 0.2, 0.07, 0.03)),
}


def made(kind: str, seed: int) -> mcrank.Dataset:
    """Make a set: hidden relevance of bent and joined features, weights of each query's own, and noise."""
    queries, rows, features, noise, zeros, shares = KINDS[kind]
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    n = queries * rows
    X = rng.normal(size=(n, features))
    X[:, ::3] = np.exp(X[:, ::3])  # counts and lengths have long tails
    X[rng.random(X.shape) < zeros] = 0.0
    useful = features // 2
    weight = rng.normal(size=useful) / np.sqrt(useful)
    own = np.repeat(rng.normal(size=(queries, useful)) * 0.3 / np.sqrt(useful), rows, axis=0)
    bent = np.tanh(X[:, :useful])
    hidden = (bent * (weight + own)).sum(axis=1) + 0.5 * bent[:, 0] * bent[:, 1] - 0.5 * (X[:, 2] > 0.5)
    hidden = hidden / hidden.std() + noise * rng.normal(size=n)
    X += np.repeat(rng.normal(size=(queries, 1)) * 0.3, rows, axis=0)  # what a query does to all features
    grades = np.searchsorted(np.quantile(hidden, np.cumsum(shares)[:-1]), hidden)
    return mcrank.Dataset(X, grades, np.repeat(np.arange(queries), rows))


Parts = tuple[mcrank.Dataset, mcrank.Dataset, mcrank.Dataset]
# Kind -> training and validation queries, rows of each, shares of the grades, share of rows whose grade is
# drawn at random, share of queries whose grades are one lower (which no feature tells).
PARTED: dict[str, tuple[tuple[int, int], int, tuple[float, ...], float, float]] = {
    "plain": ((60, 20), 30, (0.26, 0.36, 0.285, 0.076, 0.019), 0.1, 0.0),
    "noisy": ((80, 20), 30, (0.4, 0.3, 0.2, 0.07, 0.03), 0.4, 0.0),
    "skewed": ((80, 20), 40, (0.88, 0.09, 0.03), 0.2, 0.2),
    "few": ((30, 10), 40, (0.4, 0.3, 0.2, 0.1), 0.2, 0.2),
    "long": ((24, 8), 200, (0.7, 0.2, 0.07, 0.03), 0.3, 0.3),
    "binary": ((80, 20), 30, (0.9, 0.1), 0.2, 0.0),
}
TEST_ROWS = 12_000  # so that what is measured is the ranker, not the draw of the test part


def parted(kind: str, seed: int) -> Parts:
    """Make a set in three parts: few training and validation queries, and many to measure on."""
    queries, rows, shares, noise, lower = PARTED[kind]
    made = mcrank.make_artificial(
        *queries, TEST_ROWS // rows, docs_per_query=rows, n_features=20, levels=shares, seed=seed
    )
    stream = np.random.default_rng([seed, len(kind)])
    train, valid, test = (_disturbed(part, noise, lower, stream) for part in made)
    return train, valid, test


def whole(kind: str, queries: int, seed: int) -> mcrank.Dataset:
    """Make so many queries of a kind of `PARTED` in one part, for rotating folds. Which number has which
    grade is told by other queries: shares of the grades are drawn, too. No two sets share anything.
    """
    clean, stream = _undisturbed(kind, queries, seed)
    return _disturbed(clean, *PARTED[kind][3:], np.random.default_rng(stream))


def _undisturbed(kind: str, queries: int, seed: int) -> tuple[mcrank.Dataset, int]:
    """Return the set as it is before grades are disturbed, and the seed of that."""
    _, rows, shares, _, _ = PARTED[kind]
    own, stream = np.random.SeedSequence([seed, list(PARTED).index(kind), queries]).generate_state(2).tolist()
    made = mcrank.make_artificial(
        400, 1, queries, docs_per_query=rows, n_features=20, levels=shares, seed=own
    )
    return made.test, stream


def true_chances(kind: str, queries: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return grades and their probabilities (rows x grades) as who made the set `whole` knows them.

    Features tell the undisturbed grade without any doubt, so nothing is left to be estimated. A disturbed row
    has the grade of some row of the set; whether a query is lowered no feature tells, so that all rows have
    the share of lowered queries in their probabilities.
    """
    clean, _ = _undisturbed(kind, queries, seed)
    *_, noise, lower = PARTED[kind]
    grades = np.arange(len(PARTED[kind][2]), dtype=np.float64)
    own = (clean.y[:, None] == grades).astype(np.float64)
    chances = (1 - noise) * own + noise * own.mean(axis=0)
    lowered = np.zeros_like(chances)
    lowered[:, :-1] = chances[:, 1:]
    lowered[:, 0] += chances[:, 0]  # the lowest stays
    return grades, (1 - lower) * chances + lower * lowered


def disturbed_anew(kind: str, queries: int, seed: int, times: int) -> Iterator[np.ndarray]:
    """Yield grades that the rows of the set `whole` might have had as well: disturbed by other draws."""
    clean, stream = _undisturbed(kind, queries, seed)
    for draw in range(times):
        yield _disturbed(clean, *PARTED[kind][3:], np.random.default_rng([stream, draw])).y


def _disturbed(
    data: mcrank.Dataset, noise: float, lower: float, stream: np.random.Generator
) -> mcrank.Dataset:
    """Give a share of the rows any grade, and a share of the queries lower ones."""
    y = data.y.copy()
    chosen = stream.random(len(y)) < noise
    y[chosen] = stream.permutation(data.y)[: chosen.sum()]
    low = np.repeat(stream.random(data.n_queries) < lower, data.sizes)
    return mcrank.Dataset(data.X, np.maximum(y - low, 0), data.qid)


def measured(directory: str | None, seeds: int) -> Iterator[tuple[str, int, Callable[[], Parts]]]:
    """Yield sets to measure on, test parts included: name, number of the fold or draw, and its parts."""
    for folder in sorted(Path(directory).iterdir()) if directory else ():
        for number, files in enumerate(find_folds(folder) if folder.is_dir() else (), start=1):
            yield folder.name, number, lambda files=files: _read(files)
    for seed in range(1, seeds + 1):
        for kind in PARTED:
            yield kind, seed, lambda kind=kind, seed=seed: parted(kind, seed)


def _read(files: dict[str, Path]) -> Parts:
    """Parts of a fold, with as many features as the widest of them has."""
    parts = [mcrank.read(files[part]) for part in ("train", "valid", "test")]
    most = max(part.n_features for part in parts)
    train, valid, test = (
        data if data.n_features == most else mcrank.read(files[part], n_features=most)
        for part, data in zip(("train", "valid", "test"), parts, strict=True)
    )
    return train, valid, test


def development(directory: str | None, seeds: int) -> dict[str, Callable[[], mcrank.Dataset]]:
    """Sets on which options may be chosen: no test part of a file is among them."""
    found: dict[str, Callable[[], mcrank.Dataset]] = {}
    for folder in sorted(Path(directory).iterdir()) if directory else ():
        if folder.is_dir():
            found[folder.name] = lambda folder=folder: _train_and_valid(folder)
    for seed in range(seeds):
        for kind in KINDS:
            found[f"{kind} {seed + 1}"] = lambda kind=kind, seed=seed: made(kind, seed)
    return found


def _train_and_valid(folder: Path) -> mcrank.Dataset:
    files = find_folds(folder)[0]
    parts = [mcrank.read(files[part]) for part in ("train", "valid")]
    return mcrank.Dataset.merge(parts)


FOLDS = 5


def rotated(data: mcrank.Dataset, seed: int) -> list[Parts]:
    """Cut a set into five folds: three fifths of the queries to train, one to validate, one to test, and
    every query is tested once.
    """
    place = np.random.default_rng(seed).permutation(data.n_queries) % FOLDS
    folds: list[Parts] = []
    for test in range(FOLDS):
        valid = (test + 1) % FOLDS
        rest = data.select((place != test) & (place != valid))
        folds.append((rest, data.select(place == valid), data.select(place == test)))
    return folds


def rotations(
    directory: str | None, sizes: Iterable[int], seeds: Iterable[int]
) -> Iterator[tuple[str, int, Callable[[], list[Parts]]]]:
    """Yield sets whose every query is tested once: name, number of the draw or rotation, and its folds.

    Folds of a directory are as published where there are five, once; files of one fold are put together.
    """
    seeds = list(seeds)
    for folder in sorted(Path(directory).iterdir()) if directory else ():
        files = find_folds(folder) if folder.is_dir() else []
        if len(files) == FOLDS:
            yield folder.name, 0, lambda files=files: [_read(fold) for fold in files]
        elif len(files) == 1:
            for seed in seeds:
                yield (
                    folder.name, seed,
                    lambda fold=files[0], seed=seed: rotated(mcrank.Dataset.merge(_read(fold)), seed),
                )  # fmt: skip
    for kind in PARTED:
        for queries in sizes:
            for seed in seeds:
                yield (
                    f"{kind}, {queries}", seed,
                    lambda kind=kind, queries=queries, seed=seed: rotated(whole(kind, queries, seed), seed),
                )  # fmt: skip


def study_options(about: str, work: str) -> argparse.ArgumentParser:
    """Options that every study takes; ``about`` is its docstring."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--data", help="folder of data sets, each as read_folds takes it")
    parser.add_argument("--seeds", type=int, default=2, help="artificial sets of each kind")
    parser.add_argument("--work", default=work, help="folder of kept results")
    parser.add_argument("--kept", action="store_true", help="train nothing: show what is kept")
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    return parser


def outcomes(
    args: argparse.Namespace,
    sets: Iterable[tuple[str, Callable[[], Parts]]],
    systems: Iterable[str],
    file_name: Callable[[str, str], str],
    outcome: Callable[[str, str, Parts], Any],
) -> Iterator[tuple[str, str, Any]]:
    """Yield every set and system with its outcome; what is kept already is not done again."""
    work = Path(args.work)
    work.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")  # that validation parts are small is what studies are about
    for name, make in sets:
        parts = None
        for system in systems:
            path = work / file_name(name, system)
            if not path.exists() and not args.kept:
                parts = parts or make()
                part = path.with_suffix(".part")
                part.write_text(json.dumps(outcome(name, system, parts)))
                part.replace(path)
                print(path.name, flush=True)
            if path.exists():
                yield name, system, json.loads(path.read_text())
