"""The screen of events: what it lists, its filter, how it follows, and what it opens."""

from __future__ import annotations

from kgctl.model.cluster_view import ClusterEvent, EventKind
from kgctl.model.health import Health
from kgctl.tui.screens.events import EventsScreen
from kgctl.tui.screens.group import GroupScreen
from kgctl.tui.widgets.events.table import fields, group_of, searched, what
from kgctl.tui.widgets.frame.filter import parse
from tests.kgctl.tui.groups_scene import Scene, watching
from tests.kgctl.tui.incident import incident
from tests.kgctl.tui.waiting import until


def shown(scene: Scene) -> list[tuple[str | None, str, str]]:
    return [(row.group, str(row.kind), what(row)) for row in screen(scene).table.table.rows]


def screen(scene: Scene) -> EventsScreen:
    assert isinstance(scene.app.screen, EventsScreen)
    return scene.app.screen


async def opened(scene: Scene, refreshes: int = 4) -> None:
    """Open the screen after this number of snapshots."""
    await scene.press("g", "e")
    await until(lambda: isinstance(scene.app.screen, EventsScreen) and screen(scene).focused is not None)
    for _ in range(refreshes - 1):
        await refresh(scene)


async def refresh(scene: Scene) -> None:
    before = screen(scene).polling.answers
    await scene.press("ctrl+r")
    await until(lambda: screen(scene).polling.answers > before)
    await scene.pilot.pause()


def test_the_newest_event_is_first_and_a_verdict_says_what_it_was() -> None:
    async def walk(scene: Scene) -> None:
        await opened(scene)
        found = shown(scene)
        assert found[0] == ("hourly-report", "group", "deleted")
        assert (None, "cluster", "broker 1 restarted") in found
        (verdict,) = [text for group, kind, text in found if group == "billing"]
        assert verdict.startswith("silent, was ok: ")
        assert found[-1][:2] == ("checkout", "rebalance")

    watching(incident(), walk)


def test_a_verdict_of_a_group_that_was_never_judged_has_no_former_one() -> None:
    assert what(ClusterEvent(0, EventKind.VERDICT, "g", "why", Health.STALLED)) == "stalled: why"
    assert what(ClusterEvent(0, EventKind.VERDICT, "g", "", Health.OK, was=Health.STALLED)) == "ok, was stalled"


def test_the_filter_finds_each_group_of_an_event() -> None:
    parts = tuple(
        ClusterEvent(0, EventKind.VERDICT, name, "why", Health.STOPPED) for name in ("a-1", "b-2", "c-3", "d-4")
    )
    together = ClusterEvent(0, EventKind.VERDICT, None, "a-1, b-2, c-3 and 1 more", Health.STOPPED, parts=parts)
    assert (group_of(together), what(together)) == ("4 groups", "stopped: a-1, b-2, c-3 and 1 more")
    for text, is_found in (("d-4", True), ("group:d-4", True), ("group:e", False), ("verdict:stopped", True)):
        assert parse(text, searched, fields()).matches(together) is is_found


def test_it_follows_while_the_cursor_is_on_the_newest_event() -> None:
    async def walk(scene: Scene) -> None:
        await opened(scene, refreshes=3)
        rows = screen(scene).table.table
        assert "follows" in screen(scene).table.title_text
        await refresh(scene)
        assert rows.cursor == 0
        await scene.press("j")
        assert "1 newer (f follows)" in screen(scene).table.title_text
        await scene.press("f")
        assert rows.cursor == 0
        assert "follows" in screen(scene).table.title_text.replace("f follows", "")

    watching(incident(), walk)


def test_the_cursor_stays_on_its_event_when_others_arrive() -> None:
    async def walk(scene: Scene) -> None:
        await opened(scene, refreshes=3)
        await scene.press("j")
        rows = screen(scene).table.table
        before = rows.cursor_row
        await refresh(scene)
        assert rows.cursor_row == before
        assert rows.cursor == 2

    watching(incident(), walk)


def test_the_filter_looks_at_kinds_groups_and_texts_and_the_panels_follow_it() -> None:
    async def walk(scene: Scene) -> None:
        await opened(scene)
        await scene.press("slash", *"kind:rebal group:check", "enter")
        await scene.pilot.pause()
        assert {group for group, _, _ in shown(scene)} == {"checkout"}
        assert [row.group for row in screen(scene).busy.table.rows] == ["checkout"]
        assert screen(scene).activity.title_text.startswith("\u00b9 Last hour, 4 events")
        await scene.press("escape", "slash", *"restarted", "enter")
        await scene.pilot.pause()
        assert shown(scene) == [(None, "cluster", "broker 1 restarted")]

    watching(incident(), walk)


def test_enter_opens_the_group_at_this_rebalance() -> None:
    async def walk(scene: Scene) -> None:
        await opened(scene)
        await scene.press("slash", *"kind:rebal", "enter", "G", "k")
        event = screen(scene).table.table.cursor_row
        assert event is not None
        await scene.press("enter")
        await until(lambda: isinstance(scene.app.screen, GroupScreen))
        assert isinstance(scene.app.screen, GroupScreen)
        assert (scene.app.screen.group, scene.app.screen._at_ms) == ("checkout", event.wall_ms)

    watching(incident(), walk)


def test_enter_on_an_event_of_the_cluster_opens_nothing_and_a_busy_group_opens() -> None:
    async def walk(scene: Scene) -> None:
        await opened(scene)
        await scene.press("slash", *"restarted", "enter", "enter", "escape")
        assert isinstance(scene.app.screen, EventsScreen)
        screen(scene).busy.table.focus()
        await scene.press("enter")
        await until(lambda: isinstance(scene.app.screen, GroupScreen))

    watching(incident(), walk)
