"""Tests of systems against systems: known p-values, brute force, and alignment by query id."""

from __future__ import annotations

import itertools
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank import stats
from mcrank.errors import DataError, OptionError

A = {1: 0.9, 2: 0.5, 3: 0.7, 4: 0.4, 5: 0.8, 6: 0.65}
B = {6: 0.6, 5: 0.75, 4: 0.5, 3: 0.5, 2: 0.4, 1: 0.6}  # the same queries, another order


@pytest.mark.parametrize(
    ("ours", "other", "queries", "printed"),
    [
        ((72.4, 24.1), (71.7, 24.4), 10_000, "0.021"),
        ((72.4, 24.1), (71.2, 24.5), 10_000, "0.0002"),
        ((75.8, 23.8), (74.7, 24.4), 3_800, "0.023"),
        ((75.8, 23.8), (74.3, 24.3), 3_800, "0.003"),
        ((72.5, 26.5), (72.0, 27.6), 26_000, "0.017"),
        ((72.5, 26.5), (71.3, 28.8), 26_000, "3.8e-07"),
    ],
)
def test_table_1_of_the_paper_was_unpaired(ours, other, queries, printed):
    p = stats.unpaired_t_from_summary(*ours, queries, *other, queries, "greater").p
    # The paper cuts or rounds: one unit of its last digit.
    digits = printed.partition("e")[0].partition(".")[2]
    unit = 10.0 ** -len(digits) * 10.0 ** int(printed.partition("e")[2] or 0)
    assert abs(p - float(printed)) <= unit


def test_paired_t_is_the_textbook_formula():
    d = np.array([A[q] - B[q] for q in A])
    t = d.mean() / (d.std(ddof=1) / np.sqrt(len(d)))
    test = stats.paired_t(A, B)
    assert test.statistic == pytest.approx(t)
    assert test.difference == pytest.approx(d.mean())
    assert test.effect == pytest.approx(d.mean() / d.std(ddof=1))
    assert test.queries == 6
    assert stats.paired_t(A, B, "greater").p == pytest.approx(test.p / 2)
    assert stats.paired_t(A, B, "less").p == pytest.approx(1 - test.p / 2)
    assert stats.paired_t(B, A).statistic == pytest.approx(-t)


def test_queries_meet_by_id():
    queries, (_, b) = stats.align(A, B)
    assert queries == [1, 2, 3, 4, 5, 6]
    assert b.tolist() == [B[q] for q in queries]
    with pytest.raises(DataError, match=r"query 7 is known to one system and not to another.*common=True"):
        stats.paired_t(A, B | {7: 0.1})
    assert stats.paired_t(A, B | {7: 0.1}, common=True) == stats.paired_t(A, B)
    with pytest.raises(DataError, match=r"must map query ids to values.*by_query"):
        stats.paired_t([0.1, 0.2], [0.3, 0.4])


def test_queries_without_a_value_are_left_out_on_both_sides():
    assert stats.paired_t(A | {7: float("nan")}, B | {7: 0.9}) == stats.paired_t(A, B)
    with pytest.raises(DataError, match="at least 2 queries"):
        stats.paired_t({1: 0.1, 2: float("nan")}, {1: 0.1, 2: 0.2})


@pytest.mark.parametrize("test", [stats.paired_t, stats.wilcoxon, stats.randomization])
def test_no_difference_is_p_1(test):
    outcome = test(A, dict(A))
    assert (outcome.p, outcome.difference, outcome.effect) == (1.0, 0.0, 0.0)


def test_the_same_difference_everywhere():
    better = {q: v + 0.25 for q, v in {1: 0.5, 2: 0.25, 3: 0.0}.items()}
    base = {1: 0.5, 2: 0.25, 3: 0.0}
    assert stats.paired_t(better, base).p == 0.0
    assert stats.paired_t(better, base, "less").p == 1.0


@pytest.mark.parametrize("alternative", stats.ALTERNATIVES)
def test_randomization_nears_the_exact_p(alternative):
    d = np.array([A[q] - B[q] for q in A])
    means = np.array([np.dot(signs, d) / 6 for signs in itertools.product([-1, 1], repeat=6)])
    seen = {"two-sided": abs(means) >= abs(d.mean()) - 1e-12, "greater": means >= d.mean() - 1e-12,
            "less": means <= d.mean() + 1e-12}[alternative]  # fmt: skip
    p = stats.randomization(A, B, alternative, rounds=40_000).p
    assert p == pytest.approx(seen.mean(), abs=0.01)  # four standard errors of 40,000 draws
    assert p == stats.randomization(A, B, alternative, rounds=40_000).p


