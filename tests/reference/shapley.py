"""Shapley values by their definition, and by the plain recursion of TreeSHAP: slow, and easy to believe."""

from __future__ import annotations

import itertools
import math

import numpy as np

from mcrank.scorers.forest.sets import set_codes


def goes_left(forest, node, x):
    value = x[forest.feature[node]]
    s = forest.category_set[node]
    if s >= 0 and not np.isnan(value):
        return value in set_codes(forest, s).tolist()
    return forest.missing_left[node] == 1 if np.isnan(value) else value <= forest.threshold[node]


def branch_shares(forest, first, n):
    """Shares of training rows that go left and right at node n of the tree that begins at first."""
    left, right = (int(forest.rows[first + child[first + n]]) for child in (forest.left, forest.right))
    return (0.5, 0.5) if left + right == 0 else (left / (left + right), right / (left + right))


def expectation(forest, t, x, known, n=0):
    """Value of tree t for a row of which some features are known; the others take both branches."""
    first = forest.tree_offsets[t]
    if forest.feature[first + n] < 0:
        return forest.value[first + n]
    children = (forest.left[first + n], forest.right[first + n])
    if forest.feature[first + n] in known:
        side = 0 if goes_left(forest, first + n, x) else 1
        return expectation(forest, t, x, known, children[side])
    parts = zip(branch_shares(forest, first, n), children, strict=True)
    return sum(share * expectation(forest, t, x, known, child) for share, child in parts)


def shapley(worth, players):
    """Shapley values of a game: the mean, over all orders, of what a player adds when he joins."""
    out = np.zeros(players)
    values = {s: worth(s) for n in range(players + 1) for s in itertools.combinations(range(players), n)}
    for s, value in values.items():
        weight = math.factorial(len(s)) * math.factorial(players - len(s) - 1) if len(s) < players else 0
        for i in set(range(players)) - set(s):
            out[i] += weight / math.factorial(players) * (values[tuple(sorted((*s, i)))] - value)
    return out


def forest_shapley(forest, x, output):
    """Path-dependent Shapley values of one output, over all subsets of features."""
    trees = np.flatnonzero(forest.tree_output == output)
    return shapley(lambda s: sum(expectation(forest, t, x, s) for t in trees), forest.n_features)


def rows_shapley(score, a, b):
    """Shapley values of the difference of two rows: known features are those of a, the others those of b."""

    def worth(known):
        row = b.copy()
        row[list(known)] = a[list(known)]
        return score(row[None])[0]

    return shapley(worth, len(a))


def tree_shap(forest, x, output):
    """The recursion of Lundberg's Algorithm 2: weights of subsets by size, kept along the path."""
    out = np.zeros(forest.n_features)
    for t in np.flatnonzero(forest.tree_output == output):
        first = forest.tree_offsets[t]

        def extend(path, zero, one, feature):
            path = [list(entry) for entry in path] + [[feature, zero, one, 1.0 if not path else 0.0]]
            last = len(path) - 1
            for i in range(last - 1, -1, -1):
                path[i + 1][3] += one * path[i][3] * (i + 1) / (last + 1)
                path[i][3] = zero * path[i][3] * (last - i) / (last + 1)
            return path

        def unwind(path, at):
            path = [list(entry) for entry in path]
            last = len(path) - 1
            _, zero, one, _ = path[at]
            carried = path[last][3]
            for i in range(last - 1, -1, -1):
                if one != 0:
                    kept = path[i][3]
                    path[i][3] = carried * (last + 1) / ((i + 1) * one)
                    carried = kept - path[i][3] * zero * (last - i) / (last + 1)
                else:
                    path[i][3] = path[i][3] * (last + 1) / (zero * (last - i))
            for i in range(at, last):
                path[i][:3] = path[i + 1][:3]
            return path[:last]

        def recurse(n, path, zero, one, feature, first=first, extend=extend, unwind=unwind):
            path = extend(path, zero, one, feature)
            if forest.feature[first + n] < 0:
                for i in range(1, len(path)):
                    weight = sum(entry[3] for entry in unwind(path, i))
                    out[path[i][0]] += weight * (path[i][2] - path[i][1]) * forest.value[first + n]
                return
            tested = int(forest.feature[first + n])
            old_zero = old_one = 1.0
            for i in range(1, len(path)):
                if path[i][0] == tested:
                    old_zero, old_one = path[i][1], path[i][2]
                    path = unwind(path, i)
                    break
            shares = branch_shares(forest, first, n)
            hot = 0 if goes_left(forest, first + n, x) else 1
            for side, child in enumerate((forest.left[first + n], forest.right[first + n])):
                recurse(child, path, shares[side] * old_zero, old_one if side == hot else 0.0, tested)

        recurse(0, [], 1.0, 1.0, -1)
    return out
