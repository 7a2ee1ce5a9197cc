"""Where the records of the last moments begin: it proves that groups keep up which have a little lag."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgctl.model.groups import GroupDescription
from kgctl.watch.clock_skew import latest_now_ms
from kgctl.watch.limits import LIMITS

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.commands.shared.settings import Settings


def with_recent(admin: Admin, chosen: Settings, found: Sequence[GroupDescription]) -> Sequence[GroupDescription]:
    """The groups with `recent_from`; --explain says why some lack it."""
    if not any(group.members and not group.error for group in found):
        return found
    now_ms = latest_now_ms(found, time.time_ns() // 1_000_000)
    groups, missing = admin.with_recent(found, now_ms - round(LIMITS.behind_s * 1000), now_ms)
    if missing is not None:
        chosen.explain(f"Whether groups with lag keep up is not known for all: {missing}.")
    return groups
