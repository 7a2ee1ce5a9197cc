"""Our broker holds SASL conversations as Kafka does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import sasl_conversations as sasl
from tests.harness.running import RunningBroker
from tests.harness.sasl_conversations import Conversation
from tests.harness.secured_kafka import unsecured_token


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    names = "CLIENTS", "AGAIN"
    options = {
        "listeners": ",".join(["PLAINTEXT://127.0.0.1:0", *(f"{name}://127.0.0.1:0" for name in names)]),
        "listener.security.protocol.map": ",".join(
            ["PLAINTEXT:PLAINTEXT", *(f"{name}:SASL_PLAINTEXT" for name in names)]
        ),
        "connection.failed.authentication.delay.ms": "10",
        "listener.name.again.connections.max.reauth.ms": "60000",
        **{name: value for listener in names for name, value in sasl.options_of(listener.lower()).items()},
    }
    with RunningBroker(tmp_path_factory.mktemp("data"), **options) as running:
        with running.client("PLAINTEXT") as admin:
            sasl.add_scram_users(admin)
        yield running


@pytest.mark.parametrize(
    "conversation", [*sasl.FIRST, *sasl.SCRAM, *sasl.token_conversations(unsecured_token)], ids=lambda each: each.name
)
def test_a_client_authenticates(running: RunningBroker, conversation: Conversation) -> None:
    with running.client("CLIENTS") as client:
        assert conversation.hold(client) == [*conversation.expected, conversation.ends]


@pytest.mark.parametrize("conversation", sasl.AGAIN, ids=lambda each: each.name)
def test_a_client_authenticates_again(running: RunningBroker, conversation: Conversation) -> None:
    with running.client("AGAIN") as client:
        assert conversation.hold(client) == [*conversation.expected, conversation.ends]


@pytest.mark.parametrize("conversation", sasl.PLAINTEXT, ids=lambda each: each.name)
def test_a_plaintext_listener_has_no_sasl(running: RunningBroker, conversation: Conversation) -> None:
    with running.client("PLAINTEXT") as client:
        assert conversation.hold(client) == [*conversation.expected, conversation.ends]


def test_a_failed_authentication_is_answered_after_the_delay(tmp_path: Path) -> None:
    options = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "connection.failed.authentication.delay.ms": "300",
        **sasl.options_of("sasl_plaintext"),
    }
    with RunningBroker(tmp_path, **options) as running, running.client("SASL_PLAINTEXT") as client:
        sasl.PLAIN(client)
        client.send(sasl.SaslAuthenticateRequest(auth_bytes=b"\0alice\0x"))
        assert client.is_quiet(0.1)
        # What follows the failed token is not read.
        client.send_bytes(b"\0\0\0\x01")
        assert client.receive().error_code == 58
        assert client.is_closed()
