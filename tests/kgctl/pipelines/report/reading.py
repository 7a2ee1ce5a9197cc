"""Parses a page: it must be well-formed; its tables as rows of text, and everything that it would load."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "input"}
LOADS = {"src", "href", "xlink:href", "action", "data", "srcset", "poster"}


@dataclass
class Page(HTMLParser):
    """`tables` by caption; `drawn` holds the texts in charts."""

    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    ids: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    drawn: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[str] = []
        self._rows: list[list[str]] = []

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.tags.add(tag)
        self.loads += [f"{name}={value}" for name, value in attrs if name in LOADS and not str(value).startswith("#")]
        self.anchors += [str(known["href"])[1:]] if str(known.get("href", "")).startswith("#") else []
        self.ids += [str(known["id"])] if "id" in known else []
        self.labels += [str(known["aria-label"])] if "aria-label" in known else []
        if tag == "th":
            assert known.get("scope") in ("col", "row")
        if tag == "svg":
            assert known.get("role") == "img"
            assert known.get("aria-label")
        if tag == "table":
            self._rows = []
        if tag == "tr":
            self._rows.append([])
        if tag in ("th", "td"):
            self._rows[-1].append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag == "table":
            self.tables[self._caption] = self._rows

    def handle_data(self, data: str) -> None:
        if not self._open or "style" in self._open:
            return
        if "script" in self._open:
            self.scripts.append(data)
            return
        self.words.append(data)
        if self._open[-1] == "text":
            self.drawn.append(data)
        if "caption" in self._open:
            self._caption = data
        if "td" in self._open or "th" in self._open:
            self._rows[-1][-1] += data

    def close(self) -> None:
        super().close()
        assert self._open == []


def read(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    return page
