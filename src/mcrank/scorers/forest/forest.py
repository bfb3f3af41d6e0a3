"""The forest: all trees of a model as a few flat arrays plus offsets, and the builder that fills them.

Nodes of tree ``t`` are rows ``tree_offsets[t]:tree_offsets[t + 1]`` of the node arrays; node 0 of a tree is
its root, and children come after their parent, so a walk always ends. No object per tree or node: a forest
is saved, checked, cut and scored as whole arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from mcrank.arrays import Array, Arrays, ByteArray, FeatureArray, FloatArray, IntArray, RowArray
from mcrank.errors import ModelFileError, OptionError
from mcrank.lazy import lazy
from mcrank.scorers.forest.checks import check_forest

if TYPE_CHECKING:
    from mcrank.scorers.forest.block_kernels import TreeArrays
    from mcrank.scorers.forest.program import CompiledForest

# One entry per node, in the order the builder and the files use.
NODE_DTYPES: dict[str, type[np.generic]] = {
    "feature": np.int32,
    "threshold": np.float32,
    "missing_left": np.uint8,
    "left": np.int32,
    "right": np.int32,
    "value": np.float64,
    "gain": np.float64,
    "rows": np.int64,
    "category_set": np.int32,
}
_DTYPES: dict[str, type[np.generic]] = {
    "tree_offsets": np.int64,
    "tree_output": np.int32,
    **NODE_DTYPES,
    "base": np.float64,
    "set_offsets": np.int64,
    "set_words": np.uint64,
}
_SETS = ("category_set", "set_offsets", "set_words")  # of forests that split on categories, and no others


@dataclass(frozen=True, eq=False, repr=False)
class Forest:
    """Trees as flat arrays; every `Forest` that exists has passed `validate`.

    The score of a row in output ``k`` is ``base[k]`` plus, for every tree with ``tree_output == k``, the
    value of the leaf the row falls into. At an inner node ``x <= threshold`` goes left, NaN goes left where
    ``missing_left`` is 1 and right otherwise. At one with a set of categories those codes go left that are in
    the set, all other numbers right, and NaN as above.

    Attributes
    ----------
    tree_offsets : ndarray of int64, shape (trees + 1,)
        Nodes of tree ``t`` are ``tree_offsets[t]:tree_offsets[t + 1]``.
    tree_output : ndarray of int32, shape (trees,)
        Output (class) column the tree adds to.
    feature : ndarray of int32, shape (nodes,)
        Feature tested by the node; -1 marks a leaf.
    threshold : ndarray of float32, shape (nodes,)
        Raw value up to which rows go left.
    missing_left : ndarray of uint8, shape (nodes,)
        1 when NaN goes left.
    left, right : ndarray of int32, shape (nodes,)
        Children, counted inside the tree; -1 in leaves.
    value : ndarray of float64, shape (nodes,)
        What a leaf adds, shrinkage included; 0 at inner nodes.
    gain : ndarray of float64, shape (nodes,)
        Gain of the split; 0 in leaves.
    rows : ndarray of int64, shape (nodes,)
        Training rows that reached the node.
    base : ndarray of float64, shape (outputs,)
        Score before the first tree.
    n_features : int
        Columns of the matrices the forest can score.
    category_set : ndarray of int32, shape (nodes,)
        Set of categories that go left; -1 at nodes with a threshold, and in leaves.
    set_offsets : ndarray of int64, shape (sets + 1,)
        Words of set ``s`` are ``set_offsets[s]:set_offsets[s + 1]``.
    set_words : ndarray of uint64
        A bit for each code, lowest first; codes beyond the last word are not in the set.

    Examples
    --------
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> builder = ForestBuilder(n_features=2, base=[0.5])
    >>> builder.append(feature=[1, -1, -1], threshold=[3.0, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
    ...                value=[0, -1.0, 2.0], gain=[4.0, 0, 0], rows=[10, 6, 4])
    >>> forest = builder.build()
    >>> forest.n_trees, forest.n_outputs, forest.importances().tolist()
    (1, 1, [0.0, 1.0])
    """

    tree_offsets: IntArray
    tree_output: RowArray
    feature: RowArray
    threshold: FeatureArray
    missing_left: ByteArray
    left: RowArray
    right: RowArray
    value: FloatArray
    gain: FloatArray
    rows: IntArray
    base: FloatArray
    n_features: int
    category_set: RowArray = None  # type: ignore[assignment]
    set_offsets: IntArray = None  # type: ignore[assignment]
    set_words: npt.NDArray[np.uint64] = None  # type: ignore[assignment]
    by_query: ClassVar[bool] = False

    def __post_init__(self) -> None:
        given: Any = self.category_set
        if given is None:  # no splits on categories
            object.__setattr__(self, "category_set", np.full(np.shape(self.feature), -1, dtype=np.int32))
            object.__setattr__(self, "set_offsets", np.zeros(1, dtype=np.int64))
            object.__setattr__(self, "set_words", np.empty(0, dtype=np.uint64))
        for name, dtype in _DTYPES.items():
            object.__setattr__(self, name, _frozen(getattr(self, name), dtype, name))
        object.__setattr__(self, "n_features", int(self.n_features))
        self.validate()

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.tree_output.shape[0])

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all trees, leaves included."""
        return int(self.feature.shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of score columns."""
        return int(self.base.shape[0])

    @property
    def sets(self) -> Arrays:
        """The arrays of the sets of categories, by name."""
        return {"set_offsets": self.set_offsets, "set_words": self.set_words}

    @property
    def has_sets(self) -> bool:
        """Whether some node splits on categories."""
        return len(self.set_offsets) > 1

    @lazy
    def compiled(self) -> CompiledForest:
        """The form the scoring kernels read; made at first use, never stale because the arrays are frozen."""
        from mcrank.scorers.forest.program import compile_forest

        return compile_forest(self)

    @lazy
    def arrays(self) -> TreeArrays:
        """The arrays a walk reads, as kernels take them."""
        from mcrank.scorers.forest.block_kernels import TreeArrays

        return TreeArrays(**{name: getattr(self, name) for name in TreeArrays._fields})

    def validate(self) -> None:
        """Check everything a walk relies on; `ModelFileError` names the tree and node at fault."""
        check_forest(self)

    def part(self, first: int, last: int) -> Forest:
        """Return trees ``first`` up to ``last``, starting from score 0."""
        if not 0 <= first <= last <= self.n_trees:
            raise OptionError(
                f"first and last of Forest.part must rise within 0..{self.n_trees}, got {first} and {last}."
            )
        begin, end = int(self.tree_offsets[first]), int(self.tree_offsets[last])
        return Forest(
            tree_offsets=self.tree_offsets[first : last + 1] - begin,
            tree_output=self.tree_output[first:last],
            base=np.zeros(self.n_outputs),
            n_features=self.n_features,
            **{name: getattr(self, name)[begin:end] for name in NODE_DTYPES},
            **self.sets,
        )

    def raw(self, X: FeatureArray, n_jobs: int = 1, offsets: IntArray | None = None) -> FloatArray:
        """Return raw outputs (outputs x rows); see `mcrank.scorers.forest.predict`."""
        from mcrank.scorers.forest.predict import predict_raw

        return predict_raw(self, X, n_jobs).T

    def raw_if_finite(self, X: FeatureArray, n_jobs: int = 1) -> FloatArray | None:
        """`raw` of rows nobody has looked at; None where they hold an infinite number."""
        from mcrank.scorers.forest.predict import predict_finite

        found = predict_finite(self, X, n_jobs)
        return None if found is None else found.T

    def importances(self, kind: Literal["gain", "splits"] = "gain") -> FloatArray:
        """Return the share of each feature in the total gain (or number) of splits; all 0 without splits."""
        if kind not in ("gain", "splits"):
            raise OptionError(f"kind of importances must be 'gain' or 'splits', got {kind!r}.")
        inner = self.feature >= 0
        weights = self.gain[inner] if kind == "gain" else None
        splits = self.feature[inner]
        totals = np.bincount(splits, weights=weights, minlength=self.n_features).astype(np.float64)
        total = float(totals.sum())
        return totals / total if total > 0 else np.zeros(self.n_features)

    def to_arrays(self) -> Arrays:
        """Return every array by name, ``n_features`` as an array of one; `from_arrays` takes it back."""
        arrays: Arrays = {n: getattr(self, n) for n in _DTYPES if self.has_sets or n not in _SETS}
        if self.has_sets:  # files know no unsigned words
            arrays["set_words"] = self.set_words.view(np.int64)
        arrays["n_features"] = np.array([self.n_features], dtype=np.int64)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Forest:
        """Return the forest `to_arrays` described; anything wrong is a `ModelFileError`."""
        wanted = [field.name for field in fields(cls)]
        for name in wanted:
            optional = name in _SETS and not any(other in arrays for other in _SETS)
            if name not in arrays and not optional:
                raise ModelFileError(f"The forest has no array {name!r}; it needs {', '.join(wanted)}.")
        size = np.asarray(arrays["n_features"])
        if size.size != 1 or size.dtype.kind not in "iu":
            raise ModelFileError(
                f"n_features of the forest must be one integer, got {size.dtype}{size.shape}."
            )
        given = {name: arrays[name] for name in _DTYPES if name in arrays}
        words = given.get("set_words")
        if words is not None and words.dtype == np.int64:
            given["set_words"] = words.view(np.uint64)
        return cls(**given, n_features=int(size.reshape(-1)[0]))

    def __reduce__(self) -> tuple[Any, ...]:
        return Forest.from_arrays, (self.to_arrays(),)

    def __repr__(self) -> str:
        return (
            f"Forest({self.n_trees} trees, {self.n_nodes} nodes, {self.n_features} features, "
            f"{self.n_outputs} outputs)"
        )


class ForestBuilder:
    """Collects trees one by one at the cost of a few copies each.

    Parameters
    ----------
    n_features : int
        Columns of the training matrix.
    base : array-like of shape (outputs,)
        Score of each output before the first tree.

    Examples
    --------
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> builder = ForestBuilder(n_features=1, base=[0.0, 0.0])
    >>> builder.append(feature=[-1], value=[0.25], rows=[7], output=1)
    >>> builder.build()
    Forest(1 trees, 1 nodes, 1 features, 2 outputs)
    """

    def __init__(self, n_features: int, base: npt.ArrayLike) -> None:
        self._n_features = n_features
        self._base = np.array(base, dtype=np.float64)
        self._nodes = {name: np.zeros(1024, dtype=dtype) for name, dtype in NODE_DTYPES.items()}
        self._offsets = [0]
        self._outputs: list[int] = []
        self._sets: dict[bytes, int] = {}  # words -> number, in the order of their first use

    @property
    def n_trees(self) -> int:
        """Trees appended so far."""
        return len(self._outputs)

    def append(
        self,
        *,
        feature: npt.ArrayLike,
        value: npt.ArrayLike,
        threshold: npt.ArrayLike = 0.0,
        missing_left: npt.ArrayLike = 0,
        left: npt.ArrayLike = -1,
        right: npt.ArrayLike = -1,
        gain: npt.ArrayLike = 0.0,
        rows: npt.ArrayLike = 0,
        category_set: npt.ArrayLike = -1,
        set_offsets: IntArray | None = None,
        set_words: npt.NDArray[np.uint64] | None = None,
        output: int = 0,
        n_nodes: int | None = None,
    ) -> None:
        """Append one tree: arrays of (at least) ``n_nodes`` nodes, copied; a number stands for all nodes."""
        if set_offsets is not None and set_words is not None:
            category_set = self._numbers(np.asarray(category_set), set_offsets, set_words)
        given = (feature, threshold, missing_left, left, right, value, gain, rows, category_set)
        size = len(np.asarray(feature)) if n_nodes is None else n_nodes
        start, end = self._offsets[-1], self._offsets[-1] + size
        if end > len(self._nodes["feature"]):
            self._grow(end)
        for array, part in zip(self._nodes.values(), given, strict=True):
            if isinstance(part, np.ndarray):
                array[start:end] = part[:size]
            elif np.ndim(part) == 0:
                array[start:end] = part
            else:
                array[start:end] = np.asarray(part)[:size]
        self._offsets.append(end)
        self._outputs.append(output)

    def keep_first(self, n: int) -> None:
        """Forget all trees after the first ``n``."""
        del self._offsets[n + 1 :]
        del self._outputs[n:]

    def _numbers(self, own: RowArray, offsets: IntArray, words: npt.NDArray[np.uint64]) -> RowArray:
        """Return numbers of sets among those of all trees, each of which is kept once."""
        if len(offsets) == 1:
            return own
        numbers = np.full(len(offsets), -1, dtype=np.int32)  # the last for nodes without a set
        for s in own[own >= 0].tolist():
            content = words[offsets[s] : offsets[s + 1]].tobytes()
            numbers[s] = self._sets.setdefault(content, len(self._sets))
        return numbers[own]

    def build(self) -> Forest:
        """Return the forest of the trees appended so far; the builder can go on after it."""
        end = self._offsets[-1]
        # Sets are numbered as they are met: those of trees that were forgotten are the last.
        used = list(self._sets)[: int(self._nodes["category_set"][:end].max(initial=-1)) + 1]
        return Forest(
            tree_offsets=np.array(self._offsets, dtype=np.int64),
            tree_output=np.array(self._outputs, dtype=np.int32),
            base=self._base,
            n_features=self._n_features,
            **{name: array[:end] for name, array in self._nodes.items()},
            set_offsets=np.cumsum([0, *(len(content) // 8 for content in used)], dtype=np.int64),
            set_words=np.frombuffer(b"".join(used), dtype=np.uint64),
        )

    def _grow(self, needed: int) -> None:
        # Doubling: n trees cost O(n) copies in all.
        capacity = max(needed, 2 * len(self._nodes["feature"]))
        for name, old in self._nodes.items():
            new = np.zeros(capacity, dtype=old.dtype)
            new[: len(old)] = old
            self._nodes[name] = new


def _frozen(given: Any, dtype: type[np.generic], name: str) -> Array:
    """Return ``given`` as a read-only array nobody else can write to; copied unless it already is one."""
    array = np.asarray(given)
    # Only widening or equal kinds are accepted: a file must not smuggle 2.7 into an index.
    if array.dtype != dtype and not (array.size == 0 or np.can_cast(array.dtype, dtype, casting="same_kind")):
        raise ModelFileError(f"{name} of the forest must be {np.dtype(dtype).name}, got {array.dtype.name}.")
    owner: Any = array if array.base is None else array.base
    settled = isinstance(owner, np.ndarray) and owner.base is None and not owner.flags.writeable
    if settled and array.dtype == dtype and array.flags.c_contiguous and not array.flags.writeable:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        copy = np.array(array, dtype=dtype, order="C", copy=True)
    if array.dtype.kind in "iu" and not np.array_equal(copy, array):
        raise ModelFileError(f"{name} of the forest has values beyond {np.dtype(dtype).name}.")
    copy.setflags(write=False)
    return copy
