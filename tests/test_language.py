"""Product code and documents use one word per concept, and plain English: no retired word is left in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import ROOT

# What to say instead; patterns ignore case and match in identifiers too, where `_` separates words.
RETIRED = {
    r"story|stories|tale|happenings?": "event, history",
    r"tells?|told": "say, report, show, print",
    r"chance": "randomness",
    r"anew": "again",
    r"in vain": "without effect; waiting for ... timed out",
    r"nobody": "no other member, no client",
    r"so many": "that many, N",
    r"for so long": "this long",
    r"(?:go|goes|going|went|gone) on": "continue, resume",
    r"(?:hold|holds|holding|held) up(?! to)": "stall, delay, block",
    r"(?:taking|took|taken) in": "accept, read, receive",
    r"(?:learn|learns|learned|know|knows|knew) of": "know, learn; is unknown",
    r"(?:hear|hears|heard) of": "hear from",
    r"(?:stand|stands|standing) in the way": "block, prevent",
    r"in silence": "silently",
    r"but for": "except",
    r"(?:a|one|each|every|this|several|prepared|two|three) looks?": "snapshot, refresh",
    r"(?:commit )?rounds? of commits|commit rounds?": "flush",
    r"recorded end": "checkpoint",
    r"watermark file": "commit marker",
}
ANY_RETIRED = re.compile(rf"(?i)(?<![\w'])(?:{'|'.join(RETIRED)})(?![\w'])".replace(" ", r"\s+"))
# `file.tell()` is the position in a file.
ALLOWED = re.compile(r"\.tell\(\)|too early to tell")
SUFFIXES = (".py", ".md", ".toml", ".sql", ".html", ".j2", ".tcss", ".css", ".js", ".sh")


def product_files() -> Iterator[Path]:
    for folder in ("broker", "kgctl", "docs", "tools", "bench"):
        yield from (path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES)
    yield from (ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml"))


def found_in(text: str) -> Iterator[tuple[int, str]]:
    """(line, retired word) pairs. A phrase may continue on the next line."""
    plain = re.sub(r"\n[ \t]*(?:#|>|\*|//)?[ \t]*", lambda gap: "\n" + " " * (len(gap[0]) - 1), ALLOWED.sub("", text))
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", plain.replace("_", " "))
    for hit in ANY_RETIRED.finditer(words):
        yield words.count("\n", 0, hit.start()) + 1, " ".join(hit[0].split())


def test_no_retired_word_is_left_in_code_and_documents() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word!r}"
        for path in product_files()
        for line, word in found_in(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join([f"{len(found)} retired words; see RETIRED for what to say instead", *found])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# the story of a group", ["story"]),
        ("def tell_story(): ...", ["tell", "story"]),
        ("class StoryTeller: ...", ["Story"]),
        ("it goes\n    # on there", ["goes on"]),
        ("position = file.tell()", []),
        ("history, storage, chances are, intelligent, foretold", []),
        ("the high watermark; a round trip; they look at it", []),
    ],
)
def test_retired_words_are_found_in_identifiers_and_across_lines(text: str, words: list[str]) -> None:
    assert sorted(word for _, word in found_in(text)) == sorted(words)
