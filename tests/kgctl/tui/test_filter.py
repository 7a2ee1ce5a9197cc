"""What passes a filter, as it is typed."""

from __future__ import annotations

import pytest

from kgctl.tui.filter import EVERYTHING, BadFilter, parse

NAMES = ["billing", "Billing.eu", "fraud-1", "fraud-12", "billingXeu", "a+b", "\x1b[31mred"]


def passing(text: str) -> list[str]:
    return parse(text).of(NAMES, str)


def test_nothing_typed_passes_all() -> None:
    assert passing("") == NAMES == EVERYTHING.of(NAMES, str)


def test_text_is_found_anywhere_in_any_case() -> None:
    assert passing("BILL") == ["billing", "Billing.eu", "billingXeu"]
    assert passing("-12") == ["fraud-12"]


def test_a_dot_in_plain_text_is_a_dot() -> None:
    assert passing("billing.eu") == ["Billing.eu"]
    assert passing("billing.?eu") == ["Billing.eu", "billingXeu"]


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
def test_signs_of_regular_expressions_make_one(text: str, names: list[str]) -> None:
    assert passing(text) == names


def test_an_exclamation_mark_in_front_inverts() -> None:
    assert passing("!bill") == ["fraud-1", "fraud-12", "a+b", "\x1b[31mred"]
    assert passing("!^fraud-.$") == [name for name in NAMES if name != "fraud-1"]


def test_an_exclamation_mark_alone_waits_for_more() -> None:
    assert passing("!") == NAMES


def test_an_exclamation_mark_further_on_is_text() -> None:
    assert parse("a!b").passes("xa!b")
    assert not parse("a!b").passes("ab")


def test_an_odd_expression_warns_nobody() -> None:
    assert passing("r[[a]u") == ["fraud-1", "fraud-12"]


@pytest.mark.parametrize("text", ["fraud(", "[", "*", "!(", "a{1}{2}", "\\", "a{99999999999}"])
def test_what_does_not_compile_is_said(text: str) -> None:
    with pytest.raises(BadFilter, match=r"^bad regex: ."):
        parse(text)
