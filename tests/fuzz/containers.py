"""Targets of binary files: models and caches, damaged blindly or forged with all hashes in order."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import struct
import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import mcrank
from mcrank.cli.main import main as command_line
from mcrank.container import ALIGNMENT, CACHE, MODEL, PRELUDE, Kind, canonical
from mcrank.data import cache as cache_module
from mcrank.errors import McrankError
from mcrank.models.file import load
from mcrank.rankers.registry import RANKERS, ranker_class, to_bytes
from tests.fuzz.mutate import ODD_INTEGERS, ODD_NUMBERS, ODD_WORDS, damaged_bytes, damaged_lines
from tests.fuzz.target import Case, Difference, Target
from tests.fuzz.texts import differ
from tests.reference.cache import read_cache
from tests.reference.container import Bad, read_container

DTYPES = ["uint8", "uint16", "int32", "int64", "float32", "float64"]


def seal(header: Any, arrays: dict[str, np.ndarray], kind: Kind) -> bytes:
    """A hostile writer: any header and any numbers, with lengths and checksum in order."""
    table = [
        {"dtype": arrays[name].dtype.name, "name": name, "shape": list(arrays[name].shape)}
        for name in sorted(arrays)
    ]
    return seal_text(
        canonical({**header, "arrays": table}), [arrays[name].tobytes() for name in sorted(arrays)], kind
    )


def seal_text(text: bytes, blocks: list[bytes], kind: Kind) -> bytes:
    """The same for any text in place of a header."""
    parts = [text + bytes(-(PRELUDE.size + len(text)) % ALIGNMENT)]
    parts += [block + bytes(-len(block) % ALIGNMENT) for block in blocks]
    length = PRELUDE.size + sum(map(len, parts)) + 32
    body = PRELUDE.pack(kind.magic, 1, len(text), length) + b"".join(parts)
    return body + hashlib.sha256(body).digest()


def odd_value(random: Random, depth: int = 0) -> Any:
    """A JSON value that nobody expects."""
    return random.choice(
        [
            lambda: random.choice([None, True, False, -1, 10**30, 1e308, 5e-324, -0.0, "\ud800", "nan"]),
            lambda: random.choice(ODD_INTEGERS), lambda: -random.choice(ODD_INTEGERS),
            lambda: random.uniform(-10, 10), lambda: random.choice(ODD_WORDS + ODD_NUMBERS),
            lambda: [odd_value(random, depth + 1) for _ in range(random.randrange(4))] if depth < 3 else [],
            lambda: {random.choice(ODD_WORDS): odd_value(random, depth + 1)} if depth < 3 else {},
        ]
    )()  # fmt: skip


def forge_header(random: Random, header: Any) -> Any:
    """A header with one to three values changed, removed, added or exchanged."""
    header = copy.deepcopy(header)
    for _ in range(random.choice((1, 1, 2, 3))):
        places = list(_places(header))
        if not places:
            break
        parent, key = random.choice(places)
        what = random.randrange(5)
        if what == 0:
            del parent[key]
        elif what == 1:
            other, name = random.choice(places)
            with contextlib.suppress(KeyError, IndexError):  # one of them is in what the other replaced
                parent[key] = copy.deepcopy(other[name])
        elif what == 2 and isinstance(parent, dict):
            parent[random.choice(ODD_WORDS)] = odd_value(random)
        else:
            parent[key] = odd_value(random)
    return header


def _places(value: Any):
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, entry in list(entries)[:50]:
        yield value, key
        yield from _places(entry)


def forge_arrays(random: Random, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays with odd numbers, other lengths, types, dimensions; missing, new or exchanged ones."""
    arrays = {name: array.copy() for name, array in arrays.items()}
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        if not arrays:
            break
        name = random.choice(sorted(arrays))
        array = arrays[name]
        what = random.randrange(10)
        if what == 0:
            arrays[name] = array[: random.randrange(len(array) + 1)]
        elif what == 1:
            arrays[name] = np.concatenate([array, array[: random.randrange(1, 4)]])
        elif what == 2:
            with np.errstate(all="ignore"):
                arrays[name] = array.astype(random.choice(DTYPES))
        elif what == 3:
            arrays[name] = random.choice([array.reshape(1, -1), array.reshape(-1), array.reshape(-1, 1)])
        elif what == 4:
            other = random.choice(sorted(arrays))
            arrays[name], arrays[other] = arrays[other], arrays[name]
        elif what == 5 and random.random() < 0.3:
            del arrays[name]
        elif what == 6 and random.random() < 0.3:
            arrays[random.choice(["zzz", "weight", "doc_ids", "a\x1b", "source_rows"])] = array
        elif array.size:
            _odd_numbers(random, array.reshape(-1))
    return arrays


def _odd_numbers(random: Random, flat: np.ndarray) -> None:
    for _ in range(random.choice((1, 1, 2, len(flat)))):
        at = random.randrange(len(flat))
        if flat.dtype.kind == "f":
            odd = [0.0, -0.0, 1e38, -1e38, 1e-45, -1.0, 0.5, float(flat[random.randrange(len(flat))])]
            odd += [float("nan"), float("inf")] if random.random() < 0.2 else []
            flat[at] = random.choice(odd)
        else:
            near = [
                int(flat[at]) + 1,
                int(flat[at]) - 1,
                int(flat[random.randrange(len(flat))]),
                -1,
                len(flat),
            ]
            value = random.choice([*near, random.choice(ODD_INTEGERS), -random.choice(ODD_INTEGERS)])
            bits = 8 * flat.dtype.itemsize
            value %= 2**bits
            flat[at] = value - 2**bits if flat.dtype.kind == "i" and value >= 2 ** (bits - 1) else value


def resealed(random: Random, content: bytes) -> bytes:
    """Blind damage by somebody who keeps the length and the checksum right."""
    content = damaged_bytes(random, content)
    if len(content) < PRELUDE.size + 32:
        return content
    body = content[:16] + struct.pack("<Q", len(content)) + content[24:-32]
    return body + hashlib.sha256(body).digest()


def forged(random: Random, content: bytes, other: bytes, kind: Kind) -> bytes:
    """A damaged container, by one of the ways above; the header's own fields are the caller's matter."""
    header, arrays = read_container(content, kind.magic, finite=kind.finite)
    what = random.randrange(10)
    if what < 2:
        return damaged_bytes(random, content, other)
    if what < 4:
        return resealed(random, content)
    if what == 4:
        text = canonical({**header, "arrays": []}).decode()
        return seal_text(
            damaged_lines(random, text, ',:"[]').encode("utf-8", "surrogatepass"), [b"x" * 64], kind
        )
    if what < 7:
        with contextlib.suppress(ValueError):
            return seal(forge_header(random, header), arrays, kind)
    return seal(header if what < 9 else forge_header(random, header), forge_arrays(random, arrays), kind)


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
            {"data.txt" + cache_module.SUFFIX: forged(random, content, self.caches[0], CACHE)},
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
