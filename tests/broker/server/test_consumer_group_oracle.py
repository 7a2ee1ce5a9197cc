"""Recorded walks of consumer groups over sockets: everything between the core and the wire."""

from __future__ import annotations

import pytest

from tests.broker.cores.groups.consumer.test_oracle import WITH_CLASSIC_MEMBERS
from tests.harness.oracle.consumer.files import read, recording
from tests.harness.oracle.consumer.replay import on_our_broker

SAMPLE = 8
# As long as the coordinator has no such setting.
UNKNOWN = "group.consumer.migration.policy"


@pytest.mark.parametrize("kind", ["consumer", "max-size"])
def test_a_broker_answers_and_stores_what_kafka_did(kind: str) -> None:
    header, walks = read(recording(kind))
    settings = {name: value for name, value in header["settings"].items() if name != UNKNOWN}
    compared = [walk for walk in walks if walk["seed"] not in WITH_CLASSIC_MEMBERS[kind]][:SAMPLE]
    differences = on_our_broker({"settings": settings}, compared)
    assert not differences, "\n".join(map(str, differences[:5]))
