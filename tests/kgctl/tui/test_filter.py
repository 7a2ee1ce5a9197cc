"""Filters: text, regular expressions, inversion, errors."""

from __future__ import annotations

import pytest

from kgctl.tui.widgets.frame.filter import EVERYTHING, BadFilter, Field, parse

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


# ---- words and fields

FIELDS = [
    Field("state", lambda row: (row["state"],)),
    Field("member", lambda row: row["members"]),
    Field("lag", number=lambda row: row["lag"]),
]
GROUPS = [
    {"name": "billing", "state": "Stable", "members": ["worker-1", None], "lag": 7},
    {"name": "orders:eu", "state": "PreparingRebalance", "members": ["worker-2"], "lag": 1_500},
    {"name": "orders", "state": "Empty", "members": [], "lag": None},
]


def groups(text: str) -> list[str]:
    return [row["name"] for row in parse(text, lambda row: row["name"], FIELDS).of(GROUPS)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("state:stable", ["billing"]),
        ("!state:stable", ["orders:eu", "orders"]),
        ("STATE:^e", ["orders"]),
        ("member:worker", ["billing", "orders:eu"]),
        ("member:worker lag:>100", ["orders:eu"]),
        ("lag:7", ["billing"]),
        ("lag:>=1.5k", ["orders:eu"]),
        ("lag:<1k", ["billing"]),
        ("!lag:<1k", ["orders:eu", "orders"]),
        ("orders !orders:eu", ["orders"]),
        ("orders:eu", ["orders:eu"]),
        ("topic:x", []),
    ],
)
def test_words_of_fields_and_names_must_all_match(text: str, names: list[str]) -> None:
    assert groups(text) == names


@pytest.mark.parametrize("text", ["state:", "lag:", "!lag:", "! member:"])
def test_a_field_without_a_value_yet_excludes_nothing(text: str) -> None:
    assert len(groups(text)) == len(GROUPS)


def test_a_comparison_that_is_being_typed_shows_the_known_numbers() -> None:
    assert groups("lag:>") == ["billing", "orders:eu"]


@pytest.mark.parametrize("text", ["lag:many", "lag:>>1", "lag:1x"])
def test_a_field_of_numbers_needs_a_number(text: str) -> None:
    with pytest.raises(BadFilter, match=r"^lag: needs a number, such as lag:>100$"):
        groups(text)
