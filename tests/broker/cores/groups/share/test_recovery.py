"""A restart finds the same members, epochs and assignments of share groups; and no epoch is given out twice."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker.cores.groups.records.share import (
    ShareCurrentRecord,
    ShareEpochRecord,
    ShareMemberRecord,
    ShareTargetEpochRecord,
    ShareTargetRecord,
    StatePartitionsRecord,
)
from broker.protocol.errors import ErrorCode
from tests.broker.cores.groups.share.clients import Client, found
from tests.broker.cores.groups.world import World

NAMES = ("a", "b", "c", "d")
TOPICS = ("orders", "clicks")
GONE = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND}


def hard(world: World) -> Any:
    group = found(world)
    return (
        group.generation,
        group.assignment_epoch,
        group.metadata_hash,
        group.members,
        group.targets,
        group.partitions,
        group.named,
    )


def test_members_get_another_session_after_a_restart() -> None:
    world = World()
    first, second = Client(world, "a"), Client(world, "b")
    first.beat()
    second.beat()
    world.let_pass(40_000)
    world.start()
    world.let_pass(40_000)
    first.beat()
    world.let_pass(10_000)
    assert list(found(world).members) == ["a"]


def test_tombstones_of_unknown_groups_change_nothing() -> None:
    world = World()
    for record in (
        ShareCurrentRecord("gone", "m", None, 0),
        ShareTargetRecord("gone", "m", None, 0),
        ShareMemberRecord("gone", "m", None, 0),
        ShareTargetEpochRecord("gone", None, 0),
        StatePartitionsRecord("gone", None, 0),
        ShareEpochRecord("gone", None, 0, 0),
    ):
        world.core.apply(record)
    assert world.core.group("gone") is None


class ShareGroupMachine(RuleBasedStateMachine):
    """Members that act by the rules, in any order, with lost answers, restarts and topics that grow."""

    @initialize()
    def start(self) -> None:
        self.world = World(topics={"orders": 4, "clicks": 2})
        self.clients = {name: Client(self.world, name, ("orders",)) for name in NAMES}
        self.seen: dict[str, int] = {}  # the highest epoch that each member has learned since it joined
        self.clients["a"].beat()

    @rule(name=st.sampled_from(NAMES), topics=st.sets(st.sampled_from(TOPICS)), is_lost=st.booleans())
    def beat(self, name: str, topics: set[str], is_lost: bool) -> None:
        client = self.clients[name]
        before = client.epoch, client.owned
        answer = client.beat(*sorted(topics))
        if answer.error_code:
            assert answer.error_code in GONE
            client.epoch, client.owned = 0, {}
            self.seen.pop(name, None)
            if answer.error_code == ErrorCode.FENCED_MEMBER_EPOCH:
                client.leave()
        elif is_lost:
            client.epoch, client.owned = before
        else:
            assert answer.member_epoch >= self.seen.get(name, 0)
            self.seen[name] = answer.member_epoch

    @rule(name=st.sampled_from(NAMES))
    def leave(self, name: str) -> None:
        assert self.clients[name].leave().error_code in (0, *GONE)
        self.seen.pop(name, None)

    @rule(topic=st.sampled_from(TOPICS))
    def grow(self, topic: str) -> None:
        self.world.topics[topic] = min(self.world.topics[topic] + 1, 6)
        self.world.changes += 1

    @rule(seconds=st.sampled_from((5, 50)))
    def let_pass(self, seconds: int) -> None:
        self.world.let_pass(seconds * 1_000)

    @rule()
    def restart(self) -> None:
        before, epoch = hard(self.world), found(self.world).generation
        self.world.start()
        assert hard(self.world) == before
        assert found(self.world).generation == epoch

    @invariant()
    def every_partition_with_state_has_a_member_once_all_have_settled(self) -> None:
        group = found(self.world)
        if not group.members or group.has_unassigned_partitions() or not group.is_settled():
            return
        for topic in {topic for member in group.members.values() for topic in member.subscription.topic_names}:
            topic_id = self.world.topic_id(topic)
            assert topic_id is not None
            owned = [
                partition
                for member in group.members.values()
                if topic in member.subscription.topic_names
                for partition in member.current.assigned.get(topic_id, ())
            ]
            assert set(owned) == set(group.partitions.initialized[topic_id].partitions)


ShareGroupMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestShareGroups = ShareGroupMachine.TestCase
