"""The committed offsets that an archive keeps: one file, replaced by each snapshot."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection
from dataclasses import asdict, replace
from pathlib import Path

from kgctl.pipelines.archive.layout import GROUPS_FILE, GroupOffset, GroupsSnapshot
from kgctl.pipelines.tables.durable import write_durably
from kgctl.pipelines.tables.errors import Damaged

# Since 3, what is not known is null. Before, `log_start` was then 0, and `log_end` the committed offset.
FORMAT = 3


def write_groups(folder: Path, snapshot: GroupsSnapshot) -> None:
    """Replace the snapshot; after a crash there is the old one or the new one."""
    content = {"format": FORMAT, **asdict(snapshot)}
    content["crc32"] = _checksum(content)
    write_durably(folder / GROUPS_FILE, json.dumps(content, indent=1).encode())


def read_groups(folder: Path) -> GroupsSnapshot | None:
    """The newest snapshot; None if there is none. Raises Damaged."""
    path = folder / GROUPS_FILE
    try:
        content = json.loads(path.read_bytes())
        expected = content.pop("crc32")
        if content["format"] > FORMAT:
            raise ValueError(f"format {content['format']}, written by a newer kgctl; this one reads format {FORMAT}")
        if expected != _checksum(content):
            raise ValueError("the checksum does not match")
        offsets = tuple(GroupOffset(**one) for one in content["offsets"])
        return GroupsSnapshot(content["taken_ms"], offsets if content["format"] >= 3 else tuple(map(_sure, offsets)))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = f"missing field {error}" if isinstance(error, KeyError) else str(error)
        raise Damaged(f"{path}: the committed offsets are damaged ({reason})") from error


def with_older(snapshot: GroupsSnapshot, older: GroupsSnapshot | None, topics: Collection[str]) -> GroupsSnapshot:
    """A snapshot of these topics, with the older offsets in all others."""
    kept = () if older is None else tuple(one for one in older.offsets if one.topic not in topics)
    offsets = sorted((*snapshot.offsets, *kept), key=lambda one: (one.group, one.topic, one.partition))
    return GroupsSnapshot(snapshot.taken_ms, tuple(offsets))


def _sure(one: GroupOffset) -> GroupOffset:
    """What an older format certainly says."""
    return replace(one, log_start=one.log_start or None, log_end=None if one.log_end == one.offset else one.log_end)


def _checksum(content: dict[str, object]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())
