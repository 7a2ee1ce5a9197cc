"""What assignors get about the members of a group is kept between targets; it is what it would be if it were made for each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.cores.groups.assignors.interface import MemberSpec
from broker.cores.groups.consumer.group import NO_TARGET, ConsumerGroup
from broker.cores.groups.consumer.roster import Roster
from tests.broker.cores.groups.consumer.clients import Client, found
from tests.broker.cores.groups.world import World

TOPICS = ("orders", "clicks", "absent")  # the last one is created later
# Which member does what: it joins or changes its subscription to some topics, or leaves.
moves = st.lists(st.tuples(st.integers(0, 3), st.sets(st.sampled_from(TOPICS)) | st.none()), max_size=12)


def specs(roster: Roster, group: ConsumerGroup, world: World) -> dict[str, MemberSpec]:
    member = next(iter(group.members.values()))
    updated = member, group.targets.get(member.member_id, NO_TARGET)
    return roster.specs(group.members, group.targets, group.regexes, world, updated=updated, replaced=None)


@given(moves, st.integers(0, 12))
def test_kept_specs_are_those_of_the_present_members(
    changes: list[tuple[int, set[str] | None]], created_at: int
) -> None:
    world = World()
    clients = [Client(world, f"m{number}") for number in range(4)]
    for step, (number, topics) in enumerate(changes):
        if step == created_at:
            world.topics["absent"] = 2
            world.changes += 1
        client = clients[number]
        if topics is None:
            client.leave()
        else:
            client.beat(subscribed_topic_names=sorted(topics))
        if "g" not in world.core.hard_state().groups or not found(world).members:
            continue
        fresh = Roster()
        for member_id in found(world).members:
            fresh.add(member_id)
        assert specs(found(world).roster, found(world), world) == specs(fresh, found(world), world)
