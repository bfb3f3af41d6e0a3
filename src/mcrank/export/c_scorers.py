"""C code of scorers: forests folded and walked, linear maps, nets. Each writes the raw outputs of rows."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FloatArray, IntArray
from mcrank.export.folding import Folded
from mcrank.export.parts import Part
from mcrank.export.trees import breadth_first, trees_of
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.linear import Linear
from mcrank.scorers.net import Net
from mcrank.scorers.scaling import Scaling

_STACK = 49152  # bytes a call may take of the stack for ranks and outputs, beyond which it takes fewer rows
_ROWS = 64  # scored together, where that fits

# PICK takes one of two bytes without a branch, so that it is one operation on many rows; with gcc 12,
# `right ? b : a` is not.
_FOLD = """
static void outputs_@I@_@WIDTH@(const float *x, int n, double *out)
{
    unsigned char ranks[COLUMNS_@I@][@WIDTH@], stack[DEPTH_@I@][@WIDTH@];
    int t, k, i;
    memset(ranks, 0, sizeof ranks);
    memset(stack, 0, sizeof stack);
    for (t = 0; t < TABLES_@I@; t++) {
        const struct table table = tables_@I@[t];
        for (i = 0; i < n; i++) {
            const float v = x[(size_t)i * FEATURES + table.feature];
            const unsigned char rank = rank_of(thresholds_@I@ + table.first, table.count, v);
            if (table.low >= 0) ranks[table.low][i] = rank;
            if (table.high >= 0) ranks[table.high][i] = v != v ? 255 : rank;
        }
    }
    for (i = 0; i < n; i++)
        for (k = 0; k < @OUTPUTS@; k++) out[i * @OUTPUTS@ + k] = base_@I@[k];
    for (t = 0; t < TREES_@I@; t++) {
        const struct tree tree = trees_@I@[t];
        const double *values = values_@I@ + tree.values;
        const struct fold *step = folds_@I@ + tree.first, *last = step + tree.count;
        int top = -1;
@WALK@        for (; step < last; step++) {
            const unsigned char *c = ranks[step->column], cut = step->cut, a = step->left, b = step->right;
            unsigned char *s = stack[top < 0 ? 0 : top], *o;
            switch (step->kind) {
            case 0:
                o = stack[++top];
                for (i = 0; i < @WIDTH@; i++) o[i] = PICK(c[i] > cut, a, b);
                break;
            case 1:
                for (i = 0; i < @WIDTH@; i++) s[i] = PICK(c[i] > cut, a, s[i]);
                break;
            case 2:
                for (i = 0; i < @WIDTH@; i++) s[i] = PICK(c[i] > cut, s[i], b);
                break;
            case 3:
                o = stack[--top];
                for (i = 0; i < @WIDTH@; i++) o[i] = PICK(c[i] > cut, o[i], s[i]);
                break;
            default:
                o = stack[--top];
                for (i = 0; i < @WIDTH@; i++) o[i] = PICK(c[i] > cut, s[i], o[i]);
            }
        }
        if (tree.count == 0) {
            for (i = 0; i < n; i++) out[i * @OUTPUTS@ + tree.output] += values[0];
        } else {
            for (i = 0; i < n; i++) out[i * @OUTPUTS@ + tree.output] += values[stack[0][i]];
        }
    }
}
"""
_WALK = """        if (tree.walked) {
            for (i = 0; i < n; i++) {
                const float *row = x + (size_t)i * FEATURES;
                const struct node *at = nodes_@I@ + tree.first;
                while (at->feature >= 0) {
                    const float v = row[at->feature >> 1];
                    at = nodes_@I@ + tree.first + at->next
                        + (int)((v > at->threshold) | ((v != v) & !(at->feature & 1)));
                }
                out[i * @OUTPUTS@ + tree.output] += values[at->next];
            }
            continue;
        }
"""
RANKS = """
struct table { int feature, first, count, low, high; };
struct fold { unsigned short column; unsigned char cut, kind, left, right; };
struct tree { int first, count, values, output, walked; };
struct node { float threshold; int feature, next; };

#define PICK(right, a, b) (unsigned char)((a) ^ (((a) ^ (b)) & -(right)))

