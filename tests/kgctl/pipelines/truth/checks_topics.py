"""Compares the tables about compaction and retention with the logs, counted record by record."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from broker.protocol.offsets_topic import OffsetCommitKey, decode_key
from broker.protocol.record_batch import Record, build_batch
from broker.protocol.transaction_log import decode_key as decode_id
from tests.kgctl.pipelines.truth.stored import Log
from tests.kgctl.pipelines.truth.topics import DAY_MS, HOUR_MS, SENSORS
from tests.kgctl.pipelines.truth.world import OFFSETS_TOPIC, Row, World, by_key, ms

BATCH_OVERHEAD, CHUNK, WORST = 61, 16 << 10, 10
AGES_MS = (0, HOUR_MS, 6 * HOUR_MS, DAY_MS, 3 * DAY_MS, 7 * DAY_MS, 30 * DAY_MS)
HUNDRED_YEARS_MS = 100 * 365 * DAY_MS


@dataclass(frozen=True)
class Configs:
    """As the cluster describes them; None: no limit."""

    policy: str
    retention_ms: int | None
    retention_bytes: int | None
    delete_retention_ms: int
    dirty_ratio: float
    segment_bytes: int


def configs_of(world: World) -> dict[str, Configs]:
    admin = AdminClient({"bootstrap.servers": world.cluster.bootstrap_servers})
    topics = {topic for topic, _ in world.stored.logs}
    asked = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic) for topic in topics])
    return {resource.name: _configs({one.name: one.value for one in found.result(30).values()})
            for resource, found in asked.items()}  # fmt: skip


def _configs(values: dict[str, str]) -> Configs:
    deletes = "delete" in values["cleanup.policy"]
    limits = [int(values[name]) for name in ("retention.ms", "retention.bytes")]
    return Configs(
        values["cleanup.policy"],
        *(limit if deletes and limit >= 0 else None for limit in limits),
        int(values["delete.retention.ms"]),
        float(values["min.cleanable.dirty.ratio"]),
        int(values["segment.bytes"]),
    )


# ---- compaction -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A record that compaction sees, with its share of its batch in bytes."""

    record: Record
    size: float


def entries(log: Log) -> list[Entry]:
    aborted, _ = log.transactions()
    found = []
    for batch in log.batches:
        assert batch.header.delete_horizon_ms is None, "a cleaner was here"
        if batch.marker is None and batch.first not in aborted:
            alone = [len(build_batch([Record(0, 0, one.key, one.value)])) - BATCH_OVERHEAD for one in batch.records]
            found += [
                Entry(one, batch.size * size / sum(alone)) for one, size in zip(batch.records, alone, strict=True)
            ]
    return found


def check_compaction(world: World) -> None:
    configs = {topic: one for topic, one in configs_of(world).items() if "compact" in one.policy}
    places = {place for place in world.stored.logs if place[0] in configs}
    measured = world.measured("f_compaction")
    for at, found in measured.items():
        rows = by_key(found, "topic", "part")
        # While a broker restarts, a partition may be left out.
        assert rows.keys() == places if at == max(measured) else rows.keys() <= places
        for place, row in rows.items():
            log = world.stored.logs[place]
            if at == max(measured) and place[0] != OFFSETS_TOPIC:
                assert row["read_until"] == log.last_stable, row
            assert row["read_until"] <= log.last_stable
            wanted = compaction_of(log.before(row["read_until"]), ms(at) or 0, configs[place[0]])
            assert {name: row[name] for name in wanted} == wanted, place
    assert {(before["topic"], before["part"]) for before, after in _in_order(world) if after["read_until"] < before["read_until"]} == set()  # fmt: skip


def _in_order(world: World) -> list[tuple[Row, Row]]:
    """Each row of f_compaction with the next one of its partition."""
    rows = sorted(world.rows("f_compaction"), key=lambda row: (row["topic"], row["part"], row["at"]))
    return [(a, b) for a, b in pairwise(rows) if (a["topic"], a["part"]) == (b["topic"], b["part"])]


