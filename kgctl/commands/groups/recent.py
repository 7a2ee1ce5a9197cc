"""Where the records of the last moments begin: it proves that groups keep up which have a little lag."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgctl.model.groups import GroupDescription
from kgctl.watch.limits import LIMITS
from kgctl.watch.standing import newest_ms

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.commands.shared.settings import Settings


def with_recent(admin: Admin, chosen: Settings, found: Sequence[GroupDescription]) -> Sequence[GroupDescription]:
    """The groups with `recent_from`; --explain says why some lack it."""
    if not any(group.members and not group.error for group in found):
        return found
    # By the later of the two clocks: a record must be younger to count as recent.
    clocks = [group.clock_ms for group in found if group.clock_ms is not None]
    now_ms = max(clocks) if clocks else max(time.time_ns() // 1_000_000, newest_ms(found) or 0)
    groups, missing = admin.with_recent(found, now_ms - round(LIMITS.behind_s * 1000), now_ms)
    if missing is not None:
        chosen.explain(f"Whether groups with lag keep up is not known for all: {missing}.")
    return groups
