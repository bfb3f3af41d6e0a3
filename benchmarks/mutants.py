"""Whether the tests notice a wrong line: thirty lines of kernels and statistics, broken one at a time.

    python benchmarks/mutants.py                  # all of them, on the tests named beside each
    python benchmarks/mutants.py split centre     # those with such words in their names

Each mutant is a copy of ``src`` with one line changed: a comparison, a sign, a side, a term, an off-by-one.
The tests named for it must fail on it, after they passed on ``src`` as it is. A change that no input can tell
from the original would say nothing, so there is none here. Exits with 1 when more than `SPARED` mutants
survive. Kernels of mutants are kept in a folder that is thrown away.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parents[1]
SPARED = 1  # mutants that may survive
TIMEOUT = 600  # seconds; a test that does not come back has noticed something


class Mutant(NamedTuple):
    """One changed line: what it is about, its file, the text before and after, the tests to notice it."""

    name: str
    path: str
    old: str
    new: str
    tests: str


MUTANTS = [
    Mutant(
        "histogram: the second of two features, one counter off",
        "boosting/histogram.py",
        "hist[uint64(256) + uint64(b[row])] += pack",
        "hist[uint64(255) + uint64(b[row])] += pack",
        "boosting/test_histogram.py::test_root_histograms_of_any_number_of_features",
    ),
    Mutant(
        "histogram: the larger child without the subtraction of the smaller",
        "boosting/histogram.py",
        "larger[i] -= hist[i]",
        "larger[i] -= 0",
        "boosting/test_grow.py::test_trees_equal_the_naive_best_first_tree",
    ),
    Mutant(
        "split: one row more than min_samples_leaf",
        "boosting/split.py",
        "(rows <= most_rows) & (left > 0) & (right > 0)\n        left = left",
        "(rows < most_rows) & (left > 0) & (right > 0)\n        left = left",
        "boosting/test_split.py::test_split_equals_trying_every_cut",
    ),
    Mutant(
        "split: of equal gains the last feature",
        "boosting/split.py",
        "if found > best:",
        "if found >= best:",
        "boosting/test_split.py::test_ties_go_to_the_lowest_feature_then_the_lowest_bin",
    ),
    Mutant(
        "categories: sets from one end of the order only",
        "boosting/categories.py",
        "for end in range(1 if few else 2):",
        "for end in range(1):",
        "boosting/test_categories.py::test_every_split_is_the_naive_twins",
    ),
    Mutant(
        "categories: one code more than a set has",
        "scorers/forest/block_kernels.py",
        "return (word >> (code & np.uint64(63))) & np.uint64(1) == np.uint64(1)",
        "return (word >> ((code + np.uint64(1)) & np.uint64(63))) & np.uint64(1) == np.uint64(1)",
        "rankers/test_categorical.py::test_training_in_two_parts_is_one_training",
    ),
    Mutant(
        "limits: gains under l2 without l2 on the right",
        "boosting/limits.py",
        "left, right = left + limits.l2, right + limits.l2",
        "left, right = left + limits.l2, right",
        "rankers/test_limits.py::test_xgboost_grows_the_same_trees",
    ),
    Mutant(
        "limits: children of a monotone split bounded the other way round",
        "boosting/limits.py",
        "lower = first if order > 0 else first + 1",
        "lower = first if order < 0 else first + 1",
        "rankers/test_limits.py::test_no_prediction_moves_the_wrong_way",
    ),
    Mutant(
        "goss: rows drawn stand for one too few",
        "boosting/one_sided.py",
        "return chosen | few, few, (n - top) / others",
        "return chosen | few, few, (n - top - 1) / others",
        "rankers/test_goss.py::test_rows_are_those_of_the_naive_rule",
    ),
    Mutant(
        "dart: dropped trees come back as they were",
        "boosting/dart.py",
        "values[t] = before[t] * (k / (k + 1))",
        "values[t] = before[t] * 1.0",
        "rankers/test_dart.py::test_the_naive_twin",
    ),
    Mutant(
        "split: missing values never seen, sides of equal size",
        "boosting/split.py",
        "np.int32(2 * seen >= count)",
        "np.int32(2 * seen > count)",
        "boosting/test_split.py::test_missing_values_never_seen_go_left_where_sides_are_equal",
    ),
    Mutant(
        "split: the centre cut, a value exactly in the middle",
        "boosting/split.py",
        "np.float64(binned.highest[at + node.bin + 1]) <= middle",
        "np.float64(binned.highest[at + node.bin + 1]) < middle",
        "boosting/test_split.py::test_a_value_in_the_very_middle_of_the_gap_goes_left",
    ),
    Mutant(
        "split: the bin of the cut itself, of more than 256",
        "boosting/split.py",
        "table[b] = b <= node.bin",
        "table[b] = b < node.bin",
        "boosting/test_partition.py::test_wide_partitions",
    ),
    Mutant(
        "leaves: curvature without 1 - |g|",
        "boosting/leaves.py",
        "return q, (abs(q) * (one - abs(q))) >> drop",
        "return q, (abs(q) * one) >> drop",
        "boosting/test_leaves.py::test_newton_leaves",
    ),
    Mutant(
        "leaves: a value equal to the threshold",
        "boosting/leaves.py",
        "goes_left = x <= tree.threshold[node]",
        "goes_left = x < tree.threshold[node]",
        "boosting/test_leaves.py::test_a_value_equal_to_the_threshold_goes_left",
    ),
    Mutant(
        "packing: a gradient that rounds to more than 1",
        "boosting/packing.py",
        "max(int32(one - size), int32(0))",
        "int32(one - size)",
        "boosting/test_packing.py::test_derived_packs_equal_the_twin",
    ),
    Mutant(
        "packing: the gradient of a triple, one bit too low",
        "boosting/packing.py",
        "r_at = int64(2 * packing.chunk_bits + packing.bits - 2)\n    return",
        "r_at = int64(2 * packing.chunk_bits + packing.bits - 3)\n    return",
        "boosting/test_histogram.py::test_triples_are_spread_before_they_overflow",
    ),
    Mutant(
        "binning: the closed end of a bin",
        "boosting/cuts.py",
        "if values[middle] <= end:",
        "if values[middle] < end:",
        "boosting/test_binning.py::test_every_end_of_a_bin_is_a_value",
    ),
    Mutant(
        "binning: a quantile bin as far above its share as below",
        "boosting/cuts.py",
        "filled + counts[i] - share > share - filled",
        "filled + counts[i] - share >= share - filled",
        "boosting/test_binning.py::test_quantile_bins_where_too_many_and_too_few_are_equally_far",
    ),
    Mutant(
        "binning: a value on an edge belongs to the bin above",
        "kernels/vectors.py",
        'builder.fcmp_ordered("<", part, spread)',
        'builder.fcmp_ordered("<=", part, spread)',
        "boosting/test_binning.py::test_a_value_is_found_among_any_number_of_edges",
    ),
    Mutant(
        "routing: the last bin that goes left goes right",
        "boosting/routing.py",
        "goes_left = place <= cuts[node]",
        "goes_left = place < cuts[node]",
        "boosting/test_store.py::test_the_model_is_that_of_memory",
    ),
    Mutant(
        "bins: a bin too many is let through",
        "boosting/store.py",
        "bad += columns[f, i] >= most",
        "bad += columns[f, i] > most",
        "boosting/test_store.py::test_a_forged_file_is_refused",
    ),
    Mutant(
        "passes: the histograms of the first part alone",
        "boosting/disk.py",
        "total += hists",
        "total += 0 * hists",
        "boosting/test_store.py::test_the_model_is_that_of_memory",
    ),
    Mutant(
        "routing: missing values that go right go left",
        "boosting/routing.py",
        "goes = (column[i] > last) | (column[i] == 0)",
        "goes = column[i] > last",
        "boosting/test_routing.py::test_rows_fall_into_the_leaves_of_a_walk",
    ),
    Mutant(
        "sums: without the lower half of each term",
        "sums.py",
        "lower = np.rint(np.ldexp(scaled - upper, bits))",
        "lower = np.rint(np.ldexp(upper - upper, bits))",
        "test_sums.py::test_what_is_left_when_large_terms_cancel",
    ),
    Mutant(
        "quantize: halves up instead of to even",
        "losses/quantize.py",
        "q[i] = np.int32(np.rint(g[i] / unit))",
        "q[i] = np.int32(np.floor(g[i] / unit + 0.5))",
        "losses/test_quantize.py",
    ),
    Mutant(
        "lambdas: equal scores at the cut in the wrong order",
        "losses/pairs.py",
        "if value <= key[depth - 1]:",
        "if value < key[depth - 1]:",
        "losses/test_lambdas.py::test_lambdas_equal_explicit_pairs",
    ),
    Mutant(
        "lambdas: rows that fill up a vector stand below everyone",
        "losses/discounted.py",
        "discount[i] = np.inf",
        "discount[i] = -1.0",
        "losses/test_lambdas.py::test_sums_over_ranks_equal_explicit_pairs_to_the_last_digits",
    ),
    Mutant(
        "pairwise: better and worse exchanged",
        "losses/pairs.py",
        "worse = power[j] if own_worth > worth[j] else own_power",
        "worse = own_power if own_worth > worth[j] else power[j]",
        "losses/test_pairwise.py::test_slopes_are_derivatives_of_the_loss",
    ),
    Mutant(
        "hinge: the line beyond the curve starts too high",
        "training/hinge.py",
        "cost += slope * (far - 0.5 * width * far_off[0, i])",
        "cost += slope * (far - 0.25 * width * far_off[0, i])",
        "rankers/test_ranksvm.py::test_gradient_and_curvature_are_derivatives "
        "rankers/test_ranksvm.py::test_sums_without_pairs_are_those_of_pairs",
    ),
    Mutant(
        "line search: a row that never meets counted as its own rival",
        "training/line_search.py",
        "rank += gap < 0.0 or (gap == 0.0 and j < i)",
        "rank += gap < 0.0 or (gap == 0.0 and j <= i)",
        "rankers/test_coordinate_ascent.py::test_the_exact_search_finds_what_brute_force_finds",
    ),
    Mutant(
        "nets: the sides of the sigmoid exchanged",
        "scorers/net.py",
        "flat[i] = (1.0 if x >= 0.0 else e) / (1.0 + e)",
        "flat[i] = (e if x >= 0.0 else 1.0) / (1.0 + e)",
        "rankers/test_nets.py::test_scores_are_those_of_matrices",
    ),
    Mutant(
        "kendall: rows of equal grade as agreeing",
        "metrics/kendall.py",
        "agreement += (a - lower - held[level]) - lower",
        "agreement += (a - lower) - lower",
        "metrics/test_measures.py::test_kendall_is_scipys",
    ),
    Mutant(
        "dcg: the share of a tied group of one more",
        "metrics/dcg.py",
        "total += group_gain / (b - a) * weight",
        "total += group_gain / (b - a + 1) * weight",
        "metrics/test_measures.py::test_tie_rules_are_brute_force",
    ),
    Mutant(
        "precision: one relevant row too many before a tied one",
        "metrics/precision.py",
        "(hits + 1.0 + (r - a) * before)",
        "(hits + 1.0 + (r - a + 1) * before)",
        "metrics/test_measures.py::test_tie_rules_are_brute_force",
    ),
    Mutant(
        "cascade: the reader who goes on, one rank late",
        "metrics/cascade.py",
        "reading *= rest[level]",
        "reading *= rest[level] if r > 0 else 1.0",
        "metrics/test_measures.py::test_value_is_the_formula",
    ),
    Mutant(
        "ties: a cut that nothing crosses",
        "metrics/ranking.py",
        "tied_at_cut[q] = reaching > deep",
        "tied_at_cut[q] = reaching >= deep",
        "metrics/test_ranking.py::test_ties_are_found_within_the_cut_and_across_it",
    ),
    Mutant(
        "sorting: equal scores exchanged",
        "kernels/sort.py",
        "(i >= mid or right > left)",
        "(i >= mid or right >= left)",
        "metrics/test_ranking.py::test_rank_is_a_stable_sort",
    ),
    Mutant(
        "wilcoxon: differences that rounding tells apart",
        "stats/paired.py",
        "    ranked = without_rounding(x, y)",
        "    ranked = x - y",
        "test_stats_rounding.py",
    ),
    Mutant(
        "t test: one-sided the wrong way round",
        "stats/paired.py",
        "outcome = ttest_1samp(found, 0.0, alternative=kind)",
        "outcome = ttest_1samp(-found, 0.0, alternative=kind)",
        "test_stats.py::test_paired_t_is_the_textbook_formula",
    ),
    Mutant(
        "bootstrap: another interval than asked for",
        "stats/two.py",
        "np.quantile(means, [(1.0 - level) / 2, (1.0 + level) / 2], axis=1)",
        "np.quantile(means, [1.0 - level, level] if level > 0.5 else [0.25, 0.75], axis=1)",
        "test_stats.py::test_bootstrap_interval_is_that_of_its_level",
    ),
    Mutant(
        "holm: one comparison too few",
        "stats/many.py",
        "np.arange(len(p), 0, -1)",
        "np.maximum(np.arange(len(p) - 1, -1, -1), 1)",
        "test_stats.py::test_holm_rejects_what_its_rule_rejects",
    ),
    Mutant(
        "contributions: a row that fails a test counts as if it had failed before",
        "explain/tree_kernels.py",
        "factors[at + 1] = s * cover / (t + s * old)",
        "factors[at + 1] = cover / old",
        "explain/test_forest.py::test_equal_to_all_subsets",
    ),
    Mutant(
        "contributions: a feature tested again is not taken back",
        "explain/tree_kernels.py",
        "factors[at + 3] = (1.0 - cover) / (t + s * cover) - base",
        "factors[at + 3] = (1.0 - cover) / (t + s * cover)",
        "explain/test_forest.py::test_equal_to_all_subsets",
    ),
    Mutant(
        "contributions: one point of the quadrature too few",
        "explain/pieces.py",
        "out.points[piece] = (longest + 1) // 2",
        "out.points[piece] = max(1, longest // 2)",
        "explain/test_forest.py::test_equal_to_all_subsets",
    ),
    Mutant(
        "pairs: the weight of a set of the wrong size",
        "explain/between.py",
        "sums[f] -= trees.value[n] * weights[p, q - 1]",
        "sums[f] -= trees.value[n] * weights[p, q]",
        "explain/test_pair.py::test_between_two_rows_equal_to_all_subsets",
    ),
    Mutant(
        "changes: a value on the threshold taken for one above it",
        "explain/profile.py",
        "ranges.low[held], ranges.high[held] = steps.rank[m] + 1, high",
        "ranges.low[held], ranges.high[held] = steps.rank[m], high",
        "explain/test_pair.py::test_profiles_are_the_outputs_in_every_interval",
    ),
]


def mutated(mutant: Mutant, text: str) -> str:
    """Return the text of a mutant's file with its line changed."""
    if text.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.name}: {mutant.old!r} is {text.count(mutant.old)} times in {mutant.path}")
    return text.replace(mutant.old, mutant.new)


