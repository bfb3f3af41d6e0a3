"""Targets of other libraries' model files: edited, cut, cyclic, huge, nested; what is accepted must score as
the naive twins say.
"""

from __future__ import annotations

import contextlib
import copy
import json
import math
import struct
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from mcrank.errors import McrankError
from mcrank.models.imports.read import import_file
from mcrank.models.imports.ubjson import read_ubjson
from mcrank.rankers.registry import from_bytes, to_bytes
from tests.fuzz.forging import forge_header
from tests.fuzz.mutate import ODD_INTEGERS, damaged_bytes, damaged_lines
from tests.fuzz.target import Case, Difference, Target
from tests.models.imports import files
from tests.reference import foreign as twins

ROWS = 12


class ForeignTarget(Target):
    """A kind of file; subclasses make valid ones, and score them naively."""

    def prepare(self) -> None:
        """Compile what scores a forest."""
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            (path := Path(folder, "m")).write_bytes(next(iter(files.FILES[self.kind].values())))
            ranker = import_file(path)
            ranker.predict(np.zeros((ROWS, ranker.n_features_in_), dtype=np.float32))
            from_bytes(to_bytes(ranker))

    @property
    def kind(self) -> str:
        return self.name

    def make(self, random: Random) -> Case:
        what = random.random()
        if what < 0.05:
            return Case("m", self.valid(random))
        if what < 0.35:
            return Case("m", damaged_bytes(random, self.valid(random), self.valid(random)))
        return Case("m", self.edited(random))

    def valid(self, random: Random) -> bytes:
        """A file as the library writes them."""
        raise NotImplementedError

    def edited(self, random: Random) -> bytes:
        """One with a few words or values changed."""
        raise NotImplementedError

    def raw(self, content: bytes, row: list[float]) -> list[float]:
        """Raw outputs by the naive twin."""
        raise NotImplementedError

    def check(self, case: Case, path: Path) -> bool:
        try:
            ranker = import_file(path)
        except McrankError as error:
            if str(path) not in str(error):
                raise Difference(f"the message does not name the file: {error}") from None
            return False
        again = from_bytes(to_bytes(ranker))
        if ranker.n_features_in_ > 1000:
            return True
        random = Random(len(case.content))
        rows = np.array(
            [[odd_value(random) for _ in range(ranker.n_features_in_)] for _ in range(ROWS)], np.float32
        )
        found = ranker.predict_raw(rows)
        if not np.array_equal(found, again.predict_raw(rows)):
            raise Difference("a saved model scores otherwise")
        if not np.isfinite(ranker.predict(rows)).all():
            raise Difference("a score is not finite")
        with np.errstate(all="ignore"):
            expected = np.array([self.raw(case.content, row) for row in rows.tolist()])
        arrays = ranker.scorer_.to_arrays()
        # What is added up: leaves, or the largest terms of a weighted sum.
        leaves = (
            arrays["value"] if "value" in arrays else arrays["weights"] * np.nan_to_num(np.abs(rows)).max()
        )
        # Divided first: leaves of a hostile file may have a sum that is just finite.
        bound = np.abs(leaves / 1e9).sum() + np.abs(expected / 1e9).max() + 1e-9
        if not (np.abs(found / 2 - expected / 2) <= bound).all():
            raise Difference(f"{found[0]} against {expected[0]}")
        return True


def odd_value(random: Random) -> float:
    return random.choice([math.nan, 0.0, -0.0, 1.0, 0.5, -1.5, 3.4e38, -3.4e38, random.gauss(0, 2), 1e-30])


def number(random: Random) -> float:
    return random.choice([0.5, 0.0, -1.5, 3.4028234663852886e38, 1e-30, random.gauss(0, 2)])


def shape(random: Random) -> list[tuple[int, int]]:
    """Children of the inner nodes of a random tree whose inner nodes come first; leaves are -1 - i."""
    inner = random.choice((0, 1, 2, 3, 7))
    children = [[-1, -1] for _ in range(inner)]
    free = [(0, 0), (0, 1)] if inner else []
    for node in range(1, inner):
        parent, side = free.pop(random.randrange(len(free)))
        children[parent][side] = node
        free += [(node, 0), (node, 1)]
    for leaf, (parent, side) in enumerate(free):
        children[parent][side] = -1 - leaf
    return [(left, right) for left, right in children]


