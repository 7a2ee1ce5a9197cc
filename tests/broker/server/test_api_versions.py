"""ApiVersions lists the served requests, in the versions of Kafka 4.1."""

from __future__ import annotations

from broker.protocol.messages.api_versions import ApiVersionsRequest
from tests.harness.running import RunningBroker
from tests.harness.streams_groups import REFUSED, refusal
from tests.harness.wire_client import WireClient

# As Kafka 4.1.0 advertises them.
KAFKA_4_1 = {
    0: (0, 13),
    1: (4, 18),
    2: (1, 10),
    3: (0, 13),
    8: (2, 9),
    9: (1, 9),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    17: (0, 1),
    18: (0, 4),
    19: (2, 7),
    20: (1, 6),
    21: (0, 2),
    22: (0, 5),
    23: (2, 4),
    24: (0, 5),
    25: (0, 4),
    26: (0, 5),
    27: (1, 1),
    28: (0, 5),
    29: (1, 3),
    30: (1, 3),
    31: (1, 3),
    32: (1, 4),
    33: (0, 2),
    35: (1, 4),
    36: (0, 2),
    37: (0, 3),
    42: (0, 2),
    44: (0, 1),
    47: (0, 0),
    48: (0, 1),
    49: (0, 1),
    50: (0, 0),
    51: (0, 0),
    57: (0, 2),
    60: (0, 2),
    61: (0, 0),
    65: (0, 0),
    66: (0, 2),
    68: (0, 1),
    69: (0, 1),
    74: (0, 1),
    75: (0, 0),
    76: (1, 1),
    77: (1, 1),
    78: (1, 1),
    79: (1, 1),
    90: (0, 0),
    91: (0, 0),
    92: (0, 0),
}
NATIVE = {10000: (0, 2), 10001: (0, 0), 10002: (0, 0), 10003: (0, 0), 10004: (0, 0)}


def test_the_ranges_are_those_of_kafka_and_of_our_own_keys(client: WireClient) -> None:
    answer = client.ask(ApiVersionsRequest(client_software_name="test", client_software_version="1.0"))

    advertised = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    assert advertised == KAFKA_4_1 | NATIVE


def test_every_version_answers_the_same_ranges(client: WireClient) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    answers = [client.ask(request, version).api_keys for version in range(5)]

    assert all(rows == answers[0] for rows in answers)


def test_streams_groups_are_refused_as_a_disabled_feature(running: RunningBroker) -> None:
    assert "streams" in running.config.group_coordinator_rebalance_protocols
    assert refusal(running.address) == REFUSED
