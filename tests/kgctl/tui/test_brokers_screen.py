"""The screen of brokers: our own with its counters, a cluster of Kafka, brokers that do not answer."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from broker.protocol.latency_buckets import limits
from kgctl.model.cluster_rows import BrokerRow, LogDirRow
from kgctl.model.failure import RowError
from kgctl.model.findings import ClusterFinding, Severity
from kgctl.model.watched_brokers import FLUSHES, BrokerDetails, BrokerSeen, BrokersSnapshot, BrokerStatus
from kgctl.tui.app import KgctlApp
from kgctl.tui.feed.brokers import Brokers, Details
from kgctl.tui.feed.cluster import ClusterFeed
from kgctl.tui.feed.values import from_json, to_json
from kgctl.tui.screens.brokers import BrokersScreen
from kgctl.watch.brokers import BrokersWatch, quantile
from tests.harness.commandline import Kgctl, fill
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until

HOUR_MS = 3_600_000


def status(after_s: float = 0.0, **times: dict[int, int]) -> BrokerStatus:
    wall_ms = snapshots.NOW_MS + int(after_s * 1000)
    sizes = (12_500_000, 4_100_000)
    return BrokerStatus(1, wall_ms, snapshots.NOW_MS - 30 * HOUR_MS, "power", *sizes, 1_024, {"PLAINTEXT": 17}, times)


def ours(after_s: float, *, rate: int = 20) -> BrokersSnapshot:
    """A snapshot `after_s` later; buckets 40 and 60 are 512 us and 16 ms."""
    count = int(rate * after_s)
    times = {
        "Fetch": {60: 4_000 + count, 76: 9},
        "Produce": {40: 900_000 + 10 * count, 60: 1_000 + count},
        "OffsetCommit": {44: 120 + count},
        "DescribeGroupDetails": {36: 88},
        FLUSHES: {50: 90_000 + 5 * count, 58: 100 + count},
    }
    return BrokersSnapshot(
        snapshots.NOW_S + after_s,
        snapshots.NOW_MS + int(after_s * 1000),
        (BrokerSeen(1, "127.0.0.1:9092", True, 60, 60, 0),),
        6,
        60,
        (ClusterFinding("permissions", "topics", Severity.INFO, "2 of 6 topics allow no Write", "ask for ACLs"),),
        (status(after_s, **times),),
    )


OUR_DETAILS = BrokerDetails(
    (BrokerRow(1, "127.0.0.1:9092", None, True, False, "kgctl-5f1c2a", "4.1", ("PLAINTEXT://127.0.0.1:9092",)),),
    (LogDirRow(1, "/home/ada/.local/share/kgctl/broker", 60, 12_345_678, 512_000_000_000, 97_000_000_000),),
)
REFUSED = RowError("UNREACHABLE", "kafka-3.example.com:9093: connection refused")
KAFKA = BrokersSnapshot(
    snapshots.NOW_S,
    snapshots.NOW_MS,
    (
        BrokerSeen(1, "kafka-1.example.com:9093", False, 120, 300, 0),
        BrokerSeen(2, "kafka-2.example.com:9093", True, 240, 300, 7),
        BrokerSeen(3, "kafka-3.example.com:9093", False, 0, 300, 300, REFUSED),
    ),
    41,
    360,
    (
        ClusterFinding("reachability", "broker 3", Severity.ERROR, REFUSED.message, "start the broker", REFUSED),
        ClusterFinding("replicas", "partitions", Severity.WARNING, "300 partitions have fewer replicas in sync"),
    ),
)
KAFKA_DETAILS = BrokerDetails(
    (
        BrokerRow(1, "kafka-1.example.com:9093", "eu-1a", False, False, "Xy", "4.1", ("SSL://kafka-1:9093",)),
        BrokerRow(2, "kafka-2.example.com:9093", "eu-1b", True, False, "Xy", "4.1", ("SSL://kafka-2:9093",)),
        BrokerRow(3, "kafka-3.example.com:9093", "[/]\x1b[2J", False, True, "Xy", "4.1"),
    ),
    (
        LogDirRow(1, "/data", 300, 71_000_000_000, 500_000_000_000, 120_000_000_000),
        LogDirRow(2, "/data", 300, 72_000_000_000, 500_000_000_000, 2_000_000_000),
    ),
)


def app_of(found: list[Any], details: BrokerDetails) -> KgctlApp:
    feed = PreparedFeed([snapshots.snapshot(snapshots.every_state())], reads={Brokers(): found, Details(): [details]})
    return KgctlApp(feed, clock=lambda: snapshots.NOW_S)


async def opened_screen(app: KgctlApp, pilot) -> BrokersScreen:
    await until(lambda: app.cluster is not None)
    await pilot.press("g", "b")
    await until(lambda: isinstance(app.screen, BrokersScreen) and app.screen.brokers.table.has_focus)
    assert isinstance(app.screen, BrokersScreen)
    return app.screen


def pictured(snap_compare, size: tuple[int, int], found: list[BrokersSnapshot], details: BrokerDetails, *keys: str):
    app = app_of(found, details)

    async def go(pilot) -> None:
        screen = await opened_screen(app, pilot)
        await until(lambda: screen._details is not None)
        for _ in found[1:]:
            before = screen.polling.answers
            await pilot.press("ctrl+r")
            await until(lambda before=before: screen.polling.answers > before)
        await pilot.press(*keys)
        await pilot.pause()

    return snap_compare(app, terminal_size=size, run_before=go)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_our_broker_with_its_counters(snap_compare, size) -> None:
    assert pictured(snap_compare, size, [ours(0), ours(30), ours(58)], OUR_DETAILS)


def test_a_cluster_of_kafka(snap_compare) -> None:
    assert pictured(snap_compare, (120, 40), [KAFKA], KAFKA_DETAILS, "j")


def test_brokers_are_written_and_read() -> None:
    for found in (ours(7), KAFKA, OUR_DETAILS, KAFKA_DETAILS):
        assert from_json(type(found), json.loads(json.dumps(to_json(found)))) == found


def test_figures_cover_the_last_minute_and_begin_again_after_a_restart() -> None:
    watch = BrokersWatch()
    first = watch.add(ours(0))[1]
    assert (first.seconds, first.rate) == (None, None)
    assert {one.name: one.total for one in first.requests}["Fetch"] == 4_009
    for after_s in range(5, 305, 5):
        (last,) = watch.add(ours(after_s)).values()
    assert last.seconds is not None
    assert 60 <= last.seconds <= 65
    produce = next(one for one in last.requests if one.name == "Produce")
    assert last.requests[0] is produce
    assert produce.rate == pytest.approx(220)
    assert produce.p50_s == pytest.approx(sum(limits(40)) / 2e6)
    assert produce.p99_s == pytest.approx(sum(limits(60)) / 2e6)
    idle = next(one for one in last.requests if one.name == "DescribeGroupDetails")
    assert (idle.rate, idle.p50_s, idle.total) == (0.0, None, 88)
    assert last.flushes is not None
    assert last.flushes.rate == pytest.approx(120)
    restarted = replace(status(310, Fetch={60: 3}), started_ms=snapshots.NOW_MS)
    (after,) = watch.add(replace(ours(310), statuses=(restarted,))).values()
    assert (after.seconds, after.requests[0].total) == (None, 3)
    # A replay may go back.
    assert watch.add(ours(20))[1].seconds is None


def test_a_quantile_is_in_the_bucket_that_contains_it() -> None:
    assert quantile({}, 0.5) is None
    assert quantile({3: 1}, 0.99) == 3.5e-6
    assert quantile({3: 99, 100: 1}, 0.98) == 3.5e-6
    assert quantile({3: 98, 100: 2}, 0.99) == sum(limits(100)) / 2e6


def test_brokers_that_do_not_answer_are_counted_and_explained() -> None:
    async def play() -> None:
        app = app_of([KAFKA], KAFKA_DETAILS)
        async with app.run_test(size=(120, 40)) as pilot:
            screen = await opened_screen(app, pilot)
            assert screen.brokers.title_text.startswith("\u00b9\u25b8Brokers 3 \u00b7 1 not reached")
            assert not screen.requests.display
            await pilot.press("end")
            assert "connection refused" in screen.detail.render().plain
            await pilot.press("slash", *"lagging:0", "enter")
            assert [line.key for line in screen.brokers.table.rows] == ["1"]
            await pilot.press("2")
            assert screen.requests.display
            await pilot.press("escape", "4")
            assert screen.zoom.panel is screen.findings
            await pilot.press("escape", "escape", "escape")
            assert screen not in app.screen_stack

    asyncio.run(play())


def test_the_counters_of_a_running_broker(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    async def play() -> None:
        app = KgctlApp(feed, interval_s=0.2)
        async with app.run_test(size=(160, 40)) as pilot:
            screen = await opened_screen(app, pilot)
            await until(lambda: screen._figures)
            await asyncio.to_thread(fill, kgctl, topic, [5])

            def produced() -> bool:
                found = {one.name: one for one in screen.requests.table.rows}
                return "Produce" in found and bool(found["Produce"].rate)

            await until(produced)
            await until(lambda: "log directory" in screen.detail.render().plain)
            text = screen.detail.render().plain
            assert "process: acknowledged data survive the end of the process" in " ".join(text.split())
            assert "flushes" in text
            assert "connections" in text
            assert screen._found is not None
            assert app.cluster is not None
            assert screen._found.topics == app.cluster.snapshot.topics, "one screen counts internal topics"
            (line,) = screen.brokers.table.rows
            assert line.seen.controller
            assert line.seen.error is None
            assert line.free_bytes

    asyncio.run(play())
