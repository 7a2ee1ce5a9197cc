"""Real clients authenticate with each mechanism, and report wrong passwords and tokens."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.harness import sasl_conversations as sasl
from tests.harness.running import RunningBroker
from tests.harness.secured_kafka import unsecured_token

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
GOOD, BAD = "alice-secret", "wrong"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    listeners = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
    options = {"listeners": listeners, **sasl.options_of("sasl_plaintext")}
    with RunningBroker(tmp_path_factory.mktemp("data"), **options) as running:
        with running.client("PLAINTEXT") as admin:
            sasl.add_scram_users(admin)
        yield "{}:{}".format(*running.addresses["SASL_PLAINTEXT"])


def token_for(password: str) -> str:
    return unsecured_token("alice") if password == GOOD else "not-a-token"


def librdkafka(address: str, mechanism: str, password: str) -> str:
    from confluent_kafka import KafkaError, Producer

    errors: list[KafkaError] = []
    options: dict[str, Any] = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": mechanism,
        "log_level": 0,
        "error_cb": errors.append,
    }
    if mechanism == "OAUTHBEARER":
        options["oauth_cb"] = lambda _: (token_for(password), 4e9, "alice", {})
    else:
        options |= {"sasl.username": "alice", "sasl.password": password}
    producer = Producer(options)
    producer.produce("t", b"x", on_delivery=lambda error, _: errors.append(error) if error else None)
    while len(producer) and not errors:
        producer.poll(0.05)
    producer.purge()
    producer.flush(5)
    return str(errors[0]) if errors else "sent"


def kafka_python(address: str, mechanism: str, password: str) -> str:
    from kafka import KafkaProducer
    from kafka.errors import KafkaError
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Tokens(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return token_for(password)

    try:
        producer = KafkaProducer(
            bootstrap_servers=address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username="alice",
            sasl_plain_password=password,
            sasl_oauth_token_provider=Tokens(),
            bootstrap_timeout_ms=2000,
        )
        try:
            producer.send("t", b"x").get(5)
        finally:
            producer.close(5)
    except KafkaError as error:
        return repr(error)
    return "sent"


def aiokafka(address: str, mechanism: str, password: str) -> str:
    from aiokafka import AIOKafkaProducer
    from aiokafka.abc import AbstractTokenProvider
    from aiokafka.errors import KafkaError

    class Tokens(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return token_for(password)

    async def send() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username="alice",
            sasl_plain_password=password,
            sasl_oauth_token_provider=Tokens(),
        )
        try:
            await producer.start()
            await producer.send_and_wait("t", b"x")
        finally:
            await producer.stop()

    try:
        asyncio.run(send())
    except KafkaError as error:
        return repr(error)
    return "sent"


CLIENTS = {"librdkafka": librdkafka, "kafka-python": kafka_python, "aiokafka": aiokafka}
Send = Callable[[str, str, str], str]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("send", CLIENTS.values(), ids=CLIENTS)
def test_a_client_with_good_credentials_is_served(address: str, mechanism: str, send: Send) -> None:
    assert send(address, mechanism, GOOD) == "sent"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("send", CLIENTS.values(), ids=CLIENTS)
def test_a_client_with_bad_credentials_gets_an_error(address: str, mechanism: str, send: Send) -> None:
    assert re.search(
        "(?i)authenticat|invalid_token|unable to bootstrap|NoBrokersAvailable", send(address, mechanism, BAD)
    )
