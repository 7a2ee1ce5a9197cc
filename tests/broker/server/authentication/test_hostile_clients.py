"""Clients that never authenticate: random and damaged messages, endless ones, and slow ones, beside clients that are served."""

from __future__ import annotations

import contextlib
import logging
import random
import socket
import time
from pathlib import Path

import pytest

from broker.protocol.frames import request_frame
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from broker.server.authentication.gate import MAX_FRAMES
from tests.harness import sasl_conversations as sasl
from tests.harness.running import DEADLINE_S, RunningBroker, until
from tests.harness.secured_kafka import unsecured_token
from tests.harness.wire_client import WireClient

LISTENER = "SASL_PLAINTEXT"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "X")
TOKENS = (
    b"\0alice\0wrong",
    b"n,,n=alice,r=c",
    b"c=biws,r=cs,p=AAAA",
    sasl.bearer(unsecured_token("alice", -60)),
    b"\x01",
    b"",
)


def started(data_dir: Path, **options: str) -> RunningBroker:
    return RunningBroker(
        data_dir,
        **{
            "listeners": f"{LISTENER}://127.0.0.1:0",
            "connection.failed.authentication.delay.ms": "0",
            **sasl.options_of("sasl_plaintext"),
            **options,
        },
    )


def served(running: RunningBroker) -> WireClient:
    client = running.client(LISTENER)
    sasl.PLAIN(client)
    sasl.token(sasl.ALICE)(client)
    return client


def random_bytes(randomness: random.Random) -> bytes:
    """Some frames of a conversation that cannot succeed, mostly in a sensible order, some of them damaged."""
    mechanism = randomness.choice(MECHANISMS)
    frames = []
    for _ in range(randomness.randrange(1, 6)):
        kind = randomness.randrange(7)
        if kind == 0:
            frame = request_frame(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3, 1, "c")
        elif kind == 1:
            frame = request_frame(SaslHandshakeRequest(mechanism=mechanism), randomness.randrange(2), 2, "c")
        elif kind in (2, 3):
            token = randomness.choice(TOKENS)
            frame = request_frame(SaslAuthenticateRequest(auth_bytes=token), randomness.randrange(3), 3, "c")
        elif kind == 4:
            token = randomness.choice([*TOKENS, randomness.randbytes(30)])
            frame = len(token).to_bytes(4, "big") + token
        elif kind == 5:
            frame = request_frame(MetadataRequest(topics=[]), 1, 4, "c")
        else:
            frame = randomness.randbytes(randomness.randrange(1, 60))
        frames.append(bytearray(frame))
    frames.insert(0, bytearray(request_frame(SaslHandshakeRequest(mechanism=mechanism), 1, 0, "c")))
    for frame in frames:
        if randomness.random() < 0.2:
            frame[randomness.randrange(len(frame))] = randomness.choice([0, 1, 127, 128, 255])
        if randomness.random() < 0.05:
            del frame[randomness.randrange(len(frame)) :]
    return b"".join(frames[randomness.randrange(2) :])


@pytest.mark.parametrize("seed", range(3))
def test_random_messages_let_nobody_in_and_fail_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    randomness = random.Random(seed)
    with started(tmp_path) as running, served(running) as client:
        for _ in range(150):
            data = random_bytes(randomness)
            with socket.create_connection(running.addresses[LISTENER], timeout=DEADLINE_S) as hostile:
                cut = randomness.randrange(len(data) + 1)
                # The broker may have closed the connection.
                with contextlib.suppress(ConnectionError):
                    for part in (data[:cut], data[cut:]):
                        hostile.sendall(part)
                    if randomness.random() < 0.5:
                        with contextlib.suppress(OSError):
                            hostile.shutdown(socket.SHUT_WR)
                        while hostile.recv(65536):
                            pass
            inside = running.run(lambda: [each for each in running.broker.connections if each.session.authenticated])
            assert len(inside) == 1, data
        assert sasl.metadata(client) == "served"
        assert not running.broker.failed.done()
        with served(running) as another:
            assert sasl.metadata(another) == "served"
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_an_endless_conversation_is_closed(tmp_path: Path) -> None:
    with started(tmp_path) as running, running.client(LISTENER) as client:
        sasl.BEARER(client)
        answers = [sasl.token(sasl.bearer("abc"))(client) for _ in range(MAX_FRAMES - 1)]
        assert set(answers) == {f"0 {sasl.INVALID}"}
        assert sasl.token(sasl.bearer("abc"))(client) == "closed"


def test_what_follows_a_refusal_is_not_kept(tmp_path: Path) -> None:
    options = {"connection.failed.authentication.delay.ms": "500"}
    with started(tmp_path, **options) as running, running.client(LISTENER) as client:
        client.send(SaslHandshakeRequest(mechanism="X"), 1)
        client.socket.settimeout(0.2)
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 64 << 20:
                sent += client.socket.send(bytes(65536))
        # Only what the system buffers.
        assert sent < 64 << 20


def test_slow_clients_are_closed_in_time_beside_one_that_is_served(tmp_path: Path) -> None:
    """They send a byte now and then, so that they are never idle."""
    with started(tmp_path, **{"connections.max.idle.ms": "1000"}) as running, served(running) as client:
        frame = request_frame(SaslHandshakeRequest(mechanism="PLAIN"), 1, 0, "c" * 30_000)
        slow = [socket.create_connection(running.addresses[LISTENER]) for _ in range(100)]
        until(lambda: running.run(lambda: len(running.broker.connections)) == 101)
        position = 0

        def trickle() -> bool:
            nonlocal position
            for each in slow:
                with contextlib.suppress(OSError):
                    each.sendall(frame[position : position + 1])
            position += 1
            time.sleep(0.02)
            assert sasl.metadata(client) == "served"
            return running.run(lambda: len(running.broker.connections)) == 1

        until(trickle)
        for each in slow:
            each.close()
        assert sasl.metadata(client) == "served"


def test_messages_of_strangers_do_not_displace_the_requests_of_a_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.server.held_bytes.HELD_BYTES", 1 << 20)
    monkeypatch.setattr("broker.server.held_bytes.STRANGERS_BYTES", 1 << 20)
    limits = {"socket.request.max.bytes": "500000"}
    with started(tmp_path, **limits) as running, served(running) as client, contextlib.ExitStack() as stack:
        frame = client.frame(MetadataRequest(topics=[]), 1)
        large = (500_000).to_bytes(4, "big") + frame[4:] + bytes(500_000 - len(frame) + 4)
        client.send_bytes(large[:490_000])
        strangers = [stack.enter_context(running.client(LISTENER)) for _ in range(5)]
        for size, stranger in enumerate(strangers, 400_000):
            stranger.send_bytes((524_288).to_bytes(4, "big") + bytes(size))
        until(lambda: running.run(lambda: len(running.broker.connections)) == 3)
        client.send_bytes(large[490_000:])
        assert client.receive().brokers
