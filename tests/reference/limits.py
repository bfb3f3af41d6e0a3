"""Naive twin of a tree grown under limits: one cut at a time, in floats, over distinct values.

Different rows may gain the same on paper (57 rows of grade sum 60 of 150 and 237, or 93 of 114: 21675/1178
both). Which of them is larger is a matter of rounding, so the twin goes every way there is.
"""

from __future__ import annotations

import math

import numpy as np

from mcrank.boosting.sampling import lots

NEAR = 1e-6  # gains this near, relatively, are equal: of cuts that part the rows alike the first wins


def _t(s, l1):
    return math.copysign(max(abs(s) - l1, 0.0), s)


def ways(run):
    """Every result of ``run(choose)``, where ``choose`` takes one of its candidates."""
    script = []
    while True:
        sizes = []

        def choose(candidates, sizes=sizes):
            sizes.append(len(candidates))
            if len(sizes) > len(script):
                script.append(0)
            return candidates[script[len(sizes) - 1]]

        yield run(choose)
        while script and script[-1] + 1 == sizes[len(script) - 1]:
            script.pop()
        if not script:
            return
        script[-1] += 1


class Grown:
    """A best-first tree on raw values without missing ones; leaves have outputs and rows."""

    def __init__(self, X, g, h, *, num_leaves, min_rows, limits, context, choose):
        self.X, self.g, self.h, self.min_rows, self.limits, self.context = X, g, h, min_rows, limits, context
        self.choose = choose
        self.values = [np.unique(column) for column in X.T]
        every = range(X.shape[1])
        self.nodes = [{"rows": np.arange(len(X)), "depth": 0, "path": set(), "bounds": (-math.inf, math.inf)}]
        self.features = list(every)
        self._search(0)
        while sum("children" not in node for node in self.nodes) < num_leaves:
            gains = {i: n["gain"] for i, n in enumerate(self.nodes) if "children" not in n and n["splits"]}
            if not gains:
                break
            least = max(gains.values()) * (1 - NEAR)
            self._divide(choose([i for i, gain in gains.items() if gain >= least]))

    def _divide(self, at):
        node = self.nodes[at]
        f, value = self.choose(node["splits"])
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
        node["splits"] = []
        rows, (low, high) = node["rows"], node["bounds"]
        if limits.max_depth is not None and node["depth"] >= limits.max_depth:
            return
        total, mass = self.g[rows].sum(), self.h[rows].sum()
        own = _t(total, limits.l1) ** 2 / (mass + limits.l2)
        found = {}
        for f in self._allowed(at):
            weight = 1.0 if limits.feature_weights is None else limits.feature_weights[f]
            for cut, gain in self._gains(at, f, rows, low, high).items():
                worth = (gain - own) * weight
                if gain > own + limits.min_gain and worth > 1e-11 * max(1.0, own):
                    found[f, self.values[f][cut]] = worth
        node["gain"] = max(found.values(), default=0.0)
        equal = {}
        for (f, value), worth in found.items():
            if worth >= node["gain"] * (1 - NEAR):
                equal.setdefault((self.X[rows, f] <= value).tobytes(), (f, value))
        node["splits"] = list(equal.values())

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


def regressions(X, target, rounds, *, num_leaves, min_rows, rate, limits, seed=0):
    """Scores of least squares from 0 under limits: those of every way through equal gains."""

    def run(choose):
        scores, h = np.zeros(len(X)), np.ones(len(X))
        for number in range(1, rounds + 1):
            tree = Grown(
                X, target - scores, h, num_leaves=num_leaves, min_rows=min_rows, limits=limits,
                context=(seed, number, 1), choose=choose,
            )  # fmt: skip
            for rows, output in tree.leaves():
                scores[rows] += rate * output
        return scores

    return ways(run)
