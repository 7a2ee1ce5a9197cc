"""Snapshots of groups, built from plain values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kgctl.model.groups import GroupDescription, MemberRow, PartitionLag, by_topic, lag_of
from kgctl.model.history import GroupEventRow
from kgctl.model.watched import GroupSnapshot, Snapshot


def member(name: str, owned: Iterable[int] = (), topic: str = "orders", **fields: Any) -> MemberRow:
    assigned = by_topic((topic, number) for number in owned)
    count = sum(len(entry.partitions) for entry in assigned)
    return MemberRow("g", name, None, "/10.0.0.1", "app", count, None, current_assignment=assigned, **fields)


def partition(
    number: int, commit: int | None, end: int | None, owner: str | None = "c-1", topic: str = "orders", **fields: Any
) -> PartitionLag:
    return PartitionLag("g", topic, number, None, commit, end, lag_of(commit, end), owner, None, owner, **fields)


def group(
    state: str = "Stable",
    members: Iterable[MemberRow] = (member("c-1"),),
    partitions: Iterable[PartitionLag] = (),
    name: str = "g",
    **fields: Any,
) -> GroupDescription:
    return GroupDescription(
        name, **{"type": "Classic", **fields}, state=state, members=tuple(members), partitions=tuple(partitions)
    )


def snapshot(at_s: float, *groups: GroupDescription, **fields: Any) -> Snapshot:
    return Snapshot(at_s, int(at_s * 1000), {each.group: each for each in groups}, **fields)


def group_snapshot(
    at_s: float, described: GroupDescription, events: Iterable[GroupEventRow] | None = None
) -> GroupSnapshot:
    return GroupSnapshot(at_s, int(at_s * 1000), described, None if events is None else tuple(events))


def event(kind: str, at_ms: int, generation: int, **fields: Any) -> GroupEventRow:
    row: dict[str, Any] = {
        "cause": None,
        "reason": None,
        "prepare_ms": None,
        "complete_ms": None,
        "members": 1,
        "joined_count": len(fields.get("joined", ())),
        "left_count": len(fields.get("left", ())),
        "partitions_moved": None,
        "commits_rejected": 0,
    }
    return GroupEventRow(group="g", timestamp=at_ms, generation=generation, event=kind, **(row | fields))
