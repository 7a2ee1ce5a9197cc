"""Which groups have not been used for a while: without members, and the newest commit is that old."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgctl.commands.groups.facts import add_facts
from kgctl.model.groups import EMPTY_STATES
from kgctl.render import note
from kgctl.watch.figures import counted

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
    times = {group.group: group.last_used_ms for group in idle}
    unknown = sum(found is None for found in times.values())
    if unknown:
        note(
            f"{counted(unknown, 'group')} without members left out: it is not known when they were last used; --explain says more."
        )
    return [group for group, found in times.items() if found is not None and found <= before]
