"""Tokens with signatures: which a key set makes valid."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.security.credentials.errors import BadCredentials
from broker.security.credentials.signed_tokens import Rules, parse_keys, signed
from broker.security.sasl.mechanism import Identity
from broker.security.sasl.oauthbearer import TokenRefused, Validate
from broker.security.secret import Secret
from tests.harness.signed_tokens import AUDIENCE, CASES, ISSUER, Issuer

RULES = Rules(issuer=ISSUER, audiences=(AUDIENCE, "more"), skew_s=30)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def file(tmp_path: Path, issuer: Issuer) -> Path:
    path = tmp_path / "keys.json"
    path.write_text(issuer.key_set)
    return path


def validator(file: Path, rules: Rules = RULES) -> Validate:
    return signed(str(file), rules, now_ms)


def outcome(validate: Validate, token: str) -> Identity | None:
    try:
        return validate(Secret(token))
    except TokenRefused:
        return None


@pytest.mark.parametrize(("make", "is_valid"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_token_is_valid_as_in_kafka(
    file: Path, issuer: Issuer, make: Callable[[Issuer], str], is_valid: bool
) -> None:
    found = outcome(validator(file), make(issuer))
    assert (found is not None) == is_valid
    assert found is None or found.name == "alice"


def test_the_session_ends_with_the_token(file: Path, issuer: Issuer) -> None:
    found = outcome(validator(file), issuer.token(exp=1e10 + 0.5))
    assert found is not None
    assert found.expires_at_ms == 10_000_000_000_500


def test_a_token_for_an_audience_is_refused_by_a_broker_that_expects_none(file: Path, issuer: Issuer) -> None:
    without = validator(file, Rules())
    assert outcome(without, issuer.token()) is None
    assert outcome(without, issuer.token(aud=None)) is not None


def test_the_names_of_claims_can_be_chosen(file: Path, issuer: Issuer) -> None:
    validate = validator(file, RULES._replace(sub_claim="client_id"))
    assert outcome(validate, issuer.token()) is None
    found = outcome(validate, issuer.token(client_id="app"))
    assert found is not None
    assert found.name == "app"


def test_a_changed_key_set_takes_effect_and_a_broken_one_does_not(file: Path, issuer: Issuer) -> None:
    validate, rotated = validator(file), Issuer()
    assert outcome(validate, rotated.token()) is None
    file.write_text("{}")
    assert outcome(validate, issuer.token()) is not None
    file.write_text(rotated.key_set)
    assert outcome(validate, rotated.token()) is not None
    assert outcome(validate, issuer.token()) is None
    file.unlink()
    assert outcome(validate, rotated.token()) is not None


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"keys": 5}', '{"keys": []}', '{"keys": [5]}', '{"keys": [{"kty": "oct", "k": "AAAA"}]}',
     '{"keys": [{"kty": "RSA", "n": "!", "e": "AQAB"}]}', '{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}',
     '{"keys": [{"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA"}]}', '{"keys": [{"kty": "EC", "crv": "X"}]}',
     "[" * 100_000],
)  # fmt: skip
def test_a_text_without_usable_keys_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match="key"):
        parse_keys(text)
    (tmp_path / "keys.json").write_text(text)
    with pytest.raises(BadCredentials, match=r"keys\.json"):
        validator(tmp_path / "keys.json")


def test_a_missing_key_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadCredentials, match="No such file"):
        validator(tmp_path / "absent")


def test_keys_for_encryption_do_not_verify(issuer: Issuer, tmp_path: Path) -> None:
    keys = json.loads(issuer.key_set)["keys"]
    keys[0]["use"] = "enc"
    (tmp_path / "keys.json").write_text(json.dumps({"keys": keys}))
    validate = validator(tmp_path / "keys.json")
    assert outcome(validate, issuer.token()) is None
    assert outcome(validate, issuer.token(signer="e")) is not None
