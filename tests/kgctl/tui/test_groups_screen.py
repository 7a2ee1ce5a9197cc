"""The screen of all groups: every key, the texts about a row, and what a refresh preserves."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from textual import events
from textual.widgets import Input

from broker.local import LocalBroker
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.connector import ConnectionSettings
from kgctl.model.failure import RowError
from kgctl.model.watched import Snapshot
from kgctl.tui.app import KgctlApp
from kgctl.tui.dialogs.deletion import DeleteDialog
from kgctl.tui.dialogs.rebalance import RebalanceDialog
from kgctl.tui.dialogs.removal import RemoveMemberDialog
from kgctl.tui.dialogs.reset import ResetDialog
from kgctl.tui.feed.cluster import ClusterFeed
from kgctl.tui.keys import sections
from kgctl.tui.screens.group import GroupScreen
from kgctl.tui.widgets.frame.filter_bar import FilterBar
from kgctl.tui.widgets.frame.glyphs import BLOCKS
from kgctl.tui.widgets.frame.key_line import KeyLine
from kgctl.tui.widgets.groups.lines import FailedBrokers
from kgctl.tui.widgets.groups.preview import Detail
from tests.harness.commandline import Kgctl, fill
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.groups_scene import Scene, watching
from tests.kgctl.tui.waiting import until


def four() -> Snapshot:
    """billing OK, checkout REBALANCING, fraud with a dead member and the largest lag, ledger with an error."""
    return snapshots.snapshot(
        [
            snapshots.group("billing", lags=(3, 4)),
            snapshots.group("checkout", "PreparingRebalance", members=3, since_s=4.0),
            snapshots.group("fraud", lags=(500, 1), silent_ms=40_000),
            snapshots.failed("ledger"),
        ]
    )


# ---- texts


def test_groups_are_sorted_by_verdict_and_counted_worst_first() -> None:
    async def walk(scene: Scene) -> None:
        assert scene.names == ["ledger", "fraud", "checkout", "billing"]
        assert scene.title.startswith("\u2074\u25b8Groups 4 \u00b7 verdict\u2193 \u2500")
        assert scene.title.endswith("\u2500 ? 1  \u2716 1  \u21bb 1  \u25cc 1")

    watching([four()], walk)


@pytest.mark.parametrize(
    ("generation", "reason"),
    [
        (None, "SINCE: no rebalance observed yet, and this cluster keeps no history"),
        (4, "SINCE: no rebalance observed yet"),
        (0, "SINCE: the group has never rebalanced"),
    ],
)
def test_the_reason_for_an_unknown_last_rebalance_depends_on_the_cluster(generation: int | None, reason: str) -> None:
    async def walk(scene: Scene) -> None:
        assert reason in scene.text(Detail)

    quiet = [snapshots.group("billing", generation=generation, since_s=None)]
    watching([snapshots.snapshot(quiet)], walk, size=(200, 40))


def test_the_line_below_the_table_explains_the_health() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("j", "j")
        assert scene.screen.preview.title_text == "checkout"
        assert "REBALANCING: PreparingRebalance for 4.0 s: 2 of 3 members joined" in scene.text(Detail)

    watching([four()], walk)


def test_lines_that_few_groups_leave_on_a_high_terminal_go_to_the_panels_above() -> None:
    def walk_to(expected: int) -> Any:
        async def walk(scene: Scene) -> None:
            top = scene.screen.query_one("#top")
            assert top.outer_size.height == expected
            await scene.press("2")
            assert scene.screen.lag.outer_size.height > 50
            await scene.press("escape")
            assert top.outer_size.height == expected

        return walk

    many = snapshots.snapshot([snapshots.group(f"g{number}") for number in range(99)])
    watching([four()], walk_to(20), size=(200, 60))
    watching([many], walk_to(8), size=(200, 60))


@pytest.mark.parametrize(
    ("topic", "group", "width"),
    [("payments.settled.eu-west-1.production", "billing", 200), ("t", "billing-of-regions", 120)],
)
def test_the_preview_cuts_no_name_while_there_is_room(topic: str, group: str, width: int) -> None:
    found = snapshots.group(group, lags=(3, 4))
    found = replace(found, partitions=tuple(replace(one, topic=topic) for one in found.partitions))

    async def walk(scene: Scene) -> None:
        (line,) = [one for one in scene.text(Detail).splitlines() if one.startswith(f"{group}-0-5f1c ")]
        assert f" {topic} " in line
        assert line.endswith(f" {group}-0-5f1c")

    watching([snapshots.snapshot([found])], walk, size=(width, 60))


def test_a_failed_group_is_a_row_with_its_error() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("G", "home")
        assert scene.cursor == "ledger"
        assert "UNKNOWN (GROUP_AUTHORIZATION_FAILED): the principal 'User:dash' may not" in scene.text(Detail)
        assert "GEN:" not in scene.text(Detail)

    watching([four()], walk)


def test_the_line_below_the_table_explains_missing_values() -> None:
    async def walk(scene: Scene) -> None:
        for reason in ("GEN: this cluster", "IN/s, OUT/s: needs two refreshes", "SINCE: no rebalance observed"):
            assert reason in scene.text(Detail)
        await scene.refresh()
        assert "two refreshes" not in scene.text(Detail)

    quiet = [snapshots.group("billing", generation=None, since_s=None)]
    found = [snapshots.snapshot(quiet), snapshots.snapshot(snapshots.later(quiet, 5), 5)]
    watching(found, walk, size=(200, 40))


def test_values_of_hidden_columns_appear_below_the_table() -> None:
    async def walk(scene: Scene) -> None:
        assert "IN/s" not in scene.text(Detail)
        assert "generation 7" in scene.text(Detail)
        await scene.pilot.resize_terminal(200, 40)
        await scene.pilot.pause()
        assert "IN/s" in scene.text(Detail)
        assert "generation 7" not in scene.text(Detail)

    watching([snapshots.snapshot([snapshots.group("billing")])], walk, size=(80, 24))


def test_brokers_that_do_not_answer_are_reported() -> None:
    async def walk(scene: Scene) -> None:
        assert (
            scene.text(FailedBrokers)
            == "2 brokers did not answer, groups may be missing: no way to \\x1b[2J (and 1 more)"
        )
        await scene.refresh()
        assert not scene.screen.query_one(FailedBrokers).display

    errors = (RowError("UNREACHABLE", "no way to \x1b[2J"), RowError("TIMED_OUT", "too slow"))
    watching([snapshots.snapshot([], errors=errors), four()], walk)


def test_hostile_names_are_shown_as_text() -> None:
    async def walk(scene: Scene) -> None:
        everything = scene.table
        for row in scene.screen.rows.rows:
            scene.screen.rows.put_cursor(row.group)
            await scene.pilot.pause()
            everything += scene.screen.preview.title_text + scene.text(Detail)
        assert "\\x1b[2J\\x1b[31mcleared" in everything
        assert "[red]markup[/red]" in everything
        assert "\\u202eright to left" in everything
        assert snapshots.LONG[:60] in everything
        assert not [char for char in everything if char != "\n" and not char.isprintable()]

    watching([snapshots.snapshot(snapshots.hostile())], walk, size=(200, 60))


# ---- sorting


def test_s_sorts_by_the_next_column_and_shift_s_reverses() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("N", "S")
        assert scene.names == ["ledger", "fraud", "checkout", "billing"]
        assert "group\u2193" in scene.title
        await scene.press("s")
        assert scene.screen.rows.sorted_by == ("state", False)

    watching([four()], walk)


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("H", ["ledger", "fraud", "checkout", "billing"]),
        ("V", ["ledger", "fraud", "checkout", "billing"]),
        ("L", ["fraud", "billing", "checkout", "ledger"]),
        ("N", ["billing", "checkout", "fraud", "ledger"]),
    ],
)
def test_keys_sort_by_name_health_and_lag(key: str, names: list[str]) -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("s", key)
        assert scene.names == names

    watching([four()], walk)


def test_a_refresh_keeps_order_cursor_filter_and_marks() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("V", "slash", *"i", "enter", "home", "space")
        assert (scene.names, scene.cursor, scene.screen.rows.marked) == (["billing"], "billing", {"billing"})
        await scene.refresh()
        assert (scene.names, scene.cursor, scene.screen.rows.marked) == (["billing", "init"], "billing", {"billing"})

    more = [*four().groups.values(), snapshots.group("init")]
    watching([four(), snapshots.snapshot(more, 2)], walk)


# ---- selection


def test_a_filter_applies_while_it_is_typed_and_stays_after_enter() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("slash", "b")
        assert scene.names == ["billing"]
        await scene.press("backspace", "!", "b")
        assert scene.names == ["ledger", "fraud", "checkout"]
        assert scene.filter_note == "3 of 4"
        assert "Groups 3 of 4 \u00b7 /!b" in scene.title
        await scene.press("enter", "k")
        assert scene.cursor == "fraud"
        assert scene.screen.query_one(FilterBar).display
        assert scene.screen.query_one(Input).value == "!b"

    watching([four()], walk)


def test_action_keys_are_text_while_a_filter_is_typed() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("slash", *"qrbxsfmuMg1 ", "question_mark", "colon", "slash")
        assert scene.screen.query_one(Input).value == "qrbxsfmuMg1 ?:/"
        assert scene.app.screen is scene.screen

    watching([four()], walk)


@pytest.mark.parametrize("read_only", [False, True])
def test_keys_typed_in_one_go_with_the_slash_belong_to_the_filter(read_only: bool) -> None:
    """A terminal delivers all keys at once that were typed while the dashboard was busy."""

    async def walk(scene: Scene) -> None:
        for key, letter in [("slash", "/"), *zip("rbxsm", "rbxsm", strict=True)]:
            scene.app.post_message(events.Key(key, letter))
        await until(lambda: scene.screen.query_one(Input).value == "rbxsm")
        assert scene.app.screen is scene.screen
        assert not scene.screen.only_marked

    watching([four()], walk, read_only=read_only)


def test_escape_clears_the_filter_while_typing_and_later() -> None:
    async def walk(scene: Scene) -> None:
        for rest in (["escape"], ["enter", "escape"]):
            await scene.press("slash", *"bill", *rest)
            assert len(scene.names) == 4
            assert not scene.screen.query_one(FilterBar).display
            assert scene.screen.rows.has_focus

    watching([four()], walk)


def test_text_typed_after_a_second_slash_replaces_the_filter() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("slash", *"bill", "enter", "slash", *"fra", "enter")
        assert scene.names == ["fraud"]
        await scene.press("slash", "right", "u", "enter")
        assert scene.screen.query_one(FilterBar).filter.text == "frau"

    watching([four()], walk)


def test_an_invalid_expression_is_reported_and_the_last_valid_filter_stays() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("slash", *"fr", "left_parenthesis")
        assert scene.filter_note.startswith("bad regex: missing )")
        assert scene.names == ["fraud"]
        await scene.refresh()
        assert scene.filter_note.startswith("bad regex")
        await scene.press("enter")
        assert scene.screen.query_one(Input).value == "fr"
        assert (scene.names, scene.filter_note) == (["fraud"], "1 of 4")

    watching([four()], walk)


def test_down_moves_from_the_filter_to_the_table() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("slash", *"fr", "down")
        assert scene.screen.rows.has_focus
        assert scene.names == ["fraud"]

    watching([four()], walk)


def test_f_shows_only_faults_and_escape_shows_all() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("f")
        assert scene.names == ["ledger", "fraud"]
        assert "Groups 2 of 4 \u00b7 faults (f)" in scene.title
        await scene.press("escape")
        assert len(scene.names) == 4
        await scene.press("f", "f")
        assert len(scene.names) == 4

    watching([four()], walk)


def test_u_hides_unused_groups_and_shows_their_number() -> None:
    async def walk(scene: Scene) -> None:
        assert scene.names == ["fraud", "billing", "old-2", "old-1"]
        assert "Groups 4 \u00b7 unused 2 (u hides)" in scene.title
        await scene.press("u")
        assert scene.names == ["fraud", "billing"]
        assert "Groups 2 of 4 \u00b7 unused 2 hidden (u)" in scene.title
        await scene.press("u")
        assert len(scene.names) == 4

    old = [snapshots.group(f"old-{lag}", "Empty", members=0, lags=(lag,), since_s=1e6) for lag in (1, 2)]
    live = [snapshots.group("billing"), snapshots.group("fraud", silent_ms=40_000)]
    watching([snapshots.snapshot([*old, *live])], walk)


def test_filters_look_at_states_verdicts_topics_members_and_lags() -> None:
    async def walk(scene: Scene) -> None:
        for text, names in (
            ("state:prep", ["checkout"]),
            ("verdict:silent", ["fraud"]),
            ("topic:orders lag:>=501", ["fraud"]),
            ("member:billing-app", ["billing"]),
            ("member:10.0.0.7 !lag:>0", ["checkout"]),
        ):
            await scene.press("slash", *text, "enter")
            assert (text, scene.names) == (text, names)
            await scene.press("escape")

    watching([four()], walk)


def test_the_trend_of_a_growing_lag_rises() -> None:
    async def walk(scene: Scene) -> None:
        for _ in range(6):
            await scene.refresh()
        (line,) = [line for line in scene.table.splitlines() if "tracking" in line]
        trend = [char for char in line if char in BLOCKS]
        assert trend == sorted(trend)
        assert len(set(trend)) > 3

    first = [snapshots.group("tracking", lags=(1_000_000, 1_000_000))]
    found = [snapshots.snapshot(snapshots.later(first, after_s), after_s) for after_s in range(0, 70, 10)]
    watching(found, walk)


def test_what_needs_somebody_is_listed_and_opened() -> None:
    async def walk(scene: Scene) -> None:
        needs_you = scene.screen.needs_you
        assert [row.group for row in needs_you.table.rows] == ["ledger", "fraud"]
        assert needs_you.title_text == "\u00b9 Needs you 2"
        await scene.press("tab", "down", "r")
        dialog: Any = scene.app.screen
        assert isinstance(dialog, ResetDialog)
        assert dialog.groups == ("fraud",)

    watching([four()], walk)


def _silent(*names: str, after_s: float = 0.0) -> Snapshot:
    return snapshots.snapshot([snapshots.group(name, silent_ms=40_000) for name in names], after_s=after_s)


def test_a_list_without_the_focus_shows_its_first_rows_and_one_with_the_focus_keeps_its_row() -> None:
    async def walk(scene: Scene) -> None:
        rows = scene.screen.needs_you.table
        assert rows.cursor_row.group == "z"
        await scene.refresh()
        # The size of a hidden panel changes, and once more when it is shown again.
        await scene.press("4", "4")
        assert (rows.cursor_row.group, rows.scroll_offset.y) == ("a", 0)
        await scene.press("tab", "end")
        await scene.refresh()
        assert rows.cursor_row.group == "z"
        # A terminal that loses the focus takes it from the table.
        scene.screen.set_focus(None)
        await scene.refresh()
        assert rows.cursor_row.group == "z"

    many = [_silent(*"abcdefghz", after_s=after_s) for after_s in (2, 4, 6)]
    watching([_silent("z"), *many], walk)


def test_actions_are_about_the_group_of_the_event_if_events_have_the_focus() -> None:
    async def walk(scene: Scene) -> None:
        await scene.refresh()
        await scene.press("j", "tab", "tab")
        events = scene.screen.events.table
        assert events.has_focus
        assert scene.cursor != "new"
        assert [event.group for event in events.rows] == ["new", None]
        await scene.press("end", "d")
        assert scene.app.screen is scene.screen
        await scene.press("home", "d")
        dialog: Any = scene.app.screen
        assert isinstance(dialog, DeleteDialog)
        assert dialog.groups == ("new",)
        await scene.press("escape")
        await until(lambda: scene.app.screen is scene.screen)
        await scene.refresh()
        await scene.press("home", "d")
        assert scene.app.screen is scene.screen
        assert [toast.message for toast in scene.app._notifications] == [
            "new is gone. Move the cursor to choose another one."
        ]

    watching([_silent("a", "b"), _silent("a", "b", "new", after_s=2), _silent("a", "b", after_s=4)], walk)


def test_groups_are_marked_shown_alone_and_unmarked() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("space", "j", "space")
        assert "Groups 4 \u00b7 \u25c6 2 marked" in scene.title
        await scene.press("m")
        assert scene.names == ["ledger", "checkout"]
        await scene.press("m")
        assert len(scene.names) == 4
        await scene.press("m", "M")
        assert (scene.screen.rows.marked, len(scene.names)) == (set(), 4)
        assert "marked" not in scene.title

    watching([four()], walk)


def test_a_filter_without_a_match_shows_a_sentence() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("slash", *"zzz", "enter")
        assert "No group matches. Press Esc to show all groups." in scene.table
        assert scene.text(Detail) == ""
        await scene.press("r", "b", "x", "enter")
        assert scene.app.screen is scene.screen

    watching([four()], walk)


def test_a_cluster_without_groups_shows_a_sentence() -> None:
    async def walk(scene: Scene) -> None:
        assert "No groups." in scene.table
        assert "Groups 0" in scene.title

    watching([snapshots.snapshot([])], walk)


# ---- actions


def test_enter_opens_a_group_and_escape_returns_to_it() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("j", "j", "enter")
        assert isinstance(scene.app.screen, GroupScreen)
        assert scene.app.screen.group == "checkout"
        await scene.press("escape")
        assert scene.app.screen is scene.screen
        assert scene.cursor == "checkout"

    watching([four()], walk)


def test_read_only_disables_the_actions_visibly() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("r", "b", "x")
        assert scene.app.screen is scene.screen
        keys = [key for section in sections(scene.screen) for key in section.keys if key.is_shown]
        assert {key.label for key in keys if not key.is_enabled} == {"Reset", "Rebalance", "Remove"}
        assert "r Reset  b Rebalance  x Remove" in scene.text(KeyLine)

    watching([four()], walk, read_only=True)


@pytest.mark.parametrize("was_changed", [True, False])
def test_a_change_removes_the_marks(was_changed: bool) -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("space", "space", "m", "d")
        dialog: Any = scene.app.screen
        assert len(dialog.groups) == 2
        dialog.dismiss(was_changed)
        await until(lambda: scene.app.screen is scene.screen)
        await until(lambda: len(scene.names) == (4 if was_changed else 2))
        assert len(scene.screen.rows.marked) == (0 if was_changed else 2)

    watching([four()], walk)


def test_action_keys_open_their_dialog_for_the_selected_group() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("j", "j")
        for key, dialog in (("r", ResetDialog), ("b", RebalanceDialog), ("x", RemoveMemberDialog)):
            await scene.press(key)
            opened: Any = scene.app.screen
            assert isinstance(opened, dialog)
            assert opened.groups == ("checkout",)
            await scene.press("escape")
            await until(lambda: scene.app.screen is scene.screen)

    watching([four()], walk)


def test_the_screen_refreshes_at_once_after_a_change() -> None:
    async def run(bootstrap: str) -> None:
        feed = ClusterFeed(ConnectionSettings(parse(bootstrap), timeout=20))
        app = KgctlApp(feed, interval_s=300)
        async with app.run_test(size=(120, 40)) as pilot:
            await until(app.ready.is_set)
            await pilot.pause()
            scene = Scene(app, pilot)
            assert [row.lag for row in scene.screen.all] == [7]
            await scene.press("r")
            dialog = app.screen
            assert isinstance(dialog, ResetDialog)
            dialog.dismiss(True)
            fill(Kgctl(bootstrap), "orders", [3])
            await until(lambda: app.screen is scene.screen)
            await until(lambda: [row.lag for row in scene.screen.all] == [10])
        feed.close()

    with LocalBroker() as kafka:
        kgctl = Kgctl(kafka.bootstrap_servers)
        with kgctl.admin() as admin:
            admin.create_topics(["orders"], partitions=1)
        fill(kgctl, "orders", [7])
        kgctl.commit("audit", "orders", p0=0)
        asyncio.run(run(kafka.bootstrap_servers))


# ---- many groups


def test_ten_thousand_groups_can_be_navigated_and_filtered() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("N", "G")
        assert scene.cursor == "group-09999"
        await scene.press("slash", *"99.?$", "enter")
        assert len(scene.names) == 190
        await scene.press("escape", "f", "V", "home")
        assert "Groups 100 of 10,000 \u00b7 faults (f)" in scene.title
        assert scene.title.endswith("\u2716 100  \u21bb 100  \u25cc 8,400  \u25cf 1,400")

    watching([snapshots.snapshot(snapshots.many())], walk)