class LightGBMTarget(ForeignTarget):
    name = "lightgbm"

    def valid(self, random: Random) -> bytes:
        if random.random() < 0.2:
            return files.FILES["lightgbm"]["text"]
        objective, outputs = random.choice(
            [("lambdarank", 1), ("binary sigmoid:1", 1), ("binary sigmoid:2.5", 1), ("poisson", 1),
             ("multiclass num_class:3", 3), ("multiclassova num_class:3 sigmoid:1", 3)]
        )  # fmt: skip
        trees = [self._tree(random, n) for n in range(outputs * random.choice((0, 1, 2)))]
        average = "average_output\n" if random.random() < 0.2 else ""
        head = (
            f"tree\nversion=v4\nnum_class={outputs}\nnum_tree_per_iteration={outputs}\nlabel_index=0\n"
            f"max_feature_idx=2\nobjective={objective}\n{average}feature_names=a b c\n"
            "feature_infos=none none none\n"
        )
        sizes = f"tree_sizes={' '.join(str(len(t)) for t in trees)}\n" if random.random() < 0.8 else ""
        return f"{head}{sizes}\n{''.join(trees)}end of trees\n\nparameters:\nend of parameters\n".encode()

    def _tree(self, random: Random, at: int) -> str:
        children = shape(random)
        leaves = " ".join(repr(random.gauss(0, 1)) for _ in range(len(children) + 1))
        if not children:
            return f"Tree={at}\nnum_leaves=1\nnum_cat=0\nleaf_value={leaves}\n\n\n"
        join = " ".join
        # The last feature holds categories.
        features = [random.randrange(3) for _ in children]
        order = [sum(f == 2 for f in features[:n]) for n in range(len(features))]
        sets = [
            [random.choice((0, 1, 5, 2**31)) for _ in range(random.randrange(3))] for f in features if f == 2
        ]
        ends = [sum(map(len, sets[:n])) for n in range(len(sets) + 1)]
        thresholds = [n if f == 2 else number(random) for f, n in zip(features, order, strict=True)]
        kinds = [random.choice((1, 9) if f == 2 else (0, 2, 8, 10)) for f in features]
        categories = (
            f"cat_boundaries={join(map(str, ends))}\n"
            f"cat_threshold={join(str(word) for words in sets for word in words)}\n"
        )
        return (
            f"Tree={at}\nnum_leaves={len(children) + 1}\nnum_cat={len(sets)}\n"
            f"split_feature={join(map(str, features))}\n"
            f"split_gain={join('1.5' for _ in children)}\n"
            f"threshold={join(map(repr, thresholds))}\n"
            f"decision_type={join(map(str, kinds))}\n"
            f"left_child={join(str(left) for left, _ in children)}\n"
            f"right_child={join(str(right) for _, right in children)}\n"
            f"leaf_value={leaves}\nleaf_count={join('7' for _ in range(len(children) + 1))}\n"
            f"internal_count={join('9' for _ in children)}\n{categories if sets else ''}"
            "is_linear=0\nshrinkage=1\n\n\n"
        )

    def edited(self, random: Random) -> bytes:
        text = self.valid(random).decode()
        if random.random() < 0.3:
            name = random.choice(["num_leaves", "num_class", "max_feature_idx", "num_tree_per_iteration"])
            huge = random.choice(ODD_INTEGERS)
            text = "\n".join(f"{name}={huge}" if line.startswith(name) else line for line in text.split("\n"))
        return damaged_lines(random, text, " =").encode("utf-8", "surrogatepass")

    def raw(self, content: bytes, row: list[float]) -> list[float]:
        return twins.lightgbm_raw(content.decode("utf-8-sig").replace("\r\n", "\n"), row)


class JsonTarget(ForeignTarget):
    """Files of JSON; values are changed by place."""

    def model(self, random: Random) -> dict[str, Any]:
        """A valid model as an object."""
        raise NotImplementedError

    def valid(self, random: Random) -> bytes:
        return json.dumps(self.model(random)).encode()

    def changed(self, random: Random) -> Any:
        model = forge_header(random, self.model(random))
        if random.random() < 0.3:
            _shake(random, model)
        if random.random() < 0.02:
            deep: Any = 0
            for _ in range(random.choice((50, 500, 900))):
                deep = [deep] if random.random() < 0.5 else {"left": deep}
            model = {**model, "trees": deep} if isinstance(model, dict) else deep
        return model

    def edited(self, random: Random) -> bytes:
        text = json.dumps(self.changed(random))
        return text.encode("utf-8", "surrogatepass")


