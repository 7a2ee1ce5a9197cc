"""The history of a group on a cluster that keeps none, derived from `__consumer_offsets`."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from broker.light_dataclasses import dataclass, field
from kgctl.client.admin.admin import Admin
from kgctl.model.history import GroupEventRow
from kgctl.watch.derived_events import DerivedEvents, with_names

# Groups that were opened last.
MOST = 8


@dataclass(slots=True)
class _Reading:
    """How far a group has been read, and the names of topics by their ids in hexadecimal digits."""

    derived: DerivedEvents = field(default_factory=DerivedEvents)
    names: dict[str, str] = field(default_factory=dict)


_readings: WeakKeyDictionary[Admin, dict[str, _Reading]] = WeakKeyDictionary()


def derived_events(admin: Admin, group: str, *, whole_history: bool) -> tuple[GroupEventRow, ...]:
    """The events since the last call, or all. Raises KgctlError."""
    of_admin = _readings.setdefault(admin, {})
    reading = None if whole_history else of_admin.pop(group, None)
    if reading is None:
        reading = _Reading()
    reading.derived.offsets = admin.read_group_records(reading.derived.offsets, reading.derived.take, group)
    # The last one is the newest; after a failure, all is read again.
    of_admin.pop(group, None)
    of_admin[group] = reading
    for other in list(of_admin)[:-MOST]:
        del of_admin[other]
    rows = reading.derived.rows()
    topics = {entry.topic for row in rows for owned in (row.assignment or {}).values() for entry in owned}
    if any(row.counts_epochs for row in rows) and not topics <= reading.names.keys():
        found = admin.run(admin.cluster.metadata(None))
        reading.names = {topic.topic_id.hex(): topic.name or "" for topic in found.topics}
    return tuple(with_names(row, reading.names) for row in rows)
