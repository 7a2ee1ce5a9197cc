"""Votes for the assignor of a group that Kafka's coordinator has counted, recorded by tests/harness/java/AssignorVotes.java."""

from __future__ import annotations

from broker.cores.groups.consumer.group import ConsumerGroup
from broker.cores.groups.consumer.member import new_member
from broker.cores.groups.consumer.target import assignor_of, next_assignor

NONE = "-"


def played(line: str) -> str:
    """The same votes with our answers."""
    group, out = ConsumerGroup("g", offsets_loaded=True), []
    for vote in line.split():
        member_id, asked, *_ = vote.split(":")
        before = group.members.get(member_id) or new_member(member_id)
        subscription = before.subscription._replace(server_assignor=None if asked == NONE else asked)
        after = before._replace(subscription=subscription)
        coming = next_assignor(group, before, after, (NONE,))
        group.put_member(after)
        out.append(f"{member_id}:{asked}:{coming}:{assignor_of(group, (NONE,))}")
    return " ".join(out)
