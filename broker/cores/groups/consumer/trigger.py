"""TriggerRebalance for consumer groups: another group epoch, so that the next heartbeat computes another target assignment.

Assignors keep what members have, so nothing moves unless the assignor, a rack, or the balance has changed. Members give up only what
is not in their new target.
"""

from __future__ import annotations

from broker.cores.groups.consumer.changes import note_cause, report
from broker.cores.groups.consumer.group import ConsumerGroup
from broker.cores.groups.events import Cause
from broker.cores.groups.metadata_hash import metadata_hash
from broker.cores.groups.records.consumer import GroupEpochRecord
from broker.cores.groups.step import Step


def trigger(step: Step, group: ConsumerGroup, reason: str) -> None:
    """Of a group with members. Without effect if the group waits for another target assignment already."""
    generation = group.generation
    if generation > group.assignment_epoch:
        return
    hashed = metadata_hash(group.subscribed_topics(), step.coordinator.topics)
    note_cause(group, Cause.REQUESTED_BY_ADMIN, reason)
    step.persist(GroupEpochRecord(group.group_id, generation + 1, hashed, step.wall_ms))
    report(step, group, generation)
