"""What mkdocs is told beyond mkdocs.yml: which pages there are, and the reference, made from declarations."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[2]))
from tools.site.charts import figures_of
from tools.site.reference import HEADINGS, INDEX, Page, reference_pages

_pages: dict[str, Page] = {}
_BOOST = {"howto": 3.0, "tutorials": 2.0, "concepts": 2.0, "results": 0.5, "engineering": 0.5}
_REST = "How to"  # where pages of no folder go
# GitHub wants a bar in the code of a table escaped; here the backslash would be shown.
_ROW = re.compile(r"^\|.*\|$", re.MULTILINE)
_CODE = re.compile(r"`[^`]+`")
_INTO = re.compile(r"\]\((?P<page>[\w./]*index\.md)#(?P<heading>[\w-]+)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Complete the navigation."""
    _pages.update(reference_pages())
    docs = Path(config.docs_dir)
    here = {str(path.relative_to(docs)) for path in docs.rglob("*.md")}
    nav = _resolved(config.nav)
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
    """Put charts below the answer of a page of results; let search find answers before figures."""
    source = page.file.src_uri
    markdown = _INTO.sub(lambda link: _made(link, posixpath.dirname(source)), markdown)
    markdown = _ROW.sub(lambda row: _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), markdown)
    kind = source.partition("/")[0]
    page.meta.setdefault("search", {"boost": _BOOST.get(kind, 1.0)})
    if kind != "results":
        return markdown
    heading, _, rest = markdown.partition("\n")
    answer, _, below = rest.lstrip("\n").partition("\n\n")
    if answer.startswith("**"):  # the question of the page, with its answer
        heading, rest = f"{heading}\n\n{answer}", below
    return f"{heading}\n\n{figures_of(Path(config.docs_dir) / source)}\n\n{rest}"


def on_post_page(output: str, **_: Any) -> str:
    """Give the dialog of the search the name that readers of the screen ask for."""
    return output.replace('role="dialog">', 'role="dialog" aria-label="Search">', 1)


def _made(link: re.Match[str], folder: str) -> str:
    """Return a link into the index of the reference as one to the page that is made of its heading."""
    here = posixpath.normpath(posixpath.join(folder, link["page"])) == INDEX
    page = HEADINGS.get(link["heading"]) if here else None
    return f"]({posixpath.relpath(page, folder or '.')})" if page else link[0]


def _resolved(items: Any) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if isinstance(item, dict):
            found.extend({title: _resolved(below)} for title, below in item.items())
        else:
            found.extend(_reference_nav() if item == "@reference" else [item])
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
