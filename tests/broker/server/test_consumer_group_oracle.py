"""Recorded walks of consumer groups over sockets: everything between the core and the wire."""

from __future__ import annotations

import pytest

from tests.harness.oracle.consumer.files import read, recording
from tests.harness.oracle.consumer.replay import on_our_broker

SAMPLE = 8


@pytest.mark.parametrize("kind", ["consumer", "max-size", "migration"])
def test_a_broker_answers_and_stores_what_kafka_did(kind: str) -> None:
    header, walks = read(recording(kind))
    differences = on_our_broker(header, walks[:SAMPLE])
    assert not differences, "\n".join(map(str, differences[:5]))
