"""Naive twin of a tree grown under limits: one cut at a time, in floats, over distinct values."""

from __future__ import annotations

import math

import numpy as np

from mcrank.boosting.sampling import lots

NEAR = 1e-6  # gains this near, relatively, are equal: the lower feature and value win


def _t(s, l1):
    return math.copysign(max(abs(s) - l1, 0.0), s)


class Grown:
    """A best-first tree on raw values without missing ones; leaves have outputs and rows."""

    def __init__(self, X, g, h, *, num_leaves, min_rows, limits, context):
        self.X, self.g, self.h, self.min_rows, self.limits, self.context = X, g, h, min_rows, limits, context
        self.values = [np.unique(column) for column in X.T]
        every = range(X.shape[1])
        self.nodes = [{"rows": np.arange(len(X)), "depth": 0, "path": set(), "bounds": (-math.inf, math.inf)}]
        self.features = list(every)
        self._search(0)
        while sum("children" not in node for node in self.nodes) < num_leaves:
            open_leaves = [
                i for i, n in enumerate(self.nodes) if "children" not in n and n["split"] is not None
            ]
            if not open_leaves:
                break
            best = max(self.nodes[i]["split"][0] for i in open_leaves)
            at = next(i for i in open_leaves if self.nodes[i]["split"][0] >= best * (1 - NEAR))
            self._divide(at)

    def _divide(self, at):
        node = self.nodes[at]
        _, f, value = node["split"]
        left = self.X[node["rows"], f] <= value
        parts = node["rows"][left], node["rows"][~left]
        low, high = node["bounds"]
        outputs = [min(max(self._output(rows), low), high) for rows in parts]
        middle, order = sum(outputs) / 2, self._order(f)
        node["children"] = (f, value, len(self.nodes))
        for side, rows in enumerate(parts):
            bounds = (low, high)
            if order:
                bounds = (low, min(high, middle)) if (side == 0) == (order > 0) else (max(low, middle), high)
            self.nodes.append(
                {"rows": rows, "depth": node["depth"] + 1, "path": node["path"] | {f}, "bounds": bounds}
            )
        for child in (len(self.nodes) - 2, len(self.nodes) - 1):
            self._search(child)

    def _order(self, f):
        return 0 if self.limits.monotone is None else int(self.limits.monotone[f])

    def _output(self, rows):
        return _t(self.g[rows].sum(), self.limits.l1) / (self.h[rows].sum() + self.limits.l2)

    def _allowed(self, at):
        allowed = self.features
        if self.limits.interaction is not None:
            sets = [set(np.flatnonzero(row)) for row in self.limits.interaction]
            live = [s for s in sets if self.nodes[at]["path"] <= s]
            allowed = [f for f in allowed if any(f in s for s in live)]
        if self.limits.colsample_node < 1:
            wanted = max(1, round(self.limits.colsample_node * len(self.features)))
            drawn = lots(np.arange(self.X.shape[1], dtype=np.uint64), *self.context, 5, at).tolist()
            allowed = sorted(sorted(allowed, key=lambda f: drawn[f])[:wanted])
        return allowed

    def _search(self, at):
        node, limits = self.nodes[at], self.limits
        node["split"] = None
        rows, (low, high) = node["rows"], node["bounds"]
        if limits.max_depth is not None and node["depth"] >= limits.max_depth:
            return
        total, mass = self.g[rows].sum(), self.h[rows].sum()
        own = _t(total, limits.l1) ** 2 / (mass + limits.l2)
        best = 0.0
        for f in self._allowed(at):
            gains = self._gains(at, f, rows, low, high)
            weight = 1.0 if limits.feature_weights is None else limits.feature_weights[f]
            gains = {c: (gain - own) * weight for c, gain in gains.items() if gain > own + limits.min_gain}
            gains = {c: gain for c, gain in gains.items() if gain > 1e-9 * max(1.0, own)}
            if not gains:
                continue
            most = max(gains.values())
            cut = min(c for c, gain in gains.items() if gain >= most * (1 - NEAR))
            if gains[cut] > best * (1 + NEAR):
                best = gains[cut]
                node["split"] = (gains[cut], f, self.values[f][cut])

    def _gains(self, at, f, rows, low, high):
        limits, bins = self.limits, np.searchsorted(self.values[f], self.X[rows, f])
        cuts = range(len(self.values[f]) - 1)
        if limits.extra_trees:
            if bins.min() == bins.max():
                return {}
            drawn = int(lots(np.array([f], dtype=np.uint64), *self.context, 6, at)[0])
            cuts = [int(bins.min()) + drawn % int(bins.max() - bins.min())]
        found = {}
        for cut in cuts:
            parts = rows[bins <= cut], rows[bins > cut]
            masses = [self.h[part].sum() for part in parts]
            if min(map(len, parts)) < self.min_rows or min(masses) <= 0:
                continue
            if min(masses) < limits.min_sum_hessian:
                continue
            outputs = [min(max(self._output(part), low), high) for part in parts]
            if self._order(f) * (outputs[1] - outputs[0]) < 0:
                continue
            found[cut] = sum(
                2 * _t(self.g[part].sum(), limits.l1) * o - (m + limits.l2) * o * o
                for part, m, o in zip(parts, masses, outputs, strict=True)
            )
        return found

    def leaves(self):
        """(rows, output within its bounds) of every leaf."""
        for node in self.nodes:
            if "children" not in node:
                yield node["rows"], min(max(self._output(node["rows"]), node["bounds"][0]), node["bounds"][1])


def regression(X, target, rounds, *, num_leaves, min_rows, rate, limits, seed=0):
    """Scores of least squares from 0 under limits."""
    scores, h = np.zeros(len(X)), np.ones(len(X))
    for number in range(1, rounds + 1):
        tree = Grown(
            X, target - scores, h, num_leaves=num_leaves, min_rows=min_rows, limits=limits,
            context=(seed, number, 1),
        )  # fmt: skip
        for rows, output in tree.leaves():
            scores[rows] += rate * output
    return scores