def test_tukey_of_two_systems_is_the_randomization_test():
    p = stats.tukey({"a": A, "b": B}, rounds=4000)["a", "b"]
    assert p == pytest.approx(stats.randomization(A, B, rounds=40_000).p, abs=0.03)


@pytest.mark.parametrize("alternative", stats.ALTERNATIVES)
def test_the_order_of_queries_and_systems_decides_no_p(alternative):
    rng = np.random.default_rng(3)
    systems = {name: dict(enumerate(rng.integers(0, 9, 25) / 8)) for name in "abc"}
    order = rng.permutation(25).tolist()
    moved = {name: {q: systems[name][q] for q in order} for name in "cab"}
    a, b = systems["a"], systems["b"]
    p = stats.randomization(a, b, alternative, rounds=999).p
    assert stats.randomization(moved["a"], moved["b"], alternative, rounds=999).p == p
    turned = {"two-sided": "two-sided", "greater": "less", "less": "greater"}[alternative]
    assert stats.randomization(b, a, turned, rounds=999).p == p
    pairs = stats.tukey(systems, rounds=999)
    again = {frozenset(pair): p for pair, p in stats.tukey(moved, rounds=999).items()}
    assert again == {frozenset(pair): p for pair, p in pairs.items()}


def test_tukey_of_many_is_no_smaller_than_of_two():
    rng = np.random.default_rng(1)
    systems = {name: dict(enumerate(rng.random(30))) for name in "abcde"}
    pairs = stats.tukey(systems, rounds=999)
    assert len(pairs) == 10
    for first, second in pairs:
        alone = stats.randomization(systems[first], systems[second], rounds=999).p
        assert pairs[first, second] >= alone - 0.06


def test_bootstrap_interval_covers_and_repeats():
    rng = np.random.default_rng(0)
    inside = 0
    for trial in range(60):
        sample = dict(enumerate(rng.normal(0.3, 1.0, 80)))
        interval = stats.bootstrap_interval(sample, rounds=400, seed=trial)
        inside += interval.low <= 0.3 <= interval.high
    assert inside >= 50  # 57 expected at 95%; fewer than 50 has a chance below 1 in 10,000
    assert stats.bootstrap_interval(A, B, seed=3, rounds=99) == stats.bootstrap_interval(
        A, B, seed=3, rounds=99
    )
    flat = stats.bootstrap_interval({1: 0.5, 2: 0.5})
    assert (flat.low, flat.mean, flat.high) == (0.5, 0.5, 0.5)


def test_the_order_of_queries_and_other_systems_have_no_say_in_an_interval():
    rng = np.random.default_rng(4)
    systems = {name: dict(enumerate(rng.random(70).tolist())) for name in "abc"}
    turned = {name: dict(reversed(values.items())) for name, values in systems.items()}
    for row, other in zip(stats.compare(systems), stats.compare(turned, baseline="a"), strict=True):
        assert row.interval == other.interval == stats.bootstrap_interval(systems[row.system])


def test_intervals_are_those_of_plain_resampling():
    values = np.random.default_rng(6).random(50) ** 3
    rng = np.random.default_rng(0)
    drawn = [rng.choice(values, 50).mean() for _ in range(4000)]
    interval = stats.bootstrap_interval(dict(enumerate(values)), rounds=4000)
    width = interval.high - interval.low
    assert [interval.low, interval.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=width / 15)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_bootstrap_interval_is_that_of_its_level(level):
    values = np.random.default_rng(1).random(400)
    interval = stats.bootstrap_interval(dict(enumerate(values)), level=level, rounds=4000)
    # The mean of 400 values is as good as normal: its interval is known.
    half = NormalDist().inv_cdf((1 + level) / 2) * values.std() / np.sqrt(len(values))
    assert interval.level == level
    assert (interval.high - interval.low) / 2 == pytest.approx(half, rel=0.05)
    assert (interval.high + interval.low) / 2 == pytest.approx(values.mean(), abs=half / 10)


