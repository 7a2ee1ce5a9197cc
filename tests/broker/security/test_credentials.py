"""PLAIN users, unsecured tokens and SCRAM users in their configured form."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security import jaas
from broker.security.credentials.errors import BadCredentials
from broker.security.credentials.plain_users import PlainUsers
from broker.security.credentials.scram_users import ScramUsers, set_password
from broker.security.credentials.unsecured_tokens import unsecured
from broker.security.sasl.oauthbearer import TokenRefused
from broker.security.secret import Secret

NOW_MS = 1_000_000_000_000
MODULE = jaas.parse(f'{jaas.PLAIN} required username="broker" password="x" user_alice="one" user_bob="two";')


class Records(dict[tuple[str, str], str]):
    """Security records in memory."""

    def put(self, kind: str, name: str, value: str) -> None:
        self[kind, name] = value

    def delete(self, kind: str, name: str) -> None:
        del self[kind, name]

    def all(self, kind: str) -> dict[str, str]:
        return {name: value for (found, name), value in self.items() if found == kind}


def test_plain_users_come_from_options_and_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("# comment\n\nbob = three=3\ncarol=four\n")
    users = PlainUsers(MODULE, str(file))
    assert [users.find(name) for name in ("alice", "bob", "carol", "broker", "")] == [
        Secret("one"),
        Secret("three=3"),
        Secret("four"),
        None,
        None,
    ]


def test_a_changed_users_file_takes_effect_and_a_broken_one_does_not(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("alice=one\n")
    users = PlainUsers(None, str(file))
    file.write_text("no separator\n")
    assert users.find("alice") == Secret("one")
    file.write_text("bob=two!\n")
    assert users.find("alice") is None
    assert users.find("bob") == Secret("two!")


@pytest.mark.parametrize("text", ["hidden\n", "=hidden\n", "hidden=\n", "a=b\nhidden"])
def test_a_users_file_that_cannot_be_read_is_refused_without_its_content(tmp_path: Path, text: str) -> None:
    file = tmp_path / "users"
    file.write_text(text)
    with pytest.raises(BadCredentials, match="is not NAME=PASSWORD") as failure:
        PlainUsers(None, str(file))
    assert "hidden" not in str(failure.value)


def test_the_login_module_must_be_that_of_the_mechanism() -> None:
    other = jaas.parse(f"{jaas.SCRAM} required;")
    with pytest.raises(BadCredentials, match="PlainLoginModule"):
        PlainUsers(other, None)
    with pytest.raises(BadCredentials, match="OAuthBearerLoginModule"):
        unsecured(other, lambda: NOW_MS)


def token(**claims: Any) -> Secret:
    parts = ({"alg": "none"}, {"sub": "alice", "exp": NOW_MS / 1000 + 10, **claims})
    return Secret("".join(urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() + "." for each in parts))


def test_unsecured_tokens_have_the_options_of_kafka() -> None:
    text = (
        f"{jaas.OAUTHBEARER} required unsecuredValidatorPrincipalClaimName=user unsecuredValidatorScopeClaimName=roles "
        'unsecuredValidatorRequiredScope="read write" unsecuredValidatorAllowableClockSkewMs="2000";'
    )
    validate = unsecured(jaas.parse(text), lambda: NOW_MS)
    good = {"user": "carol", "roles": ["write", "read", "more"]}
    assert validate(token(**good)).name == "carol"
    assert validate(token(**good, exp=NOW_MS / 1000 - 1)).expires_at_ms == NOW_MS - 1000
    with pytest.raises(TokenRefused) as narrow:
        validate(token(**good | {"roles": "read"}))
    assert (narrow.value.status, narrow.value.scope) == ("insufficient_scope", "read write")
    for bad in ({"user": 5}, {"exp": NOW_MS / 1000 - 3}, {"iat": NOW_MS / 1000 + 3}, {"roles": 5}, {"exp": True}):
        with pytest.raises(TokenRefused):
            validate(token(**good | bad))


@given(st.text())
def test_any_text_is_refused_as_a_token(text: str) -> None:
    with pytest.raises(TokenRefused):
        unsecured(None, lambda: NOW_MS)(Secret(text))


def test_scram_users_are_the_same_after_a_restart() -> None:
    records = Records()
    users = ScramUsers(records)
    set_password(users, "alice", "SCRAM-SHA-256", Secret("one"), 4096)
    set_password(users, "alice", "SCRAM-SHA-512", Secret("two"), 8192)
    set_password(users, "bob", "SCRAM-SHA-512", Secret("three"), 4096)
    again = ScramUsers(records)
    assert again.names() == ["alice", "bob"]
    assert again.secret == users.secret
    assert [again.of(name) for name in ("alice", "bob", "carol")] == [users.of("alice"), users.of("bob"), {}]
    again.delete("alice", "SCRAM-SHA-256")
    again.delete("bob", "SCRAM-SHA-512")
    assert set(ScramUsers(records).of("alice")) == {"SCRAM-SHA-512"}
    assert ScramUsers(records).names() == ["alice"]
    with pytest.raises(KeyError):
        again.delete("bob", "SCRAM-SHA-512")
