"""Blocking requests over `broker.protocol`, for preparations that are not measured."""

from __future__ import annotations

import socket
import struct
import time
from typing import Any, TypeVar

from broker.protocol import frames
from broker.protocol.api_keys import APIS
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from broker.protocol.messages.create_topics import CreateTopicsRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.messages.share_fetch import ShareFetchRequest
from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from broker.protocol.messages.update_features import UpdateFeaturesRequest
from broker.protocol.record_batch import Record, build_batch
from broker.protocol.wire_types import Message

# Versions that every broker since Kafka 3 supports; of consumer groups, since 4, and of share groups, since 4.1.
VERSIONS: dict[type[Message], int] = {
    ConsumerGroupDescribeRequest: 0,
    ConsumerGroupHeartbeatRequest: 0,
    CreateTopicsRequest: 5,
    DescribeGroupsRequest: 5,
    HeartbeatRequest: 4,
    IncrementalAlterConfigsRequest: 1,
    JoinGroupRequest: 7,
    LeaveGroupRequest: 4,
    ListGroupsRequest: 4,
    MetadataRequest: 7,
    OffsetCommitRequest: 8,
    OffsetFetchRequest: 8,
    ProduceRequest: 7,
    ShareFetchRequest: 1,
    ShareGroupHeartbeatRequest: 1,
    SyncGroupRequest: 5,
    UpdateFeaturesRequest: 1,
}
CLIENT_ID = "bench"
SESSION_TIMEOUT_MS = 60_000
M = TypeVar("M", bound=Message)


class Refused(Exception):
    """The broker returned an error where the measurement requires success."""


def connect(address: tuple[str, int]) -> socket.socket:
    sock = socket.create_connection(address, 30)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def frame(message: Message) -> bytes:
    return frames.request_frame(message, VERSIONS[type(message)], 1, CLIENT_ID)


def answers(sock: socket.socket) -> None:
    """Wait until the broker has accepted this connection and those before it."""
    ask(sock, HeartbeatRequest(group_id="bench-none", generation_id=0, member_id="none"))


def ask(sock: socket.socket, message: Message) -> Any:
    """The decoded response."""
    return answer_to(message, ask_raw(sock, frame(message))[4:])


def ask_raw(sock: socket.socket, framed: bytes) -> bytes:
    """The raw response with its length prefix."""
    sock.sendall(framed)
    head = _exactly(sock, 4)
    return head + _exactly(sock, struct.unpack(">i", head)[0])


def read_frame(sock: socket.socket) -> bytes:
    """The next response without its length prefix."""
    return _exactly(sock, struct.unpack(">i", _exactly(sock, 4))[0])


def answer_to(message: Message, response: bytes) -> Any:
    return frames.decode_response(APIS[message.API_KEY].response, response, VERSIONS[type(message)])[1]


def make_topic(address: tuple[str, int], topic: str, partitions: int = 1) -> None:
    """Create a topic and wait for its leaders."""
    wanted = CreateTopicsRequest.Topic(
        name=topic, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
    )
    with connect(address) as sock:
        answer = ask(sock, CreateTopicsRequest(topics=[wanted], timeout_ms=10_000))
        _expect([created.error_code for created in answer.topics], f"create {topic}")
        _wait_for_leaders(sock, topic, partitions)


def _wait_for_leaders(sock: socket.socket, topic: str, partitions: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        (seen,) = ask(sock, MetadataRequest(topics=[MetadataRequest.Topic(name=topic)])).topics
        led = [p for p in seen.partitions if p.error_code == ErrorCode.NONE and p.leader_id >= 0]
        if seen.error_code == ErrorCode.NONE and len(led) == partitions:
            return
        time.sleep(0.002)
    raise Refused(f"{topic} got no leaders")


def produce_one(address: tuple[str, int], topic: str) -> None:
    """Produce a record with acks=all and wait for its acknowledgement."""
    produce(address, topic, 1, 1)


def produce(address: tuple[str, int], topic: str, partitions: int, count: int) -> None:
    """Produce this many records to each of the first partitions, with acks=all."""
    now_ms = int(time.time() * 1000)
    batch = build_batch([Record(offset, now_ms, None, b"first", ()) for offset in range(count)])
    placed = ProduceRequest.Topic(
        name=topic,
        partition_data=[ProduceRequest.Partition(index=number, records=batch) for number in range(partitions)],
    )
    with connect(address) as sock:
        answer = ask(sock, ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[placed]))
    _expect([p.error_code for t in answer.responses for p in t.partition_responses], "produce")


def join_alone(sock: socket.socket, group: str) -> tuple[str, int]:
    """Become the only member of a stable group. Returns (member id, generation)."""
    member_id = ""
    for _ in range(2):
        joined = ask(sock, join_request(group, member_id))
        member_id = joined.member_id
        if joined.error_code != ErrorCode.MEMBER_ID_REQUIRED:
            break
    _expect([joined.error_code], f"join {group}")
    synced = ask(sock, sync_request(group, member_id, joined.generation_id, [member_id]))
    _expect([synced.error_code], f"sync {group}")
    return member_id, joined.generation_id


def join_request(group: str, member_id: str, timeout_ms: int = SESSION_TIMEOUT_MS) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=timeout_ms,
        rebalance_timeout_ms=timeout_ms,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.Protocol(name="range", metadata=SUBSCRIPTION)],
    )


def sync_request(group: str, member_id: str, generation: int, members: list[str]) -> SyncGroupRequest:
    given = [SyncGroupRequest.Assignment(member_id=member, assignment=ASSIGNMENT) for member in members]
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=given,
    )


# Version 0 of the consumer protocol, with one partition of one topic.
SUBSCRIPTION = struct.pack(">hih5si", 0, 1, 5, b"bench", -1)
ASSIGNMENT = struct.pack(">hih5siii", 0, 1, 5, b"bench", 1, 0, -1)


def _expect(codes: list[int], what: str) -> None:
    if any(codes):
        raise Refused(f"{what}: errors {codes}")


def _exactly(sock: socket.socket, size: int) -> bytes:
    pieces = []
    while size:
        piece = sock.recv(size)
        if not piece:
            raise Refused("the broker closed the connection")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
