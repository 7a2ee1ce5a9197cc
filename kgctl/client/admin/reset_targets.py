"""Where a reset moves each committed offset of a group. Pure: log offsets and commits are arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from broker.light_dataclasses import dataclass, field, replace
from broker.protocol.errors import ErrorCode
from kgctl.client.admin.offsets import OffsetAt
from kgctl.client.net.errors import KgctlError
from kgctl.model.changes import FAILED, ResetRow
from kgctl.model.failure import RowError
from kgctl.model.groups import Committed
from kgctl.model.topic_partition import TopicPartition

PENDING = ErrorCode.UNSTABLE_OFFSET_COMMIT.name
Kind: TypeAlias = Literal["earliest", "latest", "current", "offset", "shift", "timestamp", "file", "group"]
Places: TypeAlias = "Mapping[TopicPartition, OffsetAt | KgctlError]"


@dataclass(frozen=True, slots=True)
class Target:
    """Where to move offsets: `number` is the offset, the shift, or the timestamp in ms.

    `offsets` are those of a file, or those committed by the group `source`.
    """

    kind: Kind
    number: int = 0
    offsets: Mapping[TopicPartition, int] | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Which partitions: topics, each with its partitions or None for all; or all with a committed offset.

    A pattern narrows the latter to topics whose whole name it matches. Not used with a file of offsets, which names its
    partitions.
    """

    topics: tuple[tuple[str, tuple[int, ...] | None], ...] = ()
    all_topics: bool = False
    pattern: re.Pattern[str] | None = None

    @property
    def is_of_commits(self) -> bool:
        return self.all_topics or self.pattern is not None

    def has(self, topic: str) -> bool:
        """Whether a scope of commits contains the topic."""
        return self.all_topics or (self.pattern is not None and self.pattern.fullmatch(topic) is not None)


@dataclass(frozen=True, slots=True)
class Logs:
    """Where the partitions start and end, and where they were at the time of the target."""

    starts: Places = field(default_factory=dict)
    ends: Places = field(default_factory=dict)
    at_time: Places = field(default_factory=dict)


def reset_row(group: str, key: TopicPartition, target: Target, commit: Committed | None, logs: Logs) -> ResetRow:
    """The new offset of one partition, clamped to the log unless it is the committed one."""
    old = commit.offset if commit else None
    row = ResetRow(group, key.topic, key.partition, old, None, None)
    start, end = logs.starts[key], logs.ends[key]
    if target.kind == "current" and old is not None:
        return replace(row, new_offset=old, delta=0, note=_outside_note(old, start, end))
    failed = next((found for found in (start, end, logs.at_time.get(key)) if isinstance(found, KgctlError)), None)
    if isinstance(start, KgctlError) or isinstance(end, KgctlError) or failed:
        assert failed is not None
        return replace(row, status=FAILED, error=failed.as_row())
    wanted, note = _wanted(key, target, old, start.offset, end.offset, logs.at_time.get(key))
    if wanted is None:
        return replace(row, status=FAILED, error=RowError("NO_COMMITTED_OFFSET", _why_nothing(key, target)))
    new = min(max(wanted, start.offset), end.offset)
    if new != wanted:
        note = f"{wanted} is {'after the end' if new < wanted else 'before the start'} of the log: clamped"
    return replace(row, new_offset=new, delta=None if old is None else new - old, note=note)


def note_pending(
    rows: Iterable[ResetRow], stable: Mapping[TopicPartition, Committed] | KgctlError, *, refuse: bool
) -> tuple[ResetRow, ...]:
    """The rows, with what open transactions hold: an error if the plan is to be applied as it is, else a note."""
    if isinstance(stable, KgctlError):
        return tuple(row if row.error else replace(row, status=FAILED, error=stable.as_row()) for row in rows)
    return tuple(_with_pending(row, refuse) if _is_pending(row, stable) else row for row in rows)


def _is_pending(row: ResetRow, stable: Mapping[TopicPartition, Committed]) -> bool:
    if row.partition is None or row.error:
        return False
    commit = stable.get(TopicPartition(row.topic, row.partition))
    return commit is not None and commit.error is not None and commit.error.name == PENDING


def _with_pending(row: ResetRow, refuse: bool) -> ResetRow:
    if not refuse:
        return replace(row, note="an open transaction may commit its own offset")
    about = (
        f"group {row.group!r}, {row.topic}-{row.partition}: an open transaction may still commit its own offset; wait "
        "for it to end, add --drain to let the command wait, or abort it with `kgctl transactions abort`"
    )
    return replace(row, status=FAILED, error=RowError(PENDING, about))


def _wanted(
    key: TopicPartition, target: Target, old: int | None, start: int, end: int, at_time: OffsetAt | KgctlError | None
) -> tuple[int | None, str | None]:
    """The requested offset and a note about it; None where there is no committed offset to start from."""
    if target.kind == "earliest":
        return start, None
    if target.kind == "latest":
        return end, None
    if target.kind == "current":
        return end, "nothing committed: latest"
    if target.kind == "shift":
        return None if old is None else old + target.number, None
    if target.kind == "timestamp":
        found = at_time.offset if isinstance(at_time, OffsetAt) else -1
        return (end, "no record at or after that time: latest") if found < 0 else (found, None)
    return (target.number if target.offsets is None else target.offsets.get(key)), None


def _why_nothing(key: TopicPartition, target: Target) -> str:
    if target.kind == "group":
        return f"Group '{target.source}' has no committed offset for partition {key}"
    return f"Cannot shift offset for partition {key} since there is no current committed offset"


def _outside_note(offset: int, start: OffsetAt | KgctlError, end: OffsetAt | KgctlError) -> str | None:
    """A committed offset stays as it is, as with Kafka's tool, also where the log does not have it."""
    if isinstance(start, OffsetAt) and offset < start.offset:
        return f"{offset} is before the start of the log: kept"
    if isinstance(end, OffsetAt) and offset > end.offset:
        return f"{offset} is after the end of the log: kept"
    return None
