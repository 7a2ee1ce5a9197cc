"""Which names are those of secrets, and that everyone who hides secrets agrees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.config.options import OPTIONS
from broker.secret_names import is_secret, may_be_secret
from kgctl.commands.configs.secret_values import marked, without_secrets
from kgctl.contexts.names import OWN, is_path
from kgctl.journal.command_lines import safe_command
from kgctl.model.configs import ConfigChange

OF_BROKERS = [name for name, option in OPTIONS.items() if option.kind == "password"]
OF_CLIENTS = [
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.token",
    "sasl.password",
    "ssl.key.pem",
]
SECRETS = st.sampled_from([*OF_BROKERS, *OF_CLIENTS])
PREFIXES = st.sampled_from(["", "listener.name.internal.", "listener.name.x.scram-sha-256.", "kafka.", "admin."])
VALUE = "hunter2 with, a=space"


@given(PREFIXES, SECRETS, st.booleans())
def test_secrets_are_hidden_by_everyone(prefix: str, name: str, is_upper: bool) -> None:
    name = (prefix + name).upper() if is_upper else prefix + name
    assert is_secret(name)
    (row,) = without_secrets(marked([ConfigChange("broker", "1", name, None, VALUE)]))
    assert "hunter2" not in repr(row)
    for words in (
        [f"{name}={VALUE}"],
        [f"--set={name}={VALUE}"],
        ["--set", f"a=1,{name}={VALUE}"],
        [f"--{name}", VALUE],
    ):
        assert "hunter2" not in safe_command(["kgctl", *words])


@pytest.mark.parametrize(
    "name",
    [
        "bootstrap.servers",
        "retention.ms",
        "delegation.token.expiry.time.ms",
        "password.encoder.iterations",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.token.command",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.plain.users.file",
        "ssl.keystore.location",
        "ssl.keystore.type",
        *OWN,
    ],
)
def test_numbers_and_what_says_where_a_secret_is_are_shown(name: str) -> None:
    assert not is_secret(name)


@given(PREFIXES, st.sampled_from(sorted(OPTIONS)))
def test_only_passwords_of_the_broker_are_secrets(prefix: str, name: str) -> None:
    assert is_secret(prefix + name) == (OPTIONS[name].kind == "password")
    assert not is_path(name) or not is_secret(name)


@given(st.text())
def test_what_is_secret_is_hidden_on_command_lines(name: str) -> None:
    assert may_be_secret(name) or not is_secret(name)
