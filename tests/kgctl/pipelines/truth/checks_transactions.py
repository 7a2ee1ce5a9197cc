"""Compares the tables about transactions with the records of coordinators, the logs, and what producers were acknowledged."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import pytest

from broker.protocol.transaction_log import TransactionLogValue, decode_key, decode_value
from tests.kgctl.pipelines.truth.transacting import ABORTED, COMMITTED
from tests.kgctl.pipelines.truth.transacting import OFFSETS_TOPIC as OFFSETS
from tests.kgctl.pipelines.truth.world import OFFSETS_TOPIC, Row, World, by_key, ms

# Kafka's TransactionState, by number.
STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead")
OUTCOMES = {"CompleteCommit": COMMITTED, "CompleteAbort": ABORTED}
DECIDED = ("PrepareCommit", "PrepareAbort")
Entry = tuple[int, int, TransactionLogValue]


def history(world: World) -> dict[str, list[Entry]]:
    """By transactional id: log partition, offset and value of each record of its coordinator."""
    found: dict[str, list[Entry]] = defaultdict(list)
    for part, log in world.stored.of_topic("__transaction_state").items():
        for one in log.records():
            assert one.key is not None
            assert one.value is not None
            found[decode_key(one.key) or ""].append((part, one.offset, decode_value(one.value)))
    return found


def ended(world: World) -> dict[tuple[int, int], Row]:
    """The rows of f_transaction, by the place of the last record of each."""
    found = {}
    for name, some in history(world).items():
        for place, (part, offset, last) in enumerate(some):
            outcome = OUTCOMES.get(state_of(last))
            if outcome is None:
                continue
            begins = [at for at, (*_, one) in enumerate(some[:place]) if state_of(one) in (*OUTCOMES, "Empty")]
            own = [one for *_, one in some[begins[-1] + 1 : place]]
            (decision,) = [one for one in own if state_of(one) in DECIDED]
            began, start = own[0], last.transaction_start_timestamp_ms
            decided, end = (one.transaction_last_update_timestamp_ms for one in (decision, last))
            found[part, offset] = {
                "transactional_id": name,
                "producer_id": began.producer_id,
                "producer_epoch": began.producer_epoch,
                "outcome": outcome,
                "started": start,
                "decided": decided,
                "ended": end,
                "duration_ms": end - start,
                "markers_ms": end - decided,
                "timeout_ms": last.transaction_timeout_ms,
                "timed_out": outcome == ABORTED and decided - start >= last.transaction_timeout_ms,
                "partitions": places_of(decision),
                "partition_count": len(places_of(decision)),
            }
    return found


def check_transactions(world: World) -> None:
    found = by_key(world.rows("f_transaction"), "log_partition", "log_offset")
    wanted = ended(world)
    assert found.keys() == wanted.keys()
    for place, row in wanted.items():
        assert {name: _plain(name, found[place][name]) for name in row} == row
    for name in {one.transactional_id for one in world.traffic.transactions.done}:
        done = [one for one in world.traffic.transactions.done if one.transactional_id == name]
        rows = sorted(
            (row for row in found.values() if row["transactional_id"] == name), key=lambda row: row["log_offset"]
        )
        for one, row in zip(done, rows, strict=True):
            places = {(entry["topic"], part) for entry in row["partitions"] for part in entry["parts"]}
            assert row["outcome"] == one.outcome
            assert {place for place in places if place[0] != OFFSETS} == set(one.places)
            assert bool(one.places) != any(topic == OFFSETS for topic, _ in places)
            assert one.began_ms <= (ms(row["started"]) or 0) <= (ms(row["decided"]) or 0) <= one.ended_ms
    assert {row["transactional_id"] for row in found.values() if row["timed_out"]} == {"slow"}


def _plain(name: str, value: Any) -> Any:
    if name == "partitions":
        return {(one["topic"], part) for one in value for part in one["parts"]}
    return ms(value) if name in ("started", "decided", "ended", "open_since") else value


def check_producers(world: World) -> None:
    transactions, last = ended(world).values(), {name: some[-1][-1] for name, some in history(world).items()}
    measured = world.measured("f_producer")
    for at, found in measured.items():
        rows = by_key(found, "transactional_id")
        names = {(name,) for name in last}
        # A coordinator that restarts lists none.
        assert rows.keys() == names if at == max(measured) else rows.keys() <= names
        for (name,), row in rows.items():
            until = ms(row["last_ended"]) or 0
            own = [one for one in transactions if one["transactional_id"] == name and one["ended"] <= until]
            wanted = counted(own)
            assert {column: row[column] for column in wanted} == wanted, name
            assert ms(row["first_ended"]) == min((one["ended"] for one in own), default=None)
            if at == max(measured):
                assert ms(row["last_ended"]) == max((one["ended"] for one in own), default=None)
                assert len(own) == sum(one["transactional_id"] == name for one in transactions)
                _check_state(row, last[name], world.began_ms)


def counted(own: list[Row]) -> Row:
    durations = sorted(one["duration_ms"] for one in own)
    aborted = sum(one["outcome"] == ABORTED for one in own)
    return {
        "transactions": len(own),
        "committed": len(own) - aborted,
        "aborted": aborted,
        "aborted_share": aborted / len(own) if own else None,
        "timed_out": sum(one["timed_out"] for one in own),
        "mean_ms": pytest.approx(sum(durations) / len(own)) if own else None,
        "p95_ms": durations[math.ceil(0.95 * len(own)) - 1] if own else None,
        "max_ms": max(durations, default=None),
    }


def _check_state(row: Row, last: TransactionLogValue, began_ms: int) -> None:
    is_open = state_of(last) == "Ongoing"
    assert row["state"] == state_of(last)
    assert (row["producer_id"], row["producer_epoch"]) == (last.producer_id, last.producer_epoch)
    assert row["timeout_ms"] == last.transaction_timeout_ms
    since = last.transaction_start_timestamp_ms
    assert ms(row["open_since"]) == (since if is_open else None)
    if is_open:
        assert _plain("partitions", row["open_partitions"]) == places_of(last)
        assert began_ms - since <= row["open_ms"] <= (ms(row["at"]) or 0) - since
    else:
        assert (row["open_partitions"], row["open_ms"]) == (None, None)


def check_holds(world: World) -> None:
    """Each measurement names an open transaction that starts at the last stable offset; the newest one names all.

    While a broker restarts, the names are not known.
    """
    known = {one.producer_id: name for name, some in history(world).items() for *_, one in some}
    measured = world.measured("f_hold")
    for at, found in measured.items():
        rows = by_key(found, "topic", "part")
        for (topic, part), row in rows.items():
            log = world.stored.logs[topic, part]
            (first,) = [batch for batch in log.batches if batch.first == row["last_stable"]]
            unknown = () if at == max(measured) else (None,)
            assert row["producer_id"] in (first.header.producer_id, *unknown)
            assert row["transactional_id"] in (known.get(first.header.producer_id), *unknown)
            assert row["hanging"] in (first.header.producer_id not in known, *unknown)
            assert row["last_stable"] < row["log_end"] <= log.end
            assert row["waiting"] == row["log_end"] - row["last_stable"]
            assert first.header.is_transactional
        if at == max(measured):
            held = {place: log for place, log in world.stored.logs.items() if log.last_stable < log.end}
            assert rows.keys() == held.keys()
            for place, log in held.items():
                assert (rows[place]["last_stable"], rows[place]["log_end"]) == (log.last_stable, log.end)
                _check_age(world, rows[place], log.batches[-1].header.max_timestamp)
    assert OFFSETS_TOPIC not in {row["topic"] for row in measured[max(measured)]}


def _check_age(world: World, row: Row, last_ms: int) -> None:
    """Of a hanging transaction, the age of its last record."""
    some = history(world).get(row["transactional_id"])
    since = some[-1][-1].transaction_start_timestamp_ms if some else last_ms
    assert world.began_ms - since <= row["held_ms"] <= (ms(row["at"]) or 0) - since


def state_of(value: TransactionLogValue) -> str:
    return STATES[value.transaction_status]


def places_of(value: TransactionLogValue) -> set[tuple[str, int]]:
    return {(one.topic, part) for one in value.transaction_partitions or () for part in one.partition_ids}
