"""Guards where an answer is not one message made in one turn, and decisions while ACLs change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.protocol.acls import CLUSTER_NAME, Operation, Permission, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from broker.protocol.messages.create_acls import CreateAclsRequest
from broker.protocol.messages.delete_acls import DeleteAclsRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.offset_delete import OffsetDeleteRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.server.access import MOST_DECISIONS, Access
from tests.harness.authorization.clusters import connect_as, secured_broker
from tests.harness.requests import (
    batch,
    create_topic,
    fetch,
    fetch_request,
    metadata_of,
    produce,
    produce_request,
    values_of,
)
from tests.harness.running import RunningBroker
from tests.harness.wire_client import WireClient

ALICE = "User:alice"
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
DENIED_TOPIC, DENIED_GROUP = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[RunningBroker]:
    with secured_broker(tmp_path / "data", ALICE) as broker:
        yield broker


@pytest.fixture
def admin(secured: RunningBroker) -> Iterator[WireClient]:
    with connect_as(secured, "User:admin") as client:
        create_topic(client, "mine", 1)
        create_topic(client, "theirs", 1)
        yield client


@pytest.fixture
def alice(secured: RunningBroker) -> Iterator[WireClient]:
    with connect_as(secured, ALICE) as client:
        yield client


def allow(admin: WireClient, operation: Operation, kind: ResourceType, *names: str, prefixed: bool = False) -> None:
    creations = [
        CreateAclsRequest.Creation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=4 if prefixed else 3,
            principal=ALICE,
            host="*",
            operation=operation,
            permission_type=Permission.ALLOW,
        )
        for name in names
    ]
    assert {row.error_code for row in admin.ask(CreateAclsRequest(creations=creations)).results} == {ErrorCode.NONE}


def revoke_all(admin: WireClient) -> None:
    chosen = DeleteAclsRequest.Filter(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=ALICE,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    admin.ask(DeleteAclsRequest(filters=[chosen]))


def commit(client: WireClient, group: str, *topics: str, partitions: int = 1) -> Any:
    rows = [
        OffsetCommitRequest.Partition(partition_index=index, committed_offset=1, committed_metadata="")
        for index in range(partitions)
    ]
    named = [OffsetCommitRequest.Topic(name=name, partitions=rows) for name in topics]
    return client.ask(OffsetCommitRequest(group_id=group, member_id="", topics=named), 8)


def test_an_open_session_loses_and_gains_rights_at_once(admin: WireClient, alice: WireClient) -> None:
    codes = []
    for change in (lambda: None, lambda: allow(admin, Operation.READ, TOPIC, "mine"), lambda: revoke_all(admin)):
        change()
        codes.append(fetch(alice, "mine", 0).error_code)
    assert codes == [DENIED_TOPIC, ErrorCode.NONE, DENIED_TOPIC]


def test_a_denied_produce_without_an_answer_closes_the_connection(admin: WireClient, alice: WireClient) -> None:
    allow(admin, Operation.WRITE, TOPIC, "mine")
    request = produce_request("mine", batch(b"allowed"), acks=0)
    request.topic_data += produce_request("theirs", batch(b"denied")).topic_data
    alice.send_bytes(alice.frame(request, 12, answered=False))
    assert alice.is_closed()
    assert values_of(fetch(admin, "mine", 0)) == [b"allowed"]
    assert values_of(fetch(admin, "theirs", 0)) == []


def test_a_denied_partition_does_not_end_the_wait_for_the_others(admin: WireClient, alice: WireClient) -> None:
    allow(admin, Operation.READ, TOPIC, "mine")
    request = fetch_request("mine", 0, max_wait_ms=60_000)
    request.topics += fetch_request("theirs", 0).topics
    alice.send(request, 12)
    assert alice.is_quiet()
    produce(admin, "mine", b"x")
    topics = alice.receive().responses
    assert [(row.topic, row.partitions[0].error_code) for row in topics] == [
        ("mine", ErrorCode.NONE),
        ("theirs", DENIED_TOPIC),
    ]
    assert values_of(topics[0].partitions[0]) == [b"x"]


def test_asking_for_topics_creates_only_those_that_the_client_may_create(admin: WireClient, alice: WireClient) -> None:
    allow(admin, Operation.DESCRIBE, TOPIC, "auto-created", "refused")
    allow(admin, Operation.CREATE, TOPIC, "auto-created", "hidden")
    rows = metadata_of(alice, "auto-created", "refused", "hidden").topics
    assert {row.name: row.error_code for row in rows} == {
        "auto-created": ErrorCode.NONE,
        "refused": DENIED_TOPIC,
        "hidden": DENIED_TOPIC,
    }
    created = metadata_of(admin, "auto-created", "refused", "hidden", create=False).topics
    assert [row.name for row in created if row.error_code == ErrorCode.NONE] == ["auto-created"]


def test_each_group_of_a_large_request_is_answered_once(admin: WireClient, alice: WireClient) -> None:
    names = [f"{owner}-{number}" for number in range(40) for owner in ("mine", "theirs")]
    allow(admin, Operation.READ, GROUP, "mine-", prefixed=True)
    rows = alice.ask(DescribeGroupsRequest(groups=names, include_authorized_operations=True), 5).groups
    assert sorted(row.group_id for row in rows) == sorted(names)
    for row in rows:
        is_mine = row.group_id.startswith("mine-")
        operations = 1 << Operation.READ | 1 << Operation.DESCRIBE if is_mine else -(2**31)
        assert (row.error_code, row.authorized_operations) == (ErrorCode.NONE if is_mine else DENIED_GROUP, operations)


def test_a_long_list_of_groups_leaves_out_those_that_the_client_may_not_see(
    admin: WireClient, alice: WireClient
) -> None:
    allow(admin, Operation.DESCRIBE, GROUP, "mine-", prefixed=True)
    for number in range(1_100):
        admin.send(_commit_one(f"mine-{number}"), 8)
    for _ in range(1_100):
        admin.receive()
    commit(admin, "theirs", "mine")
    assert len(admin.ask(ListGroupsRequest(), 4).groups) == 1_101
    assert {row.group_id for row in alice.ask(ListGroupsRequest(), 4).groups} == {
        f"mine-{number}" for number in range(1_100)
    }


def _commit_one(group: str) -> OffsetCommitRequest:
    row = OffsetCommitRequest.Partition(partition_index=0, committed_offset=1, committed_metadata="")
    return OffsetCommitRequest(
        group_id=group, member_id="", topics=[OffsetCommitRequest.Topic(name="mine", partitions=[row])]
    )


@pytest.mark.parametrize("version", [7, 8])
def test_all_offsets_of_a_group_leave_out_topics_that_the_client_may_not_see(
    admin: WireClient, alice: WireClient, version: int
) -> None:
    create_topic(admin, "large", 1_100)
    create_topic(admin, "hidden", 1_100)
    commit(admin, "g", "large", "hidden", "mine", partitions=1_100)
    allow(admin, Operation.DESCRIBE, GROUP, "g")
    allow(admin, Operation.READ, TOPIC, "large", "mine")
    groups = [OffsetFetchRequest.Group(group_id="g", topics=None)]
    answer = alice.ask(OffsetFetchRequest(group_id="g", topics=None, groups=groups), version)
    topics = answer.groups[0].topics if version >= 8 else answer.topics
    assert sorted((topic.name, len(topic.partitions)) for topic in topics) == [("large", 1_100), ("mine", 1)]


def test_a_deletion_in_several_parts_answers_for_denied_topics_too(admin: WireClient, alice: WireClient) -> None:
    create_topic(admin, "large", 1_100)
    commit(admin, "g", "large", "theirs", partitions=1_100)
    allow(admin, Operation.DELETE, GROUP, "g")
    allow(admin, Operation.READ, TOPIC, "large")
    rows = [OffsetDeleteRequest.Partition(partition_index=index) for index in range(1_100)]
    topics = [OffsetDeleteRequest.Topic(name=name, partitions=rows) for name in ("large", "theirs")]
    answer = alice.ask(OffsetDeleteRequest(group_id="g", topics=topics))
    assert answer.error_code == ErrorCode.NONE
    found = {topic.name: {row.error_code for row in topic.partitions} for topic in answer.topics}
    assert found == {"large": {ErrorCode.NONE}, "theirs": {DENIED_TOPIC}}
    left = admin.ask(OffsetFetchRequest(group_id="g", topics=None), 7).topics
    assert [topic.name for topic in left] == ["theirs"]


class Counting:
    """An authorizer that allows everything and counts the questions."""

    version = 0
    asked = 0

    def authorize(self, *question: object) -> bool:
        self.asked += 1
        return True

    def authorize_by_resource_type(self, *question: object) -> bool:
        return True


def test_decisions_are_remembered_up_to_a_limit() -> None:
    authorizer = Counting()
    access = Access(authorizer, ALICE, "127.0.0.1")
    for name in ("a", "a", "n" * 10_000, "n" * 10_000):
        assert access.allows(Operation.READ, TOPIC, name)
    assert authorizer.asked == 3
    for number in range(MOST_DECISIONS):
        access.allows(Operation.READ, TOPIC, f"t{number}")
    authorizer.asked = 0
    assert access.allows(Operation.READ, TOPIC, f"t{MOST_DECISIONS - 1}")
    assert authorizer.asked == 0
    assert access.allows(Operation.READ, TOPIC, "a")
    assert authorizer.asked == 1


def test_the_sessions_of_a_principal_share_its_decisions(secured: RunningBroker, admin: WireClient) -> None:
    with connect_as(secured, ALICE) as first, connect_as(secured, ALICE) as second:
        for client in (first, second):
            fetch(client, "mine", 0)

        def accesses() -> list[Access | None]:
            return [each.session.access for each in secured.broker.connections if each.session.principal == ALICE]

        found = secured.run(accesses)
    assert len(found) == 2
    assert found[0] is found[1]


def test_the_cluster_is_one_resource() -> None:
    authorizer = Counting()
    access = Access(authorizer, ALICE, "127.0.0.1")
    assert access.allows_on_cluster(Operation.ALTER)
    assert access.allows(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
    assert authorizer.asked == 1


def join(client: WireClient) -> Any:
    heartbeat = {"member_epoch": 0, "rebalance_timeout_ms": 1_000, "topic_partitions": []}
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", subscribed_topic_names=["mine", "theirs"], **heartbeat
    )
    return client.ask(request).error_code


def test_a_group_with_topics_that_the_client_may_not_describe_shows_nothing(
    admin: WireClient, alice: WireClient
) -> None:
    assert join(admin) == ErrorCode.NONE
    allow(admin, Operation.DESCRIBE, GROUP, "g")
    allow(admin, Operation.DESCRIBE, TOPIC, "mine")
    (row,) = alice.ask(ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=True)).groups
    hidden = "The group has described topic(s) that the client is not authorized to describe."
    nothing = {"group_state": "", "group_epoch": 0, "assignment_epoch": 0, "assignor_name": "", "members": []}
    assert row == ConsumerGroupDescribeResponse.Group(
        error_code=DENIED_TOPIC, error_message=hidden, group_id="g", **nothing
    )
    allow(admin, Operation.DESCRIBE, TOPIC, "theirs")
    (row,) = alice.ask(ConsumerGroupDescribeRequest(group_ids=["g"])).groups
    assert (row.error_code, row.group_state, len(row.members)) == (ErrorCode.NONE, "Stable", 1)


def test_a_disabled_protocol_is_refused_before_rights_are_checked(tmp_path: Path) -> None:
    options = {"group.coordinator.rebalance.protocols": "classic"}
    with secured_broker(tmp_path / "data", ALICE, **options) as broker, connect_as(broker, ALICE) as client:
        assert join(client) == ErrorCode.UNSUPPORTED_VERSION
        (row,) = client.ask(ConsumerGroupDescribeRequest(group_ids=["g"])).groups
        assert row.error_code == ErrorCode.UNSUPPORTED_VERSION
