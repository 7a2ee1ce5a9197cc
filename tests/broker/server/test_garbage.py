"""Well-formed requests with random values, and damaged frames: none of them harms the broker."""

from __future__ import annotations

import logging
import random
import socket
from typing import Any

import pytest

from broker.protocol.api_keys import APIS
from broker.protocol.frames import request_frame
from broker.protocol.wire_types import ARRAY, Scalar, Sequence, StructMeta
from broker.server.handlers import SERVED_KEYS
from tests.harness.requests import batch, create_topic, join_alone, metadata_of
from tests.harness.running import RunningBroker
from tests.harness.transactions import TransactionalProducer

NAMES = ["g", "t", "absent", "", "range", "consumer"]
NUMBERS = [-2, -1, 0, 1, 2, 7, 100]
EDGES = [0, 1, 127, 128, 255]


def random_message(randomness: random.Random, cls: StructMeta) -> Any:
    """A message whose values are valid often enough to pass the first checks."""
    made = object.__new__(cls)
    for field in cls.FIELDS:
        setattr(made, field.name, _value(randomness, field.type))
    return made


def _value(randomness: random.Random, kind: Any) -> Any:
    if isinstance(kind, ARRAY):
        return [_value(randomness, kind.element) for _ in range(randomness.randrange(3))]
    if isinstance(kind, StructMeta):
        return random_message(randomness, kind)
    if isinstance(kind, Sequence):
        if kind.name == "STRING":
            return randomness.choice(NAMES)
        return (
            batch(b"x")
            if kind.name == "RECORDS" and randomness.random() < 0.7
            else randomness.randbytes(randomness.randrange(80))
        )
    assert isinstance(kind, Scalar)
    if kind.size == 16:
        return randomness.choice([bytes(16), randomness.randbytes(16)])
    if kind.code == "?":
        return randomness.random() < 0.5
    return max(0, randomness.choice(NUMBERS)) if kind.code in "HI" else randomness.choice(NUMBERS)


def damaged(randomness: random.Random, frame: bytes) -> bytes:
    data = bytearray(frame)
    for _ in range(randomness.randrange(1, 4)):
        data[randomness.randrange(8, len(data))] = randomness.choice(EDGES)
    return bytes(data[: randomness.randrange(4, len(data) + 1)] if randomness.random() < 0.2 else data)


@pytest.mark.parametrize("seed", range(3))
def test_no_request_fails_the_broker_or_logs_an_error(
    running: RunningBroker, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    randomness = random.Random(seed)
    caplog.set_level(logging.ERROR)
    with running.client() as client:
        create_topic(client, "t")
        join_alone(client, "g")
        # A random id and epoch of a producer are these often enough.
        assert TransactionalProducer(client, "g").produce("t", b"x").error_code == 0
    cases = [(key, version) for key in SERVED_KEYS for version in APIS[key].versions]
    for key, version in cases * 3:
        frame = request_frame(random_message(randomness, APIS[key].request), version, 1, "garbage")
        if randomness.random() < 0.4:
            frame = damaged(randomness, frame)
        with socket.create_connection(running.address, timeout=5) as sock:
            sock.sendall(frame)
            if randomness.random() < 0.3:
                sock.shutdown(socket.SHUT_WR)
                sock.recv(65536)
        assert not running.broker.failed.done(), (key, version, frame)
    with running.client() as client:
        assert metadata_of(client).brokers
    assert caplog.records == []
    # Also not a transaction that is open in a partition only.
    caplog.set_level(logging.WARNING)
    running.restart()
    with running.client() as client:
        assert metadata_of(client).brokers
    assert caplog.records == []
