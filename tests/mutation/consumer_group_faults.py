"""Faults of the coordinator of consumer groups, which differ from what a real Kafka answered or stored."""

from __future__ import annotations

from tests.mutation.faults import Fault

WALKS = ("tests/broker/cores/groups/consumer/test_oracle.py",)


def _fault(name: str, module: str, right: str, wrong: str) -> Fault:
    return Fault(f"consumer groups: {name}", f"cores/groups/consumer/{module}.py", right, wrong, WALKS)


CONSUMER_GROUP_FAULTS = (
    Fault(
        "consumer groups: members reach the assignor in the order in which they joined",
        "cores/groups/assignors/java_order.py",
        "_slot_hash(key) >> self._shift, self._numbers[key]",
        "-self._numbers[key], 0",
        WALKS,
    ),
    Fault(
        "consumer groups: a target keeps the former subscriptions of members",
        "cores/groups/consumer/group.py",
        "before.subscription != member",
        "member != member",
        ("tests/broker/cores/groups/consumer/test_roster.py",),
    ),
    _fault(
        "the member that joined first leads a group that becomes classic",
        "downgrade",
        "return timeline_order(group.members, group.most_members)",
        "return list(group.members)",
    ),
    Fault(
        "consumer groups: the range assignor asks each member of a homogeneous group",
        "cores/groups/assignors/range.py",
        "        if is_homogeneous and ranked:\n",
        "        if False:\n",
        WALKS,
    ),
    _fault(
        "a lookup of topics changes whether a group is homogeneous",
        "group",
        "        self._is_homogeneous = self.is_homogeneous()\n",
        "        self._is_homogeneous = None\n",
    ),
    _fault("a tied vote goes to the older assignor", "target", "{asked: 1, **votes}", "{**votes, asked: 1}"),
    _fault(
        "the previous epoch is enough for any partitions",
        "heartbeat",
        "        and owns_only(request.topic_partitions, current.assigned)\n",
        "",
    ),
    _fault(
        "the previous epoch is refused",
        "heartbeat",
        "and received == current.previous_member_epoch",
        "and received == -9",
    ),
    _fault(
        "another assignor makes the group epoch grow",
        "heartbeat",
        "is_bumped |= updated.subscription.topic_names != member.subscription.topic_names",
        "is_bumped = True",
    ),
    _fault(
        "a change of topics is not noticed",
        "advance",
        "is_outdated = is_bumped or _have_changed(group, topics)",
        "is_outdated = is_bumped",
    ),
    _fault(
        "topics that a former regular expression matched count as changed",
        "advance",
        "    return group.seen[0] != topics.version\n",
        "    return version != topics.version\n",
    ),
    _fault(
        "a full request is answered without the assignment",
        "heartbeat",
        "if not request.member_epoch or is_full or has_changed else None",
        "if not request.member_epoch or has_changed else None",
    ),
    _fault(
        "every answer has the assignment",
        "heartbeat",
        "if not request.member_epoch or is_full or has_changed else None",
        "if True else None",
    ),
    _fault(
        "a full group refuses its own members",
        "advance",
        "if len(group.members) >= limit and member_id not in group.members:",
        "if len(group.members) >= limit:",
    ),
    _fault(
        "the assignor is checked before the epoch",
        "heartbeat",
        "    if problem is not None:\n",
        "    if problem is not None and request.server_assignor is None:\n",
    ),
    _fault(
        "partitions are assigned before their owner has given them up",
        "reconciliation",
        "if owner_epoch(topic_id, partition) == NO_OWNER)",
        "if owner_epoch(topic_id, partition) < 1_000)",
    ),
    _fault(
        "a member that gives up partitions is in the epoch of the target",
        "reconciliation",
        "after = Current(epoch, current.member_epoch, MemberState.UNREVOKED_PARTITIONS",
        "after = Current(assignment_epoch, current.member_epoch, MemberState.UNREVOKED_PARTITIONS",
    ),
    _fault(
        "a member has given up partitions if it does not say what it owns",
        "reconciliation",
        "    if reported is None:\n        return True\n",
        "    if reported is None:\n        return False\n",
    ),
    _fault(
        "a static member that leaves for a while loses its place",
        "departures",
        "if request.member_epoch == LEFT_STATIC:",
        "if request.member_epoch == LEFT_STATIC - 1:",
    ),
    _fault(
        "the last member of a regular expression leaves its topics behind",
        "departures",
        "if group.expressions.get(regex) == found]",
        "if group.expressions.get(regex) == 0]",
    ),
    _fault(
        "a member whose session ended stays",
        "departures",
        "        remove(step, group, group.members[member_id], Cause.SESSION_TIMED_OUT)\n",
        "        pass\n",
    ),
    _fault(
        "an instance id is taken from a member that is there",
        "statics",
        "    if is_in_use:\n",
        "    if False:\n",
    ),
    _fault(
        "a known regular expression makes no difference to the group epoch",
        "regexes",
        "is_resolved = new in group.regexes",
        "is_resolved = False",
    ),
    _fault(
        "the topics that match make no difference to the group epoch",
        "regexes",
        "    if has_changed or hashed != group.metadata_hash:\n",
        "    if False:\n",
    ),
)
