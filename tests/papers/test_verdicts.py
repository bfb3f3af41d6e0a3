"""Verdicts need tests: what is ahead by chance, or in one of many tries, confirms nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mcrank.papers import generators
from mcrank.papers.protocols import NET
from mcrank.papers.run import Run
from mcrank.papers.table1_claims import RANKNET, Line, _order_claims


def test_orders_of_generators_are_corrected_for_their_number():
    """Twenty generators without a difference and one whose p is 0.03: nobody is significantly ahead."""
    stream = np.random.default_rng(0)
    n = 400
    noise = stream.normal(size=n)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    lucky = {"classification": noise + 1.9 / np.sqrt(n), "regression": np.zeros(n)}  # t = 1.9
    even = {"classification": noise, "regression": np.zeros(n)}
    found = [generators.Outcome("web", "equal", lucky), *[generators.Outcome("web", "cubic", even)] * 19]
    assert generators._sides(found[0])[0] == pytest.approx(0.029, abs=0.001)
    claim = generators._order(found)
    assert claim.verdict == "undecided"
    assert "ahead under 0 of 20 generators, behind under 0" in claim.evidence
    assert generators._order(found[:1]).verdict == "confirmed"


def test_over_fitting_and_instability_need_a_test():
    """A mean that is higher by chance confirms nothing."""
    run = Run(Path("unused"), False, 1, None, None, rounds=8)
    noise = np.random.default_rng(1).normal(0.5, 0.1, 30)
    names = ("ordinal", "classification", "regression")
    others = ("regression, 40 rounds", "regression, least absolute deviation", NET, RANKNET)
    first = {name + half: noise for name in names for half in ("", ", 4 rounds")}
    lines = {**first, **dict.fromkeys(others, noise)}
    lines = {name: Line(name, 8, 8, values) for name, values in lines.items()}

    def verdict(after):
        told = {name: replace(lines[name], values=after) for name in (*names, "regression, 40 rounds")}
        told["regression, 40 rounds"] = replace(lines["regression"], values=after + 0.1)
        found = _order_claims({**lines, **told}, {}, run)
        return next(claim.verdict for claim in found if "over-fitting" in claim.claim)

    jitter = np.where(np.arange(30) % 2, 0.05, -0.05)
    assert verdict(noise + 0.1 + jitter) == "confirmed"
    assert verdict(noise + 0.001 + jitter) == "undecided"
    assert verdict(noise - 0.1 + jitter) == "refuted"
