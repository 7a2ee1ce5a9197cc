"""Filters: text, regular expressions, inversion, errors."""

from __future__ import annotations

import pytest

from kgctl.tui.widgets.frame.filter import EVERYTHING, BadFilter, parse

NAMES = ["billing", "Billing.eu", "fraud-1", "fraud-12", "billingXeu", "a+b", "\x1b[31mred"]


def matching(text: str) -> list[str]:
    return list(parse(text, str).of(NAMES))


def test_an_empty_filter_matches_everything() -> None:
    assert matching("") == NAMES == EVERYTHING.of(NAMES)


def test_text_matches_anywhere_and_ignores_case() -> None:
    assert matching("BILL") == ["billing", "Billing.eu", "billingXeu"]
    assert matching("-12") == ["fraud-12"]


def test_a_dot_in_plain_text_matches_only_a_dot() -> None:
    assert matching("billing.eu") == ["Billing.eu"]
    assert matching("billing.?eu") == ["Billing.eu", "billingXeu"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("^fraud-.$", ["fraud-1"]),
        ("g$|^a", ["billing", "a+b"]),
        (r"a\+b", ["a+b"]),
        (r"\x1b", ["\x1b[31mred"]),
        ("[12]$", ["fraud-1", "fraud-12"]),
    ],
)
def test_special_characters_make_a_regular_expression(text: str, names: list[str]) -> None:
    assert matching(text) == names


def test_a_leading_exclamation_mark_inverts() -> None:
    assert matching("!bill") == ["fraud-1", "fraud-12", "a+b", "\x1b[31mred"]
    assert matching("!^fraud-.$") == [name for name in NAMES if name != "fraud-1"]


def test_an_exclamation_mark_alone_matches_everything() -> None:
    assert matching("!") == NAMES


def test_an_exclamation_mark_elsewhere_is_text() -> None:
    assert parse("a!b", str).matches("xa!b")
    assert not parse("a!b", str).matches("ab")


def test_an_expression_that_python_warns_about_raises_no_warning() -> None:
    assert matching("r[[a]u") == ["fraud-1", "fraud-12"]


@pytest.mark.parametrize("text", ["fraud(", "[", "*", "!(", "a{1}{2}", "\\", "a{99999999999}"])
def test_an_invalid_expression_is_an_error(text: str) -> None:
    with pytest.raises(BadFilter, match=r"^bad regex: ."):
        parse(text, str)
