"""A real Kafka gives the answers to SASL conversations that our broker is tested with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness import sasl_conversations as sasl
from tests.harness import scram_requests
from tests.harness.sasl_conversations import Conversation
from tests.harness.secured_kafka import SecuredKafka, unsecured_token
from tests.harness.wire_client import WireClient

pytestmark = pytest.mark.reference


@pytest.fixture(scope="module")
def kafka() -> Iterator[SecuredKafka]:
    # Sessions of the other listener end, but SASL_PLAINTEXT is also that of the broker itself.
    config = {
        "connection.failed.authentication.delay.ms": "0",
        "listener.name.sasl_ssl.connections.max.reauth.ms": "60000",
    }
    with SecuredKafka(config) as kafka:
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


@pytest.mark.parametrize("conversation", sasl.PLAINTEXT, ids=lambda each: each.name)
def test_a_plaintext_listener_has_no_sasl(kafka: SecuredKafka, conversation: Conversation) -> None:
    with WireClient(kafka.address("PLAINTEXT"), timeout_s=5) as client:
        assert conversation.hold(client) == [*conversation.expected, conversation.ends]


def test_requests_about_scram_credentials_are_answered(kafka: SecuredKafka) -> None:
    with kafka.client("SASL_PLAINTEXT", "admin") as client:
        scram_requests.check_all(client)
