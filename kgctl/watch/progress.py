"""How the progress of groups is put into words: most groups commit offsets, the start offsets of share groups advance."""

from __future__ import annotations

from kgctl.model.groups import CLASSIC, CONSUMER, SHARE, GroupDescription
from kgctl.watch.figures import span


def has_offsets(group: GroupDescription) -> bool:
    """Whether the lag follows from offsets of the group. Kafka 4.0 does not report those of share groups."""
    if group.type == SHARE:
        return bool(group.partitions)
    return group.type is None or group.type in (CLASSIC, CONSUMER)


def is_unstarted(group: GroupDescription) -> bool:
    """Whether a share group has no start offset, because no member has fetched: its config says where it begins."""
    return group.type == SHARE and all(row.current_offset is None and row.error is None for row in group.partitions)


def offset_of(group: GroupDescription) -> str:
    """What the offset of a partition is called, before its figure."""
    return "start offset" if group.type == SHARE else "committed"


def offsets_of(group: GroupDescription) -> str:
    return "start offsets" if group.type == SHARE else "committed offsets"


def still_for(group: GroupDescription, seconds: float) -> str:
    if group.type == SHARE:
        return f"start offset has not moved for {span(seconds)}"
    return f"no commit for {span(seconds)}"


def last_moved(group: GroupDescription, seconds: float) -> str:
    if group.type == SHARE:
        return f"start offset moved {span(seconds)} ago"
    return f"last commit {span(seconds)} ago"
