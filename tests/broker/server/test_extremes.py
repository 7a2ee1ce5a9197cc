"""Requests with the largest values that the protocol can carry: each gets an error, an answer or a closed connection, and the
broker keeps serving, also after a restart.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from broker.cores.groups.classic.group import RECORD_BYTES
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from broker.protocol.varints import uvarint
from broker.protocol.wire_types import STRING_BYTES, Message
from tests.harness.requests import commit_request, create_topic, heartbeat_request, join_alone
from tests.harness.running import RunningBroker

LONGEST = "g" * STRING_BYTES
# Stands for a string that is too long to encode.
TOO_LONG = "<too long>"


def with_long_strings(frame: bytes, size: int) -> bytes:
    """Replace each TOO_LONG in a frame of a flexible version by a string of `size` bytes."""
    mark = TOO_LONG.encode()
    body = frame[4:].replace(uvarint(len(mark) + 1) + mark, uvarint(size + 1) + b"g" * size)
    return len(body).to_bytes(4, "big") + body


def joining(**fields: Any) -> JoinGroupRequest:
    defaults: dict[str, Any] = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequest.Protocol(name="range", metadata=b"")],
    }
    return JoinGroupRequest(**{**defaults, **fields})


def with_retention(version: int) -> tuple[Message, int]:
    request = commit_request("g", None, "t", 1)
    request.retention_time_ms = 2**63 - 1
    return request, version


def serves(running: RunningBroker) -> bool:
    """Whether the broker serves another client, now and after a restart."""
    for group in ("bystander", "another"):
        with running.client() as client:
            joined = join_alone(client, group)
            assert client.ask(heartbeat_request(group, joined)).error_code == ErrorCode.NONE
        assert not running.broker.failed.done()
        running.restart()
    return True


@pytest.mark.parametrize("size", [STRING_BYTES + 1, 70_000])
@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (DescribeGroupsRequest(groups=["g", TOO_LONG]), 5),
        (joining(group_id=TOO_LONG), 9),
        (joining(group_instance_id=TOO_LONG), 9),
        (joining(group_instance_id="i", protocol_type=TOO_LONG), 9),
        (joining(group_instance_id="i", protocols=[JoinGroupRequest.Protocol(name=TOO_LONG, metadata=b"")]), 9),
        (commit_request(TOO_LONG, None, "t", 1), 8),
        (HeartbeatRequest(group_id=TOO_LONG, generation_id=1, member_id="m"), 4),
        (OffsetFetchRequest(group_id=TOO_LONG, topics=None), 7),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Message) else "",
)
def test_text_that_no_record_can_hold_closes_the_connection(
    running: RunningBroker, caplog: pytest.LogCaptureFixture, request_: Message, version: int, size: int
) -> None:
    with running.client() as client:
        create_topic(client, "t")
        client.send_bytes(with_long_strings(client.frame(request_, version), size))
        assert client.is_closed()
    assert re.search(
        r"closing the connection from /127.0.0.1: (groups|name|group_id|group_instance_id|protocol_type) is too long",
        caplog.text,
    )
    assert serves(running)


@pytest.mark.parametrize(
    "make",
    [
        lambda: (DescribeGroupsRequest(groups=[LONGEST]), 5),
        lambda: (commit_request(LONGEST, None, "t", 1), 8),
        lambda: with_retention(2),
        lambda: with_retention(4),
    ],
    ids=["describe", "commit", "retention v2", "retention v4"],
)
def test_the_largest_values_are_served(running: RunningBroker, make: Callable[[], tuple[Message, int]]) -> None:
    with running.client() as client:
        create_topic(client, "t")
        request, version = make()
        answer = client.ask(request, version)
    rows = answer.groups if hasattr(answer, "groups") else answer.topics[0].partitions
    assert [row.error_code for row in rows] == [ErrorCode.NONE]
    assert serves(running)


def test_an_error_message_that_quotes_a_long_name_is_cut(running: RunningBroker) -> None:
    name = "é" * (STRING_BYTES // 2)
    with running.client() as client:
        (group,) = client.ask(DescribeGroupsRequest(groups=[name]), 6).groups
        assert (group.group_id, group.error_code) == (name, ErrorCode.GROUP_ID_NOT_FOUND)
    assert group.error_message.startswith("Group é")
    assert serves(running)


@pytest.mark.parametrize(
    ("client_id", "fields"),
    [
        ("c" * STRING_BYTES, {}),
        ("c", {"group_instance_id": "i" * 32_760}),
        ("c", {"group_instance_id": "i" * STRING_BYTES, "protocol_type": LONGEST}),
        ("c", {"group_instance_id": "é" * (STRING_BYTES // 2), "group_id": LONGEST}),
    ],
    ids=["client id", "instance id", "protocol type", "group id"],
)
def test_a_group_with_the_longest_names_becomes_stable(
    running: RunningBroker, client_id: str, fields: dict[str, Any]
) -> None:
    with running.client(client_id=client_id) as client:
        joined = client.ask(joining(**fields), 9)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            joined = client.ask(joining(member_id=joined.member_id, **fields), 9)
        assert joined.error_code == ErrorCode.NONE
        request = SyncGroupRequest(
            group_id=fields.get("group_id", "g"),
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=fields.get("group_instance_id"),
            protocol_type=fields.get("protocol_type", "consumer"),
            protocol_name="range",
            assignments=[SyncGroupRequest.Assignment(member_id=joined.member_id, assignment=b"all")],
        )
        answer = client.ask(request, 5)
        assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"all")
    assert serves(running)


def test_a_state_record_that_would_grow_too_large_is_refused_and_the_group_continues(running: RunningBroker) -> None:
    too_much = bytes(RECORD_BYTES)
    with running.client() as client:
        protocols = [JoinGroupRequest.Protocol(name="range", metadata=too_much)]
        refused = client.ask(joining(group_instance_id="i", protocols=protocols), 9)
        assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        for assignment, error in ((too_much, ErrorCode.UNKNOWN_SERVER_ERROR), (b"all", ErrorCode.NONE)):
            joined = client.ask(joining(group_instance_id="i"), 9)
            assert joined.error_code == ErrorCode.NONE
            request = SyncGroupRequest(
                group_id="g",
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                group_instance_id="i",
                protocol_type="consumer",
                protocol_name="range",
                assignments=[SyncGroupRequest.Assignment(member_id=joined.member_id, assignment=assignment)],
            )
            assert client.ask(request, 5).error_code == error
    assert serves(running)
