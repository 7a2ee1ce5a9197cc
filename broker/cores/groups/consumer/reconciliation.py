"""Reconciliation: the next step of a member from what it owns to its target. It revokes before it assigns.

A member goes to the epoch of the target assignment as soon as it owns nothing more that is not in its target. It gets those
partitions of its target that have no owner; for the others it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from broker.cores.groups.consumer.group import NO_OWNER
from broker.cores.groups.consumer.member import ConsumerMember, MemberState
from broker.cores.groups.records.consumer import Current, Owned, Target
from broker.cores.groups.refusals import Refused
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

# The partitions that a member says it owns; None if it does not say.
Reported: TypeAlias = "Sequence[ConsumerGroupHeartbeatRequest.TopicPartitions] | None"
NOTHING: frozenset[int] = frozenset()


def reconciled(
    member: ConsumerMember,
    target: Target,
    assignment_epoch: int,
    owner_epoch: Callable[[bytes, int], int],
    reported: Reported,
) -> ConsumerMember:
    """The member after this step; the same one if it cannot take any. Raises Refused."""
    current = member.current
    epoch = current.member_epoch
    match current.state:
        case MemberState.STABLE:
            if epoch == assignment_epoch:
                return member
        case MemberState.UNREVOKED_PARTITIONS:
            if owns_any(reported, current.pending_revocation):
                return member
            # Its former epoch has ended; it is not in that of the target before it has given up everything else.
            epoch += 1
        case MemberState.UNRELEASED_PARTITIONS:
            pass
        case _:
            if reported is None or reported:
                raise Refused(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.",
                )
            epoch = assignment_epoch
    step = _next_step(current.assigned, target, owner_epoch)
    if step.revoked and owns_any(reported, step.revoked):
        after = Current(epoch, current.member_epoch, MemberState.UNREVOKED_PARTITIONS, step.kept, step.revoked)
    else:
        state = MemberState.UNRELEASED_PARTITIONS if step.is_waiting else MemberState.STABLE
        after = Current(assignment_epoch, current.member_epoch, state, step.given, {})
    return member if after == current else member._replace(current=after)


def owns_any(reported: Reported, partitions: Owned) -> bool:
    """Whether the member may still own one of these partitions: it says so, or does not say."""
    if reported is None:
        return True
    return any(not partitions.get(row.topic_id, NOTHING).isdisjoint(row.partitions) for row in reported)


def owns_only(reported: Reported, partitions: Owned) -> bool:
    """Whether the member says that it owns nothing but these partitions."""
    if reported is None:
        return False
    return all(row.topic_id in partitions and partitions[row.topic_id].issuperset(row.partitions) for row in reported)


class _Step:
    """`kept` and `revoked` are what it owns, `given` what it owns after the step, without what it waits for."""

    __slots__ = ("given", "is_waiting", "kept", "revoked")

    def __init__(self) -> None:
        self.kept: dict[bytes, frozenset[int]] = {}
        self.revoked: dict[bytes, frozenset[int]] = {}
        self.given: dict[bytes, frozenset[int]] = {}
        self.is_waiting = False


def _next_step(assigned: Owned, target: Target, owner_epoch: Callable[[bytes, int], int]) -> _Step:
    step = _Step()
    for topic_id in dict.fromkeys((*target, *assigned)):
        wanted, owned = frozenset(target.get(topic_id, ())), assigned.get(topic_id, NOTHING)
        kept = owned & wanted
        missing = wanted - kept
        free = frozenset(partition for partition in missing if owner_epoch(topic_id, partition) == NO_OWNER)
        step.is_waiting |= len(free) < len(missing)
        for partitions, part in ((kept, step.kept), (owned - kept, step.revoked), (kept | free, step.given)):
            if partitions:
                part[topic_id] = partitions
    return step