def compaction_of(log: Log, at_ms: int, configs: Configs) -> Row:
    seen = entries(log)
    of_key: dict[bytes, list[Entry]] = defaultdict(list)
    for one in seen:
        if one.record.key is not None:
            of_key[one.record.key].append(one)
    aborted, _ = log.transactions()
    superseded = [one for some in of_key.values() for one in some[:-1]]
    tombstones = [one for one in seen if one.record.value is None]
    due = [
        some[-1]
        for some in of_key.values()
        if some[-1].record.value is None and some[-1].record.timestamp + configs.delete_retention_ms <= at_ms
    ]
    no_key = [one for one in seen if one.record.key is None]
    of_aborted = [batch for batch in log.batches if batch.first in aborted]
    second = min((some[1].record for some in of_key.values() if len(some) > 1), default=None)
    aborted_bytes = sum(batch.size for batch in of_aborted)
    return {
        "log_start": 0,
        "records": len(seen),
        "bytes": log.size,
        "keys": len(of_key),
        "records_per_key": pytest.approx((len(seen) - len(no_key)) / len(of_key)) if of_key else None,
        "max_records_per_key": max(map(len, of_key.values()), default=None),
        "no_key": len(no_key),
        "superseded": len(superseded),
        "superseded_bytes": _about(superseded),
        "tombstones": len(tombstones),
        "tombstones_due": len(due),
        "tombstones_due_bytes": _about(due),
        "oldest_tombstone": _Ms(min((one.record.timestamp for one in tombstones), default=None)),
        "delete_retention_ms": configs.delete_retention_ms,
        "aborted": sum(len(batch.records) for batch in of_aborted),
        "aborted_bytes": aborted_bytes,
        "removed": 0,
        "free_bytes": _about([*superseded, *due, *no_key], aborted_bytes),
        "dirty_from": None if second is None else second.offset,
        "dirty_ratio": _dirty_ratio(log, None if second is None else second.offset),
        "dirty_ratio_limit": configs.dirty_ratio,
        "segment_bytes": configs.segment_bytes,
        "oldest_dirty": _Ms(None if second is None else second.timestamp),
    }


def _about(some: list[Entry], more: int = 0) -> Any:
    """The job takes the lengths and deltas of a record for one byte each."""
    return pytest.approx(sum(one.size for one in some) + more, rel=0.02, abs=1)


class _Ms:
    """Equals a timestamp of these milliseconds since 1970, or None."""

    def __init__(self, moment_ms: int | None) -> None:
        self.ms = moment_ms

    def __eq__(self, other: object) -> bool:
        return ms(other) == self.ms  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return hash(self.ms)

    def __repr__(self) -> str:
        return f"{self.ms} ms"


def _dirty_ratio(log: Log, dirty_from: int | None) -> Any:
    """In a chunk of 16 KiB of batches, the bytes from an offset on count in proportion to the offsets."""
    if not log.size or dirty_from is None:
        return 0 if log.size else None
    chunks: list[list[Any]] = []
    for batch in log.batches:
        if not chunks or sum(one.size for one in chunks[-1]) >= CHUNK:
            chunks.append([])
        chunks[-1].append(batch)
    dirty = 0.0
    for chunk in chunks:
        first, end = chunk[0].first, chunk[-1].header.next_offset
        dirty += sum(one.size for one in chunk) * max(0, end - max(first, dirty_from)) / (end - first)
    return pytest.approx(dirty / log.size)


def check_compaction_keys(world: World) -> None:
    until = {(row["topic"], row["part"], row["at"]): row["read_until"] for row in world.rows("f_compaction")}
    for at, found in world.measured("compaction_keys").items():
        ranked = by_key(found, "topic", "rank")
        for topic in {topic for topic, _, when in until if when == at}:
            keys = _keys_of(world, topic, {part: end for (name, part, when), end in until.items() if (name, when) == (topic, at)})  # fmt: skip
            worst = sorted((sum(one.size for one in some[:-1]) for some in keys.values()), reverse=True)[:WORST]
            rows = [ranked[key] for key in sorted(ranked) if key[0] == topic]
            assert [row["rank"] for row in rows] == list(range(1, len(worst) + 1)), topic
            assert [row["superseded_bytes"] for row in rows] == pytest.approx(worst, rel=0.02, abs=1)
            assert len({(row["part"], row["key"]) for row in rows}) == len(rows)
            for row in rows:
                some = keys[row["part"], row["key"]]
                assert (row["records"], row["tombstones"]) == (
                    len(some),
                    sum(one.record.value is None for one in some),
                )
                assert row["bytes"] == _about(some)
                assert row["superseded_bytes"] == _about(some[:-1])
                assert ms(row["last"]) == some[-1].record.timestamp
                assert row["text"] == text_of(topic, row["key"])


def _keys_of(world: World, topic: str, until: dict[int, int]) -> dict[tuple[int, bytes], list[Entry]]:
    """The records of all keys that occur more than once, by partition and key."""
    found: dict[tuple[int, bytes], list[Entry]] = defaultdict(list)
    for part, end in until.items():
        for one in entries(world.stored.logs[topic, part].before(end)):
            if one.record.key is not None:
                found[part, one.record.key].append(one)
    return {key: some for key, some in found.items() if len(some) > 1}


def text_of(topic: str, key: bytes) -> str | None:
    if topic == OFFSETS_TOPIC:
        named: Any = decode_key(key)
        if isinstance(named, OffsetCommitKey):
            return f"{named.group} {named.topic}-{named.partition}"
        return str(named.group)
    return decode_id(key) if topic == "__transaction_state" else key.decode()


# ---- retention --------------------------------------------------------------------------------------------------


