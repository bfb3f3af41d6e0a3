"""Targets of binary files: models and caches, damaged or forged."""

from __future__ import annotations

import contextlib
import io
import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import mcrank
from mcrank.cli.main import main as command_line
from mcrank.container import CACHE, MODEL, canonical
from mcrank.data import cache as cache_module
from mcrank.errors import McrankError
from mcrank.models.file import load
from mcrank.rankers.registry import RANKERS, ranker_class, to_bytes
from tests.fuzz.forging import forged, seal
from tests.fuzz.target import Case, Difference, Target
from tests.fuzz.texts import differ
from tests.reference.cache import read_cache
from tests.reference.container import Bad, read_container


def _plain(scorer: Any) -> Any:
    """A scorer with the scaling that imported linear models have."""
    return (
        replace(scorer, scaling=replace(scorer.scaling, kind="none"))
        if hasattr(scorer, "scaling")
        else scorer
    )


class ModelTarget(Target):
    name = "model"

    def prepare(self) -> None:
        """Train a small model of every ranker, or of a few."""
        data = mcrank.make_artificial(n_train=8, n_valid=4, n_test=4, docs_per_query=10, n_features=4, seed=3)
        small = {
            "n_estimators": 3,
            "num_leaves": 4,
            "epochs": 2,
            "hidden": "3",
            "members": "ranksvm,best-feature",
        }
        self.models: dict[str, bytes] = {}
        few = ("regression", "ranksvm", "best-feature", "blend")
        for kind in map(ranker_class, few if self.quick else RANKERS):
            options = {name: value for name, value in small.items() if name in kind.declared_options}
            ranker = kind(**options, n_jobs=1).fit(data.train, valid=data.valid)
            self.models[kind.name] = to_bytes(ranker)
            ranker.predict(data.test)
            if kind.name in ("regression", "ranksvm"):  # the same trees, and weights, as if from elsewhere
                foreign = mcrank.ImportedRanker.of(
                    _plain(ranker.scorer_), ranker.head_, {"library": "xgboost"}
                )
                self.models[f"imported {kind.name}"] = to_bytes(foreign)
        shops = np.array(["a", "b", "c", "d", "e"], dtype=object)[np.arange(80) % 5]
        with_categories = {"shop": shops, "price": np.arange(80) % 7}
        ranker = mcrank.RegressionRanker(n_estimators=3, num_leaves=4, n_jobs=1, min_data_per_group=5)
        ranker.fit(with_categories, np.arange(80) % 5 % 2 + np.arange(80) % 7 // 4, qid=np.arange(80) // 10)
        self.models["regression of categories"] = to_bytes(ranker)
        self.rows = data.test.X[:20].copy()
        self.rows[3, 1] = np.nan

    def make(self, random: Random) -> Case:
        content, other = (self.models[random.choice(sorted(self.models))] for _ in range(2))
        if random.random() < 0.02:
            return Case("m", content)
        return Case("m", forged(random, content, other, MODEL))

    def check(self, case: Case, path: Path) -> bool:
        try:
            header, arrays = read_container(case.content, MODEL.magic)
        except Bad as error:
            header, arrays, reason = None, {}, error
        else:
            reason = None
        try:
            ranker = load(path)
        except McrankError:
            self._describe(path, accepted=False)
            return False
        if header is None:
            raise Difference(f"loaded, and the reference refuses it: {reason!r}")
        again, arrays_again = read_container(to_bytes(ranker), MODEL.magic)
        options = header["meta"]["options"]
        again["meta"]["options"] = {name: again["meta"]["options"][name] for name in options}
        differ("header", canonical(again), canonical(header))
        differ("arrays", sorted(arrays_again), sorted(arrays))
        for name, array in arrays.items():
            if array.tobytes() != arrays_again[name].tobytes():
                raise Difference(f"array {name} changed on the way")
        self._scores(ranker.set_params(n_jobs=1), header["ranker"], arrays)
        self._describe(path, accepted=True)
        return True

    def _scores(self, ranker: Any, name: str, arrays: dict[str, np.ndarray]) -> None:
        if ranker.categories_:
            names = [[None, "a", "e", "zoo", *(categories[:3])] for categories in ranker.categories_.values()]
            table: dict[str, Any] = {name: [0.0] * 7 for name in ranker.feature_names_}
            for f, some in zip(ranker.categories_, names, strict=True):
                table[ranker.feature_names_[f]] = (some + [None] * 7)[:7]
            if not np.isfinite(ranker.predict(table)).all():
                raise Difference("scores that are not finite")
            return
        rows = self.rows[:, : ranker.n_features_in_]
        if rows.shape[1] != ranker.n_features_in_:
            rows = np.zeros((5, ranker.n_features_in_), dtype=np.float32)
        if name == "blend" and ranker.options_["standard"] == "query":
            return
        scores = ranker.predict(rows)
        if not np.isfinite(scores).all():
            raise Difference(f"scores that are not finite: {scores}")
        if name in ("regression", "lambdamart"):
            differ("scores", scores.tolist(), [_walk(arrays, row) for row in rows.tolist()])

    def _describe(self, path: Path, accepted: bool) -> None:
        """Whatever the file says, the terminal gets plain text."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command_line(["describe", str(path)])
        if code != (0 if accepted else 3):
            raise Difference(f"describe ended with {code}: {err.getvalue()}")
        for c in out.getvalue() + err.getvalue():
            if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000:
                raise Difference(f"describe wrote {c!r}")
            if 0x202A <= ord(c) <= 0x202E or 0x2066 <= ord(c) <= 0x2069:
                raise Difference(f"describe wrote {c!r}")


def _walk(arrays: dict[str, np.ndarray], row: list[float]) -> float:
    """Score of a row by walking down every tree in turn."""
    score = float(arrays["base"][0])
    starts = arrays["tree_offsets"].tolist()
    for start in starts[:-1]:
        node = start
        while arrays["feature"][node] >= 0:
            value = np.float32(row[arrays["feature"][node]])
            left = (
                arrays["missing_left"][node] == 1 if np.isnan(value) else value <= arrays["threshold"][node]
            )
            node = start + int(arrays["left" if left else "right"][node])
        score += float(arrays["value"][node])
    return score


class CacheTarget(Target):
    name = "cache"
    HOW = (True, "verify", "map")

    def prepare(self) -> None:
        """Make texts and what their parsed form looks like."""
        self.texts = [
            "2 qid:b 1:0.5 2:nan #docid = x\n0 qid:a 1:1\n1 qid:b 1:2 2:3 #docid = z\n0 qid:a 1:4\n",
            "".join(f"{i % 3} qid:{i // 3} 1:{i} 2:{i + 0.5} 3:7\n" for i in range(40)),
            "0 qid:é 1:1 # \u2028\n",
            "1 qid:18446744073709551615 1:1\n0 qid:7 1:2\n",
        ]
        self.data, self.caches = [], []
        with tempfile.TemporaryDirectory() as folder:
            for text in self.texts:
                (path := Path(folder, "data.txt")).write_text(text)
                self.data.append(mcrank.read(path, cache=True))
                self.caches.append(cache_module.cache_path([path]).read_bytes())

    def make(self, random: Random) -> Case:
        which = random.randrange(len(self.texts))
        header, arrays = read_container(self.caches[which], CACHE.magic, finite=False)
        if random.random() < 0.3:
            arrays["weight"] = np.ones(len(arrays["y"]))
        content = seal(header, arrays, CACHE)
        how = random.choice(self.HOW)
        return Case(
            "data.txt",
            self.texts[which].encode(),
            {"how": how, "which": which, "fix": random.random() < 0.85},
            {"data.txt" + cache_module.CACHE_SUFFIX: forged(random, content, self.caches[0], CACHE)},
        )

    def check(self, case: Case, path: Path) -> bool:
        beside = cache_module.cache_path([path])
        content = self._fresh(case, path, beside.read_bytes())
        beside.write_bytes(content)
        expected = None
        how = case.options["how"]
        with contextlib.suppress(Bad):
            header, arrays = read_container(content, CACHE.magic, finite=False)
            source = cache_module.describe_source([path], _options())
            hashed = header.get("sampled") == cache_module._sampled_hash(header, arrays)
            if header.get("source") == source and hashed:
                if how == "map" and "X" in arrays and arrays["X"].dtype == np.float32:
                    arrays["X"][np.isinf(arrays["X"])] = 0  # trusted there, and compared elsewhere
                expected = read_cache(header, arrays)
        data = mcrank.read(path, cache=how, n_jobs=1)
        fresh = self.data[case.options["which"]]
        if expected is None:
            want = _listed(fresh)
        else:
            want = [*expected]
        found = _listed(data)
        if how == "map":
            with np.errstate(all="ignore"):
                found[0] = [[0.0 if np.isinf(value) else value for value in row] for row in found[0]]
        differ("cache", found, want)
        np.testing.assert_array_equal(
            data.to_caller(data.to_grouped(np.arange(len(data)))), np.arange(len(data))
        )
        return expected is not None

    def _fresh(self, case: Case, path: Path, content: bytes) -> bytes:
        """Give the forged cache the time of its source and the right sample hash, as its forger would."""
        if not case.options["fix"]:
            return content
        try:
            header, arrays = read_container(content, CACHE.magic, finite=False)
        except Bad:
            return content
        now = cache_module.describe_source([path], _options())
        source = header.get("source")
        if isinstance(source, dict) and isinstance(source.get("files"), list):
            header["source"] = now
        with contextlib.suppress(ValueError, TypeError):
            header["sampled"] = cache_module._sampled_hash(header, arrays)
            return seal(header, arrays, CACHE)
        return content


def _options() -> dict[str, Any]:
    """The options that `read` keys a cache of LETOR text by."""
    return {
        "unjudged": "error",
        "first_index": 1,
        "n_features": None,
        "max_features": 100_000,
        "absent": "zero",
    }


def _listed(data: mcrank.Dataset) -> list[Any]:
    return [
        data.X.tolist(),
        data.y.tolist(),
        data.offsets.tolist(),
        data.qids.tolist(),
        None if data.weight is None else data.weight.tolist(),
        None if data.source_rows is None else data.source_rows.tolist(),
        list(data.feature_names),
        None if data.doc_ids is None else data.doc_ids.tolist(),
    ]
