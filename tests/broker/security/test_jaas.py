"""The grammar of sasl.jaas.config."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security import jaas
from broker.security.jaas import JaasError
from broker.security.secret import Secret


def options(text: str) -> dict[str, str]:
    return {name: value.reveal() for name, value in jaas.parse(text).options.items()}


def test_a_login_module_has_a_name_a_flag_and_options() -> None:
    found = jaas.parse(f'{jaas.PLAIN} required username="alice" password="a;b=c";')
    assert (found.name, found.control_flag) == (jaas.PLAIN, "required")
    assert found.option("username") == "alice"
    assert found.options["password"] == Secret("a;b=c")
    assert found.option("absent") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m REQUIRED;", {}),
        ("m required a=b c = 'd' ;", {"a": "b", "c": "d"}),
        ('m required\n  a="b"\n  c="d";\n', {"a": "b", "c": "d"}),
        (r'm required a="q\"\\\n\101\'";', {"a": "q\"\\\nA'"}),
        ("""m required a='say "x"' b="it's";""", {"a": 'say "x"', "b": "it's"}),
        ('m required /* a="b" */ c="d"; // end', {"c": "d"}),
        ('m required a="/* no comment */";', {"a": "/* no comment */"}),
        ('m required user_ä-1.x="ü";', {"user_ä-1.x": "ü"}),
        ('m required a="1" a="2";', {"a": "2"}),
    ],
)
def test_options_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert options(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "m;",
        "m required",
        "m maybe;",
        'm required a="b"',
        "m required a;",
        "m required a=;",
        "m required a=5;",
        "m required ='b';",
        "m required; n required;",
        'm required a="b;',
        "required;",
    ],
)
def test_a_text_that_is_not_one_login_module_is_refused(text: str) -> None:
    with pytest.raises(JaasError):
        jaas.parse(text)


def test_neither_the_module_nor_an_error_shows_a_value() -> None:
    assert "hidden" not in repr(jaas.parse('m required password="hidden";'))
    for text in ('m required password="hidden"', 'm required password "hidden";', 'm required password="a" "hidden";'):
        with pytest.raises(JaasError) as failure:
            jaas.parse(text)
        assert "hidden" not in str(failure.value)


@given(st.text(st.characters(exclude_characters='"\\\n')))
def test_any_quoted_text_is_a_value(text: str) -> None:
    assert options(f'm required a="{text}";') == {"a": text}


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(JaasError):
        jaas.parse(text)
