"""Patterns match what RE2J matches, and in linear time.

`re2.jsonl` was recorded with com.google.re2j 1.8, which Kafka uses: the texts, then each pattern with the texts that it matches as a whole,
or null if it is not valid.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.cores.patterns import InvalidPattern, Pattern

TEXTS, *RECORDED = [json.loads(line) for line in (Path(__file__).parent / "re2.jsonl").read_text().splitlines()]


def matched(text: str) -> list[str] | None:
    try:
        pattern = Pattern(text)
    except InvalidPattern:
        return None
    return [text for text in TEXTS if pattern.matches(text)]


def test_patterns_match_what_re2_matches() -> None:
    assert {text: matched(text) for text, _ in RECORDED} == dict(RECORDED)


@pytest.mark.parametrize("text", ["(a*)*b", "(a|aa)+b", "(a?){100}a{100}b", "(.*)*x", "(a|a|a|b)*c"])
def test_a_pattern_that_makes_others_backtrack_ends(text: str) -> None:
    assert not Pattern(text).matches("a" * 5_000)


@pytest.mark.parametrize(
    "text",
    [
        "((a{100}){100}){100}",
        "(((){1000}){1000}){1000}",
        "(\\pL{400}){2}",
        "(a?){900}" * 60,
        "a**",
        "(",
        "[[:foo:]]",
        "\\8",
    ],
)
def test_a_pattern_that_is_too_large_or_malformed_is_invalid(text: str) -> None:
    with pytest.raises(InvalidPattern, match=r"\w"):
        Pattern(text)


@pytest.mark.parametrize("text", ["\\C", "(?P<a>x)(?P<a>y)", "(?<a>x)|(?P<a>y)", "\\\\\\C"])
def test_what_kafkas_library_refuses_is_invalid(text: str) -> None:
    with pytest.raises(InvalidPattern):
        Pattern(text)


@pytest.mark.parametrize(
    ("text", "matched"),
    [
        ("\\Q\\C\\E", "\\C"),
        ("\\\\C", "\\C"),
        ("(?P<a>x)(?P<b>y)", "xy"),
        ("\\p{Greek}+", "λόγος"),
        ("(" * 200 + "a" + ")" * 200, "a"),
    ],
)
def test_what_kafkas_library_accepts_matches(text: str, matched: str) -> None:
    assert Pattern(text).matches(matched)
