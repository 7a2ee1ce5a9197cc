"""Share groups (KIP-932): how fast share consumers acquire records, and acknowledge them with their next ShareFetch."""

from __future__ import annotations

import base64
import contextlib
import selectors
import socket
import time
import uuid
from collections.abc import Sequence

from bench import wire
from bench.wire import Refused
from broker.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from broker.protocol.messages.update_features import UpdateFeaturesRequest
from broker.protocol.record_batch import Record, build_batch

PARTITIONS = 4
VALUE_BYTES = 100
ACQUIRED_AT_ONCE = 500
WAIT_MS = 10
ASSIGNED_WITHIN_S, DONE_WITHIN_S = 30.0, 120.0
_GROUP_RESOURCE, _SET, _ACCEPT = 32, 0, 1


def prepare(address: tuple[str, int], topic: str, groups: Sequence[str], records: int, in_a_batch: int) -> None:
    """Enable share groups, and make a topic with these records, which the groups read from the start."""
    update = UpdateFeaturesRequest.Update(feature="share.version", max_version_level=1)
    start = IncrementalAlterConfigsRequest.Config(
        name="share.auto.offset.reset", config_operation=_SET, value="earliest"
    )
    resources = [
        IncrementalAlterConfigsRequest.Resource(resource_type=_GROUP_RESOURCE, resource_name=group, configs=[start])
        for group in groups
    ]
    with wire.connect(address) as sock:
        for request in (
            UpdateFeaturesRequest(feature_updates=[update]),
            IncrementalAlterConfigsRequest(resources=resources),
        ):
            answer = wire.ask(sock, request)
            problems = [row.error_message for row in getattr(answer, "responses", [answer]) if row.error_code]
            if problems:
                raise Refused(f"{type(request).__name__}: {problems}")
    wire.make_topic(address, topic, PARTITIONS)
    _fill(address, topic, records, in_a_batch)


def seconds(address: tuple[str, int], topic: str, group: str, consumers: int, records: int) -> float:
    """From the first ShareFetch of the consumers until all records are acknowledged."""
    with contextlib.ExitStack() as sockets:
        members = [ShareConsumer(sockets.enter_context(wire.connect(address)), group, topic) for _ in range(consumers)]
        _assign(members)
        with selectors.DefaultSelector() as selector:
            for member in members:
                selector.register(member.sock, selectors.EVENT_READ, member)
            began = time.perf_counter()
            for member in members:
                member.fetch()
            while sum(member.acknowledged for member in members) < records:
                if time.perf_counter() - began > DONE_WITHIN_S:
                    raise Refused(f"{[member.acknowledged for member in members]} of {records} records acknowledged")
                for key, _ in selector.select(1.0):
                    key.data.receive()
                    key.data.fetch()
            return time.perf_counter() - began


class ShareConsumer:
    """A member with a share session, which accepts all that it acquires."""

    def __init__(self, sock: socket.socket, group: str, topic: str) -> None:
        self.sock, self._group, self._topic = sock, group, topic
        self._id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._member_epoch = self._session_epoch = 0
        self.assigned: dict[bytes, list[int]] = {}
        self._acquired: dict[tuple[bytes, int], list[tuple[int, int]]] = {}
        self._in_request = 0  # acknowledgements that the answer confirms
        self.acknowledged = 0
        self._asked: ShareFetchRequest

    def heartbeat(self) -> None:
        request = ShareGroupHeartbeatRequest(group_id=self._group, member_id=self._id, member_epoch=self._member_epoch)
        if not self._member_epoch:
            request.subscribed_topic_names = [self._topic]
        answer = wire.ask(self.sock, request)
        if answer.error_code:
            raise Refused(f"ShareGroupHeartbeat: error {answer.error_code}: {answer.error_message}")
        self._member_epoch = answer.member_epoch
        if answer.assignment is not None:
            self.assigned = {row.topic_id: row.partitions for row in answer.assignment.topic_partitions}

    def fetch(self) -> None:
        """Send a ShareFetch that accepts what the one before has acquired."""
        places = {(topic_id, number): () for topic_id, numbers in self.assigned.items() for number in numbers}
        wanted = self._acquired if self._session_epoch else places
        topics: dict[bytes, list[ShareFetchRequest.Partition]] = {}
        for (topic_id, number), ranges in wanted.items():
            batches = [
                ShareFetchRequest.AcknowledgementBatch(
                    first_offset=first, last_offset=last, acknowledge_types=[_ACCEPT]
                )
                for first, last in ranges
            ]
            part = ShareFetchRequest.Partition(partition_index=number, acknowledgement_batches=batches)
            topics.setdefault(topic_id, []).append(part)
        self._in_request = sum(last - first + 1 for ranges in self._acquired.values() for first, last in ranges)
        self._asked = ShareFetchRequest(
            group_id=self._group,
            member_id=self._id,
            share_session_epoch=self._session_epoch,
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_records=ACQUIRED_AT_ONCE,
            batch_size=ACQUIRED_AT_ONCE,
            topics=[ShareFetchRequest.Topic(topic_id=topic_id, partitions=parts) for topic_id, parts in topics.items()],
        )
        self._session_epoch += 1
        self.sock.sendall(wire.frame(self._asked))

    def receive(self) -> None:
        answer: ShareFetchResponse = wire.answer_to(self._asked, wire.read_frame(self.sock))
        self._acquired = {}
        codes = [answer.error_code]
        for row in answer.responses:
            for part in row.partitions:
                codes += part.error_code, part.acknowledge_error_code
                if part.acquired_records:
                    ranges = [(acquired.first_offset, acquired.last_offset) for acquired in part.acquired_records]
                    self._acquired[row.topic_id, part.partition_index] = ranges
        if any(codes):
            raise Refused(f"ShareFetch: errors {codes}")
        self.acknowledged += self._in_request


def _assign(members: Sequence[ShareConsumer]) -> None:
    """Send heartbeats until the members have all partitions, and each has one."""
    until = time.perf_counter() + ASSIGNED_WITHIN_S
    while True:
        for member in members:
            member.heartbeat()
        numbers = [number for member in members for part in member.assigned.values() for number in part]
        if len({*numbers}) == PARTITIONS and all(member.assigned for member in members):
            return
        if time.perf_counter() > until:
            raise Refused(f"the members were assigned only {numbers}")
        time.sleep(0.05)


def _fill(address: tuple[str, int], topic: str, records: int, in_a_batch: int) -> None:
    """Produce the same batch again and again, in turn to all partitions."""
    now_ms = int(time.time() * 1000)
    batch = build_batch([Record(offset, now_ms, None, bytes(VALUE_BYTES), ()) for offset in range(in_a_batch)])
    with wire.connect(address) as sock:
        for _ in range(records // (in_a_batch * PARTITIONS)):
            left = set(range(PARTITIONS))
            until = time.perf_counter() + ASSIGNED_WITHIN_S
            while left:
                # A Kafka may not lead a new partition yet.
                left -= _accepted(sock, topic, batch, left)
                if time.perf_counter() > until:
                    raise Refused(f"partitions {left} of {topic} accept no records")


def _accepted(sock: socket.socket, topic: str, batch: bytes, partitions: set[int]) -> set[int]:
    """The partitions that have accepted the batch."""
    parts = [ProduceRequest.Partition(index=number, records=batch) for number in partitions]
    data = [ProduceRequest.Topic(name=topic, partition_data=parts)]
    answer = wire.ask(sock, ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data))
    return {part.index for row in answer.responses for part in row.partition_responses if not part.error_code}