def _shake(random: Random, value: Any) -> None:
    """Change numbers in the lists of a model, wherever they are."""
    lists = []
    waiting = [value]
    while waiting:
        at = waiting.pop()
        entries = at.values() if isinstance(at, dict) else at if isinstance(at, list) else ()
        waiting += [entry for entry in entries if isinstance(entry, (dict, list))]
        if isinstance(at, list) and at and all(type(entry) in (int, float) for entry in at):
            lists.append(at)
    for at in random.choices(lists, k=random.choice((1, 1, 2, 4))) if lists else []:
        if not at:  # chosen twice, and cut off
            continue
        place = random.randrange(len(at))
        if type(at[place]) is int:
            at[place] = random.choice([0, 1, -1, 2, at[place] + 1, len(at), random.choice(ODD_INTEGERS)])
        else:
            at[place] = random.choice([math.nan, math.inf, -math.inf, 1e39, -1e300, 1e308, 0.0, 5e-324])
        if random.random() < 0.1:
            del at[random.randrange(len(at)) :]


class XGBoostTarget(JsonTarget):
    name = "xgboost"

    def model(self, random: Random) -> dict[str, Any]:
        objective, outputs = random.choice(
            [("rank:ndcg", 1), ("binary:logistic", 1), ("reg:gamma", 1), ("multi:softprob", 3)]
        )
        model = files.xgboost_model(outputs, objective)
        learner = model["learner"]
        booster = learner["gradient_booster"]
        booster["model"]["trees"] = [self._tree(random) for _ in range(outputs)]
        what = random.random()
        if what < 0.15:
            learner["gradient_booster"] = {
                "name": "dart", "gbtree": booster, "weight_drop": [random.random() for _ in range(outputs)],
            }  # fmt: skip
        elif what < 0.25 and outputs == 1:
            learner["gradient_booster"] = {"name": "gblinear", "model": {"weights": [0.5, -1.0, 0.25]}}
        elif what < 0.35:
            learner["attributes"] = {"best_iteration": "0", "scikit_learn": "{}"}
        return model

    def _tree(self, random: Random) -> dict[str, Any]:
        children = shape(random)
        inner, size = len(children), 2 * len(children) + 1
        tree = files.xgboost_tree()

        def places(side: int) -> list[int]:
            return [c[side] if c[side] >= 0 else inner - 1 - c[side] for c in children] + [-1] * (inner + 1)

        tree |= {
            "left_children": places(0), "right_children": places(1), "parents": [0] * size,
            "split_indices": [random.randrange(2) for _ in range(size)],
            "split_conditions": [number(random) if i < inner else random.gauss(0, 1) for i in range(size)],
            "default_left": [random.randrange(2) for _ in range(size)], "base_weights": [0.0] * size,
            "loss_changes": [1.0] * size, "sum_hessian": [2.5] * size, "split_type": [0] * size,
        }  # fmt: skip
        tree["tree_param"]["num_nodes"] = str(size)
        if random.random() < 0.4:
            self._categories(random, tree, inner)
        return tree

    def _categories(self, random: Random, tree: dict[str, Any], inner: int) -> None:
        """Make sets of categories of all splits on the second feature."""
        nodes = [node for node in range(inner) if tree["split_indices"][node] == 1]
        sets = [random.sample((0, 1, 2, 40, 300), random.randrange(4)) for _ in nodes]
        for node in nodes:
            tree["split_type"][node] = 1
        tree["categories"] = [code for codes in sets for code in codes]
        tree["categories_nodes"], tree["categories_sizes"] = nodes, [len(codes) for codes in sets]
        tree["categories_segments"] = [sum(map(len, sets[:n])) for n in range(len(sets))]

    def raw(self, content: bytes, row: list[float]) -> list[float]:
        return twins.xgboost_raw(json.loads(content), row)


