"""A frozen screen stands still while the dashboard keeps watching; a baseline shows what has changed since then."""

from __future__ import annotations

import asyncio

import pytest

from kgctl.model.watched import GroupSnapshot, Snapshot
from kgctl.tui.app import KgctlApp
from kgctl.tui.screens.events import EventsScreen
from kgctl.tui.widgets.frame.header import Header
from kgctl.tui.widgets.table.rows import Rows
from kgctl.watch.baseline import Baseline
from kgctl.watch.cluster import ClusterWatch
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.groups_scene import Scene, watching
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until


def growing(*lags: int) -> list[Snapshot]:
    return [
        snapshots.snapshot([snapshots.group("billing", lags=(lag,), read=1_000 + 2 * lag)], 10.0 * number)
        for number, lag in enumerate(lags)
    ]


def lag(scene: Scene) -> int | None:
    return scene.screen.rows.rows[0].lag


async def next_view(scene: Scene) -> None:
    polling = scene.app.background.polling
    before = polling.answers
    polling.now()
    await until(lambda: polling.answers > before)
    await scene.pilot.pause()


# ---- freeze


def test_a_frozen_screen_stands_still_until_the_key_again() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("F")
        assert "\u2016 FROZEN \u00b7 0 s old" in scene.status
        await next_view(scene)
        assert lag(scene) == 3
        assert scene.app.cluster is not None
        assert scene.app.cluster.rows[0].lag == 500
        await scene.press("F")
        assert lag(scene) == 500
        assert "FROZEN" not in scene.status

    watching(growing(3, 500), walk)


def test_another_screen_is_not_frozen_and_the_frozen_one_stays() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("F", "g", "e")
        await until(lambda: isinstance(scene.app.screen, EventsScreen))
        await next_view(scene)
        assert "FROZEN" not in scene.app.screen.query_one(Header).text
        await scene.press("escape")
        await scene.pilot.pause()
        assert "FROZEN" in scene.status
        assert lag(scene) == 3

    watching(growing(3, 500), walk)


def test_keys_and_filters_work_on_a_frozen_screen() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("F", "slash", *"lag:>3", "enter")
        assert scene.names == []
        await next_view(scene)
        assert scene.names == []
        await scene.press("F")
        await scene.pilot.pause()
        assert scene.names == ["billing"]

    watching(growing(3, 500), walk)


# ---- baseline


def test_tables_show_what_has_changed_since_the_baseline() -> None:
    async def walk(scene: Scene) -> None:
        rows = scene.screen.rows
        assert "lag-since" not in rows.visible_columns
        await scene.press("B")
        assert "\u2191\u2193 since 14:13:20" in scene.status
        await next_view(scene)
        assert "LAG +/-" in scene.table
        assert [word for word in scene.table.splitlines()[1].split() if word.startswith("+")] == ["+497", "+994"]
        await scene.press("B")
        assert "since" not in scene.status
        assert "lag-since" not in rows.visible_columns

    watching(growing(3, 500), walk)


def test_the_partitions_of_a_group_show_what_has_changed() -> None:
    async def run() -> None:
        before, after = snapshots.group("billing", lags=(3,)), snapshots.group("billing", lags=(10,), read=1_100)
        now = GroupSnapshot(snapshots.NOW_S, snapshots.NOW_MS, after)
        feed = PreparedFeed([snapshots.snapshot([before])], {"billing": [now]})
        app = KgctlApp(feed, group="billing", clock=lambda: snapshots.NOW_S)
        async with app.run_test(size=(200, 60)) as pilot:
            await until(app.ready.is_set)
            await until(lambda: app.cluster is not None)
            await pilot.press("B")
            await pilot.pause()
            rows = app.screen.query_one("#partitions Rows", Rows)
            assert {"lag-since", "read-since"} <= rows.visible_columns
            assert [word for word in rows.render_line(1).text.split() if word.startswith("+")] == ["+7", "+100"]

    asyncio.run(run())


@pytest.mark.parametrize(("lags", "change"), [((500, 3), (-497, -994)), ((3, 3), (0, 0))])
def test_a_baseline_compares_lags_and_commits(lags: tuple[int, int], change: tuple[int, int]) -> None:
    watch = ClusterWatch()
    before, after = (watch.add(one) for one in growing(*lags))
    baseline = Baseline(before)
    assert (baseline.lag_since(after.rows[0]), baseline.read_since(after.snapshot.groups["billing"])) == change


def test_what_was_not_known_then_has_no_change() -> None:
    baseline = Baseline(ClusterWatch().add(snapshots.snapshot([snapshots.group("new", lags=(None,))])))
    view = ClusterWatch().add(snapshots.snapshot([snapshots.group("new"), snapshots.group("newer")]))
    assert [baseline.lag_since(row) for row in view.rows] == [None, None]
    assert [baseline.read_since(group) for group in view.snapshot.groups.values()] == [None, None]
