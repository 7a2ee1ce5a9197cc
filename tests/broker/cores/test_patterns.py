"""Patterns match what RE2 matches, and in linear time.

`re2.jsonl` was recorded with com.google.re2j 1.8, which Kafka uses: the texts, then each pattern with the texts that it matches as a whole,
or null if it is not valid.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.cores.pattern_syntax import InvalidPattern
from broker.cores.patterns import Pattern

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


def test_transitions_are_forgotten_when_they_become_too_many() -> None:
    pattern = Pattern("(a|b)*a(a|b){60}")
    bits = "".join("ab"[(number * 2_654_435_761 >> 7) & 1] for number in range(6_000))
    assert pattern.matches(bits + "a" + "b" * 60)
    assert not pattern.matches(bits + "b" + "b" * 60)


@pytest.mark.parametrize(
    "text", ["((a{100}){100}){100}", "(((){1000}){1000}){1000}", "a" * 1_001, "(" * 200 + ")" * 200, "\\p{Greek}"]
)
def test_a_pattern_that_is_too_large_or_unsupported_is_invalid(text: str) -> None:
    with pytest.raises(InvalidPattern):
        Pattern(text)
