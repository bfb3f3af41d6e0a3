"""A page as a tree of elements, for tests that read numbers back from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "img", "hr"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def all(self, tag=None, **attributes):
        """Every element below with this tag and these attributes (``_`` stands for ``-``), in page order."""
        wanted = {name.strip("_").replace("_", "-"): value for name, value in attributes.items()}
        found = []
        for child in self.children:
            fits = (tag is None or child.tag == tag) and all(
                child.attributes.get(name) == value for name, value in wanted.items()
            )
            found += [child] if fits else []
            found += child.all(tag, **attributes)
        return found

    def one(self, tag=None, **attributes):
        found = self.all(tag, **attributes)
        assert len(found) == 1, (tag, attributes, len(found))
        return found[0]

    @property
    def text(self):
        """Text inside, spaces made one."""
        return " ".join("".join(self._parts()).split())

    def _parts(self):
        return self.texts


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.root = Element("root", {})
        self.open = [self.root]

    def handle_starttag(self, tag, attrs):
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element.texts.append(data)


def read_page(text):
    """Parse a page; tags must be closed in the order they were opened."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == [reader.root]
    return reader.root