def named_tests(mutant: Mutant) -> list[str]:
    """Return the tests of a mutant as pytest takes them."""
    return [f"tests/{test}" for test in mutant.tests.split()]


def run_tests(source: Path, cache: Path, tests: list[str]) -> tuple[int, str]:
    """Run tests on a copy of the source; return pytest's exit code and the end of what it said."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "PYTHONDONTWRITEBYTECODE": "1",
        "MCRANK_CACHE_DIR": str(cache),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(cache / "hypothesis"),
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, "--hypothesis-seed=0", *tests],
            cwd=TOP, env=environment, capture_output=True, text=True, timeout=TIMEOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1, f"no end after {TIMEOUT} s"
    return done.returncode, done.stdout[-2000:] + done.stderr[-500:]


def trial(mutant: Mutant, work: Path) -> tuple[Mutant, bool, float, str]:
    """Return whether the tests noticed a mutant, how long they took and what they said."""
    start = time.perf_counter()
    folder = Path(tempfile.mkdtemp(dir=work))
    shutil.copytree(TOP / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "src" / "mcrank" / mutant.path
    path.write_text(mutated(mutant, path.read_text()))
    code, said = run_tests(folder / "src", work / "cache", named_tests(mutant))
    shutil.rmtree(folder)
    # 2 to 5: interrupted, internal error, bad usage, no test; below 0 a crash, which nobody overlooks.
    if code in (2, 3, 4, 5):
        raise SystemExit(f"{mutant.name}: the tests did not run (pytest says {code}):\n{said}")
    return mutant, code != 0, time.perf_counter() - start, said


def main() -> int:
    """Try the mutants and say which survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="only mutants with one of these in their names")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    chosen = [m for m in MUTANTS if not given.words or any(word in m.name for word in given.words)]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        tests = sorted({test for mutant in chosen for test in named_tests(mutant)})
        code, said = run_tests(TOP / "src", work / "cache", tests)
        if code:
            print(f"The tests fail on the source as it is:\n{said}")
            return 1
        survived = []
        with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
            for mutant, caught, seconds, _ in pool.map(lambda m: trial(m, work), chosen):
                print(f"{'caught' if caught else 'SURVIVED':9}{seconds:6.1f} s  {mutant.name}", flush=True)
                if not caught:
                    survived.append(mutant)
    print(f"{len(chosen) - len(survived)} of {len(chosen)} caught")
    return int(len(survived) > SPARED)


if __name__ == "__main__":
    sys.exit(main())
