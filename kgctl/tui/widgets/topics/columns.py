"""The columns of the tables on the screen of topics."""

from __future__ import annotations

from rich.cells import cell_len

from kgctl.model.health import Health
from kgctl.model.lag import Retention
from kgctl.model.watched_topics import TopicReader, WatchedTopic, WatchedTopicPartition
from kgctl.render.table import MISSING
from kgctl.tui import cells
from kgctl.tui.widgets.frame import glyphs
from kgctl.tui.widgets.frame.looks import Look, look
from kgctl.tui.widgets.table import catalogue
from kgctl.tui.widgets.table.columns import Column

PLAIN = Look(" ", "")
BROKEN, LACKING = Look(glyphs.FAULT, "bad"), Look(glyphs.WARNING, "warn")
_EXACT_BELOW = 10_000_000
FOREVER = "forever"


def topic_columns() -> list[Column[WatchedTopic]]:
    return [
        Column("topic", "TOPIC", lambda row: cells.name(row.topic), 16, flex=5, most=60, order=lambda row: row.topic),
        catalogue.number("partitions", "PARTS", lambda row: row.partitions, cells.count, 5),
        catalogue.number("replicas", "REPL", lambda row: row.replicas, cells.count, 4, 6),
        catalogue.number("records", "RECORDS", lambda row: row.records, _whole, 9, 5),
        catalogue.number("size", "SIZE", lambda row: row.size_bytes, cells.size, 6, 3),
        catalogue.rate("in", "IN/s", lambda row: row.rate_in, 2),
        catalogue.number("oldest", "OLDEST", lambda row: _seconds(row.oldest_ms), cells.age, 6, 4),
        Column("kept", "KEPT", lambda row: kept(row.retention), 9, style=lambda _: "dim", priority=4),
        Column(
            "readers",
            "READ BY",
            _all_readers,
            14,
            flex=4,
            most=80,
            style=_readers_style,
            order=_readers_order,
            drawn=read_by,
        ),
    ]


def topic_look(row: WatchedTopic) -> Look:
    if row.error is not None or row.offline:
        return BROKEN
    if row.lacking:
        return LACKING
    return look(row.health) if row.readers else PLAIN


def kept(retention: Retention | None) -> str:
    """Until when records are kept: an age, a size of each partition, or both."""
    if retention is None:
        return MISSING
    parts = [cells.age(_seconds(retention.age_ms))] if retention.age_ms is not None else []
    parts += [cells.size(retention.size_bytes)] if retention.size_bytes is not None else []
    return " ".join(parts) or FOREVER


def read_by(row: WatchedTopic, width: int) -> str:
    """What is wrong with the topic; the groups that read it as far as they fit, the one that needs attention most first."""
    if row.error is not None:
        return row.error.name.lower().replace("_", " ")
    wrong = [f"{row.offline:,} offline"] if row.offline else []
    wrong += [f"{row.lacking:,} not in sync"] if row.lacking else []
    text = ", ".join(wrong)
    for place, group in enumerate(row.readers):
        verdict = "" if place or row.health in (None, Health.OK) else f" {str(row.health).lower()}"
        longer = f"{text}, " * bool(text) + cells.name(group) + verdict
        left = len(row.readers) - place - 1
        if place and cell_len(longer) + (len(f" +{left:,}") if left else 0) > width:
            return f"{text} +{left + 1:,}"
        text = longer
    return text or MISSING


def _all_readers(row: WatchedTopic) -> str:
    return read_by(row, 200)


def _readers_style(row: WatchedTopic) -> str:
    return "" if row.readers or row.error or row.offline or row.lacking else "dim"


def _readers_order(row: WatchedTopic) -> int:
    return len(row.readers)


def partition_columns() -> list[Column[WatchedTopicPartition]]:
    return [
        Column(
            "partition", "P", lambda row: cells.count(row.partition), 4, right=True, order=lambda row: row.partition
        ),
        Column("leader", "LEADER", _leader, 6, right=True, order=lambda row: row.leader, priority=4),
        Column("isr", "IN SYNC", in_sync, 7, right=True, order=lambda row: len(row.isr), priority=5),
        catalogue.number("start", "START", lambda row: row.start, _whole, 9, 6),
        catalogue.number("end", "END", lambda row: row.end, _whole, 9),
        catalogue.number("size", "SIZE", lambda row: row.size_bytes, cells.size, 6, 3),
        catalogue.rate("in", "IN/s", lambda row: row.rate_in, 2),
        catalogue.number("lag", "LAG", most_lag, _whole, 9),
        Column("readers", "READ BY", _reader, 16, flex=1, most=80, style=_no_reader, drawn=reader),
    ]


def partition_look(row: WatchedTopicPartition) -> Look:
    if row.leader is None or row.error is not None:
        return BROKEN
    return LACKING if len(row.isr) < len(row.replicas) else PLAIN


def in_sync(row: WatchedTopicPartition) -> str:
    return f"{len(row.isr)}/{len(row.replicas)}" if row.replicas else MISSING


def most_lag(row: WatchedTopicPartition) -> int | None:
    return max((one.lag for one in row.readers if one.lag is not None), default=None)


def _leader(row: WatchedTopicPartition) -> str:
    return MISSING if row.leader is None else str(row.leader)


def reader(row: WatchedTopicPartition, width: int) -> str:
    """The group with the most lag, its member where there is room, and how many other groups there are."""
    if not row.readers:
        return MISSING
    first, *others = row.readers
    more = f" +{len(others):,}" if others else ""
    long = cells.name(first.group) + (f" {glyphs.PATH} {cells.name(first.member)}" if first.member else "") + more
    return long if cell_len(long) <= width else cells.fitted(cells.name(first.group), width - len(more)).rstrip() + more


def _reader(row: WatchedTopicPartition) -> str:
    return row.readers[0].group if row.readers else MISSING


def _no_reader(row: WatchedTopicPartition) -> str:
    return "" if row.readers else "dim"


def reader_columns() -> list[Column[TopicReader]]:
    return [
        Column("group", "GROUP", lambda row: cells.name(row.group), 10, flex=1, most=60, order=lambda row: row.group),
        catalogue.number("members", "MBR", lambda row: row.members, cells.count, 3, 6),
        catalogue.number("lag", "LAG", lambda row: row.lag, _whole, 7),
        catalogue.number("behind", "BEHIND", lambda row: _seconds(row.behind_ms), _about, 6, 2),
        Column(
            "headroom", "HEADROOM", headroom, 9, right=True, style=_headroom_style, order=lambda row: row.headroom_ms
        ),
    ]


def headroom(row: TopicReader) -> str:
    """How long until retention may delete records that the group has not read, or how many it has deleted."""
    if row.lost:
        return f"lost {cells.short(row.lost)}"
    return _about(_seconds(row.headroom_ms))


def _headroom_style(row: TopicReader) -> str:
    if row.lost:
        return "bad"
    return "dim" if row.headroom_ms is None else ""


def _about(seconds: float | None) -> str:
    return f"~{cells.age(seconds)}" if seconds else cells.age(seconds)


def _seconds(span_ms: int | None) -> float | None:
    return None if span_ms is None else span_ms / 1000


def _whole(number: int | None) -> str:
    return cells.short(number) if number is None or number >= _EXACT_BELOW else cells.count(number)
