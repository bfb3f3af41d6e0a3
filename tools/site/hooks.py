"""What mkdocs is told beyond mkdocs.yml: which pages there are, and the reference, made from declarations."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[2]))
from tools.site.charts import figures_of
from tools.site.reference import Page, reference_pages

_pages: dict[str, Page] = {}
_BOOST = {"howto": 3.0, "tutorials": 2.0, "concepts": 2.0, "results": 0.5, "engineering": 0.5}
_REST = "How to"  # where pages of no folder go


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Complete the navigation."""
    _pages.update(reference_pages())
    docs = Path(config.docs_dir)
    here = {str(path.relative_to(docs)) for path in docs.rglob("*.md")}
    nav = _resolved(config.nav, here)
    named = set(_leaves(nav))
    for page in sorted(here - named):
        _section(nav, page).append(page)
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the reference."""
    for name, page in _pages.items():
        files.append(File.generated(config, name, content=page.text))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: MkDocsConfig, **_: Any) -> str:
    """Put charts below the heading of a page of results; let search find answers before figures."""
    kind = page.file.src_uri.partition("/")[0]
    page.meta.setdefault("search", {"boost": _BOOST.get(kind, 1.0)})
    if kind != "results":
        return markdown
    heading, _, rest = markdown.partition("\n")
    return f"{heading}\n\n{figures_of(Path(config.docs_dir) / page.file.src_uri)}\n{rest}"


def on_post_page(output: str, **_: Any) -> str:
    """Give the dialog of the search the name that readers of the screen ask for."""
    return output.replace('role="dialog">', 'role="dialog" aria-label="Search">', 1)


def _resolved(items: Any, here: set[str]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if isinstance(item, dict):
            found.extend({title: _resolved(below, here)} for title, below in item.items())
        elif item == "@reference":
            found.extend(_reference_nav())
        elif not item.startswith("?") or item[1:] in here:
            found.append(item.removeprefix("?"))
    return found


def _reference_nav() -> list[Any]:
    sections: dict[str, list[Any]] = {}
    for name, page in _pages.items():
        sections.setdefault(page.section, []).append({page.title: name})
    return [{section: pages} if section else pages[0] for section, pages in sections.items()]


def _leaves(items: Any) -> list[str]:
    if isinstance(items, str):
        return [items]
    below = items.values() if isinstance(items, dict) else items
    return [leaf for item in below for leaf in _leaves(item)]


def _section(nav: list[Any], page: str) -> list[Any]:
    """Return the list that holds a page of the same folder."""
    folder = page.rpartition("/")[0]
    best = _listed(nav, lambda leaf: leaf.rpartition("/")[0] == folder) if folder else None
    return (
        best
        if best is not None
        else next(item[_REST] for item in nav if isinstance(item, dict) and _REST in item)
    )


def _listed(items: list[Any], wanted: Any) -> list[Any] | None:
    if any(isinstance(item, str) and wanted(item) for item in items):
        return items
    for item in items:
        for below in item.values() if isinstance(item, dict) else ():
            found = _listed(below, wanted) if isinstance(below, list) else None
            if found is not None:
                return found
    return None
