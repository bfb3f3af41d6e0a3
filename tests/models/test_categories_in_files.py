"""Model files with categories that do not fit together are refused, and never crash a kernel."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import mcrank
from mcrank.container import pack, unpack
from mcrank.errors import ModelFileError
from mcrank.rankers.registry import from_bytes, to_bytes

STREAM = np.random.default_rng(3)
SHOPS = np.array(["a", "b", "c", "d", "e", "f"], dtype=object)[STREAM.integers(0, 6, 200)]
TABLE = {"shop": SHOPS, "price": STREAM.normal(size=200)}
GRADES = np.where(np.isin(SHOPS, ["b", "e"]), 2, 0) + (TABLE["price"] > 0)
MODEL = mcrank.RegressionRanker(n_estimators=3, num_leaves=4, min_data_per_group=5, n_jobs=1).fit(
    TABLE, GRADES, qid=np.repeat(range(10), 20)
)
CONTENT = to_bytes(MODEL)


def changed(change):
    header, arrays = unpack(CONTENT, "it")
    header, arrays = copy.deepcopy(header), {name: array.copy() for name, array in arrays.items()}
    change(header, arrays)
    return pack(header, arrays)


def put(name, at, value):
    def change(header, arrays):
        arrays[name][at] = value

    return change


def instead(name, value):
    def change(header, arrays):
        if value is None:
            del arrays[name]
        else:
            arrays[name] = np.asarray(value)

    return change


def named(names):
    def change(header, arrays):
        header["meta"]["categories"] = names

    return change


NODE = int(np.flatnonzero(MODEL.forest_.category_set >= 0)[0])
LEAF = int(np.flatnonzero(MODEL.forest_.feature < 0)[0])
HOSTILE = {
    "a set there is not": (put("category_set", NODE, 99), "category_set must be in -1"),
    "a negative set": (put("category_set", NODE, -7), "category_set must be in -1"),
    "a set in a leaf": (put("category_set", LEAF, 0), "category_set of a leaf must be -1"),
    "a threshold beside it": (put("threshold", NODE, 2.0), "threshold of a node with a set"),
    "sets here and thresholds there": (
        put("category_set", NODE, -1),
        "everywhere or nowhere|features with sets",
    ),
    "offsets that fall": (put("set_offsets", 0, 5), "set_offsets of the forest must rise"),
    "offsets beyond": (put("set_offsets", -1, 10**12), "set_offsets of the forest must rise"),
    "negative offsets": (put("set_offsets", -1, -1), "set_offsets of the forest must rise"),
    "no offsets": (
        instead("set_offsets", np.empty(0, np.int64)),
        "must have one entry more than there are sets",
    ),
    "offsets that are missing": (instead("set_offsets", None), "no array 'set_offsets'"),
    "words that are missing": (instead("set_words", None), "no array 'set_words'"),
    "words of another kind": (
        instead("set_words", np.zeros(3, np.float64)),
        "set_words of the forest must be",
    ),
    "words in two dimensions": (instead("set_words", np.ones((1, 1), np.int64)), "1 dimension"),
    "an empty last word": (put("set_words", -1, 0), "last word of a set"),
    "categories beyond the names": (put("set_words", -1, 1 << 40), "names 6 categories"),
    "no names": (named({}), "splits on categories of 'shop'"),
    "names of no feature": (named({"shop": list("abcdef"), "zoo": ["a"]}), "by feature"),
    "names that fall": (named({"shop": list("abcdfe")}), "must rise"),
    "names that are twice there": (named({"shop": list("abcdee")}), "must rise"),
    "names that are numbers": (named({"shop": [1, 2, 3, 4, 5, 6]}), "must be a list of texts"),
    "names of a number": (named({"shop": list("abcdef"), "price": ["x"]}), "splits 'price' by thresholds"),
    "names that are no table": (named([["a"]]), "by feature"),
    "names a terminal would obey": (named({"shop": ["\x1b[2J", *"abcde"]}), "has the character"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_does_not_fit_is_refused(kind):
    change, message = HOSTILE[kind]
    with pytest.raises(ModelFileError, match=message):
        from_bytes(changed(change), "it")


def test_any_words_are_scored_in_bounds():
    """Bits that are not checked cannot lead a kernel astray: codes beyond a set go right."""
    forest = MODEL.forest_
    X = np.array(
        [[v, 0.0] for v in (0, 5, 63, 64, 1e9, -1.0, -0.5, 0.5, np.nan, np.finfo(np.float32).max)], np.float32
    )
    one = np.array([forest.raw(row[None])[0, 0] for row in X])  # walked
    assert np.array_equal(forest.raw(X)[0], one)  # folded
    assert one[2] == one[3] == one[4] == one[5]


def test_models_without_categories_are_the_bytes_they_were():
    plain = mcrank.RegressionRanker(n_estimators=2, n_jobs=1).fit(
        {"price": TABLE["price"]}, GRADES, qid=np.repeat(range(10), 20)
    )
    header, arrays = unpack(to_bytes(plain), "it")
    assert "categories" not in header["meta"]
    assert not {"category_set", "set_offsets", "set_words"} & set(arrays)
