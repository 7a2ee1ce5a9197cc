"""The tables of brokers, of requests, and of findings."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.cluster_rows import BrokerRow, LogDirRow
from kgctl.model.findings import ClusterFinding, Severity
from kgctl.model.watched_brokers import BrokerFigures, BrokerSeen, RequestFigures
from kgctl.tui import cells
from kgctl.tui.widgets.frame import glyphs
from kgctl.tui.widgets.frame.filter import Field
from kgctl.tui.widgets.frame.looks import Look
from kgctl.tui.widgets.table import catalogue
from kgctl.tui.widgets.table.columns import Column


@dataclass(frozen=True, slots=True)
class BrokerLine:
    """`groups` counts the groups that it coordinates, None if that is not known yet."""

    seen: BrokerSeen
    groups: int | None = None
    row: BrokerRow | None = None
    log_dirs: tuple[LogDirRow, ...] = ()
    figures: BrokerFigures | None = None

    @property
    def key(self) -> str:
        return str(self.seen.broker)

    @property
    def size_bytes(self) -> int | None:
        return _total([one.size_bytes for one in self.log_dirs])

    @property
    def free_bytes(self) -> int | None:
        return _total([one.usable_bytes for one in self.log_dirs])


def broker_columns() -> list[Column[BrokerLine]]:
    return [
        Column("broker", "BROKER", _number, 8, order=lambda line: line.seen.broker),
        Column("address", "ADDRESS", lambda line: cells.name(line.seen.address), 26, flex=4, most=60,
               order=lambda line: line.seen.address),
        Column("rack", "RACK", lambda line: cells.name(line.row.rack if line.row else None), 8, flex=1, most=20,
               priority=5),
        catalogue.number("leaders", "LEADERS", lambda line: line.seen.leaders, cells.count, 7),
        catalogue.number("replicas", "REPLICAS", lambda line: line.seen.replicas, cells.count, 8, priority=6),
        Column("lagging", "LAGGING", lambda line: cells.count(line.seen.lagging), 7, right=True, priority=2,
               style=lambda line: "bad" if line.seen.lagging else "dim", order=lambda line: line.seen.lagging,
               falling=True),
        catalogue.number("groups", "GROUPS", lambda line: line.groups, cells.count, 6, priority=1),
        catalogue.number("size", "SIZE", lambda line: line.size_bytes, cells.size, 7, priority=3),
        catalogue.number("free", "FREE", lambda line: line.free_bytes, cells.size, 7, priority=4),
        catalogue.rate("rate", "REQ/s", lambda line: line.figures.rate if line.figures else None, priority=7),
        Column("state", "STATE", _state, 9, style=lambda line: broker_look(line).style, order=lambda line: _state(line)),
    ]  # fmt: skip


def broker_fields() -> list[Field[BrokerLine]]:
    return [
        Field("rack", lambda line: (line.row.rack if line.row else None,)),
        Field("lagging", number=lambda line: line.seen.lagging),
        Field("leaders", number=lambda line: line.seen.leaders),
    ]


def broker_look(line: BrokerLine) -> Look:
    if line.seen.error is not None:
        return Look(glyphs.FAULT, "bad")
    return Look(glyphs.WARNING, "warn") if _is_doubtful(line) else Look(glyphs.GOOD, "good")


def _is_doubtful(line: BrokerLine) -> bool:
    return bool(line.seen.lagging or (line.row and line.row.fenced))


def _number(line: BrokerLine) -> str:
    """The controller has a star, as the leader of a group has."""
    return f"{line.seen.broker} {glyphs.LEADER}" if line.seen.controller else line.key


def _state(line: BrokerLine) -> str:
    if line.seen.error is not None:
        return "no answer"
    if line.row is not None and line.row.fenced:
        return "fenced"
    return "answers"


def request_columns() -> list[Column[RequestFigures]]:
    return [
        Column("request", "REQUEST", lambda row: cells.name(row.name), 16, flex=2, most=32, order=lambda row: row.name),
        catalogue.rate("rate", "REQ/s", lambda row: row.rate),
        catalogue.number("p50", "P50", lambda row: row.p50_s, latency, 6),
        catalogue.number("p99", "P99", lambda row: row.p99_s, latency, 6),
        catalogue.number("slowest", "SLOWEST", lambda row: row.slowest_s, latency, 7, priority=2),
        catalogue.number("total", "TOTAL", lambda row: row.total, cells.short, 6, priority=1),
    ]


def latency(seconds: float | None) -> str:
    """A short time with two digits: 40us, 1.2ms, 3.4s."""
    if seconds is None:
        return cells.count(None)
    if seconds < 0.0009995:
        return f"{seconds * 1e6:.0f}us"
    if seconds < 0.00995:
        return f"{seconds * 1e3:.1f}ms"
    return f"{seconds * 1e3:.0f}ms" if seconds < 0.9995 else cells.age(seconds)


def finding_columns() -> list[Column[ClusterFinding]]:
    return [
        Column("check", "CHECK", lambda row: row.check, 12, flex=1, most=18, order=lambda row: row.check),
        Column("subject", "SUBJECT", lambda row: cells.name(row.subject), 10, flex=1, most=30),
        Column("evidence", "FOUND, AND WHAT TO DO", _found, 40, flex=12, most=240),
    ]


def _found(row: ClusterFinding) -> str:
    return cells.name(row.evidence + (f"; {row.advice}" if row.advice else ""))


def finding_look(row: ClusterFinding) -> Look:
    return {
        Severity.ERROR: Look(glyphs.FAULT, "bad"),
        Severity.WARNING: Look(glyphs.WARNING, "warn"),
        Severity.UNKNOWN: Look(glyphs.DOUBTFUL, "warn"),
    }.get(row.severity, Look(glyphs.UNUSED, "dim"))


def _total(sizes: list[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if known else None
