"""The leader's part of a rebalance: read all subscriptions, wait for metadata of all topics, assign."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from broker.protocol.messages.join_group import JoinGroupResponse
from broker.protocol.wire_types import DecodeError
from kgctl.client.consumer.assignors.assignor import Assignment, Assignor, RebalanceProtocol, Subscription
from kgctl.client.consumer.assignors.loading import BUILT_IN
from kgctl.client.consumer.assignors.wire import decode_subscription, encode_assignment
from kgctl.client.consumer.group.topics import TopicWatch
from kgctl.client.net.errors import KgctlError
from kgctl.model.topic_partition import TopicPartition

# It knows generations, so that it does not trust what members claim to own.
_TRUSTED = "cooperative-sticky"


class BadAssignment(KgctlError):
    """The assignor broke the rules, or there is none of this name."""

    name = "BAD_ASSIGNMENT"


class Assigning:
    """From the answer to the leader's JoinGroup to the assignments for SyncGroup.

    `step` returns None while metadata is missing: call it again after each update.
    """

    def __init__(
        self,
        joined: JoinGroupResponse,
        assignor: Assignor,
        topics: TopicWatch,
        protocol: RebalanceProtocol,
        note: Callable[[str], None],
    ) -> None:
        self._assignor = assignor
        self._topics = topics
        self._protocol = protocol
        self._note = note
        self._skips = joined.skip_assignment
        self._members = _subscriptions(joined)
        self._subscribed = {topic for one in self._members.values() for topic in one.topics}
        topics.follow_group(self._subscribed)
        self._assigned: Mapping[str, Assignment] | None = None

    def step(self) -> dict[str, bytes] | None:
        """The assignment of each member; empty if the group keeps the one it has (KIP-814)."""
        if not self._topics.knows(self._subscribed):
            return None
        self._topics.refresh()
        if self._skips:
            self._topics.note_assigned()
            return {}
        if self._assigned is None:
            self._assigned = self._assign()
            if self._assignor.name not in BUILT_IN and self._follow_more_topics(self._assigned):
                return self.step()
        self._topics.note_assigned()
        return {member_id: encode_assignment(one) for member_id, one in self._assigned.items()}

    def _assign(self) -> Mapping[str, Assignment]:
        assigned = self._assignor.assign(self._topics.view(), self._members)
        if strangers := assigned.keys() - self._members.keys():
            raise BadAssignment(
                f"assignor {self._assignor.name} assigned partitions to {', '.join(sorted(strangers))}, not a member of the group"
            )
        if self._protocol is RebalanceProtocol.COOPERATIVE and self._assignor.name != _TRUSTED:
            _check_cooperative(self._assignor.name, self._members, assigned)
        return assigned

    def _follow_more_topics(self, assigned: Mapping[str, Assignment]) -> bool:
        """An assignor of the user may assign topics to which no member subscribed: watch them, too."""
        topics = {partition.topic for one in assigned.values() for partition in one.partitions}
        if missing := self._subscribed - topics:
            self._note(f"no member was assigned partitions of {', '.join(sorted(missing))}")
        if topics <= self._subscribed:
            return False
        self._subscribed |= topics
        self._topics.follow_group(self._subscribed)
        return True


def _subscriptions(joined: JoinGroupResponse) -> dict[str, Subscription]:
    found = {}
    for member in joined.members:
        try:
            found[member.member_id] = decode_subscription(member.metadata, member.group_instance_id)
        except DecodeError as error:
            raise BadAssignment(
                f"the subscription of member {member.member_id!r} cannot be decoded: {error}"
            ) from error
    return found


def _check_cooperative(name: str, members: Mapping[str, Subscription], assigned: Mapping[str, Assignment]) -> None:
    """A partition that a member owns has to be revoked in one generation, and may be assigned in the next (KIP-429)."""
    added: set[TopicPartition] = set()
    revoked: set[TopicPartition] = set()
    for member_id, one in assigned.items():
        owned = set(members[member_id].owned_partitions)
        added |= set(one.partitions) - owned
        revoked |= owned - set(one.partitions)
    if moved := _listed(added & revoked):
        raise BadAssignment(
            f"assignor {name} is cooperative, but it assigned partitions that other members still own: {moved};"
            " it has to leave them out of this assignment and assign them in the next"
        )


def _listed(partitions: Sequence[TopicPartition] | set[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))
