"""What is known about the broker under the cursor."""

from __future__ import annotations

from textual.content import Content

from kgctl.tui import cells
from kgctl.tui.widgets.brokers.table import BrokerLine, latency
from kgctl.tui.widgets.frame import glyphs
from kgctl.tui.widgets.text.entries import Entry

WIDTH = 13
NO_STATUS = "Brokers of Kafka do not report their counters to clients; kgctl's own broker does."
PROMISES = {
    "power": "power: acknowledged data survive a power cut",
    "process": "process: acknowledged data survive the end of the process, not a power cut",
}


def detail(line: BrokerLine | None) -> list[Entry]:
    if line is None:
        return []
    found = []
    if line.seen.error is not None:
        found.append(Entry(cells.name(line.seen.error.message), style="bold $text-error"))
    if line.seen.controller:
        found += _fact("role", f"{glyphs.LEADER} controller")
    found += _status(line)
    row = line.row
    if row is not None:
        found += _fact("release", cells.name(row.release) if row.release else "")
        found += _fact("listeners", cells.name(", ".join(row.listeners)))
    for one in line.log_dirs:
        if one.log_dir is not None:
            used = f"{cells.size(one.size_bytes)} in {cells.count(one.partitions)} partitions"
            free = f", {cells.size(one.usable_bytes)} of {cells.size(one.total_bytes)} free" if one.total_bytes else ""
            found += _fact("log directory", cells.name(one.log_dir)) + _fact("", used + free)
        elif one.error is not None:
            found += _fact("log directory", cells.name(one.error.message))
    if row is not None and row.cluster_id:
        found += _fact("cluster id", cells.name(row.cluster_id))
    if line.figures is None and line.seen.error is None:
        found += [Entry(""), Entry(NO_STATUS, style="$text-muted")]
    return found


def _status(line: BrokerLine) -> list[Entry]:
    figures = line.figures
    if figures is None:
        return []
    status, flushes = figures.status, figures.flushes
    found = _fact("up for", cells.duration((status.wall_ms - status.started_ms) / 1000))
    found += _fact("durability", PROMISES.get(status.durability, cells.name(status.durability)))
    found += _fact("store", f"{cells.size(status.store_bytes)}, WAL {cells.size(status.wal_bytes)}")
    if flushes is not None:
        rate = f"{cells.rate(flushes.rate)}, " if flushes.rate is not None else ""
        found += _fact("flushes", f"{rate}p50 {latency(flushes.p50_s)}, p99 {latency(flushes.p99_s)}, "
                                  f"slowest {latency(flushes.slowest_s)}")  # fmt: skip
    open_ones = sum(status.connections.values())
    each = ", ".join(f"{cells.name(name)} {count:,}" for name, count in sorted(status.connections.items()) if count)
    found += _fact("connections", f"{open_ones:,} of {status.max_connections:,}" + (f": {each}" if each else ""))
    return found


def _fact(name: str, value: str) -> list[Entry]:
    return [Entry(value, Content.styled(cells.fitted(name, WIDTH) + "  ", "$text-muted"))] if value else []
