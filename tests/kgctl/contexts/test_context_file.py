"""The file of contexts: what it says, and one clear line about what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.security.secret import Secret
from kgctl.contexts.context_file import parse
from kgctl.contexts.names import BadContext
from kgctl.contexts.values import Reference
from tests.kgctl.contexts.folders import Home

FILE = Path("/x/config.toml")


def test_settings_have_kafkas_names_in_any_way_of_writing_toml() -> None:
    text = """
    [contexts.prod]
    "bootstrap.servers" = "a:1"
    security.protocol = "SASL_SSL"
    sasl = { mechanism = "PLAIN", username = "alice", password = { env = "P" } }
    ssl.keystore.key = "inline"
    read-only = true
    timeout = 2.5
    """
    context = parse(text.encode(), FILE).contexts["prod"]
    assert context.settings == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": Reference("env", ("P",), Path("/x")),
        "ssl.keystore.key": Secret("inline"),
        "read-only": "true",
        "timeout": "2.5",
    }
    assert context.where("read-only") == "/x/config.toml, line 7"
    assert context.where("sasl.password") == "/x/config.toml, line 5"


def test_a_property_that_ends_like_a_reference_is_the_property() -> None:
    text = '[contexts.a]\nsasl.oauthbearer.token.command = "get-token"\nsasl.oauthbearer.assertion.file = "a.jwt"\n'
    assert parse(text.encode(), FILE).contexts["a"].settings == {
        "sasl.oauthbearer.token.command": "get-token",
        "sasl.oauthbearer.assertion.file": "a.jwt",
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[contexts.prod\n", "line 1: this is not TOML: expected ']'"),
        ('a = 1\n[contexts.prod]\nx = "', "line 3: this is not TOML"),
        (
            '[contexts.prod]\nbootstrap.server = "a:1"',
            "line 2: unknown setting 'bootstrap.server'; did you mean 'bootstrap",
        ),
        ('[contexts.prod]\n\nacks = "all"', "line 3: unknown setting 'acks'"),
        ("contxts = 1", "line 1: unknown setting 'contxts'; the file can have [contexts.NAME]"),
        ('[contexts.prod]\nread-only = "yes"', "line 2: read-only: write true or false"),
        ("[contexts.prod]\ntimeout = 0", "line 2: timeout: write a number of seconds above 0"),
        ('[contexts.prod]\ncolor = "beige"', "line 2: color: 'beige' is not one of red, "),
        ('[contexts.prod]\nsasl.password = { envy = "P" }', "line 2: unknown setting 'sasl.password.envy'"),
        ("[contexts.prod]\nsasl.password = { env = 5 }", 'line 2: sasl.password: write { env = "..." }'),
        (
            '[contexts.prod]\nsasl.password = { keyring = "x" }',
            'line 2: sasl.password: write { keyring = "SERVICE/USER" }',
        ),
        ('[contexts."a b"]\n', "line 1: 'a b' is not a name of a context"),
        ("[contexts]\nprod = 1\n", "line 2: write [contexts.prod]"),
        ("contexts = 1", "line 1: write [contexts.NAME]"),
    ],
)
def test_what_is_wrong_is_one_line_with_file_and_line(home: Home, text: str, says: str) -> None:
    home.write(text)
    for command in (["context", "list"], ["groups", "list", "--context", "prod"]):
        done = home.kgctl(*command)
        assert done.exit_code == 2
        assert done.stderr.startswith(f"Error: {home.file}, {says}"), done.stderr
        assert done.stderr.count("\n") == 1


def test_an_error_never_repeats_a_secret() -> None:
    for text in (
        'sasl.password = ["hush"]',
        'sasl.password = { env = "P", file = "hush" }',
        'sasl.jaas.config = "hush',
    ):
        with pytest.raises(BadContext) as caught:
            parse(f"[contexts.a]\n{text}\n".encode(), FILE)
        assert "hush" not in str(caught.value)


def test_a_pipe_in_the_place_of_the_file_does_not_block(home: Home) -> None:
    import os

    home.file.parent.mkdir(parents=True)
    os.mkfifo(home.file)
    done = home.kgctl("context", "list")
    assert (done.exit_code, "it is not a regular file" in done.stderr) == (2, True)
