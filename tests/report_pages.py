"""Reads the page of a report as strictly as a test can without a browser."""

from html.parser import HTMLParser
from pathlib import Path

from paceline.bench import report
from paceline.bench.result import Result

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """Checks the nesting as it reads, and collects what the tests look at."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.cells: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for key, value in attrs:
            assert value is not None, f"{tag} has the attribute {key} without a value"
            self.attributes.append((tag, key, value))
            if key == "id":
                self.ids.append(value)
            if key in ("href", "src"):
                self.links.append(value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open[-1:] and {"td", "th"} & set(self.open):
            self.cells[-1] += data


def written(result: Result, folder: Path) -> str:
    return report.write(result, folder)[0].read_text("utf-8")
