"""The screen of records: with prepared answers, and on a running broker."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from broker.local import LocalBroker
from kgctl.client.net.errors import BadValue
from kgctl.model.browsed import RecordsPage
from kgctl.tui.app import KgctlApp
from kgctl.tui.feed.cluster import ClusterFeed
from kgctl.tui.feed.protocol import Feed
from kgctl.tui.feed.recording import record_to
from kgctl.tui.feed.records import Bounds, Records
from kgctl.tui.feed.topics import Storage, Topics
from kgctl.tui.feed.values import from_json, to_json
from kgctl.tui.screens.records import RecordsScreen
from kgctl.tui.screens.topics import TopicsScreen
from kgctl.tui.widgets.records.contents import Form, brief, kind_of, lines
from kgctl.tui.widgets.records.jump import Destination, parse
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill
from tests.kgctl.tui import record_pages, snapshots, topic_snapshots
from tests.kgctl.tui.dialogs import cluster_feed
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.recorded import replaying, shown
from tests.kgctl.tui.waiting import until

ASKED = Records("orders", 0, group="billing")
HOSTILE = b"\x1b]0;title\x07\x1b[2J"


class Scene:
    """What the screen shows, and the keys a user presses."""

    def __init__(self, app: KgctlApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    @property
    def screen(self) -> RecordsScreen:
        (found,) = [one for one in self.app.screen_stack if isinstance(one, RecordsScreen)]
        return found

    @property
    def text(self) -> str:
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())

    @property
    def offsets(self) -> list[int]:
        return [row.offset for row in self.screen.records.table.rows if row.record]

    @property
    def next(self) -> list[int]:
        return [row.offset for row in self.screen.records.table.rows if row.is_next]

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def jump(self, text: str) -> None:
        await self.press("o")
        self.screen.bar.query_one(Input).value = text
        await self.press("enter")

    async def see(self, words: str) -> None:
        await until(lambda: words in self.text)


@asynccontextmanager
async def opened(
    feed: Feed, topic: str, partition: int = 0, group: str | None = None, size: tuple[int, int] = (120, 40), **more: Any
) -> AsyncIterator[Scene]:
    app = KgctlApp(feed, **more)
    async with app.run_test(size=size) as pilot:
        await until(app.ready.is_set)
        app.open_records(topic, partition, group)
        scene = Scene(app, pilot)
        await until(lambda: isinstance(app.screen, RecordsScreen) and scene.screen.polling.answers)
        await pilot.pause()
        yield scene


def prepared(page: RecordsPage) -> PreparedFeed:
    groups = [snapshots.group("billing", lags=(8,), read=406), snapshots.group("audit", lags=(1,), read=413)]
    reads = {ASKED: [page], Bounds("orders", 0, "billing"): [page.bounds]}
    return PreparedFeed([snapshots.snapshot(groups)], reads=reads)


def play(walk: Callable[[Scene], Awaitable[None]], page: RecordsPage) -> None:
    async def run() -> None:
        async with opened(prepared(page), "orders", 0, "billing", clock=lambda: snapshots.NOW_S) as scene:
            await walk(scene)

    asyncio.run(run())


# ---- prepared answers


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_records_around_a_committed_offset(snap_compare: Any, size: tuple[int, int]) -> None:
    app = KgctlApp(prepared(record_pages.stuck()), clock=lambda: snapshots.NOW_S)

    async def go(pilot: Pilot[None]) -> None:
        await until(app.ready.is_set)
        app.open_records("orders", 0, "billing")
        await until(lambda: isinstance(app.screen, RecordsScreen) and app.screen.polling.answers)
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=go)


def test_pages_are_written_and_read() -> None:
    for found in (record_pages.stuck(), record_pages.damaged()):
        assert from_json(RecordsPage, json.loads(json.dumps(to_json(found)))) == found


def test_the_cursor_is_on_the_committed_offset_and_every_form_shows_its_contents() -> None:
    async def walk(scene: Scene) -> None:
        assert scene.screen.records.table.cursor_row.offset == 406
        assert "transactional id 'orders-tx'." in scene.text
        for words in ("2 offsets compacted", "end of a transaction", "for billing", "open, for audit", "lag here 8"):
            assert words in scene.text, words
        assert '"customer": "Zo\u00eb",' in scene.text
        assert "trace\\x07 abc" in scene.text
        await scene.press("v")
        assert "v text" in scene.text
        await scene.press("v")
        assert "000000  7b 22 69 64" in scene.text
        await scene.press("v", "enter")
        assert scene.screen.zoom.panel is scene.screen.detail
        await scene.press("escape", "down")
        assert "binary" in scene.text
        await scene.press("slash", *"order-40")
        assert scene.offsets == [400, 401, 402, 403]
        await scene.press("escape", "o", *"soon", "enter")
        assert "write offset, +100" in str(scene.screen.query_one("#jump-note", Static).content)
        await scene.press("escape")
        assert scene.app.focused is scene.screen.records.table
        await scene.press("y", "c")
        one = "--partition 0 --offset 403 --max-messages 1 --json --bootstrap 127.0.0.1:9092"
        assert scene.app.clipboard == f"kgctl consume orders {one}"

    play(walk, record_pages.stuck())


def test_the_reason_why_a_record_cannot_be_read_is_shown() -> None:
    async def walk(scene: Scene) -> None:
        assert "cannot read on: orders-0, offset 3: the checksum of the batch is wrong." in scene.text
        assert scene.screen.records.table.rows[-1].error is not None

    play(walk, record_pages.damaged())


@pytest.mark.parametrize(
    ("data", "short", "kind"),
    [
        (b"plain", "plain", "text"),
        (b'{"a": 1}', '{"a": 1}', "JSON"),
        (b"[not json", "[not json", "text"),
        (HOSTILE, "0x1b5d303b7469746c65071b5b324a", "binary"),
        ("\u202egnp.exe".encode(), "\\u202egnp.exe", "text"),
        ((7).to_bytes(8, "big"), "7 = 0x0000000000000007", "binary, as a number 7"),
        (b"caf\xc3", "1,667,327,683 = 0x636166c3", "binary, as a number 1,667,327,683"),
        (b"\xff\xfe", "0xfffe", "binary"),
        (b"", "(empty)", "text"),
        (b"two\nlines", "two lines", "text"),
    ],
)
def test_contents_of_any_kind_are_safe_to_print(data: bytes, short: str, kind: str) -> None:
    payload = record_pages.payload(data)
    assert (brief(payload), kind_of(payload)) == (short, kind)
    for form in Form:
        assert all(line.isprintable() for line in lines(payload, form))


def test_what_is_cut_says_how_much_more_there_is() -> None:
    assert list(lines(record_pages.payload(b"abc", 40_003), Form.AUTO)) == ["abc", "\u2026 40.0kB more"]
    assert list(lines(record_pages.payload(b"caf\xc3", 9), Form.AUTO)) == ["caf", "\u2026 5B more"]
    assert list(lines(None, Form.AUTO)) == ["null"]


def test_places_to_go_to() -> None:
    now_ms = 1_790_000_000_000
    noon_ms = now_ms - now_ms % 86_400_000 + 12 * 3_600_000
    for text, found in {
        "end": Destination(),
        "start": Destination(is_start=True),
        "1234": Destination(offset=1234),
        "-10": Destination(by=-10),
        "group:a b": Destination(group="a b"),
        "now-15m": Destination(time_ms=now_ms - 900_000),
        "12:00": Destination(time_ms=noon_ms),
        "2026-01-31T12:00": Destination(time_ms=1_769_860_800_000),
        "1790000000000": Destination(time_ms=now_ms),
        "orders.eu:3": Destination(topic="orders.eu", partition=3),
    }.items():
        assert parse(text, now_ms) == found, text
    for text in ("", "25:00", "group:", "soon", "orders:x"):
        with pytest.raises(BadValue):
            parse(text, now_ms)


# ---- a running broker


def test_records_are_browsed_and_followed(cluster: Cluster) -> None:
    kgctl, group, topic = Kgctl(cluster.bootstrap_servers), fresh("reader"), fresh("read")
    feed = cluster_feed(cluster.bootstrap_servers)
    assert kgctl("topics", "create", topic, "--partitions", 2).exit_code == 0
    first_ms = int(time.time() * 1000) - 60_000
    fill(kgctl, topic, [120, 3], first_ms)
    kgctl.commit(group, topic, p0=60)

    async def run() -> None:
        async with opened(feed, topic, 0, group, interval_s=0.2) as scene:
            await scene.see(f"{group} at 60")
            assert (scene.next, scene.offsets) == ([60], list(range(35, 85)))
            assert "the record at the committed offset 60 can be read" in scene.text
            await asyncio.to_thread(kgctl.commit, group, topic, p0=61)
            await until(lambda: scene.next == [61])
            await scene.press("right")
            await until(lambda: scene.offsets == list(range(86, 120)))
            await scene.press("left")
            await until(lambda: scene.offsets == list(range(36, 86)))
            await scene.jump("start")
            await until(lambda: scene.offsets == list(range(50)))
            await scene.jump("100")
            await until(lambda: scene.next == [100])
            await scene.jump("-50")
            await until(lambda: scene.next == [50])
            await scene.jump(str(first_ms + 70))
            await until(lambda: scene.next == [70])
            await scene.press("e")
            await until(lambda: scene.offsets == list(range(70, 120)))
            await asyncio.to_thread(fill, kgctl, topic, [2])
            await until(lambda: scene.offsets[-1] == 121)
            await scene.press("c")
            await until(lambda: scene.next == [61])
            await scene.press("right_square_bracket")
            await scene.see("has no committed offset; the log starts at 0")
            await scene.jump(f"{topic}:7")
            await scene.see(f"Topic '{topic}' has no partition 7: it has 2.")
            await scene.jump("absent:0")
            await scene.see("topic 'absent'")
        (described,) = kgctl.rows("groups", "describe", group)[:1]
        assert described["current_offset"] == 61

    try:
        asyncio.run(run())
    finally:
        feed.close()


def test_a_partition_leads_to_its_records_and_g_r_to_the_group_that_is_behind() -> None:
    async def run(feed: ClusterFeed) -> None:
        app = KgctlApp(feed, interval_s=0.2)
        async with app.run_test(size=(120, 40)) as pilot:
            scene = Scene(app, pilot)
            await until(lambda: app.cluster is not None and app.cluster.rows)
            await scene.press("g", "r")
            await until(lambda: scene.next == [2])
            assert scene.screen.question == Records("sold", 1, group="behind")
            await scene.press("g", "t")
            await until(lambda: isinstance(app.screen, TopicsScreen) and app.screen.polling.answers)
            await until(lambda: app.screen.partitions.table.rows)
            await scene.press("enter", "down")
            await until(lambda: app.screen.partitions.table.cursor_row.readers)
            await scene.press("enter")
            await until(lambda: isinstance(app.screen, RecordsScreen) and scene.next == [2])
            await scene.jump("__consumer_offsets:0")
            for _ in range(50):
                if scene.offsets:
                    break
                partition = scene.screen.question.partition
                await scene.press("right_square_bracket")
                await until(lambda partition=partition: scene.screen._page.partition != partition)
            await scene.see("offset-commit")
            await scene.see('"group": "behind"')

    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "sold", "--partitions", 2).exit_code == 0
        fill(kgctl, "sold", [3, 9])
        kgctl.commit("behind", "sold", p0=3, p1=2)
        feed = cluster_feed(broker.bootstrap_servers)
        try:
            asyncio.run(run(feed))
        finally:
            feed.close()


def test_damage_before_the_committed_offset_does_not_hide_it(tmp_path: Path) -> None:
    with LocalBroker(data_dir=tmp_path) as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "worn", "--partitions", 1).exit_code == 0
        for _ in range(4):
            fill(kgctl, "worn", [1])
        kgctl.commit("mender", "worn", p0=2)
        (segment,) = tmp_path.glob("segments/*/0/*.log")
        content = bytearray(segment.read_bytes())
        batch = 12 + int.from_bytes(content[8:12])
        content[2 * batch - 1] ^= 1
        segment.write_bytes(content)
        with kgctl.admin() as admin:
            page = Records("worn", 0, group="mender").run(admin)
            stuck = Records("worn", 0, offset=1).run(admin)
    assert [one.offset for one in page.records] == [0, 2, 3]
    assert page.error is not None
    assert [one.offset for one in stuck.records] == [0]
    assert stuck.error is not None


def test_topics_and_records_that_were_looked_at_replay_and_others_say_that_they_were_not(tmp_path: Path) -> None:
    path = tmp_path / "incident"
    page, found = record_pages.stuck(), topic_snapshots.topics()
    reads = {
        ASKED: [page],
        Bounds("orders", 0, "billing"): [page.bounds],
        Topics(): [found],
        Storage(): [topic_snapshots.storage()],
    }
    groups = [snapshots.snapshot([snapshots.group("billing", lags=(8,), read=406)])]

    async def go(app: KgctlApp, above: int) -> list[str]:
        """What both screens show below the header."""
        screens = []
        async with app.run_test(size=(120, 39 + above)) as pilot:
            scene = Scene(app, pilot)
            await until(app.ready.is_set)
            if app.replay is not None:
                await scene.press("right_curly_bracket")
            for words, opening in (
                ("123MB", lambda: app.open_topic("orders")),
                ("order-7", lambda: app.open_records("orders", 0, "billing")),
            ):
                opening()
                await scene.see(words)
                # The focus follows the first answer, and the polls that began with the screen end.
                await until(lambda: app.screen.focused is not None and app.background.polling.idle)
                await until(lambda: app.screen.polling.idle)
                await pilot.pause()
                await pilot.pause()
                screens.append(shown(app, above))
            if app.replay is not None:
                await scene.jump("payments:1")
                await scene.see("The recording does not have this")
        return screens

    feed = record_to(path, PreparedFeed(groups, reads=reads))
    live = asyncio.run(go(KgctlApp(feed, interval_s=300, clock=lambda: snapshots.NOW_S), 1))
    feed.close()
    assert asyncio.run(go(replaying(path), 2)) == live
