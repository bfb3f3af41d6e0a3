"""Templates of pages, and what they are filled with."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from mcrank.experiments.names import shortened
from mcrank.report.tables import number

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
