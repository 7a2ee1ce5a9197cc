"""What the options of a SASL listener mean, and which of them stop the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.config.option import ConfigError
from tests.harness import sasl_conversations as sasl
from tests.harness.running import RunningBroker
from tests.harness.signed_tokens import AUDIENCE, ISSUER, Issuer

LISTENER = "SASL_PLAINTEXT"
PREFIX = "listener.name.sasl_plaintext"
PLAIN = f"{PREFIX}.plain.sasl.jaas.config"
BEARER = f"{PREFIX}.oauthbearer.sasl"


def started(data_dir: Path, **options: str) -> RunningBroker:
    return RunningBroker(data_dir / "d", listeners=f"{LISTENER}://127.0.0.1:0", **options)


def answers(running: RunningBroker, *steps: sasl.Step) -> list[str]:
    with running.client(LISTENER) as client:
        return [step(client) for step in steps]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "offers GSSAPI; this broker supports PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"),
        ({"sasl.enabled.mechanisms": ""}, "offers no mechanism"),
        ({"sasl.enabled.mechanisms": "plain"}, "offers plain"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "PLAIN needs users"),
        ({"sasl.enabled.mechanisms": "PLAIN", PLAIN: "hidden"}, "does not end with a semicolon"),
        ({"sasl.enabled.mechanisms": "PLAIN", PLAIN: "hidden required;"}, "PLAIN needs"),
        ({"sasl.enabled.mechanisms": "PLAIN", "sasl.plain.users.file": "/absent"}, "/absent: No such file"),
        (
            {"sasl.enabled.mechanisms": "OAUTHBEARER", f"{BEARER}.oauthbearer.jwks.endpoint.url": "https://a/b"},
            "must be file:///PATH",
        ),
        (
            {"sasl.enabled.mechanisms": "OAUTHBEARER", f"{BEARER}.oauthbearer.jwks.endpoint.url": "file:///absent"},
            "/absent: No such file",
        ),
        (
            {
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                f"{BEARER}.server.callback.handler.class": f"{sasl.MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler",
            },
            "set it to the key set that verifies tokens",
        ),
        (
            {"sasl.enabled.mechanisms": "OAUTHBEARER", f"{BEARER}.server.callback.handler.class": "com.example.Strict"},
            "sasl.server.callback.handler.class=com.example.Strict: this broker has no such class",
        ),
    ],
    ids=range(11),
)
def test_a_listener_that_nobody_could_use_safely_stops_the_start(
    tmp_path: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError) as failure, started(tmp_path, **options):
        pass
    assert message in str(failure.value)
    assert "user_" not in str(failure.value) or "PASSWORD" in str(failure.value)


def test_users_of_a_file_log_in(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("alice=alice-secret\n")
    options = {"sasl.enabled.mechanisms": "PLAIN", "sasl.plain.users.file": str(file)}
    with started(tmp_path, **options) as running:
        assert answers(running, sasl.PLAIN, sasl.token(sasl.ALICE)) == ["0", "0"]
        file.write_text("bob=bob-secret\n")
        assert answers(running, sasl.PLAIN, sasl.token(sasl.ALICE)) == ["0", sasl.WRONG]
        assert answers(running, sasl.PLAIN, sasl.token(sasl.BOB)) == ["0", "0"]


def test_a_listener_offers_its_own_mechanisms(tmp_path: Path) -> None:
    options = {"sasl.enabled.mechanisms": "OAUTHBEARER", f"{PREFIX}.sasl.enabled.mechanisms": "SCRAM-SHA-512"}
    with started(tmp_path, **options) as running:
        assert answers(running, sasl.handshake("OAUTHBEARER")) == ["33 SCRAM-SHA-512"]


def test_a_key_set_verifies_tokens(tmp_path: Path) -> None:
    issuer, file = Issuer(), tmp_path / "keys of the issuer.json"
    file.write_text(issuer.key_set)
    options = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{BEARER}.oauthbearer.jwks.endpoint.url": file.as_uri(),
        f"{BEARER}.oauthbearer.expected.issuer": ISSUER,
        f"{BEARER}.oauthbearer.expected.audience": f"other,{AUDIENCE}",
        f"{BEARER}.oauthbearer.sub.claim.name": "client",
    }
    with started(tmp_path, **options) as running:
        good, bad = (sasl.bearer(issuer.token(client="app", signer=signer)) for signer in ("r", "other"))
        assert answers(running, sasl.BEARER, sasl.accepted(good)) == ["0", "accepted"]
        assert answers(running, sasl.BEARER, sasl.token(bad)) == ["0", f"0 {sasl.INVALID}"]
        with running.client(LISTENER) as client:
            sasl.BEARER(client)
            sasl.accepted(good)(client)
            principals = running.run(lambda: [each.session.principal for each in running.broker.connections])
        assert "User:app" in principals


def test_a_session_ends_unless_the_client_authenticates_again(tmp_path: Path) -> None:
    options = {**sasl.options_of("sasl_plaintext"), f"{PREFIX}.plain.connections.max.reauth.ms": "1000"}
    with started(tmp_path, **options) as running:
        login = [sasl.PLAIN, sasl.token(sasl.ALICE)]
        sasl.check_that_sessions_end(lambda: running.client(LISTENER), login, ["0", "0 1000 ms"])
