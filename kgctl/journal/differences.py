"""How two snapshots of groups differ. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.model.plans import DifferenceRow, StoredGroup, StoredOffset


def differences(old: Sequence[StoredGroup], new: Sequence[StoredGroup]) -> list[DifferenceRow]:
    """In the order of groups and partitions. States and members do not count: they change by themselves."""
    before, after = ({group.group: group for group in some} for some in (old, new))
    rows: list[DifferenceRow] = []
    for name in sorted({*before, *after}):
        one, other = before.get(name), after.get(name)
        if _exists(one) != _exists(other):
            rows.append(DifferenceRow(name, "group", old=_described(one), new=_described(other)))
        elif one is not None and other is not None and one.type != other.type:
            rows.append(DifferenceRow(name, "type", old=one.type, new=other.type))
        rows += _of_offsets(name, one, other)
    return rows


def _of_offsets(name: str, one: StoredGroup | None, other: StoredGroup | None) -> list[DifferenceRow]:
    before, after = (group.committed() if group is not None else {} for group in (one, other))
    rows = []
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if old is None or new is None or old.offset != new.offset:
            delta = new.offset - old.offset if old is not None and new is not None else None
            rows.append(DifferenceRow(name, "offset", key.topic, key.partition, _text(old), _text(new), delta))
        if old is not None and new is not None and old.metadata != new.metadata:
            rows.append(DifferenceRow(name, "metadata", key.topic, key.partition, old.metadata, new.metadata))
    return rows


def _exists(group: StoredGroup | None) -> bool:
    return group is not None and (group.state not in (None, "Dead") or bool(group.offsets))


def _described(group: StoredGroup | None) -> str | None:
    if not _exists(group):
        return None
    assert group is not None
    count = len(group.offsets)
    return "1 offset" if count == 1 else f"{count} offsets"


def _text(offset: StoredOffset | None) -> str | None:
    return None if offset is None else str(offset.offset)
