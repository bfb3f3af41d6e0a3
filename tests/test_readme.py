"""The README is short, and what it and the other pages link to is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
MADE = re.compile(r"reference/(?:python|rankers|commands|measures|dialects|targets|errors)")


def test_it_is_two_screens():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 75


def test_every_relative_link_leads_somewhere():
    """Or to a page of the reference that is made with the site, where mkdocs looks for it."""
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            place = (page.parent / target).resolve()
            assert place.exists() or MADE.search(str(place)), f"{page.name} links to {target}"
