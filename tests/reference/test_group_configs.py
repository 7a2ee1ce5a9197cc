"""A Kafka refuses and shows the configs of groups as tests/harness/group_configs.py says, and refuses streams groups as we do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.protocol.errors import ErrorCode
from tests.harness.group_configs import CASES, DEFAULT, DEFAULTS, OPTIONS, alter, describe
from tests.harness.reference_kafka import KafkaTools, ReferenceKafka
from tests.harness.streams_groups import REFUSED, refusal
from tests.harness.wire_client import WireClient


@pytest.fixture
def kafka(tools: KafkaTools) -> Iterator[ReferenceKafka]:
    with ReferenceKafka(OPTIONS) as kafka:
        yield kafka


def test_kafka_refuses_and_shows_the_same(kafka: ReferenceKafka) -> None:
    host, _, port = kafka.bootstrap_servers.rpartition(":")
    with WireClient((host, int(port))) as client:
        assert describe(client, "g") == {name: (value, DEFAULT) for name, value in DEFAULTS.items()}
        answers = [(changes, alter(client, "g", {**changes}, only_check=True)) for changes, _ in CASES]
    expected = [
        (changes, (ErrorCode.NONE, None) if message is None else (ErrorCode.INVALID_CONFIG, message))
        for changes, message in CASES
    ]
    assert answers == expected
    assert refusal((host, int(port))) == REFUSED
