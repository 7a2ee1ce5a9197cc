"""The steps of a group member, with scripted answers of a coordinator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from broker.protocol.consumer_protocol import (
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    encode_blob,
)
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.heartbeat import HeartbeatResponse
from broker.protocol.messages.join_group import JoinGroupResponse
from broker.protocol.messages.leave_group import LeaveGroupResponse
from broker.protocol.messages.offset_commit import OffsetCommitResponse
from broker.protocol.messages.sync_group import SyncGroupResponse
from kgctl.client.consumer.membership import GroupSettings, Membership
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut
from kgctl.client.net.steps import Call
from kgctl.model.topic_partition import TopicPartition
from tests.harness.feeding import METADATA, Feeder, cluster, coordinators, metadata
from tests.harness.group_answers import assignment

COMMIT, FIND, JOIN, HEARTBEAT, LEAVE, SYNC = 8, 10, 11, 12, 13, 14
UNKNOWN_MEMBER, REBALANCING, ILLEGAL, ELSEWHERE = 25, 27, 22, 16
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def in_turn(*answers: Any) -> Callable[[Call], Any]:
    """One answer after the other; the last one again and again."""
    rest = list(answers)
    return lambda call: rest.pop(0) if len(rest) > 1 else rest[0]


def joined(
    member_id: str = "m1", generation: int = 1, leader: str = "other", members: Sequence[Any] = ()
) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=generation, protocol_name="range", leader=leader, member_id=member_id, members=list(members)
    )


def join_error(code: int, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, protocol_name="", leader="", member_id=member_id, members=[])


def member(member_id: str, *topics: str) -> JoinGroupResponse.Member:
    return JoinGroupResponse.Member(
        member_id=member_id, metadata=encode_blob(ConsumerProtocolSubscription(topics=[*topics]))
    )


def synced(code: int = 0, owned: dict[str, list[int]] | None = None) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code, assignment=b"" if owned is None else assignment(owned))


def world(**answers: Any) -> tuple[Feeder, Membership]:
    numbers = {"join": JOIN, "sync": SYNC, "heartbeat": HEARTBEAT, "commit": COMMIT, "leave": LEAVE}
    feeder = Feeder({FIND: coordinators(lambda _: 1), METADATA: metadata({"t": {0: 1, 1: 1}, "u": {0: 1}})})
    feeder.answers |= {
        numbers[name]: answer if callable(answer) else in_turn(answer) for name, answer in answers.items()
    }
    return feeder, Membership(cluster(), GroupSettings("g"))


def requests(feeder: Feeder, api_key: int) -> list[Any]:
    return [call.request for call in feeder.calls(api_key)]


def test_a_new_member_rejoins_with_the_id_that_the_coordinator_assigned() -> None:
    feeder, membership = world(join=in_turn(join_error(79, "given"), joined("given")), sync=synced(owned={"t": [1]}))
    assert feeder.run(membership.join(["t"])) == [P1]
    assert [request.member_id for request in requests(feeder, JOIN)] == ["", "given"]
    assert (membership.member_id, membership.generation_id, membership.must_join) == ("given", 1, False)


def test_a_member_subscribes_to_its_topics_and_prefers_range() -> None:
    feeder, membership = world(join=joined(), sync=synced(owned={}))
    feeder.run(membership.join(["u", "t"]))
    (request,) = requests(feeder, JOIN)
    assert [protocol.name for protocol in request.protocols] == ["range", "roundrobin"]
    assert {tuple(decode_subscription(protocol.metadata).topics) for protocol in request.protocols} == {("t", "u")}
    assert request.protocol_type == "consumer"


def test_a_join_may_take_as_long_as_a_rebalance() -> None:
    feeder, membership = world(join=joined(), sync=synced(owned={}))
    feeder.run(membership.join(["t"]))
    (call,) = feeder.calls(JOIN)
    assert call.wait_ms == 300_000


def test_the_leader_assigns_the_partitions_of_all_members() -> None:
    members = [member("m1", "t", "u"), member("m2", "t", "missing")]
    feeder, membership = world(join=joined(leader="m1", members=members), sync=synced(owned={"t": [0], "u": [0]}))
    assert feeder.run(membership.join(["t", "u"])) == [P0, TopicPartition("u", 0)]
    (request,) = requests(feeder, SYNC)
    shares = {row.member_id: decode_assignment(row.assignment) for row in request.assignments}
    assert {m: [(r.topic, r.partitions) for r in share.assigned_partitions] for m, share in shares.items()} == {
        "m1": [("t", [0]), ("u", [0])],
        "m2": [("t", [1])],
    }
    assert membership.is_leader


def test_a_follower_sends_no_assignments() -> None:
    feeder, membership = world(join=joined(), sync=synced(owned={"t": [0]}))
    feeder.run(membership.join(["t"]))
    assert requests(feeder, SYNC)[0].assignments == []
    assert not membership.is_leader


def test_an_empty_assignment_means_no_partitions() -> None:
    feeder, membership = world(join=joined(), sync=synced())
    assert feeder.run(membership.join(["t"])) == []


def test_after_a_rebalance_during_sync_the_member_rejoins_with_the_same_id() -> None:
    feeder, membership = world(
        join=in_turn(joined(), joined(generation=2)), sync=in_turn(synced(REBALANCING), synced(owned={"t": [0]}))
    )
    assert feeder.run(membership.join(["t"])) == [P0]
    assert [request.member_id for request in requests(feeder, JOIN)] == ["", "m1"]
    assert membership.generation_id == 2


def test_a_member_unknown_to_the_group_joins_as_a_new_one() -> None:
    feeder, membership = world(
        join=in_turn(joined("old"), join_error(UNKNOWN_MEMBER), joined("new")), sync=synced(owned={})
    )
    feeder.run(membership.join(["t"]))
    feeder.run(membership.join(["t"]))
    assert [request.member_id for request in requests(feeder, JOIN)] == ["", "old", ""]
    assert membership.member_id == "new"


@pytest.mark.parametrize("code", [23, 26, 30, 81])
def test_a_permanent_join_error_is_raised(code: int) -> None:
    feeder, membership = world(join=join_error(code))
    with pytest.raises(BrokerError) as caught:
        feeder.run(membership.join(["t"]))
    assert caught.value.code == code


def test_an_assignment_that_cannot_be_decoded_is_an_error() -> None:
    feeder, membership = world(join=joined(), sync=SyncGroupResponse(assignment=b"\x00"))
    with pytest.raises(KgctlError, match="assignment cannot be decoded"):
        feeder.run(membership.join(["t"]))


def test_a_coordinator_that_moved_is_looked_up_again() -> None:
    feeder, membership = world(heartbeat=in_turn(HeartbeatResponse(error_code=ELSEWHERE), HeartbeatResponse()))
    feeder.run(membership.heartbeat())
    assert len(feeder.calls(FIND)) == 2
    assert len(feeder.pauses) == 1


def test_a_coordinator_that_is_down_is_retried_until_the_timeout() -> None:
    feeder, membership = world(heartbeat=HeartbeatResponse())
    feeder.run(membership.heartbeat())
    feeder.down.add(feeder.calls(HEARTBEAT)[0].endpoint)
    feeder.answers[FIND] = coordinators(lambda _: 1)
    feeder.pauses_allowed = 5
    with pytest.raises(TimedOut, match="refused"):
        feeder.run(membership.heartbeat())


@pytest.mark.parametrize(("code", "member_id"), [(REBALANCING, "m1"), (ILLEGAL, "m1"), (UNKNOWN_MEMBER, "")])
def test_a_heartbeat_error_ends_the_generation(code: int, member_id: str) -> None:
    feeder, membership = world(join=joined(), sync=synced(owned={}), heartbeat=HeartbeatResponse(error_code=code))
    feeder.run(membership.join(["t"]))
    feeder.run(membership.heartbeat())
    assert membership.must_join
    assert membership.member_id == member_id


def test_a_heartbeat_has_the_member_id_and_the_generation() -> None:
    feeder, membership = world(join=joined("m7", 4), sync=synced(owned={}), heartbeat=HeartbeatResponse())
    feeder.run(membership.join(["t"]))
    feeder.run(membership.heartbeat())
    (request,) = requests(feeder, HEARTBEAT)
    assert (request.group_id, request.member_id, request.generation_id) == ("g", "m7", 4)
    assert not membership.must_join


def commit_answer(*codes: int) -> OffsetCommitResponse:
    rows = [OffsetCommitResponse.Partition(partition_index=n, error_code=code) for n, code in enumerate(codes)]
    return OffsetCommitResponse(topics=[OffsetCommitResponse.Topic(name="t", partitions=rows)])


def test_a_commit_has_the_member_id_and_the_generation() -> None:
    feeder, membership = world(join=joined("m7", 4), sync=synced(owned={}), commit=commit_answer(0, 0))
    feeder.run(membership.join(["t"]))
    assert feeder.run(membership.commit({P0: 10, P1: 20})) == {}
    (request,) = requests(feeder, COMMIT)
    assert (request.member_id, request.generation_id_or_member_epoch) == ("m7", 4)
    rows = [(row.partition_index, row.committed_offset) for row in request.topics[0].partitions]
    assert rows == [(0, 10), (1, 20)]


@pytest.mark.parametrize("code", [REBALANCING, ILLEGAL, UNKNOWN_MEMBER])
def test_a_commit_refused_for_its_generation_is_reported_and_leads_to_a_rejoin(code: int) -> None:
    feeder, membership = world(join=joined(), sync=synced(owned={}), commit=commit_answer(code, code))
    feeder.run(membership.join(["t"]))
    refused = feeder.run(membership.commit({P0: 1, P1: 2}))
    assert list(refused) == [P0, P1]
    assert membership.must_join


def test_a_commit_refused_for_one_partition_does_not_affect_the_membership() -> None:
    feeder, membership = world(
        join=joined(), sync=synced(owned={}), commit=commit_answer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
    )
    feeder.run(membership.join(["t"]))
    assert list(feeder.run(membership.commit({P0: 1, P1: 2}))) == [P0]
    assert not membership.must_join


def test_a_commit_is_retried_while_the_coordinator_loads() -> None:
    feeder, membership = world(commit=in_turn(commit_answer(14, 14), commit_answer(0, 0)))
    assert feeder.run(membership.commit({P0: 1, P1: 2})) == {}


def test_a_leave_request_has_the_member_id_and_a_reason() -> None:
    feeder, membership = world(join=joined("m7"), sync=synced(owned={}), leave=LeaveGroupResponse())
    feeder.run(membership.join(["t"]))
    feeder.run(membership.leave())
    (request,) = requests(feeder, LEAVE)
    assert [(row.member_id, row.reason) for row in request.members] == [("m7", "the consumer is being closed")]
    assert membership.must_join


def test_a_member_that_never_joined_does_not_leave() -> None:
    feeder, membership = world()
    feeder.run(membership.leave())
    assert feeder.rounds == []
