"""Templates of pages, and what they are filled with."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

from mcrank.experiments.names import shortened
from mcrank.report.palette import in_style
from mcrank.report.tables import number
from mcrank.texts import printable

if TYPE_CHECKING:
    import jinja2


def template_text(name: str) -> str:
    """Return the text of a template, a script or a style sheet."""
    return (resources.files("mcrank.report") / "templates" / name).read_text(encoding="utf-8")


def page_environment() -> jinja2.Environment:
    """Return what makes pages of templates; texts are escaped, and a name that is not there is an error."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(template_text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["count"] = lambda value: f"{value:,}"
    environment.filters["fixed"] = lambda value, digits=4: number(float(value), digits).text
    environment.filters["short"] = shortened
    environment.globals["raw"] = repr
    return environment


def render_page(template: jinja2.Template, **words: Any) -> str:
    """Return a page in the style of all pages.

    Names come from files: what could not be encoded, or would reorder the text around it, is written out.
    """
    return printable(template.render(style=in_style(template_text("style.css")), **words), lines=True)
