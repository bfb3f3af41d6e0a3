"""Generated code: a text with marks like @NAME@, each replaced once."""

from __future__ import annotations

import re
from collections.abc import Mapping


def filled(text: str, words: Mapping[str, object]) -> str:
    """Return ``text`` with every mark replaced; what stands there then is not looked at again.

    Examples
    --------
    >>> from mcrank.export.templates import filled
    >>> filled("@A@ = @B@;", {"A": "@B@", "B": 1})
    '@B@ = 1;'
    """
    return re.sub(r"@([A-Z]+)@", lambda mark: str(words[mark[1]]), text)
