"""The read of the names of topics."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.client.admin.admin import Admin
from kgctl.tui.feed.read import Read


@dataclass(frozen=True, slots=True)
class Names:
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicNames(Read[Names]):
    """All topics, without internal ones."""

    def run(self, admin: Admin) -> Names:
        return Names(tuple(sorted(row.topic for row in admin.list_topics() if not row.internal)))
