"""A figure of matplotlib as SVG that can stand inside a page: its ids unique, its colours the page's."""

import io
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from paceline.bench.report.plots.base import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_NOT_WANTED = ("metadata", "style")
_VARIABLES = {colour: f"var(--{name})" for name, colour in COLOURS.items()}
_COLOUR = re.compile("|".join(_VARIABLES))


def inline_svg(figure: "Figure", name: str, title: str, description: str) -> str:
    """An `svg` element that carries no namespace, as HTML wants it. `name` goes before every id in it."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", transparent=True)
    root = ElementTree.fromstring(stream.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.removeprefix(_SVG) in _NOT_WANTED:
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        element.attrib = {_key(key): _value(key, value, name) for key, value in element.attrib.items()}
    _describe(root, name, title, description)
    return ElementTree.tostring(root, encoding="unicode")


def _key(key: str) -> str:
    return "href" if key == _LINK else key


def _value(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == _LINK:
        return value.replace("#", f"#{name}-", 1)
    if key == "style":
        value = _COLOUR.sub(lambda found: _VARIABLES[found.group()], value)
    return _REFERENCE.sub(rf"url(#{name}-\1)", value)


def _describe(root: ElementTree.Element, name: str, title: str, description: str) -> None:
    """For those who do not see it."""
    for key in ("version", "width", "height"):
        root.attrib.pop(key, None)
    root.attrib |= {"role": "img", "aria-labelledby": f"{name}-title {name}-description"}
    for place, (kind, tag, text) in enumerate((("title", "title", title), ("description", "desc", description))):
        element = ElementTree.Element(tag, {"id": f"{name}-{kind}"})
        element.text = text
        root.insert(place, element)