class UbjsonTarget(XGBoostTarget):
    name = "xgboost-ubj"
    kind = "xgboost"  # type: ignore[assignment]

    def valid(self, random: Random) -> bytes:
        return files.to_ubjson(self.model(random))

    def edited(self, random: Random) -> bytes:
        unwritable = (OverflowError, TypeError, ValueError, RecursionError, struct.error)
        with contextlib.suppress(*unwritable):  # what has no form in UBJSON
            return files.to_ubjson(self.changed(random))
        return damaged_bytes(random, self.valid(random))

    def raw(self, content: bytes, row: list[float]) -> list[float]:
        return twins.xgboost_raw(_plain(read_ubjson(content, "m").value), row)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


class CatBoostTarget(JsonTarget):
    name = "catboost"

    def model(self, random: Random) -> dict[str, Any]:
        outputs = random.choice((1, 1, 3))
        model = files.catboost_model(outputs)
        if outputs == 1 and random.random() < 0.5:
            model = files.branching_model()
            model["trees"] = [self._branch(random, 0, model) for _ in range(random.choice((0, 1, 3)))]
            return model
        template = model["oblivious_trees"][0]
        model["oblivious_trees"] = []
        for _ in range(random.choice((0, 1, 3))):
            tree = copy.deepcopy(template)
            tree["splits"] = [self._split(random) for _ in range(random.choice((0, 1, 2, 4)))]
            leaves = 1 << len(tree["splits"])
            tree["leaf_values"] = [random.gauss(0, 1) for _ in range(leaves * outputs)]
            tree["leaf_weights"] = [random.randrange(5) for _ in range(leaves)]
            model["oblivious_trees"].append(tree)
        return model

    def _split(self, random: Random) -> dict[str, Any]:
        return {
            "border": number(random), "float_feature_index": random.randrange(2), "split_index": 0,
            "split_type": "FloatFeature",
        }  # fmt: skip

    def _branch(self, random: Random, depth: int, model: dict[str, Any]) -> dict[str, Any]:
        if depth > 4 or random.random() < 0.4:
            return {"value": random.gauss(0, 1), "weight": random.randrange(5)}
        left, right = (self._branch(random, depth + 1, model) for _ in range(2))
        return {"split": self._split(random), "left": left, "right": right}

    def raw(self, content: bytes, row: list[float]) -> list[float]:
        return twins.catboost_raw(json.loads(content), row)


class RankLibTarget(ForeignTarget):
    name = "ranklib"

    def valid(self, random: Random) -> bytes:
        if random.random() < 0.15:
            pairs = " ".join(f"{j}:{random.gauss(0, 1)!r}" for j in range(random.randrange(2), 4))
            return f"## {random.choice(['Coordinate Ascent', 'Linear Regression'])}\n{pairs}\n".encode()
        bags = random.choice((1, 1, 1, 3))
        kind = "Random Forests" if bags > 1 else random.choice(["LambdaMART", "MART"])
        body = ""
        for _ in range(bags):
            trees = (
                f'<tree id="{n}" weight="0.1">\n<split>\n{self._node(random, 0)}</split>\n</tree>\n'
                for n in range(random.choice((0, 1, 3)))
            )
            body += f"<ensemble>\n{''.join(trees)}</ensemble>\n"
        return f"## {kind}\n## No. of leaves = 10\n\n{body}".encode()

    def _node(self, random: Random, depth: int) -> str:
        if depth > 4 or random.random() < 0.4:
            return f"<output> {random.gauss(0, 1)!r} </output>\n"
        left, right = (self._node(random, depth + 1) for _ in range(2))
        return (
            f"<feature> {random.randrange(1, 4)} </feature>\n<threshold> {number(random)!r} </threshold>\n"
            f'<split pos="left">\n{left}</split>\n<split pos="right">\n{right}</split>\n'
        )

    def edited(self, random: Random) -> bytes:
        text = self.valid(random).decode()
        if random.random() < 0.02:
            depth = random.choice((100, 5000))
            text = f'## MART\n<ensemble>\n<tree id="1" weight="1">\n{"<split>" * depth}\n'
        return damaged_lines(random, text, " <>:").encode("utf-8", "surrogatepass")

    def raw(self, content: bytes, row: list[float]) -> list[float]:
        return [twins.ranklib_score(content.decode("utf-8-sig").replace("\r\n", "\n"), row)]
