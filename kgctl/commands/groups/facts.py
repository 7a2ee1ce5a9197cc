"""What only `__consumer_offsets` says about groups of other brokers, and why some of it is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgctl.model.groups import GroupDescription

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.commands.shared.settings import Settings

SHOWN = "Generations, timeouts and times of commits"


def add_facts(
    admin: Admin, chosen: Settings, found: Sequence[GroupDescription], *, seconds: float, most_bytes: int
) -> list[GroupDescription]:
    """The groups with these facts; --explain says where they come from, or why they are not known."""
    groups, facts = admin.group_facts(found, seconds=seconds, most_bytes=most_bytes)
    if facts.missing is not None:
        chosen.explain(f"{SHOWN} are not known for all groups: {facts.missing}.")
    elif facts.has_read:
        chosen.explain(f"{SHOWN} come from __consumer_offsets.")
    return groups