@settings(max_examples=100, deadline=None)
@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=8), alpha=st.floats(0.001, 0.2))
def test_holm_rejects_what_its_rule_rejects(p, alpha):
    adjusted = stats.holm(p)
    ordered, m = sorted(p), len(p)
    kept = next((i for i, value in enumerate(ordered) if value * (m - i) > alpha), m)
    assert sum(value <= alpha for value in adjusted) == kept
    assert all(a >= value for a, value in zip(adjusted, p, strict=True))


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_order_of_queries_never_matters(data):
    values = data.draw(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=12))
    a, b = ({q: pair[side] for q, pair in enumerate(values)} for side in (0, 1))
    shuffled = {q: b[q] for q in data.draw(st.permutations(list(b)))}
    assert stats.paired_t(a, b) == stats.paired_t(a, shuffled)
    assert stats.effect_size(a, b) == stats.effect_size(a, shuffled)


def test_wilcoxon_counts_ranks_of_differences():
    # Differences of ranks 1 to 6, the second smallest negative: W = 2, and P(W <= 2) = 3 / 2^6 one-sided.
    a = dict.fromkeys(range(6), 0.0)
    b = {0: -0.1, 1: 0.2, 2: -0.3, 3: -0.4, 4: -0.5, 5: -0.6}
    assert stats.wilcoxon(a, b, "greater").p == pytest.approx(3 / 64)
    assert stats.wilcoxon(a, b).p == pytest.approx(6 / 64)


def test_compare_makes_a_table():
    rows = stats.compare({"a": A, "b": B, "c": dict(A)}, rounds=200)
    assert [row.system for row in rows] == ["a", "b", "c"]
    assert rows[0].p is None
    assert (rows[1].wins, rows[1].ties, rows[1].losses) == (1, 0, 5)
    assert (rows[2].wins, rows[2].ties, rows[2].losses) == (0, 6, 0)
    assert rows[1].p == stats.paired_t(B, A).p
    assert [rows[1].corrected_p, rows[2].corrected_p] == stats.holm([rows[1].p, rows[2].p])
    assert stats.compare({"a": A, "b": B}, baseline="b", rounds=50)[0].wins == 5
    for test in ("randomization", "wilcoxon"):
        assert stats.compare({"a": A, "b": B}, test=test, rounds=50)[1].p is not None


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: stats.paired_t(A, B, "better"), OptionError, "alternative must be"),
        (lambda: stats.randomization(A, B, rounds=0), OptionError, "rounds must be"),
        (lambda: stats.bootstrap_interval(A, level=95), OptionError, "level must be"),
        (lambda: stats.holm([0.1, 1.2]), DataError, "from 0 to 1"),
        (lambda: stats.tukey({"a": A}), DataError, "at least 2 systems"),
        (lambda: stats.compare({"a": A}), DataError, "at least 2 systems"),
        (lambda: stats.compare({"a": A, "b": B}, baseline="c"), OptionError, "not among the systems"),
        (lambda: stats.compare({"a": A, "b": B}, test="z"), OptionError, "test must be"),
        (lambda: stats.unpaired_t({1: 0.5}, B), DataError, "at least 2 queries"),
        (lambda: stats.bootstrap_interval(A, level="95"), OptionError, "level must be a number > 0"),
        (lambda: stats.compare([A, B]), DataError, "systems of compare must map the name of each"),
        (lambda: stats.tukey([A, B]), DataError, "systems of tukey must map the name of each"),
        (lambda: stats.smallest_difference([1, 2], [1, 2], power="x"), OptionError, "power must be"),
        (lambda: stats.smallest_difference([1, 2], [1, 2, 3]), DataError, "got shapes"),
        (
            lambda: stats.smallest_difference([1, 2], [1, float("nan")]),
            DataError,
            "2.0 and nan at position 1",
        ),
        (lambda: stats.unpaired_t(A, {1: 0.5, "x": float("inf")}), DataError, "query 'x' in system 1 is inf"),
        (lambda: stats.unpaired_t(A, [0.1, 0.2]), DataError, "system 1 must map query ids to values"),
        (lambda: stats.paired_t({1: "good", 2: 1}, {1: 0, 2: 1}), DataError, "query 1 in system 0 is 'good'"),
        (lambda: stats.paired_t({1: 0, 2: 1}, {1: None, 2: [1]}), DataError, r"query 2 in system 1 is \[1\]"),
        (lambda: stats.paired_t({1: 0, 2: 1}, {1: 0, 2: 10**400}), DataError, "query 2 in system 1 is 1000"),
        (
            lambda: stats.unpaired_t_from_summary(float("nan"), 1.0, 9, 0.5, 1.0, 9),
            DataError,
            "needs finite means",
        ),
    ],
)
def test_bad_questions(call, error, message):
    with pytest.raises(error, match=message):
        call()
