"""Sets of categories as words of bits: made, read, and written again for other codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from mcrank.arrays import IntArray
from mcrank.errors import ModelFileError
from mcrank.scorers.forest.forest import Forest

Words = npt.NDArray[np.uint64]


def words_of(codes: Iterable[int]) -> Words:
    """Return the shortest words that have the bits of some codes.

    Examples
    --------
    >>> from mcrank.scorers.forest.sets import words_of
    >>> words_of([0, 3]).tolist(), words_of([64]).tolist(), words_of([]).tolist()
    ([9], [0, 1], [])
    """
    chosen = np.fromiter(codes, dtype=np.int64)
    bits = np.zeros((int(chosen.max(initial=-1)) // 64 + 1) * 64, dtype=np.uint8)
    bits[chosen] = 1
    return np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64)


def codes_of(words: Words) -> IntArray:
    """Return the codes of a set, rising.

    Examples
    --------
    >>> from mcrank.scorers.forest.sets import codes_of, words_of
    >>> codes_of(words_of([70, 2])).tolist()
    [2, 70]
    """
    bits = np.unpackbits(np.ascontiguousarray(words).astype("<u8").view(np.uint8), bitorder="little")
    return np.flatnonzero(bits)


def set_codes(forest: Forest, s: int) -> IntArray:
    """Return the codes of a forest's set, rising."""
    return codes_of(forest.set_words[forest.set_offsets[s] : forest.set_offsets[s + 1]])


def packed(sets: list[Words]) -> dict[str, npt.NDArray[np.generic]]:
    """Return sets as the arrays a forest has of them."""
    words = np.concatenate([np.empty(0, dtype=np.uint64), *sets])
    return {"set_offsets": np.cumsum([0, *map(len, sets)], dtype=np.int64), "set_words": words}


def with_categories(
    forest: Forest, own: Mapping[int, tuple[str, ...]], wanted: Mapping[int, tuple[str, ...]]
) -> Forest:
    """Return a forest whose codes are places among ``wanted`` names, where they were among its ``own``.

    What it did not know goes the way of missing values, which is part of the set from then on.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> from mcrank.scorers.forest.sets import packed, set_codes, with_categories, words_of
    >>> builder = ForestBuilder(n_features=1, base=[0.0])
    >>> builder.append(feature=[0, -1, -1], left=[1, -1, -1], right=[2, -1, -1], value=[0, 1.0, 2.0],
    ...                category_set=np.array([0, -1, -1]), **packed([words_of([1])]))
    >>> set_codes(with_categories(builder.build(), {0: ("a", "c")}, {0: ("a", "b", "c")}), 0).tolist()
    [2]
    """
    if not forest.has_sets or all(own.get(f) == names for f, names in wanted.items()):
        return forest
    numbers = forest.category_set.copy()
    sets: dict[bytes, int] = {}
    kept: list[Words] = []
    for node in np.flatnonzero(forest.category_set >= 0).tolist():
        f = int(forest.feature[node])
        names, unknown = own[f], bool(forest.missing_left[node])
        members = {names[code] for code in set_codes(forest, int(forest.category_set[node])).tolist()}
        known = set(names)
        words = words_of(
            code for code, name in enumerate(wanted[f]) if name in members or (unknown and name not in known)
        )
        numbers[node] = sets.setdefault(words.tobytes(), len(kept))
        if numbers[node] == len(kept):
            kept.append(words)
    return Forest.from_arrays(forest.to_arrays() | {"category_set": numbers} | packed(kept))


def checked_sets(forest: Forest, categories: Mapping[int, tuple[str, ...]], names: Sequence[str]) -> Forest:
    """Return a forest that splits features with categories by sets of those, and no others; else raise
    `ModelFileError`.
    """
    inner = forest.feature >= 0
    of_sets = np.unique(forest.feature[inner & (forest.category_set >= 0)]).tolist()
    of_numbers = np.unique(forest.feature[inner & (forest.category_set < 0)]).tolist()
    for f in of_sets:
        if f not in categories:
            raise ModelFileError(f"the forest splits on categories of {names[f]!r}, and names none.")
        used = np.unique(forest.category_set[inner & (forest.feature == f)]).tolist()
        if max(int(set_codes(forest, s).max(initial=-1)) for s in used) >= len(categories[f]):
            raise ModelFileError(
                f"the forest names {len(categories[f])} categories of {names[f]!r}, and a set has more."
            )
    for f in of_numbers:
        if f in categories:
            raise ModelFileError(f"the forest splits {names[f]!r} by thresholds, and names categories of it.")
    return forest
