"""The settings of the McRank paper's four data sets (sections 6.1, 6.2), and what it printed of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcrank.errors import OptionError, did_you_mean

Printed = tuple[float, float]  # mean and standard deviation of NDCG@10 in per cent
NET = "LambdaRank, two layers"


@dataclass(frozen=True)
class Protocol:
    """Trees of ``leaves`` leaves (J), ``rounds`` rounds (M), shrinkage ``rate`` (nu), at most ``bins`` bins.

    Examples
    --------
    >>> from mcrank.papers.protocols import PROTOCOLS
    >>> web = PROTOCOLS["web-2"]
    >>> web.leaves, web.rounds, web.rate, web.unjudged
    (40, 2000, 0.02, 'zero')
    """

    name: str
    leaves: int
    rounds: int
    rate: float
    bins: int = 2**16
    unjudged: str = "error"  # Web-2: rows without a grade have grade 0
    printed: dict[str, Printed] = field(default_factory=dict)
    printed_p: dict[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The settings as a paper would print them."""
        return f"J = {self.leaves} leaves, shrinkage {self.rate:g}, at most {self.bins:,} bins"


def _printed(*lines: Printed | None) -> dict[str, Printed]:
    names = ("ordinal", "classification", "regression", NET)
    return {name: line for name, line in zip(names, lines, strict=True) if line is not None}


# Section 6.2. All results of the paper were made with 2^16 bins; on the artificial data 256 are used here, to
# save time: its Appendix II finds no difference, `reproduce figure3` one of 0.2 points after 100 rounds.
PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol("artificial", 10, 1000, 0.05, 256,
                 printed=_printed((85.0, 9.5), (83.7, 9.9), (82.9, 10.2), (74.9, 12.6)),
                 printed_p={"regression": "0", NET: "0"}),
        Protocol("web-1", 10, 1000, 0.05,
                 printed=_printed((72.4, 24.1), (72.2, 24.1), (71.7, 24.4), (71.2, 24.5)),
                 printed_p={"regression": "0.021", NET: "0.0002"}),
        Protocol("web-2", 40, 2000, 0.02, unjudged="zero",
                 printed=_printed(None, (75.8, 23.8), (74.7, 24.4), (74.3, 24.3)),
                 printed_p={"regression": "0.023", NET: "0.003"}),
        Protocol("web-3", 20, 1500, 0.02,
                 printed=_printed((72.5, 26.5), (72.4, 27.3), (72.0, 27.6), (71.3, 28.8)),
                 printed_p={"regression": "0.017", NET: "3.8e-07"}),
    )
}  # fmt: skip


def protocol_named(name: str) -> Protocol:
    """Return a protocol by its name, or say which there are."""
    if name not in PROTOCOLS:
        hint = did_you_mean(name, PROTOCOLS, "protocols:")
        raise OptionError(f"protocol of reproduce has no {name!r}; {hint}")
    return PROTOCOLS[name]
