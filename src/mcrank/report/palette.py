"""The colours of systems, in their order: one list for the page, light and dark, for files and for paper."""

from __future__ import annotations

LIGHT = ("#0072b2", "#c85200", "#00835f", "#a23b7e", "#94700a", "#5a6068", "#2a8fc4", "#7a4420")
DARK = ("#58b0ea", "#f58a4b", "#41c79c", "#e08cc0", "#dcb347", "#b3bac1", "#9ad4f5", "#cf9a72")


def in_style(style: str) -> str:
    """Put the colours into a style sheet, where it has ``/* light */`` and ``/* dark */``.

    Examples
    --------
    >>> from mcrank.report.palette import in_style
    >>> in_style(":root { /* light */ }")[:29]
    ':root { --c0: #0072b2; --c1: '
    """
    for name, colours in (("light", LIGHT), ("dark", DARK)):
        said = " ".join(f"--c{number}: {colour};" for number, colour in enumerate(colours))
        style = style.replace(f"/* {name} */", said)
    return style
