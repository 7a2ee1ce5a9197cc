"""The screen of topics: with prepared answers, and on a running broker."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from kgctl.client.net.errors import KgctlError
from kgctl.model.health import Health
from kgctl.model.watched_topics import TopicsSnapshot, TopicStorage, WatchedTopic
from kgctl.tui.app import KgctlApp
from kgctl.tui.feed.protocol import Feed
from kgctl.tui.feed.topics import Storage, Topics
from kgctl.tui.feed.values import from_json, to_json
from kgctl.tui.screens.group import GroupScreen
from kgctl.tui.screens.groups import GroupsScreen
from kgctl.tui.screens.topics import STORAGE_EVERY_S, TopicsScreen
from kgctl.tui.widgets.topics.columns import read_by
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill
from tests.kgctl.tui import snapshots, topic_snapshots
from tests.kgctl.tui.dialogs import cluster_feed
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until


class Scene:
    """What the screen shows, and the keys a user presses; `now_s` is the clock."""

    def __init__(self) -> None:
        self.now_s = snapshots.NOW_S
        self.app: KgctlApp
        self.pilot: Pilot[None]

    @property
    def screen(self) -> TopicsScreen:
        (found,) = [one for one in self.app.screen_stack if isinstance(one, TopicsScreen)]
        return found

    @property
    def text(self) -> str:
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())

    @property
    def topics(self) -> list[str]:
        return [row.topic for row in self.screen.topics.table.rows]

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def see(self, words: str) -> None:
        await until(lambda: words in self.text)


def groups() -> list[Any]:
    return [
        snapshots.group("billing", lags=(120_000, 0, 9_000), read=400),
        snapshots.group("audit", lags=(0, 3, 0), read=880_000),
        snapshots.failed("ledger"),
    ]


def prepared(storage: TopicStorage | KgctlError | None = None) -> PreparedFeed:
    reads = {
        Topics(): [topic_snapshots.topics(), topic_snapshots.topics(10.0)],
        Storage(): [storage or topic_snapshots.storage()],
    }
    names = {name: [None] for name in ("billing", "audit")}
    return PreparedFeed([snapshots.snapshot(groups())], names, reads=reads)


@asynccontextmanager
async def opened(feed: Feed, size: tuple[int, int] = (120, 40), **more: Any) -> AsyncIterator[Scene]:
    scene = Scene()
    scene.app = KgctlApp(feed, **({"clock": lambda: scene.now_s} | more))
    async with scene.app.run_test(size=size) as scene.pilot:
        await until(scene.app.ready.is_set)
        await scene.press("g", "t")
        await until(lambda: scene.screen.polling.answers)
        await until(lambda: scene.screen.watched.storage.wall_ms or scene.screen.watched.storage.missing)
        await scene.pilot.pause()
        yield scene


def play(walk: Callable[[Scene], Awaitable[None]], feed: Feed | None = None) -> None:
    async def run() -> None:
        async with opened(feed or prepared()) as scene:
            await walk(scene)

    asyncio.run(run())


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_topics_with_every_kind_of_trouble(snap_compare: Any, size: tuple[int, int]) -> None:
    feed = prepared()
    app = KgctlApp(feed, clock=lambda: snapshots.NOW_S)

    async def go(pilot: Pilot[None]) -> None:
        await until(app.ready.is_set)
        await pilot.press("g", "t")
        await until(lambda: feed.asked(Storage()))
        await pilot.press("ctrl+r")
        await until(lambda: feed.asked(Topics()) > 1)
        await pilot.press("down")
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=go)


def test_topics_give_the_lines_that_they_do_not_need_to_the_panels_below() -> None:
    async def run() -> None:
        async with opened(prepared(), size=(200, 60)) as scene:
            topics, below = scene.screen.topics, scene.screen.query_one("#below")
            assert topics.outer_size.height == len(topics.table.rows) + 4
            assert below.outer_size.height > 40
            await scene.press("1")
            assert topics.outer_size.height > 50

    asyncio.run(run())


def test_answers_are_written_and_read() -> None:
    for found in (topic_snapshots.topics(), topic_snapshots.storage(), TopicStorage(0, missing={"sizes": "refused"})):
        kind: type[TopicsSnapshot | TopicStorage] = type(found)
        assert from_json(kind, json.loads(json.dumps(to_json(found)))) == found


def test_internal_topics_are_hidden_until_asked_for_and_enter_leads_to_partitions_and_groups() -> None:
    async def walk(scene: Scene) -> None:
        assert scene.topics == ["clicks", "orders", "payments", "secret", topic_snapshots.HOSTILE]
        assert "Topics 5 of 6 \u00b7 internal 1 hidden (i)" in scene.text
        await scene.press("i")
        assert scene.topics[0] == "__consumer_offsets"
        assert "internal 1 (i hides)" in scene.text
        await scene.press("home", "i", "down")
        assert "Partitions 3 \u00b7 of orders" in scene.text
        await scene.press("enter")
        assert scene.app.focused is scene.screen.partitions.table
        await scene.press("tab", "enter")
        await until(lambda: isinstance(scene.app.screen, GroupScreen))
        assert scene.app.screen.group == "billing"
        await scene.press("escape", "escape")
        assert isinstance(scene.app.screen, GroupsScreen)

    play(walk)


def test_filters_find_topics_by_name_group_and_numbers() -> None:
    async def walk(scene: Scene) -> None:
        for typed, found in (("group:audit", ["orders"]), ("records:>100k", ["orders"]), ("pay", ["payments"])):
            await scene.press("slash", *typed)
            assert scene.topics == found, typed
            await scene.press("escape")

    play(walk)


def test_storage_is_asked_for_rarely_and_its_failure_is_explained() -> None:
    feed = prepared(KgctlError("brokers do not report sizes"))

    async def walk(scene: Scene) -> None:
        await scene.see("no sizes, ages and retention: brokers do not report sizes")
        await scene.press("ctrl+r")
        await until(lambda: feed.asked(Topics()) == 2)
        assert feed.asked(Storage()) == 1
        scene.now_s += STORAGE_EVERY_S
        await scene.press("ctrl+r")
        await until(lambda: feed.asked(Storage()) == 2)

    play(walk, feed)


def test_answers_for_a_screen_that_was_removed_are_dropped() -> None:
    async def walk(scene: Scene) -> None:
        screen, view, answer = scene.screen, scene.app.cluster, asyncio.Event()

        async def read() -> None:
            await answer.wait()

        screen.run_beside(read, screen._show)
        removed = scene.app.pop_screen()
        answer.set()
        screen.hear(view)
        await removed
        screen.hear(view)
        screen.cluster_failed(KgctlError("late"))
        screen.polling._answered(screen.polling.last)
        screen.polling._failed(KgctlError("late"))

    play(walk)


def test_topics_of_a_cluster_have_sizes_rates_ages_and_readers(cluster: Cluster) -> None:
    kgctl, feed = Kgctl(cluster.bootstrap_servers), cluster_feed(cluster.bootstrap_servers)
    topic, group = fresh("sold"), fresh("seller")
    assert kgctl("topics", "create", topic, "--partitions", 2, "--config", "retention.ms=3600000").exit_code == 0
    fill(kgctl, topic, [40, 10])
    kgctl.commit(group, topic, p0=15, p1=10)

    async def run() -> None:
        async with opened(feed, interval_s=0.5, clock=time.monotonic) as scene:
            await scene.press("slash", *topic)
            await until(lambda: scene.topics == [topic])
            await until(lambda: (row := scene.screen.current) and row.readers == (group,) and row.size_bytes)
            (reader,) = scene.screen.readers.table.rows
            assert (reader.group, reader.lag, reader.lost) == (group, 25, 0)
            assert 3_000_000 < reader.headroom_ms <= 3_600_000
            await asyncio.to_thread(fill, kgctl, topic, [30])
            await until(lambda: (row := scene.screen.current) and row.rate_in)
            assert scene.screen.current.records == 80
            first = scene.screen.partitions.table.rows[0]
            assert (first.start, first.end, first.leader is not None) == (0, 70, True)
            assert first.readers[0].committed == 15

    try:
        asyncio.run(run())
    finally:
        feed.close()


def test_names_and_commands_of_topics_partitions_and_groups_are_copied() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("down")
        for key, command in (
            ("orders", "kgctl topics describe orders --bootstrap 127.0.0.1:9092"),
            ("orders-0", "kgctl topics describe orders --bootstrap 127.0.0.1:9092"),
            ("billing", "kgctl groups describe billing --bootstrap 127.0.0.1:9092"),
        ):
            await scene.press("y", "n")
            assert scene.app.clipboard == key
            await scene.press("y", "c")
            assert scene.app.clipboard == command
            await scene.press("tab")

    play(walk)


def test_as_many_groups_as_fit_are_named() -> None:
    row = WatchedTopic("t", False, 1, 1, 0, 0, None, None, None, 0, 0, ("billing", "audit", "ledger"), Health.STALLED)
    assert read_by(row, 60) == "billing stalled, audit, ledger"
    assert read_by(row, 25) == "billing stalled, audit +1"
    assert read_by(row, 24) == "billing stalled +2"
    assert read_by(replace(row, offline=1, readers=()), 10) == "1 offline"
    assert read_by(replace(row, readers=()), 10) == "-"