/* How many of the rising thresholds are below v; 0 for NaN. */
static unsigned char rank_of(const float *thresholds, int count, float v)
{
    const float *at = thresholds;
    while (count > 1) {
        const int half = count / 2;
        at += (v > at[half - 1]) * half;
        count -= half;
    }
    return (unsigned char)(at - thresholds + (v > *at));
}
"""


_LINEAR = """
static void outputs_@I@(const float *x, int n, double *out)
{
    int i, j;
    for (i = 0; i < n; i++) {
        double sum = 0.0;
        for (j = 0; j < @INPUTS@; j++) sum += scaled_@I@(x + (size_t)i * FEATURES, j) * weights_@I@[j];
        out[i] = sum;
    }
}
"""
# Four inputs at a time, in the order in which mcrank adds them.
_NET = """
static void outputs_@I@(const float *x, int n, double *out)
{
    double units[2][@UNITS@];
    int i, j, h, layer;
    for (i = 0; i < n; i++) {
        const double *w = weights_@I@;
        int now = 0;
        for (j = 0; j < @INPUTS@; j++) units[0][j] = scaled_@I@(x + (size_t)i * FEATURES, j);
        for (layer = 0; layer < @LAYERS@; layer++) {
            const int a = sizes_@I@[layer], b = sizes_@I@[layer + 1];
            const double *u = units[now];
            double *o = units[1 - now];
            for (h = 0; h < b; h++) o[h] = w[a * b + h];
            for (j = 0; j + 4 <= a; j += 4)
                for (h = 0; h < b; h++)
                    o[h] += u[j] * w[j * b + h] + u[j + 1] * w[(j + 1) * b + h]
                        + u[j + 2] * w[(j + 2) * b + h] + u[j + 3] * w[(j + 3) * b + h];
            for (; j < a; j++)
                for (h = 0; h < b; h++) o[h] += u[j] * w[j * b + h];
            if (layer < @LAYERS@ - 1)
                for (h = 0; h < b; h++) o[h] = @ACTIVATION@;
            w += (a + 1) * b;
            now = 1 - now;
        }
        out[i] = units[now][0];
    }
}
"""
_SCALED = """
static double scaled_@I@(const float *row, int j)
{
    const double v = row[columns_@I@[j]];
    if (v != v) return fill_@I@[j];
    return (@CURVED@ - shift_@I@[j]) * factor_@I@[j];
}
"""
_ACTIVATIONS = {"relu": "o[h] > 0.0 ? o[h] : 0.0", "tanh": "tanh(o[h])", "sigmoid": "sigmoid(o[h])"}


def stack_bytes(part: Part, folded: Folded | None, rows: int) -> int:
    """Bytes of the stack that scoring so many rows at once takes, nearly."""
    scorer = part.scorer
    size = 8 * scorer.n_outputs + 8 + (0 if folded is None else folded.n_columns + folded.depth)
    return rows * size + (16 * int(scorer.sizes.max()) if isinstance(scorer, Net) else 0)


def block_rows(parts: list[Part], folded: list[Folded | None]) -> int:
    """How many rows are best scored at once: as many as fit a small stack."""
    widths = (1, 2, 4, 8, 16, 32, _ROWS)
    fits = [
        max(w for w in widths if w == 1 or stack_bytes(part, f, w) - stack_bytes(part, f, 0) <= _STACK)
        for part, f in zip(parts, folded, strict=True)
    ]
    return min(fits)


def scorer_code(number: int, part: Part, folded: Folded | None, rows: int) -> str:
    """Return the code of a scorer: a function ``outputs_<number>(x, n, out)`` of at most ``rows`` rows."""
    scorer = part.scorer
    if isinstance(scorer, Forest) and folded is not None:
        return _forest_code(number, scorer, folded, part.columns, rows)
    if isinstance(scorer, Net):
        return _net_code(number, scorer, part.columns)
    assert isinstance(scorer, Linear)  # there is no other, and blends are taken apart
    data = _scaling(number, scorer.scaling, part.columns)
    data.append(_array(f"double weights_{number}", _doubles(scorer.weights)))
    code = _LINEAR.replace("@INPUTS@", str(scorer.n_features)).replace("@I@", str(number))
    return "\n".join(data) + "\n" + _scaled(number, scorer.scaling) + code


def _net_code(number: int, net: Net, columns: IntArray) -> str:
    sizes = net.sizes.tolist()
    data = [
        *_scaling(number, net.scaling, columns),
        _array(f"int sizes_{number}", sizes),
        _array(f"double weights_{number}", _doubles(net.weights)),
    ]
    code = _NET
    for word, value in {
        "@ACTIVATION@": _ACTIVATIONS[net.activation],
        "@LAYERS@": len(sizes) - 1,
        "@UNITS@": max(sizes),
        "@INPUTS@": sizes[0],
        "@I@": number,
    }.items():
        code = code.replace(word, str(value))
    return "\n".join(data) + "\n" + _scaled(number, net.scaling) + code


def _scaling(number: int, scaling: Scaling, columns: IntArray) -> list[str]:
    return [
        _array(f"int columns_{number}", columns.tolist()),
        *(
            _array(f"double {name}_{number}", _doubles(getattr(scaling, name)))
            for name in ("shift", "factor", "fill")
        ),
    ]


def _scaled(number: int, scaling: Scaling) -> str:
    curved = "copysign(log1p(fabs(v)), v)" if scaling.kind == "log" else "v"
    return _SCALED.replace("@CURVED@", curved).replace("@I@", str(number))


def _forest_code(number: int, forest: Forest, folded: Folded, columns: IntArray, rows: int) -> str:
    trees, nodes, folds, values = _tree_arrays(forest, folded, columns)
    none = ["{0,0,0,0,0}"]
    thresholds = np.concatenate([[0.0], *(table.thresholds for table in folded.tables)])
    data = [
        _array(f"float thresholds_{number}", _floats(thresholds)),
        _array(f"double base_{number}", _doubles(forest.base)),
        _array(f"double values_{number}", _doubles(values)),
        _array(f"struct fold folds_{number}", folds or none),
        _array(f"struct tree trees_{number}", trees or none),
        _array(f"struct table tables_{number}", _table_rows(folded, columns) or none),
        *([_array(f"struct node nodes_{number}", nodes)] if nodes else []),
    ]
    code = ""
    for width in sorted({1, rows}):
        code += _FOLD.replace("@WALK@", _WALK if nodes else "").replace("@WIDTH@", str(width))
    code += "\nstatic void outputs_@I@(const float *x, int n, double *out)\n{\n"
    code += f"    if (n == 1) outputs_@I@_1(x, n, out);\n    else outputs_@I@_{rows}(x, n, out);\n}}\n"
    for word, value in {
        "COLUMNS_@I@": max(folded.n_columns, 1),
        "DEPTH_@I@": folded.depth,
        "TABLES_@I@": len(folded.tables),
        "TREES_@I@": forest.n_trees,
        "@OUTPUTS@": forest.n_outputs,
        "@I@": number,
    }.items():
        code = code.replace(word, str(value))
    return "\n".join(data) + "\n" + code


def _tree_arrays(
    forest: Forest, folded: Folded, columns: IntArray
) -> tuple[list[str], list[str], list[str], list[float]]:
    """Return trees, nodes of those that are walked, operations of the others, and values of leaves."""
    trees: list[str] = []
    nodes: list[str] = []
    folds: list[str] = []
    values: list[float] = [0.0]  # an array of nothing is not C
    for tree, steps, leaves in zip(trees_of(forest), folded.trees, folded.leaves, strict=True):
        if steps is not None:
            trees.append(f"{{{len(folds)},{len(steps)},{len(values)},{tree.output},0}}")
            folds += [f"{{{s.column},{s.cut},{s.kind},{s.left},{s.right}}}" for s in steps]
            values += tree.value[leaves].tolist()
            continue
        trees.append(f"{{{len(nodes)},0,{len(values)},{tree.output},1}}")
        walked = breadth_first(tree)
        leaf = walked.feature < 0
        feature = np.where(leaf, -1, 2 * columns[walked.feature] + walked.missing_left)
        following = np.where(leaf, leaf.cumsum() - 1, walked.left)
        values += walked.value[leaf].tolist()
        rows = zip(_floats(walked.threshold), feature.tolist(), following.tolist(), strict=True)
        nodes += [f"{{{t},{f},{n}}}" for t, f, n in rows]
    return trees, nodes, folds, values


def _table_rows(folded: Folded, columns: IntArray) -> list[str]:
    rows, first = [], 1  # behind the one threshold that is there so that there is one
    for table in folded.tables:
        rows.append(f"{{{columns[table.feature]},{first},{len(table.thresholds)},{table.low},{table.high}}}")
        first += len(table.thresholds)
    return rows


def _doubles(values: Iterable[float] | FloatArray) -> list[str]:
    """Numbers as C99 writes them exactly."""
    return ["0" if value == 0 else float(value).hex() for value in np.asarray(values).tolist()]


def _floats(values: npt.NDArray[Any]) -> list[str]:
    return ["0" if value == 0 else f"{float(value).hex()}f" for value in values.tolist()]


def _array(name: str, values: Sequence[object]) -> str:
    """An array of constants, a few of them a line."""
    text = textwrap.fill(", ".join(map(str, values)), 110, break_long_words=False, break_on_hyphens=False)
    return f"static const {name}[] = {{\n{text}\n}};"
