"""A member of a consumer group."""

from __future__ import annotations

from collections.abc import Callable

from broker.cores.groups.records.consumer import Current, Subscription
from broker.light_named_tuples import NamedTuple
from broker.protocol.uuids import spelled

# The epoch of a static member that left and is to come back.
LEFT_STATIC = -2
NO_EPOCH = -1
UUID_LENGTH = 36


class MemberState:
    """How far a member is on its way to its target, with Kafka's numbers.

    STABLE: it has all of its target of its epoch.
    UNREVOKED_PARTITIONS: the answer to its heartbeat asks it to give up partitions, and has not confirmed it.
    UNRELEASED_PARTITIONS: it waits for partitions that other members have not given up.
    UNKNOWN: a newer coordinator has stored a state that this one does not have.
    """

    STABLE, UNREVOKED_PARTITIONS, UNRELEASED_PARTITIONS, UNKNOWN = 0, 1, 2, 127
    NAMES = {STABLE: "stable", UNREVOKED_PARTITIONS: "unrevoked", UNRELEASED_PARTITIONS: "unreleased"}


class ConsumerMember(NamedTuple):
    """What is stored of a member. It is a value: a change makes another one."""

    member_id: str
    subscription: Subscription
    current: Current

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.current.state == MemberState.STABLE and self.current.member_epoch == assignment_epoch


def new_member(member_id: str) -> ConsumerMember:
    """A member before its first heartbeat is applied."""
    nothing = Subscription(None, None, "", "", frozenset(), "", -1, None)
    return ConsumerMember(member_id, nothing, Current(0, NO_EPOCH, MemberState.STABLE, {}, {}))


def made_id(new_id: Callable[[], str]) -> str:
    """The id of a member whose client has made none: a UUID in Kafka's spelling, which does not begin with a hyphen."""
    while True:
        drawn = new_id()
        if len(drawn) != UUID_LENGTH:
            return drawn
        made = spelled(bytes.fromhex(drawn.replace("-", "")))
        if not made.startswith("-"):
            return made