def check_retention(world: World) -> None:
    configs = configs_of(world)
    measured = world.measured("f_retention")
    before: dict[tuple[str, int], Row] = {}
    for at, found in measured.items():
        rows = by_key(found, "topic", "part")
        places = world.stored.logs.keys()
        assert rows.keys() == places if at == max(measured) else rows.keys() <= places
        for place, row in rows.items():
            log = world.stored.logs[place]
            starts = world.traffic.topics.starts if place == (SENSORS, 0) else [0]
            if at == max(measured) and place[0] != OFFSETS_TOPIC:
                # Kafka forgets a deletion of records of the last minute when it is killed.
                assert row["log_start"] == starts[-1] or world.kind == "kafka", row
                assert row["log_end"] == log.end, row
                # kgctl's broker stores its own topics as rows, and makes batches of them for each Fetch.
                assert row["bytes"] == log.size or (world.kind == "kgctl" and place[0].startswith("__")), row
            assert row["log_start"] in starts
            assert row["log_end"] <= log.end
            wanted = retention_of(log, row, configs[place[0]], before.get(place))
            differs = {name: (row[name], value) for name, value in wanted.items() if row[name] != value}
            assert not differs, (row, differs)
        before |= rows


def retention_of(log: Log, row: Row, configs: Configs, before: Row | None) -> Row:
    """The columns that follow from log_start, log_end, bytes and the time of the row."""
    at_ms, start, end, size = ms(row["at"]) or 0, row["log_start"], row["log_end"], row["bytes"]
    records, age = end - start, configs.retention_ms
    oldest_ms = log.time_of(start) if records else None

    def older(than_ms: int) -> int:
        return max(0, _end_at(log, start, end, at_ms - than_ms) - start)

    expired = day = growth = expected = limit_ms = None
    if age is not None:
        expired, day = older(age), older(max(0, age - DAY_MS))
    if oldest_ms is not None and at_ms - oldest_ms >= 60_000:
        growth = (records - older(DAY_MS)) * DAY_MS / min(DAY_MS, at_ms - oldest_ms)
    grown = None if growth is None or not records else size * growth / records
    if grown is not None:
        by_time = [] if age is None else [grown * age / DAY_MS]
        limits = by_time + ([] if configs.retention_bytes is None else [float(configs.retention_bytes)])
        expected = min(limits, default=None)
        if configs.retention_bytes is not None and grown > 0 and min(limits) == configs.retention_bytes:
            limit_ms = at_ms + max(0, configs.retention_bytes - size) / grown * DAY_MS
            limit_ms = None if limit_ms - at_ms >= HUNDRED_YEARS_MS else limit_ms
    moved = None if before is None or start < before["log_start"] else start - before["log_start"]
    days = None if before is None else (at_ms - (ms(before["at"]) or 0)) / DAY_MS

    def share(count: int | None) -> Any:
        return None if count is None or not records else pytest.approx(size * count / records, abs=1)

    return {
        "cleanup_policy": configs.policy,
        "records": records,
        "oldest": _Ms(oldest_ms),
        "retention_ms": age,
        "retention_bytes": configs.retention_bytes,
        "expired_records": expired,
        "expired_bytes": share(expired) if records else row["expired_bytes"],
        "excess_bytes": 0 if configs.retention_bytes is None else max(0, size - configs.retention_bytes),
        "day_records": day,
        "day_bytes": share(day) if records else row["day_bytes"],
        "next_expiry": _Ms(None if oldest_ms is None or age is None else oldest_ms + age),
        "growth_records": None if growth is None else pytest.approx(growth),
        "growth_bytes": None if grown is None else pytest.approx(grown),
        "size_limit_at": _Near(limit_ms),
        "expected_bytes": None if expected is None else pytest.approx(expected),
        "log_start_moved": moved,
        "deleted_records": None if moved is None or days is None else pytest.approx(moved / days),
    }


class _Near(_Ms):
    """Within a second."""

    def __eq__(self, other: object) -> bool:
        found = ms(other)  # type: ignore[arg-type]
        return found == self.ms if found is None or self.ms is None else abs(found - self.ms) < 1000

    __hash__ = _Ms.__hash__


def _end_at(log: Log, start: int, end: int, at_ms: int) -> int:
    """The offset of the first record of at least this time, of those that the log holds; else its end."""
    return next((one.offset for one in log.records() if start <= one.offset < end and one.timestamp >= at_ms), end)


def check_log_ages(world: World) -> None:
    bounds = by_key(world.rows("f_retention"), "topic", "part", "at")
    found = by_key(world.rows("log_ages"), "topic", "part", "at", "age_from_s")
    wanted = {}
    for (topic, part, at), row in bounds.items():
        log, start, end = world.stored.logs[topic, part], row["log_start"], row["log_end"]
        for young, old in zip(AGES_MS, (*AGES_MS[1:], None), strict=True):
            first = start if old is None else max(start, _end_at(log, start, end, (ms(at) or 0) - old))
            last = _end_at(log, start, end, (ms(at) or 0) - young)
            if first < last:
                wanted[topic, part, at, young // 1000] = (
                    *(None if old is None else old // 1000, first, last, last - first),
                    pytest.approx(row["bytes"] * (last - first) / (end - start), abs=1),
                )
    names = ("age_to_s", "first_offset", "end_offset", "records", "bytes")
    assert {key: tuple(row[name] for name in names) for key, row in found.items()} == wanted
