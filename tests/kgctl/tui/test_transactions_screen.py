"""The screen of transactions: open ones, hanging ones, who waits for them, and the command that ends one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kgctl.client.net.errors import Unreachable
from kgctl.model.failure import RowError
from kgctl.model.groups import GroupDescription, TopicPartitions
from kgctl.model.transactions import HangingTransaction, TransactionPartition, TransactionRow
from kgctl.model.watched_transactions import HANGING, OVERDUE, HangingSnapshot, TransactionsSnapshot
from kgctl.tui.app import KgctlApp
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.feed.cluster import ClusterFeed
from kgctl.tui.feed.transactions import Hanging, Transactions
from kgctl.tui.feed.values import from_json, to_json
from kgctl.tui.screens.transactions import TransactionsScreen
from kgctl.watch.transactions import open_transactions
from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, opened
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.prepared import LOCAL, PreparedFeed
from tests.kgctl.tui.waiting import until

MINUTE_MS = 60_000


def row(name: str, state: str = "Ongoing", age_ms: int = 4_000, *partitions: int, timeout_ms: int = MINUTE_MS):
    topics = (TopicPartitions("orders", partitions),) if partitions else ()
    return TransactionRow(name, 1, 4_001, 3, state, timeout_ms, snapshots.NOW_MS - age_ms, age_ms, topics)


def part(name: str, number: int, start: int | None, stable: int, end: int, topic: str = "orders"):
    waiting = None if start is None else end - start
    return TransactionPartition(name, topic, number, start, stable, end, waiting, 4_000)


SNAPSHOT = TransactionsSnapshot(
    snapshots.NOW_S,
    snapshots.NOW_MS,
    (
        row("billing-exactly-once-7", "Ongoing", 42_000, 0, 1),
        row("late", "Ongoing", 20 * MINUTE_MS, 2),
        row("closing", "PrepareCommit", 900, 1),
        row("\x1b[31mred[/b]\u202e", "Ongoing", 1_000),
    ),
    (
        part("billing-exactly-once-7", 0, 1_000, 1_000, 1_037),
        part("billing-exactly-once-7", 1, 1_204_332, 1_000, 1_204_390),
        part("late", 2, 990, 990, 1_010),
        part("closing", 1, 1_000, 1_000, 1_204_390),
    ),
    4,
)
HANGS = HangingSnapshot(
    snapshots.NOW_MS,
    (
        HangingTransaction("payments", 7, 31_337, 0, 5, 17, snapshots.NOW_MS - 7_200_000, 7_200_000, 88),
        HangingTransaction("secret", 0, error=RowError("TOPIC_AUTHORIZATION_FAILED", "secret-0 may not be read")),
    ),
)


def behind(name: str, committed: Sequence[int], end: int = 1_050) -> GroupDescription:
    found = snapshots.group(name, lags=[end - offset for offset in committed])
    partitions = [
        replace(one, current_offset=offset, log_end_offset=end)
        for one, offset in zip(found.partitions, committed, strict=True)
    ]
    return replace(found, partitions=tuple(partitions))


GROUPS = [
    behind("invoices", [1_000, 1_000, 1_000]),
    behind("search", [400, 1_000, 990]),
    behind("reads-uncommitted", [1_020, 1_001, 1_009]),
]


def app_of(reads: dict[Any, list[Any]], cluster: ClusterLabel = LOCAL) -> KgctlApp:
    feed = PreparedFeed([snapshots.snapshot(GROUPS)], cluster=cluster, reads=reads)
    return KgctlApp(feed, clock=lambda: snapshots.NOW_S)


async def opened_screen(app: KgctlApp, pilot) -> TransactionsScreen:
    await until(lambda: app.cluster is not None)
    await pilot.press("g", "x")
    await until(lambda: isinstance(app.screen, TransactionsScreen) and app.screen.panel.table.has_focus)
    assert isinstance(app.screen, TransactionsScreen)
    return app.screen


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_open_and_hanging_transactions(snap_compare, size) -> None:
    app = app_of({Transactions(): [SNAPSHOT], Hanging(): [HANGS]})

    async def go(pilot) -> None:
        screen = await opened_screen(app, pilot)
        await until(lambda: len(screen.panel.table.rows) == 5)
        await pilot.press("home", "j", "j")
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=go)


def test_the_worst_comes_first_and_groups_that_wait_differ_from_those_that_will() -> None:
    groups = {one.group: one for one in GROUPS}
    found = open_transactions(SNAPSHOT, HANGS, groups)
    assert [(one.transactional_id, one.state) for one in found] == [
        (None, HANGING),
        ("late", OVERDUE),
        ("billing-exactly-once-7", "Ongoing"),
        ("\x1b[31mred[/b]\u202e", "Ongoing"),
        ("closing", "PrepareCommit"),
    ]
    _, late, billing, empty, _ = found
    assert [(one.group, one.before) for one in late.groups] == [("search", 0)]
    assert [(one.group, one.partition.partition, one.before) for one in billing.groups] == [
        ("invoices", 0, 0),
        ("invoices", 1, 0),
        ("search", 1, 0),
        ("search", 0, 600),
    ]
    assert (billing.waiting, empty.waiting, empty.groups) == (37 + 58, 0, ())


def test_a_member_that_owns_a_partition_and_has_not_committed_there_waits() -> None:
    def uncommitted(name: str, owner: str | None) -> GroupDescription:
        found = behind(name, [1_000, 1_000, 1_000])
        rows = [replace(one, current_offset=None, lag=None, consumer_id=owner) for one in found.partitions]
        return replace(found, partitions=tuple(rows))

    found = open_transactions(
        SNAPSHOT, None, {name: uncommitted(name, owner) for name, owner in (("new", "c-1"), ("old", None))}
    )
    (late,) = [one for one in found if one.transactional_id == "late"]
    assert [(one.group, one.lag, one.before) for one in late.groups] == [("new", 1_050 - 990, 0)]


def test_transactions_are_written_and_read() -> None:
    for found in (SNAPSHOT, HANGS):
        assert from_json(type(found), json.loads(json.dumps(to_json(found)))) == found


def test_enter_shows_the_detail_with_the_command_that_ends_the_transaction() -> None:
    prod = ClusterLabel("kafka-1:9093", "prod", "red", must_confirm=True, options=("--context", "prod"))

    async def play() -> None:
        app = app_of({Transactions(): [SNAPSHOT], Hanging(): [HANGS]}, prod)
        async with app.run_test(size=(100, 30)) as pilot:
            screen = await opened_screen(app, pilot)
            await until(lambda: len(screen.panel.table.rows) == 5)
            assert screen.panel.title_text.startswith("\u00b9\u25b8Open transactions 5 \u00b7 1 hanging")
            await pilot.press("home", "enter")
            assert screen.zoom.panel is not None
            assert screen.zoom.panel.number == 2
            text = " ".join(screen.detail.render().plain.split())
            assert "kgctl transactions abort --topic payments --partition 7 --start-offset 17" in text
            assert "--context prod --yes payments --execute" in text
            await pilot.press("escape", "j", "j")
            assert screen.zoom.panel is None
            text = " ".join(screen.detail.render().plain.split())
            assert "Ongoing for 42 s, its coordinator aborts it after 1 min; producer 4001 with epoch 3" in text
            assert "kgctl transactions abort billing-exactly-once-7 --context prod" in text
            assert "orders-1: waits" in text
            assert "orders-0: can read 600 offsets before it waits" in text
            await pilot.press("slash", *"group:invoices", "enter")
            assert [one.transactional_id for one in screen.panel.table.rows] == ["billing-exactly-once-7", "closing"]
            await pilot.press("escape", "escape")
            assert screen not in app.screen_stack

    asyncio.run(play())


def test_a_search_that_fails_is_named_and_leaves_the_rest() -> None:
    async def play() -> None:
        app = app_of({Transactions(): [SNAPSHOT], Hanging(): [Unreachable("broker 2: connection refused")]})
        async with app.run_test(size=(120, 40)) as pilot:
            screen = await opened_screen(app, pilot)
            await until(lambda: "cannot search hanging ones: broker 2" in screen.panel.title_text)
            assert len(screen.panel.table.rows) == 4

    asyncio.run(play())


def test_a_transaction_of_a_running_broker_holds_a_group(kgctl: Kgctl, feed: ClusterFeed) -> None:
    topic, group = fresh("orders"), fresh("waiting")
    assert kgctl("topics", "create", topic, "--partitions", 2).exit_code == 0

    async def play(name: str) -> None:
        app = KgctlApp(feed, interval_s=0.2)
        async with app.run_test(size=(120, 40)) as pilot:
            screen = await opened_screen(app, pilot)
            await pilot.press("slash", *name, "enter")
            await until(lambda: "orders" in screen.detail.render().plain)
            (found,) = screen.panel.table.rows
            assert (found.transactional_id, found.state, found.waiting) == (name, "Ongoing", 3)
            assert [(one.group, one.before, one.lag) for one in found.groups] == [(group, 0, 3)]
            await until(lambda: screen._hanging is not None)

            def abort() -> None:
                assert kgctl("transactions", "abort", name, "--execute").exit_code == 0

            await asyncio.to_thread(abort)
            await until(lambda: not screen.panel.table.rows)

    with opened(kgctl, topic) as (name, _):
        kgctl.commit(group, topic, p0=0)
        asyncio.run(play(name))
