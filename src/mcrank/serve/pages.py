"""The pages of the service and what belongs to them: all of it in the package, nothing from elsewhere."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from mcrank.report.environment import page_environment, template_text
from mcrank.report.palette import in_style
from mcrank.serve.http import Answer

# No script and no style but the service's own, no other host, no frame: a name in the data can do nothing.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = {"content-security-policy": _POLICY, "cache-control": "no-cache"}
# Path -> media type, templates.
ASSETS: dict[str, tuple[str, tuple[str, ...]]] = {
    "/assets/style.css": ("text/css; charset=utf-8", ("style.css", "serve.css")),
    "/assets/page.js": ("text/javascript; charset=utf-8", ("labels.js", "serve.js")),
}


@cache
def _content(path: str) -> tuple[bytes, str]:
    """What is at a path, and the tag by which a browser knows that it has it already."""
    texts = [template_text(name) for name in ASSETS[path][1]]
    content = in_style("\n".join(texts)).encode()
    return content, f'"{hashlib.sha256(content).hexdigest()[:16]}"'


def asset(path: str, known: str) -> Answer:
    """Return a script or a style sheet; nothing where the browser has it already."""
    content, tag = _content(path)
    headers = {"cache-control": "no-cache", "etag": tag}
    if known == tag:
        return Answer(b"", ASSETS[path][0], 304, headers)
    return Answer(content, ASSETS[path][0], headers=headers)


@cache
def page() -> bytes:
    """Return the page that shows rankings; what it shows, it asks for."""
    return page_environment().get_template("serve.html").render().encode()


@cache
def _docs_template() -> Any:
    return page_environment().get_template("serve_docs.html")


def docs_page(document: dict[str, Any]) -> bytes:
    """Return the description of the service as a page without scripts."""
    text: str = _docs_template().render(document=document, resolve=lambda part: _resolved(document, part))
    return text.encode()


def _resolved(document: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """A part of the document, or what it refers to."""
    found = part
    if "$ref" in part:
        found = document
        for name in part["$ref"].removeprefix("#/").split("/"):
            found = found[name]
    return found
