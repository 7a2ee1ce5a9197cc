"""A restart finds the same members, epochs and assignments, at every moment of a rebalance; and no epoch is given out twice."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker.protocol.errors import ErrorCode
from tests.broker.cores.groups.consumer.clients import Client, beat, found, owners, settle
from tests.broker.cores.groups.world import World

NAMES = ("a", "b", "c", "d")
FENCED = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND}


def hard(world: World) -> Any:
    group = found(world)
    return (group.generation, group.assignment_epoch, group.metadata_hash, group.members, group.targets, group.regexes)


def test_a_member_that_was_revoking_gets_its_rebalance_timeout_again() -> None:
    world = World()
    first, second = Client(world, "a", fields={"rebalance_timeout_ms": 20_000}), Client(world, "b")
    first.beat()
    second.beat()
    first.beat()
    world.let_pass(15_000)
    before = hard(world)
    world.start()
    assert hard(world) == before
    for _ in range(4):
        world.answer(beat("a", 1), 1)
        second.beat()
        assert list(found(world).members) == ["a", "b"]
        world.let_pass(5_000)
    assert list(found(world).members) == ["b"]


class ConsumerGroupMachine(RuleBasedStateMachine):
    """Members that act by the rules, in any order, with lost answers and restarts."""

    @initialize()
    def start(self) -> None:
        self.world = World(topics={"orders": 5, "clicks": 2})
        self.clients = {name: Client(self.world, name) for name in NAMES}
        self.seen: dict[str, int] = {}  # the highest epoch that each member has learned since it joined
        self.epochs: list[int] = []  # of the group, as they were stored

    @rule(name=st.sampled_from(NAMES), is_lost=st.booleans())
    def beat(self, name: str, is_lost: bool) -> None:
        client = self.clients[name]
        before = (client.epoch, client.owned)
        error = self._beat_or_give_up(name)
        if error:
            assert error in FENCED
        elif is_lost:
            (client.epoch, client.owned), client.is_unsure = before, True
        else:
            assert client.epoch >= self.seen.get(name, 0)
            self.seen[name] = client.epoch

    @rule(name=st.sampled_from(NAMES), topics=st.sampled_from([["orders"], ["clicks"], ["orders", "clicks"]]))
    def subscribe(self, name: str, topics: list[str]) -> None:
        if self.clients[name].epoch > 0 and self.clients[name].beat(subscribed_topic_names=topics).error_code:
            self._beat_or_give_up(name)
        self.clients[name].fields = {"subscribed_topic_names": topics}

    @rule(name=st.sampled_from(NAMES))
    def leave(self, name: str) -> None:
        if self.clients[name].epoch > 0:
            self.clients[name].leave()
            self.seen.pop(name, None)

    @rule(ms=st.sampled_from([1_000, 20_000, 46_000]))
    def wait(self, ms: int) -> None:
        self.world.let_pass(ms)

    @rule()
    def add_a_partition(self) -> None:
        self._change({**self.world.topics, "orders": self.world.topics["orders"] + 1})

    @rule()
    def delete_a_topic(self) -> None:
        self._change({"orders": self.world.topics["orders"]})

    def _change(self, topics: dict[str, int]) -> None:
        self.world.topics, self.world.changes = topics, self.world.changes + 1

    @rule()
    def restart(self) -> None:
        if self.world.core.group("g") is not None:
            before = hard(self.world)
            self.world.start()
            assert hard(self.world) == before

    @rule()
    def come_to_rest(self) -> None:
        """If all members keep to the rules, everything is assigned soon."""
        if any(self._beat_or_give_up(name) for name in NAMES) and any(map(self._beat_or_give_up, NAMES)):
            # As in Kafka 4.1, a member that lost the answers to its join is fenced until its session is over.
            self.world.let_pass(46_000)
            for client in self.clients.values():
                client.epoch, client.owned, client.told = 0, {}, {}
            self.seen.clear()
        settle(*self.clients.values(), rounds=8)
        group = found(self.world)
        assert group.state_name == "Stable"
        wanted = {
            (self.world.topic_id(topic), partition)
            for topic in group.subscribed_topics()
            for partition in range(self.world.topics.get(topic, 0))
        }
        assert owners(self.world).keys() == wanted

    def _beat_or_give_up(self, name: str) -> int:
        client = self.clients[name]
        error: int = client.beat().error_code
        if error:
            # As KIP-848 asks: give up everything, and join again.
            client.epoch, client.owned, client.told = 0, {}, {}
            self.seen.pop(name, None)
        return error

    @invariant()
    def nobody_owns_what_another_has_not_given_up(self) -> None:
        if self.world.core.group("g") is not None:
            assert all(len(holders) == 1 for holders in owners(self.world).values())
            group = found(self.world)
            epochs = {
                (topic_id, partition): epoch
                for topic_id, partitions in group.owners.items()
                for partition, epoch in partitions.items()
            }
            assert epochs.keys() == owners(self.world).keys()

    @invariant()
    def epochs_of_the_group_only_grow(self) -> None:
        if self.world.core.group("g") is not None:
            epoch = found(self.world).generation
            assert not self.epochs or epoch >= self.epochs[-1]
            self.epochs.append(epoch)
            assert all(member.current.member_epoch <= epoch for member in found(self.world).members.values())


TestConsumerGroupMachine = ConsumerGroupMachine.TestCase
TestConsumerGroupMachine.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
