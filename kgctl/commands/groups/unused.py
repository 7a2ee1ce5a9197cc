"""Which groups have not been used for a while: without members, and the newest commit is that old.

Only what the cluster's own times prove makes a group old: our clock may be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgctl.commands.groups.facts import add_facts
from kgctl.model.groups import EMPTY_STATES
from kgctl.render import note
from kgctl.watch.clock_skew import newest_ms
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
    now_ms = newest_ms([*described, *idle]) or 0
    times = {group.group: group.last_used_ms for group in idle}
    unknown = sum(found is None for found in times.values())
    if unknown:
        note(
            f"{counted(unknown, 'group')} without members left out: it is not known when they were last used; --explain says more."
        )
    if idle and not all(group.clock_ms for group in idle):
        chosen.explain("The brokers do not report their clocks: ages count to the newest commit of these groups.")
    clocks = {group.group: group.clock_ms or now_ms for group in idle}
    return [group for group, found in times.items() if found is not None and found <= clocks[group] - age_ms]
