"""A real Kafka gives the answers to SASL conversations that our broker is tested with."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tests.harness import sasl_conversations as sasl
from tests.harness import scram_requests
from tests.harness.sasl_conversations import Conversation
from tests.harness.secured_kafka import SecuredKafka, unsecured_token
from tests.harness.signed_tokens import AUDIENCE, CASES, ISSUER, Issuer
from tests.harness.wire_client import ConnectionClosed, WireClient

pytestmark = pytest.mark.reference


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[SecuredKafka]:
    key_set = tmp_path_factory.mktemp("keys") / "keys.json"
    key_set.write_text(issuer.key_set)
    # SASL_PLAINTEXT is also the listener of the broker itself, so sessions end and tokens need signatures on the other one.
    tokens = "listener.name.sasl_ssl.oauthbearer.sasl"
    config = {
        "connection.failed.authentication.delay.ms": "0",
        "listener.name.sasl_ssl.connections.max.reauth.ms": "60000",
        "listener.name.sasl_ssl.scram-sha-512.connections.max.reauth.ms": "2000",
        f"{tokens}.jaas.config": f"{sasl.MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        f"{tokens}.server.callback.handler.class": f"{sasl.MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler",
        f"{tokens}.oauthbearer.jwks.endpoint.url": key_set.as_uri(),
        # Without it, Kafka 4.1.0 checks no signature.
        "sasl.oauthbearer.jwt.validator.class": f"{sasl.MODULES}.oauthbearer.BrokerJwtValidator",
        f"{tokens}.oauthbearer.expected.issuer": ISSUER,
        f"{tokens}.oauthbearer.expected.audience": AUDIENCE,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={key_set.as_uri()}")
        kafka = SecuredKafka(config)
        with kafka:
            yield kafka


@pytest.mark.parametrize(
    "conversation", [*sasl.FIRST, *sasl.SCRAM, *sasl.token_conversations(unsecured_token)], ids=lambda each: each.name
)
def test_a_client_authenticates(kafka: SecuredKafka, conversation: Conversation) -> None:
    with WireClient(kafka.address("SASL_PLAINTEXT"), timeout_s=5) as client:
        assert conversation.hold(client) == [*conversation.expected, conversation.ends]


@pytest.mark.parametrize("conversation", sasl.AGAIN, ids=lambda each: each.name)
def test_a_client_authenticates_again(kafka: SecuredKafka, conversation: Conversation) -> None:
    with WireClient(kafka.address("SASL_SSL"), timeout_s=5) as client:
        client.socket = kafka.wrap(client.socket)
        assert conversation.hold(client) == [*conversation.expected, conversation.ends]


def test_a_session_ends_unless_the_client_authenticates_again(kafka: SecuredKafka) -> None:
    def connect() -> WireClient:
        client = WireClient(kafka.address("SASL_SSL"), timeout_s=5)
        client.socket = kafka.wrap(client.socket)
        return client

    sasl.check_that_sessions_end(connect, sasl.LOGIN_512, ["0", "complete, 2000 ms"])


@pytest.mark.parametrize("conversation", sasl.PLAINTEXT, ids=lambda each: each.name)
def test_a_plaintext_listener_has_no_sasl(kafka: SecuredKafka, conversation: Conversation) -> None:
    with WireClient(kafka.address("PLAINTEXT"), timeout_s=5) as client:
        assert conversation.hold(client) == [*conversation.expected, conversation.ends]


def test_requests_about_scram_credentials_are_answered(kafka: SecuredKafka) -> None:
    with kafka.client("SASL_PLAINTEXT", "admin") as client:
        scram_requests.check_all(client)


@pytest.mark.parametrize(("make", "is_valid"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_signed_token_is_valid_or_not(
    kafka: SecuredKafka, issuer: Issuer, make: Callable[[Issuer], str], is_valid: bool
) -> None:
    with WireClient(kafka.address("SASL_SSL"), timeout_s=5) as client:
        client.socket = kafka.wrap(client.socket)
        sasl.BEARER(client)
        try:
            answer = client.ask(SaslAuthenticateRequest(auth_bytes=sasl.bearer(make(issuer))))
            found = answer.error_code == 0 and answer.auth_bytes == b""
        except ConnectionClosed:
            # Kafka 4.1 does not handle most errors of its library for tokens.
            found = False
        assert found == is_valid
