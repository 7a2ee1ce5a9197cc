"""Options of clients: as keyword arguments and as properties."""

from __future__ import annotations

import re
from typing import Any, get_type_hints

import pytest

from broker.security.secret import Secret
from kgctl.client.config import admin, consumer, every_client, producer
from kgctl.client.config.configuration import CLIENTS, Client, from_keywords, from_properties, options_of
from kgctl.client.config.option import BadOption
from kgctl.client.config.security import SecurityOptions
from kgctl.client.net.client_properties import KNOWN_NAMES
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Endpoint

TYPED = {"admin": admin.AdminOptions, "consumer": consumer.ConsumerOptions, "producer": producer.ProducerOptions}
# Arguments of their own.
SEPARATE = {"bootstrap.servers", "key.serializer", "value.serializer", "key.deserializer", "value.deserializer"}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_keyword_arguments_are_the_declared_options(client: Client) -> None:
    typed = {name.replace("_", ".") for name in get_type_hints(TYPED[client])}
    declared = {name for name, option in options_of(client).items() if not option.is_ignored}
    assert typed - set(KNOWN_NAMES) == declared - SEPARATE


def test_the_keyword_arguments_of_security_are_the_properties_of_security() -> None:
    typed = {name.replace("_", ".") for name in get_type_hints(SecurityOptions)}
    assert typed - {option.name for option in every_client.OPTIONS} == set(KNOWN_NAMES)


def test_defaults_are_values_of_their_options() -> None:
    for client in CLIENTS:
        for option in options_of(client).values():
            assert option.read(option.default) == option.default


def test_values_have_the_type_of_their_option_in_both_forms() -> None:
    found = from_keywords("producer", {"linger_ms": 7, "acks": 1, "bootstrap_servers": ["a:1", "b:2"]})
    assert (found["linger.ms"], found["acks"], found["bootstrap.servers"]) == (7, "1", ("a:1", "b:2"))
    found = from_properties(
        "producer", {"linger.ms": " 7 ", "enable.idempotence": "FALSE", "bootstrap.servers": "a:1, b:2"}
    )
    assert (found["linger.ms"], found["enable.idempotence"], found["bootstrap.servers"]) == (7, False, ("a:1", "b:2"))
    assert found["batch.size"] == 16_384
    assert found.is_given("linger.ms")
    assert not found.is_given("batch.size")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"linger_msec": 1}, "linger_msec: unknown option; did you mean linger_ms?"),
        ({"group_id": "g"}, "group_id: unknown option"),
        ({"sasl_mecanism": "PLAIN"}, "sasl.mecanism: unknown property; did you mean sasl.mechanism?"),
        ({"linger_ms": "soon"}, "linger.ms: 'soon' is not a whole number"),
        ({"linger_ms": True}, "linger.ms: True is not a whole number"),
        ({"linger_ms": -1}, "linger.ms: -1 is too small: it must be at least 0"),
        (
            {"delivery_timeout_ms": 1 << 31},
            "delivery.timeout.ms: 2147483648 is too large: it may be at most 2147483647",
        ),
        ({"compression_type": "rar"}, "compression.type: 'rar' is not one of none, gzip, snappy, lz4, zstd"),
        ({"enable_idempotence": "maybe"}, "enable.idempotence: 'maybe' is neither true nor false"),
        ({"linger_ms": None}, "linger.ms: None is not a value of this option"),
        ({"bootstrap_servers": ""}, "bootstrap.servers: it is missing; give the address of a broker, HOST:PORT"),
        ({"bootstrap_servers": "a:x"}, "'a:x' is not an address; write HOST:PORT"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(KgctlError, match=f"^{re.escape(message)}"):
        from_keywords("producer", {"bootstrap_servers": "a:1"} | given).connection()


def test_properties_of_other_clients_are_skipped_and_unknown_ones_refused() -> None:
    shared = {"bootstrap.servers": "a:1", "group.id": "g", "metric.reporters": "x", "linger.ms": "1"}
    assert from_properties("producer", shared)["linger.ms"] == 1
    assert from_properties("consumer", shared)["group.id"] == "g"
    with pytest.raises(BadOption, match=r"linger\.mss: unknown option; did you mean linger\.ms\?"):
        from_properties("producer", {"linger.mss": "1"})


def test_the_connection_has_addresses_and_security() -> None:
    found = from_keywords(
        "admin",
        {
            "bootstrap_servers": "a:1,b",
            "client_id": "mine",
            "default_api_timeout_ms": 5_000,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_username": "alice",
            "sasl_password": Secret("secret"),
            "enable_ssl_certificate_verification": False,
        },
    )
    settings = found.connection()
    assert settings.bootstrap == (Endpoint("a", 1), Endpoint("b", 9092))
    assert (settings.client_id, settings.timeout) == ("mine", 5.0)
    assert settings.security.sasl is not None
    assert settings.security.sasl.username == "alice"


def test_the_network_has_the_options_of_its_client() -> None:
    network = from_keywords(
        "producer", {"max_in_flight_requests_per_connection": 1, "connections_max_idle_ms": -1}
    ).network("me", read_only=True)
    assert (network.client_id, network.max_in_flight_requests_per_connection, network.read_only) == ("me", 1, True)
    assert network.connections_max_idle_ms > 1 << 50
    assert from_keywords("admin", {}).network().connections_max_idle_ms == 300_000
