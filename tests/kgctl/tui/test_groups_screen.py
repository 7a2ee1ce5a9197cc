"""The screen of all groups: every key of it, what it says of a row, and what a refresh leaves alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from textual import events
from textual.widgets import Footer, Input

from broker.local import LocalBroker
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.connector import ConnectionSettings
from kgctl.model.failure import RowError
from kgctl.model.watched import Look
from kgctl.tui.app import KgctlApp
from kgctl.tui.feed import ClusterFeed
from kgctl.tui.screens.group import GroupScreen
from kgctl.tui.screens.rebalance import RebalanceDialog
from kgctl.tui.screens.removal import RemoveMemberDialog
from kgctl.tui.screens.reset import ResetDialog
from kgctl.tui.widgets.filter_bar import FilterBar
from kgctl.tui.widgets.group_lines import Detail, Summary, Unheard
from tests.harness.commandline import Kgctl, fill, member_of
from tests.kgctl.tui import looks
from tests.kgctl.tui.groups_scene import Scene, watching
from tests.kgctl.tui.waiting import until


def four() -> Look:
    """billing ok, checkout rebalancing, fraud with a dead member and the most lag, ledger with an error."""
    return looks.look(
        [
            looks.group("billing", lags=(3, 4)),
            looks.group("checkout", "PreparingRebalance", members=3, since_s=4.0),
            looks.group("fraud", lags=(500, 1), silent_ms=40_000),
            looks.failed("ledger"),
        ]
    )


# ---- what a row says


def test_groups_stand_by_name_with_the_worst_verdicts_counted_first() -> None:
    async def walk(scene: Scene) -> None:
        assert scene.names == ["billing", "checkout", "fraud", "ledger"]
        assert scene.said(Summary) == "4 groups: 1 error, 1 dead members, 1 rebalancing, 1 ok"

    watching([four()], walk)


@pytest.mark.parametrize(
    ("generation", "said"),
    [
        (None, "SINCE: no rebalance was seen so far, and this cluster keeps no record"),
        (4, "SINCE: no rebalance was seen so far"),
        (0, "SINCE: it never rebalanced"),
    ],
)
def test_a_cluster_that_counts_rebalances_is_not_said_to_keep_no_record(generation: int | None, said: str) -> None:
    async def walk(scene: Scene) -> None:
        assert scene.said(Detail).endswith(said)

    quiet = [looks.group("billing", generation=generation, since_s=None)]
    watching([looks.look(quiet)], walk, size=(140, 40))


def test_below_the_table_stands_why_the_verdict_is_what_it_is() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("j")
        assert "checkout" in scene.said(Detail)
        assert "rebalancing: PreparingRebalance for 4.0 s: 2 of 3 members joined" in scene.said(Detail)

    watching([four()], walk)


def test_a_group_that_fails_is_a_row_with_its_error() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("G")
        assert scene.cursor == "ledger"
        assert "error GROUP_AUTHORIZATION_FAILED: the principal 'User:dash' may not" in scene.said(Detail)
        assert "GEN:" not in scene.said(Detail)

    watching([four()], walk)


def test_a_cell_without_a_value_says_why_when_the_cursor_is_on_it() -> None:
    async def walk(scene: Scene) -> None:
        for reason in ("GEN: this cluster", "IN/s, OUT/s: takes two looks", "SINCE: no rebalance was seen"):
            assert reason in scene.said(Detail)
        await scene.look()
        assert "two looks" not in scene.said(Detail)

    quiet = [looks.group("billing", generation=None, since_s=None)]
    watching([looks.look(quiet), looks.look(looks.later(quiet, 5), 5)], walk)


def test_a_column_that_has_no_room_explains_nothing_but_its_value_stands_below() -> None:
    async def walk(scene: Scene) -> None:
        assert "IN/s" not in scene.said(Detail)
        assert "generation 7" in scene.said(Detail)
        await scene.pilot.resize_terminal(200, 40)
        await scene.pilot.pause()
        assert "IN/s" in scene.said(Detail)
        assert "generation 7" not in scene.said(Detail)

    watching([looks.look([looks.group("billing")])], walk, size=(80, 24))


def test_brokers_without_an_answer_are_told() -> None:
    async def walk(scene: Scene) -> None:
        assert scene.said(Unheard) == "2 brokers did not answer, groups may be missing: no way to \\x1b[2J (and 1 more)"
        await scene.look()
        assert not scene.screen.query_one(Unheard).display

    errors = (RowError("UNREACHABLE", "no way to \x1b[2J", 69), RowError("TIMED_OUT", "too slow", 69))
    watching([looks.look([], errors=errors), four()], walk)


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
def test_names_that_bite_are_shown_as_text(size: tuple[int, int]) -> None:
    async def walk(scene: Scene) -> None:
        everything = scene.drawn
        for row in scene.screen.rows.rows:
            scene.screen.rows.put_cursor(row.group)
            await scene.pilot.pause()
            everything += scene.said(Detail)
        assert "\\x1b[2J\\x1b[31mcleared" in everything
        assert "[red]markup[/red]" in everything
        assert "\\u202eright to left" in everything
        assert looks.LONG[:60] in everything
        assert not [char for char in everything if char != "\n" and not char.isprintable()]

    watching([looks.look(looks.hostile())], walk, size=size)


# ---- order


def test_s_goes_on_to_the_next_column_and_shift_s_turns_it_round() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("S")
        assert scene.names == ["ledger", "fraud", "checkout", "billing"]
        await scene.press("s")
        assert scene.screen.rows.sorted_by == ("state", False)

    watching([four()], walk)


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("V", ["ledger", "fraud", "checkout", "billing"]),
        ("L", ["fraud", "billing", "checkout", "ledger"]),
        ("N", ["billing", "checkout", "fraud", "ledger"]),
    ],
)
def test_a_key_for_each_order_that_is_wanted_most(key: str, names: list[str]) -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("s", key)
        assert scene.names == names

    watching([four()], walk)


def test_a_refresh_keeps_order_cursor_filter_and_marks() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("V", "slash", *"i", "enter", "g", "space")
        assert (scene.names, scene.cursor, scene.screen.rows.marked) == (["billing"], "billing", {"billing"})
        await scene.look()
        assert (scene.names, scene.cursor, scene.screen.rows.marked) == (["billing", "init"], "billing", {"billing"})

    more = [*four().groups.values(), looks.group("init")]
    watching([four(), looks.look(more, 2)], walk)


# ---- choice


def test_a_filter_works_while_it_is_typed_and_stays_with_enter() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("slash", "b")
        assert scene.names == ["billing"]
        await scene.press("backspace", "!", "b")
        assert scene.names == ["checkout", "fraud", "ledger"]
        assert scene.filter_note == "3 of 4"
        await scene.press("enter", "j")
        assert scene.cursor == "fraud"
        assert scene.screen.query_one(FilterBar).display
        assert scene.screen.query_one(Input).value == "!b"

    watching([four()], walk)


def test_keys_that_act_are_letters_while_a_filter_is_typed() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("slash", *"qrbxsfm ", "question_mark", "colon", "slash")
        assert scene.screen.query_one(Input).value == "qrbxsfm ?:/"
        assert scene.app.screen is scene.screen

    watching([four()], walk)


def test_letters_typed_in_one_breath_with_the_slash_are_the_filter() -> None:
    """A terminal hands over what was typed while the dashboard was busy all at once."""

    async def walk(scene: Scene) -> None:
        for key, letter in [("slash", "/"), *zip("rbxsm", "rbxsm", strict=True)]:
            scene.app.post_message(events.Key(key, letter))
        await until(lambda: scene.screen.query_one(Input).value == "rbxsm")
        assert scene.app.screen is scene.screen
        assert not scene.screen.only_marked

    watching([four()], walk)


def test_escape_takes_the_filter_away_while_typing_and_later() -> None:
    async def walk(scene: Scene) -> None:
        for rest in (["escape"], ["enter", "escape"]):
            await scene.press("slash", *"bill", *rest)
            assert len(scene.names) == 4
            assert not scene.screen.query_one(FilterBar).display
            assert scene.screen.rows.has_focus

    watching([four()], walk)


def test_a_bad_expression_is_said_and_the_last_good_filter_stays() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("slash", *"fr", "left_parenthesis")
        assert scene.filter_note.startswith("bad regex: missing )")
        assert scene.names == ["fraud"]
        await scene.look()
        assert scene.filter_note.startswith("bad regex")
        await scene.press("enter")
        assert scene.screen.query_one(Input).value == "fr"
        assert (scene.names, scene.filter_note) == (["fraud"], "1 of 4")

    watching([four()], walk)


def test_down_leaves_the_filter_for_the_table() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("slash", *"fr", "down")
        assert scene.screen.rows.has_focus
        assert scene.names == ["fraud"]

    watching([four()], walk)


def test_f_shows_only_faults_and_escape_all_again() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("f")
        assert scene.names == ["checkout", "fraud", "ledger"]
        assert scene.said(Summary).startswith("4 groups, 3 shown (faults): ")
        await scene.press("escape")
        assert len(scene.names) == 4
        await scene.press("f", "f")
        assert len(scene.names) == 4

    watching([four()], walk)


def test_marks_are_set_shown_alone_and_taken_away() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("space", "j", "space")
        assert scene.said(Summary).startswith("4 groups, 2 marked: ")
        await scene.press("m")
        assert scene.names == ["billing", "fraud"]
        await scene.press("m")
        assert len(scene.names) == 4
        await scene.press("m", "u")
        assert (scene.screen.rows.marked, len(scene.names)) == (set(), 4)
        assert "marked" not in scene.said(Summary)

    watching([four()], walk)


def test_where_nothing_passes_the_table_says_so() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("slash", *"zzz", "enter")
        assert "No group passes. Esc shows all." in scene.drawn
        assert scene.said(Detail) == ""
        await scene.press("r", "b", "x", "enter")
        assert scene.app.screen is scene.screen

    watching([four()], walk)


def test_a_cluster_without_groups_says_so() -> None:
    async def walk(scene: Scene) -> None:
        assert "No groups." in scene.drawn
        assert scene.said(Summary) == "0 groups"

    watching([looks.look([])], walk)


# ---- actions


def test_enter_opens_the_group_and_escape_comes_back_to_it() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("j", "enter")
        assert isinstance(scene.app.screen, GroupScreen)
        assert scene.app.screen.group == "checkout"
        await scene.press("escape")
        assert scene.app.screen is scene.screen
        assert scene.cursor == "checkout"

    watching([four()], walk)


@pytest.mark.parametrize("key", ["r", "b", "x"])
def test_read_only_switches_the_actions_off_for_all_to_see(key: str) -> None:
    async def walk(scene: Scene) -> None:
        await scene.press(key)
        assert scene.app.screen is scene.screen
        footer = {
            str(one.description): one.has_class("-disabled")
            for one in scene.screen.query_one(Footer).query("FooterKey")
        }
        assert {name for name, is_off in footer.items() if is_off} == {"Reset", "Rebalance", "Remove"}

    watching([four()], walk, read_only=True)


@pytest.mark.parametrize(("key", "dialog"), [("r", ResetDialog), ("b", RebalanceDialog), ("x", RemoveMemberDialog)])
def test_actions_open_their_dialog_for_the_group_of_the_cursor(key: str, dialog: type[Any]) -> None:
    async def run(bootstrap: str) -> None:
        feed = ClusterFeed(ConnectionSettings(parse(bootstrap), timeout=20))
        app = KgctlApp(feed)
        async with app.run_test(size=(120, 40)) as pilot:
            await until(app.heard.is_set)
            await pilot.pause()
            scene = Scene(app, pilot)
            assert scene.names == ["audit", "billing"]
            await scene.press("j", key)
            assert isinstance(app.screen, dialog)
            assert app.screen.group == "billing"
            await scene.press("escape")
            await until(lambda: app.screen is scene.screen)
        feed.close()

    with LocalBroker() as kafka:
        kgctl = Kgctl(kafka.bootstrap_servers)
        with kgctl.admin() as admin:
            admin.create_topics(["orders"], partitions=2)
        kgctl.commit("audit", "orders", p0=0)
        with member_of(kgctl, "billing", {"orders": [0, 1]}):
            asyncio.run(run(kafka.bootstrap_servers))


def test_a_change_is_looked_at_at_once() -> None:
    async def run(bootstrap: str) -> None:
        feed = ClusterFeed(ConnectionSettings(parse(bootstrap), timeout=20))
        app = KgctlApp(feed, interval_s=300)
        async with app.run_test(size=(120, 40)) as pilot:
            await until(app.heard.is_set)
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


# ---- many


def test_ten_thousand_groups_are_gone_through_by_keys() -> None:
    async def walk(scene: Scene) -> None:
        await scene.press("G")
        assert scene.cursor == "group-09999"
        await scene.press("slash", *"99.?$", "enter")
        assert len(scene.names) == 190
        await scene.press("escape", "f", "V", "g")
        assert scene.said(Summary) == "10,000 groups, 200 shown (faults): 100 stuck, 100 rebalancing, 9,800 ok"

    watching([looks.look(looks.many())], walk)
