"""Against scripted nodes: a leader that moves during a read, and fetches that run ahead."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from broker.protocol.api_keys import APIS
from broker.protocol.codec import decode
from broker.protocol.errors import ErrorCode
from broker.protocol.frames import decode_request_header, response_frame
from broker.protocol.messages.api_versions import ApiVersionsResponse
from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from broker.protocol.messages.metadata import MetadataResponse
from broker.protocol.record_batch import Record, build_batch
from broker.protocol.wire_types import Message
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Endpoint
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.source.ranges import OffsetRange
from kgctl.pipelines.source.reading import Patience, ReadTask
from kgctl.pipelines.source.tasks import read_task

API_VERSIONS, METADATA, FETCH = 18, 3, 1


class TwoNodes:
    """Nodes 0 and 1 with one partition of 100 records; from `moves_at` on node 1 leads it, or none if not `arrives`."""

    def __init__(self, moves_at: int, *, arrives: bool = True) -> None:
        self._moves_at, self._arrives = moves_at, arrives
        self._leader = 0
        self._servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        self.endpoints = [Endpoint(*server.getsockname()) for server in self._servers]
        self.fetches: list[tuple[int, int]] = []
        self._came = threading.Condition()

    @contextlib.contextmanager
    def running(self) -> Iterator[TwoNodes]:
        threads = [threading.Thread(target=self._accept, args=(node,), daemon=True) for node in (0, 1)]
        for thread in threads:
            thread.start()
        yield self
        for server, endpoint in zip(self._servers, self.endpoints, strict=True):
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                socket.create_connection(endpoint).close()
            server.close()
        for thread in threads:
            thread.join(5)

    def have_been_asked(self, times: int) -> bool:
        """Whether this many fetches arrive within ten seconds."""
        with self._came:
            return self._came.wait_for(lambda: len(self.fetches) >= times, 10)

    def _accept(self, node: int) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._servers[node].accept()
                threading.Thread(target=self._serve, args=(node, connection), daemon=True).start()

    def _serve(self, node: int, connection: socket.socket) -> None:
        # The reader disconnects with a fetch in flight when it is done.
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as stream:
            while len(size := stream.read(4)) == 4:
                frame = stream.read(struct.unpack(">i", size)[0])
                header = decode_request_header(frame)
                answer = self._answer(node, header.api_key, header.api_version, frame, header.body_offset)
                connection.sendall(response_frame(answer, header.api_version, header.correlation_id))

    def _answer(self, node: int, api_key: int, version: int, frame: bytes, body: int) -> Message:
        if api_key == API_VERSIONS:
            row = ApiVersionsResponse.ApiKey
            known = [
                row(api_key=key, min_version=APIS[key].versions[0], max_version=APIS[key].versions[-1])
                for key in (1, 3, 18)
            ]
            return ApiVersionsResponse(api_keys=known)
        if api_key == METADATA:
            brokers = [
                MetadataResponse.Broker(node_id=n, host=e.host, port=e.port) for n, e in enumerate(self.endpoints)
            ]
            partition = MetadataResponse.Partition(
                partition_index=0, leader_id=self._leader, replica_nodes=[0, 1], isr_nodes=[0, 1]
            )
            topic = MetadataResponse.Topic(name="t", partitions=[partition])
            return MetadataResponse(brokers=brokers, topics=[topic])
        request = decode(FetchRequest, frame, version, body)
        offset = request.topics[0].partitions[0].fetch_offset
        with self._came:
            self.fetches.append((node, offset))
            self._came.notify_all()
        moved = offset >= self._moves_at
        if moved and self._arrives:
            self._leader = 1
        row = FetchResponse.Partition(partition_index=0, high_watermark=100, last_stable_offset=100, records=None)
        if moved != (node == 1):
            row.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        else:
            row.records = build_batch([Record(offset + n, 0, None, b"x") for n in range(10)])
        return FetchResponse(responses=[FetchResponse.Topic(topic="t", partitions=[row])])


def task(nodes: TwoNodes, **patience: float) -> ReadTask:
    place = OffsetRange(TopicPartition("t", 0), 0, 100)
    return ReadTask(ConnectionSettings((nodes.endpoints[0],)), place, FetchOptions(), patience=Patience(**patience))


def test_the_new_leader_is_asked_for_the_rest() -> None:
    with TwoNodes(moves_at=40).running() as nodes:
        offsets = [offset for made in read_task(task(nodes)) for offset in made.column("offset").to_pylist()]
    assert offsets == list(range(100))
    # Until the metadata names the new leader, the old one may be asked again.
    asked = list(dict.fromkeys(nodes.fetches))
    assert asked == [(0, n) for n in range(0, 50, 10)] + [(1, n) for n in range(40, 100, 10)]


def test_the_next_fetch_is_in_flight_while_an_answer_is_used() -> None:
    with TwoNodes(moves_at=1000).running() as nodes:
        batches = read_task(task(nodes))
        next(batches)
        assert nodes.have_been_asked(2)
        next(batches)
        assert nodes.have_been_asked(3)
        batches.close()  # type: ignore[attr-defined]


def test_a_partition_without_a_leader_fails_after_the_timeout() -> None:
    with TwoNodes(moves_at=40, arrives=False).running() as nodes, pytest.raises(KgctlError, match=r"t-0.*NOT_LEADER"):
        list(read_task(task(nodes, outage=0.5)))
