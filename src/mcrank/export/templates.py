"""Generated code: a text with marks like @NAME@, each replaced once."""

from __future__ import annotations

import base64
import re
import textwrap
import zlib
from collections.abc import Mapping

from mcrank.arrays import Array
from mcrank.export.target import Exportable
from mcrank.scorers.heads import STEP
from mcrank.scorers.odds import LEAST_SHARE


def filled(text: str, words: Mapping[str, object]) -> str:
    """Return ``text`` with every mark replaced; what stands there then is not looked at again.

    Examples
    --------
    >>> from mcrank.export.templates import filled
    >>> filled("@A@ = @B@;", {"A": "@B@", "B": 1})
    '@B@ = 1;'
    """
    return re.sub(r"@([A-Z]+)@", lambda mark: str(words[mark[1]]), text)


def common_words(model: Exportable) -> dict[str, object]:
    """Words about a model that no language writes otherwise."""
    return {
        "STEP": STEP,
        "SHARE": LEAST_SHARE,
        "VERSION": model.version,
        "RANKER": model.ranker,
        "OUTPUTS": model.scorer.n_outputs,
        "FINGERPRINT": model.fingerprint,
    }


def packed(array: Array, indent: int) -> str:
    """Return the bytes of an array, compressed, as texts of Python on lines of their own."""
    squeezed = zlib.compress(array.astype(array.dtype.newbyteorder("<")).tobytes(), 9)
    lines = textwrap.wrap(base64.b85encode(squeezed).decode("ascii"), 96)
    return "\n".join(f'{" " * indent}"{line}"' for line in lines)
