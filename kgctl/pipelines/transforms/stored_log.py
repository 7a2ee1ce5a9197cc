"""The rebalances of a group from the records of `__consumer_offsets`, whatever its type. Does not import Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace

from broker.protocol.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from broker.protocol.offsets_topic import GroupMetadataValue
from broker.protocol.wire_types import DecodeError
from kgctl.client.admin.group_records import CLASSIC, GroupRecord
from kgctl.model.history import GroupEventRow
from kgctl.pipelines.transforms.membership import Changes, Membership, between, memberships
from kgctl.pipelines.transforms.rebalance_rules import (
    FROM_LOG,
    Event,
    Generation,
    OpenRebalance,
    Rebalance,
    Seat,
    compare,
    follow,
    generation_from_json,
    skew,
)
from kgctl.watch.newer_groups import KINDS, NewerGroup


class StoredLog:
    """A group over its records in log order, from the start of the topic.

    Its state is a classic generation, a newer group, or both for a moment: `before` is then what the group was before it
    changed its type, or what was deleted. `memberships` are those of the records that were added, until the caller clears it.
    """

    def __init__(self) -> None:
        self.before: Generation | None = None
        self.newer: NewerGroup | None = None
        self.has_ended = False  # `before` is no generation of a classic group that is there
        self.open = OpenRebalance()
        self.memberships: list[Membership] = []

    def add(self, record: GroupRecord) -> Iterator[Rebalance]:
        """The rebalance that ends with the next record, if one does."""
        if record.kind == CLASSIC:
            yield from self._add_classic(record)
        elif record.kind in KINDS:
            yield from self._add_newer(record)

    def to_json(self) -> str:
        """ "" if there is no such group; what follows a deletion at once follows in the same batch."""
        if self.newer is None and (self.before is None or self.has_ended):
            return ""
        fields = {
            "before": None if self.before is None else self.before.to_json(),
            "newer": None if self.newer is None else self.newer.to_json(),
            "has_ended": self.has_ended,
            "open": asdict(self.open),
        }
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> StoredLog:
        found, fields = cls(), json.loads(text)
        found.before = None if fields["before"] is None else generation_from_json(fields["before"])
        found.newer = None if fields["newer"] is None else NewerGroup.from_json(fields["newer"])
        found.has_ended, found.open = fields["has_ended"], OpenRebalance(**fields["open"])
        return found

    def _add_classic(self, record: GroupRecord) -> Iterator[Rebalance]:
        if not isinstance(record.value, GroupMetadataValue):
            self.has_ended = True
            return
        now = _generation(record.value)
        if self.has_ended and (self.before is None or self.before.number != now.number):
            self.before = None  # another group of the same name
        rebalance = compare(record.group, self.before, now, record.timestamp)
        self.memberships += between(record.group, self.before, now, record.timestamp)
        # After a change of the type, the first record has the members that stay; the rebalance is still to come.
        if not self.has_ended or rebalance is not None:
            self.before = now
        self.has_ended = False
        if rebalance is not None:
            yield rebalance

    def _add_newer(self, record: GroupRecord) -> Iterator[Rebalance]:
        group = self.newer
        if group is None:
            if record.value is None:
                return
            group = NewerGroup(record.group, KINDS[record.kind], is_whole=True, is_new=self.has_ended)
            if self.before is not None:
                group.former = {seat.member_id: ("", "") for seat in self.before.seats}
            self.newer, self.before, self.has_ended = group, None, False
        instances = {name: member.instance_id for name, member in group.members.items()}
        for row in group.add(record):
            instances |= {name: member.instance_id for name, member in group.members.items()}
            self.memberships += memberships(_changes(row, instances))
            self.open, rebalance = follow(self.open, _event(row))
            if rebalance is not None:
                yield _from_log(rebalance, row)
        if group.is_removed:
            # Topics have ids here, and names in classic groups: what moves between the two is not known.
            seats = tuple(Seat(name, _instance(group, name), None) for name in group.former or ())
            self.before = None if group.epoch is None else Generation(group.epoch, seats)
            self.newer, self.has_ended = None, True


def _instance(group: NewerGroup, member_id: str) -> str | None:
    member = group.members.get(member_id)
    return None if member is None else member.instance_id


def _generation(value: GroupMetadataValue) -> Generation:
    is_consumer = value.protocol_type == PROTOCOL_TYPE
    return Generation(
        value.generation,
        tuple(
            Seat(
                one.member_id,
                one.group_instance_id,
                _assigned(one.assignment) if is_consumer else None,
                one.client_id,
                one.client_host,
            )
            for one in value.members
        ),
    )


def _assigned(blob: bytes) -> tuple[tuple[str, tuple[int, ...]], ...] | None:
    """An empty blob means no partitions."""
    try:
        topics = decode_assignment(blob).assigned_partitions if blob else []
    except DecodeError:
        return None
    return tuple((topic.topic, tuple(topic.partitions)) for topic in topics)


def _event(row: GroupEventRow) -> Event:
    return Event(
        group=row.group,
        event=row.event,
        generation=row.generation,
        at_ms=row.timestamp,
        cause=row.cause,
        reason=row.reason,
        joined=row.joined,
        left=row.left,
        members=row.members,
        prepare_ms=row.prepare_ms,
        partitions_moved=row.partitions_moved,
        group_type=row.group_type,
    )


def _changes(row: GroupEventRow, instances: Mapping[str, str | None]) -> Changes:
    return Changes(
        group=row.group,
        event=row.event,
        generation=row.generation,
        at_ms=row.timestamp,
        joined=row.joined,
        left=row.left,
        left_causes=row.left_causes,
        clients={name: (client.client_id, client.host) for name, client in row.clients.items()},
        group_type=row.group_type,
        source=FROM_LOG,
        instances=instances,
    )


def _from_log(rebalance: Rebalance, row: GroupEventRow) -> Rebalance:
    owned = row.assignment or {}
    return replace(
        rebalance,
        duration_source=FROM_LOG,
        joined=None if row.joined_count is None else rebalance.joined,
        left=None if row.left_count is None else rebalance.left,
        skew=skew([sum(len(entry.partitions) for entry in topics) for topics in owned.values()]),
        commits_rejected=None,
    )
