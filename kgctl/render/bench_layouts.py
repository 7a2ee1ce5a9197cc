"""The tables of `kgctl bench`."""

from __future__ import annotations

from kgctl.model.bench import BenchMembers, BenchRecords
from kgctl.render.columns import Column, Fit, Layout, Shown

BENCH_LAYOUTS: dict[str, Layout] = {
    "bench-records": Layout(
        BenchRecords,
        (
            Column("TOPIC", "topic", shown=Shown.WIDE, fit=Fit.SHORTEN),
            Column("ACTION", "action", 7),
            Column("RECORDS", "records", 7),
            Column("SECONDS", "seconds", 7),
            Column("RECORDS/S", "records_s", 9, shown=Shown.WIDE),
            Column("MB/S", "megabytes_s", 5),
            Column("CPU-S/M", "cpu_s_per_million", 7),
            Column("P50-MS", "p50_ms", 6),
            Column("P95-MS", "p95_ms", 6),
            Column("P99-MS", "p99_ms", 6),
            Column("MAX-MS", "max_ms", 6),
        ),
        name="topic",
    ),
    "bench-members": Layout(
        BenchMembers,
        (
            Column("GROUP", "group", shown=Shown.WIDE, fit=Fit.SHORTEN),
            Column("PROTOCOL", "group_protocol", 8, shown=Shown.WIDE),
            Column("MEMBERS", "members", 7),
            Column("STABLE-S", "stable_s", 8),
            Column("GENERATIONS", "generations", 11),
            Column("REBALANCES", "rebalances", 10),
            Column("P50-S", "rebalance_p50_s", 5),
            Column("MAX-S", "rebalance_max_s", 5),
            Column("HEARTBEATS", "heartbeats", 10),
            Column("P99-MS", "heartbeat_p99_ms", 6),
            Column("FAILED", "heartbeats_failed", 6, shown=Shown.WIDE),
            Column("CPU-S", "cpu_s", 5, shown=Shown.WIDE),
        ),
        name="group",
    ),
}
