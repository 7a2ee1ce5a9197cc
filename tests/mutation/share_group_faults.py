"""Faults of the coordinator of share groups, which differ from what a real Kafka answered or stored."""

from __future__ import annotations

from tests.mutation.faults import Fault

WALKS = ("tests/broker/cores/groups/share/test_oracle.py",)
VECTORS = ("tests/broker/cores/groups/assignors/test_vectors.py",)
RULES = ("tests/broker/cores/groups/share/test_heartbeat.py", "tests/broker/cores/groups/share/test_offsets.py")


def _fault(name: str, module: str, right: str, wrong: str, tests: tuple[str, ...] = WALKS) -> Fault:
    return Fault(f"share groups: {name}", f"cores/groups/{module}.py", right, wrong, tests)


SHARE_GROUP_FAULTS = (
    _fault(
        "partitions that have just got state are never assigned",
        "share/heartbeat",
        "is_bumped = has_other_topics or has_unassigned",
        "is_bumped = has_other_topics",
    ),
    _fault(
        "the previous epoch is refused",
        "share/heartbeat",
        " and received != current.previous_member_epoch",
        "",
    ),
    _fault(
        "a full request gets no assignment",
        "share/heartbeat",
        "request.member_epoch == 0 or request.subscribed_topic_names is not None",
        "request.member_epoch == 0",
    ),
    _fault("a member that leaves keeps the epoch", "share/departures", "generation + 1, hashed", "generation, hashed"),
    _fault(
        "a new member is in its place in Kafka's table too early",
        "share/target",
        ", is_last_new=len(members) > len(group.members)",
        "",
    ),
    _fault(
        "partitions without state are assigned",
        "assignors/simple",
        "for number in range(count) if number in numbers]",
        "for number in range(count)]",
        VECTORS,
    ),
    _fault(
        "members keep more than their share",
        "assignors/simple",
        "len(owned) < desired and",
        "len(owned) <= desired and",
        VECTORS,
    ),
    _fault(
        "a session outlives a silent member",
        "share/departures",
        "        _remove(step, group, group.members[member_id], Cause.SESSION_TIMED_OUT)",
        "        pass",
        RULES,
    ),
    _fault(
        "the state of a deleted group stays",
        "share/partitions",
        "    _persist(step, group, StatePartitions({}, {}, deleting))\n    _delete_state(step, group, topics)",
        "    _persist(step, group, StatePartitions({}, {}, deleting))",
        RULES,
    ),
    _fault(
        "offsets of a group with members are altered",
        "share/offsets",
        "_alter(step, empty(step, request.group_id), request)",
        "_alter(step, step.groups[request.group_id], request)",
        RULES,
    ),
)
