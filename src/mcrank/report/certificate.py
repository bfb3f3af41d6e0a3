"""The page of a certificate: whether an export ranks as the model does, for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mcrank.report.environment import page_environment, render_page

if TYPE_CHECKING:
    from mcrank.export.certificate import Certificate


def render_certificate(certificate: Certificate) -> str:
    """Return one HTML file that needs nothing else and runs no script.

    Examples
    --------
    >>> import mcrank, tempfile
    >>> from mcrank.export.certificate import certify
    >>> from mcrank.export.registry import target_class
    >>> from mcrank.report.certificate import render_certificate
    >>> train, _, test = mcrank.make_artificial(n_train=20, n_valid=1, n_test=10, seed=1)
    >>> ranker = mcrank.LambdaMART(n_estimators=3).fit(train)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (path,) = ranker.export(folder + "/mcrank.profile", to="vespa")
    ...     found = certify(ranker.exportable(), target_class("vespa")(), path, test, n_hard=100)
    >>> page = render_certificate(found)
    >>> "The export holds" in page
    True
    """
    environment = page_environment()
    environment.filters["small"] = small
    parts = [("Your data", certificate.data), ("Hard rows", certificate.hard)]
    return render_page(
        environment.get_template("certificate.html"),
        found=certificate,
        parts=parts,
        verdict=_verdict(certificate),
        kind="float" if certificate.single else "double",
    )


def small(value: float | None) -> str:
    """A number that may be very small, in few digits.

    Examples
    --------
    >>> from mcrank.report.certificate import small
    >>> small(4.44e-16), small(0.0), small(0.25), small(float("inf"))
    ('4.4 × 10⁻¹⁶', '0', '0.25', 'no number')
    """
    if value is None or not math.isfinite(value):
        return "no number"
    if value == 0 or 0.001 <= abs(value) < 100_000:
        return f"{value:.3g}".replace("-", "−")
    digits, power = f"{value:.1e}".split("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits.replace('-', '−')} × 10{raised}"


def _verdict(found: Certificate) -> str:
    """The page in one or two sentences."""
    who = f"a twin of {found.consumer}" if found.twin else found.consumer
    broken = found.data.broken + found.hard.broken
    if broken:
        of = found.data.rows + found.hard.rows
        words = f"The export does not hold: {who} is beyond the bound on {broken:,} of {of:,} rows."
    else:
        words = f"The export holds: {who} scores as the model does, but for rounding."
    return f"{words} {_order_words(found)}"


def _order_words(found: Certificate) -> str:
    swaps: Any = found.swaps
    if swaps.swapped == 0:
        same = "No pair of your documents changes places"
    else:
        same = f"{swaps.swapped:,} of {swaps.pairs:,} pairs of your documents change places"
    if found.before is None or found.after is None:
        return same + "."
    change = found.after - found.before
    moved = "stays the same" if change == 0 else f"changes by {change:+.2g}".replace("-", "−")
    words = f"{same}, and {found.measure} {moved}."
    if found.first is None:
        return words
    return (
        f"{words} The model was distilled from one with {found.measure} {found.first:.4f}; its own is "
        f"{found.before:.4f}."
    )
