"""Which groups have not been used for a while: without members, and the newest commit is that old."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgctl.commands.groups.facts import add_facts
from kgctl.model.groups import CLASSIC, EMPTY_STATES, GroupDescription
from kgctl.model.topic_partition import TopicPartition
from kgctl.render import note

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.commands.shared.settings import Settings

# How long and how much to read from __consumer_offsets.
FACTS_S, FACTS_BYTES = 20.0, 256 << 20


def unused(admin: Admin, chosen: Settings, groups: Sequence[str], age_ms: int) -> list[str]:
    """The groups that are proven to be unused for that long. A note says how many are of unknown age."""
    described = admin.describe_groups(groups, commit_times=True)
    idle = [group for group in described if group.error is None and group.state in EMPTY_STATES]
    idle = add_facts(admin, chosen, idle, seconds=FACTS_S, most_bytes=FACTS_BYTES)
    before = int(time.time() * 1000) - age_ms
    times = {group.group: last_used_ms(group) for group in idle}
    unknown = sum(found is None for found in times.values())
    if unknown:
        count = "1 group" if unknown == 1 else f"{unknown} groups"
        note(f"{count} without members left out: it is not known when they were last used; --explain says more.")
    return [group for group, found in times.items() if found is not None and found <= before]


def last_used_ms(group: GroupDescription) -> int | None:
    """When its last member left or its newest offset was committed, whichever is later; None if either is not known.

    A consumer of a topic without new records commits nothing, so the age of the commits alone proves nothing. Only
    a group that never had members, as simple consumers leave it, is as old as its commits.
    """
    committed = [
        TopicPartition(row.topic, row.partition)
        for row in group.partitions
        if row.topic is not None and row.partition is not None and row.current_offset is not None
    ]
    if any(key not in group.committed_at for key in committed):
        return None
    times = [group.committed_at[key] for key in committed]
    if group.state_since_ms is not None:
        return max([group.state_since_ms, *times])
    is_simple = group.type == CLASSIC and not group.protocol_type
    return max(times, default=None) if is_simple else None
