"""Targets of text: LETOR, qrels, runs and score files, against the naive readers in tests/reference."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np

import mcrank
from mcrank.data import sources
from mcrank.data.scores import read_scores
from mcrank.data.trec import Qrels, Run
from mcrank.errors import McrankError
from tests.fuzz.mutate import (
    ODD_NUMBERS,
    ODD_WORDS,
    compressed,
    damaged_bytes,
    damaged_lines,
    encoded,
    plain,
)
from tests.fuzz.target import Case, Difference, Target
from tests.reference import letor as letor_reference
from tests.reference import trec as trec_reference


def differ(name: str, ours: object, theirs: object) -> None:
    """Raise `Difference` unless two values, told by `repr`, are the same."""
    if repr(ours) != repr(theirs):
        raise Difference(f"{name}: {str(repr(ours))[:300]} against {str(repr(theirs))[:300]}")


class TextTarget(Target):
    """Text in lines; subclasses write lines and read them."""

    suffix = ".txt"

    def make(self, random: Random) -> Case:
        """Lines, then damage to words, bytes, line ends, encoding, compression."""
        text = "".join(self.line(random) + "\n" for _ in range(random.choice((1, 2, 5, 20, 60))))
        if random.random() < 0.6:
            text = damaged_lines(random, text)
        content = encoded(random, text)
        if random.random() < 0.3:
            content = damaged_bytes(random, content)
        suffix = ""
        if random.random() < 0.15:
            content, suffix = compressed(random, content)
        return Case(f"data{self.suffix}{suffix}", content, self.options(random))

    def options(self, random: Random) -> dict[str, object]:
        """How the file is to be read."""
        return {}

    def line(self, random: Random) -> str:
        """One valid line."""
        raise NotImplementedError


def number(random: Random) -> str:
    """A number as files have them."""
    return random.choice(
        [
            lambda: str(random.randrange(5)),
            lambda: repr(random.uniform(-1, 1)),
            lambda: f"{random.uniform(-1000, 1000):.6f}",
            lambda: repr(random.uniform(-1e30, 1e30)),
            lambda: f"{random.uniform(-1, 1):.3e}",
            lambda: str(random.randrange(-(10**18), 10**18)),
            lambda: random.choice(ODD_NUMBERS) if random.random() < 0.02 else "0",
        ]
    )()


def word(random: Random) -> str:
    """An id."""
    if random.random() < 0.02:
        return "".join(c for c in random.choice(ODD_WORDS) if c not in " \t\n\r\v\f#") or "x"
    return random.choice(["q", "d", "GX", ""]) + str(random.randrange(random.choice((3, 30, 10**6))))


class Letor(TextTarget):
    name = "letor"

    def prepare(self) -> None:
        """Compile the kernels."""
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            (path := Path(folder, "x.txt")).write_text("1 qid:1 1:0.5 #docid = a\n0 qid:1 2:nan\n")
            mcrank.read(path, n_jobs=1)

    def line(self, random: Random) -> str:
        indices = sorted(random.sample(range(1, 12), random.randrange(6)))
        if random.random() < 0.0005:
            indices.append(random.choice([99_999, 100_000, 100_001]))
        features = " ".join(f"{index}:{number(random)}" for index in indices)
        comment = random.choice(
            ["", "", " #docid = D1 inc = 1", f"# {word(random)}", "#", f"#docid={word(random)}"]
        )
        return f"{random.randrange(5)} qid:{word(random)} {features}{comment}"

    def options(self, random: Random) -> dict[str, object]:
        return {
            "first_index": random.choice([1, 1, 1, 0]),
            "absent": random.choice(["zero", "zero", "missing"]),
            "n_jobs": random.choice([1, 1, 2]),
            "chunk": random.choice([4 << 20, 4 << 20, 300, 4000]),
        }

    def check(self, case: Case, path: Path) -> bool:
        first = case.options["first_index"]
        absent = 0.0 if case.options["absent"] == "zero" else float("nan")
        try:
            content = plain(case.content)
            X, y, ids, docs = letor_reference.read_text(
                content, first_index=first, limit=first + 99_999, absent=absent
            )
            expected = X.shape[0] > 0 and X.shape[1] > 0
        except (letor_reference.BadLine, ValueError) as error:
            expected, reason = False, error
        else:
            reason = ValueError("nothing in it")
        options = dict(case.options)
        sources.CHUNK_BYTES = options.pop("chunk")  # small ones cut the file into many
        try:
            data = mcrank.read(path, **options)
        except McrankError as error:
            if expected:
                raise Difference(f"refused, and the reference reads it: {error}") from None
            return False
        if not expected:
            raise Difference(f"read, and the reference refuses it: {reason!r}")
        np.testing.assert_array_equal(data.to_caller(data.X), X)
        differ("grades", data.to_caller(data.y).tolist(), y.tolist())
        differ("query ids", [str(q) for q in data.to_caller(data.qid)], ids)
        differ("queries", data.n_queries, len(set(ids)))
        if data.doc_ids is not None or any(docs):
            found = [""] * len(docs) if data.doc_ids is None else data.to_caller(data.doc_ids).tolist()
            differ("documents", found, docs)
        return True


class _Pairs(TextTarget):
    columns, value_at, finite, reader = 4, 3, True, Qrels

    def check(self, case: Case, path: Path) -> bool:
        try:
            expected = trec_reference.read_pairs(
                plain(case.content), self.columns, self.value_at, finite=self.finite
            )
            reason = None
        except (trec_reference.BadLine, ValueError) as error:
            expected, reason = None, error
        try:
            found = self.reader.read(path).queries
        except McrankError as error:
            if expected is not None:
                raise Difference(f"refused, and the reference reads it: {error}") from None
            return False
        if expected is None:
            raise Difference(f"read, and the reference refuses it: {reason!r}")
        differ("content", found, expected)
        return True


class QrelsTarget(_Pairs):
    name = "qrels"

    def line(self, random: Random) -> str:
        grade = random.choice(["0", "1", "2", "-1", number(random)])
        return f"{word(random)} 0 {word(random)}{random.randrange(10**9)} {grade}"


class RunsTarget(_Pairs):
    name = "runs"
    columns, value_at, finite, reader = 6, 4, False, Run

    def line(self, random: Random) -> str:
        document = f"{word(random)}{random.randrange(10**9)}"
        return f"{word(random)} Q0 {document} {random.randrange(100)} {number(random)} run"


class Scores(TextTarget):
    name = "scores"

    def line(self, random: Random) -> str:
        return number(random)

    def check(self, case: Case, path: Path) -> bool:
        try:
            expected = trec_reference.read_scores(plain(case.content))
            reason = None
        except (trec_reference.BadLine, ValueError) as error:
            expected, reason = None, error
        try:
            found = read_scores(path)
        except McrankError as error:
            if expected is not None:
                raise Difference(f"refused, and the reference reads it: {error}") from None
            return False
        if expected is None:
            raise Difference(f"read, and the reference refuses it: {reason!r}")
        differ("scores", found.tolist(), expected)
        return True
