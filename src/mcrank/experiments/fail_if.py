"""Conditions under which a comparison counts as failed, for continuous integration.

``ndcg@10 < -0.002``: the mean of some system, minus that of the baseline, is below -0.002. With the word
``significantly`` behind it the difference must also be significant: p of the paired t test against the
baseline, corrected by Holm's rule over the tests of all other systems against it, below 0.05.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcrank.errors import OptionError
from mcrank.metrics.measure import parse_measure

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison

ALPHA = 0.05
_GRAMMAR = re.compile(
    r"(?P<measure>[^<>=]+(?:\[[^\]]*\])?)\s*(?P<sign><|>)\s*(?P<bound>\S+)(?P<how>\s+\S+)?\s*"
)


@dataclass(frozen=True)
class FailIf:
    """One condition on the difference of a system to the baseline.

    Examples
    --------
    >>> from mcrank.experiments.fail_if import FailIf
    >>> FailIf.parse("ndcg@10[yahoo] < -0.002 significantly")
    FailIf(measure='ndcg@10[yahoo]', below=True, bound=-0.002, significantly=True)
    """

    measure: str
    below: bool
    bound: float
    significantly: bool = False

    @staticmethod
    def parse(text: str) -> FailIf:
        """Read ``MEASURE < NUMBER`` or ``MEASURE > NUMBER``, ``significantly`` behind it or not."""
        found = _GRAMMAR.fullmatch(text.strip())
        how = None if found is None or found["how"] is None else found["how"].strip()
        try:
            bound = math.nan if found is None else float(found["bound"])
        except ValueError:
            bound = math.nan
        if found is None or not math.isfinite(bound) or how not in (None, "significantly"):
            raise OptionError(
                f"fail-if must look like 'ndcg@10 < -0.002' or 'ndcg@10 < 0 significantly', got {text!r}."
            )
        measure = parse_measure(found["measure"].strip()).name
        return FailIf(measure, found["sign"] == "<", bound, how is not None)

    def failures(self, comparison: Comparison, baseline: str | None = None) -> list[str]:
        """Return a line for each system that meets the condition; the baseline is the first unless named."""
        against = comparison.keys[0] if baseline is None else comparison.keys[comparison.place(baseline)]
        from mcrank.experiments.leaderboard import mean_difference

        found = []
        for line in comparison.leaderboard(self.measure, baseline=against):
            if line.system == against:
                continue
            base = float(comparison.mean(self.measure)[comparison.place(against)])
            difference = mean_difference(line.mean, base)
            p = 1.0 if line.corrected_p is None else line.corrected_p
            much = " significantly" if self.significantly else ""
            over = f"{line.tests} {'test' if line.tests == 1 else 'tests'}"
            beyond = difference < self.bound if self.below else difference > self.bound
            if beyond and (not self.significantly or p < ALPHA):
                found.append(
                    f"{self.measure} of {line.system} is {line.mean:.4f}, {difference:+.4f} from {against} "
                    f"({base:.4f}, corrected p = {p:.2g} over {over}); the bound is "
                    f"{'<' if self.below else '>'} {self.bound:g}{much}."
                )
        return found
