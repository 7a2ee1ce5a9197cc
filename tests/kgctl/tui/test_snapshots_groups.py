"""How the screen of all groups looks: every state and verdict, three sizes, all colours, when nobody answers, and the help."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from textual.command import CommandPalette

from kgctl.client.net.errors import KgctlError, Unreachable
from kgctl.model.failure import RowError
from kgctl.model.watched import Look
from kgctl.tui.app import KgctlApp
from kgctl.tui.screens.groups import GroupsScreen
from tests.kgctl.tui import looks
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until

SMALL, MIDDLE, LARGE = (80, 24), (120, 40), (200, 60)
SIZES = [SMALL, MIDDLE, LARGE]


class Clock:
    """Stands still, and goes on when it is told to."""

    def __init__(self) -> None:
        self.now_s = looks.NOW_S

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def shown(snap_compare):
    """Whether the screen looks as before after all these looks, so many seconds and these keys."""

    def compare(
        found: Sequence[Look | KgctlError | None],
        size: tuple[int, int],
        keys: Sequence[str] = (),
        *,
        after_s: float = 0.0,
        theme: str = "dark",
        read_only: bool = False,
    ) -> bool:
        clock = Clock()
        feed = PreparedFeed(found)
        app = KgctlApp(feed, clock=clock, theme=theme, read_only=read_only)

        async def go(pilot) -> None:
            await until(lambda: isinstance(app.screen, GroupsScreen) and app.screen.is_running)
            if found[0] is not None:
                await until(app.heard.is_set)
            await pilot.pause()
            for _ in found[1:]:
                before = feed.asked
                await pilot.press("ctrl+r")
                await until(lambda before=before: feed.asked > before)
                await pilot.pause()
            await pilot.press(*keys)
            await pilot.pause()
            clock.now_s += after_s
            if isinstance(app.screen, GroupsScreen):
                app.screen.tick()
                await pilot.pause()
            if isinstance(app.screen, CommandPalette):
                await until(lambda: app.screen.query_one("CommandList").option_count)
                await pilot.pause()

        return snap_compare(app, terminal_size=size, run_before=go)

    return compare


@pytest.mark.parametrize("size", SIZES)
def test_every_state_at_a_first_look(shown, size) -> None:
    assert shown([looks.look(looks.every_state())], size)


@pytest.mark.parametrize("size", SIZES)
def test_every_verdict_after_a_minute(shown, size) -> None:
    assert shown(looks.watched_for_a_while(), size)


@pytest.mark.parametrize("theme", ["light", "contrast"])
@pytest.mark.parametrize("size", [SMALL, MIDDLE])
def test_other_colours(shown, size, theme) -> None:
    assert shown(looks.watched_for_a_while(), size, ["j", "j", "j"], theme=theme)


@pytest.mark.parametrize("size", [SMALL, MIDDLE])
def test_no_colour(shown, monkeypatch, size) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert shown(looks.watched_for_a_while(), size, ["space", "j"])


@pytest.mark.parametrize("size", SIZES)
def test_ten_thousand_rows(shown, size) -> None:
    assert shown([looks.look(looks.many())], size, ["V", "G"])


def test_no_groups(shown) -> None:
    assert shown([looks.look([])], SMALL)


def test_loading(shown) -> None:
    assert shown([None], SMALL)


def test_a_broker_that_is_not_there(shown) -> None:
    assert shown([Unreachable("127.0.0.1:9092: connection refused")], SMALL)


def test_stale(shown) -> None:
    assert shown([*looks.watched_for_a_while(), None], SMALL, after_s=47.0)


def test_lost(shown) -> None:
    assert shown([*looks.watched_for_a_while(), Unreachable("127.0.0.1:9092: connection refused")], SMALL, after_s=8.0)


@pytest.mark.parametrize("size", [SMALL, MIDDLE])
def test_a_group_that_fails_and_brokers_that_did_not_answer(shown, size) -> None:
    errors = (RowError("UNREACHABLE", "no answer from broker 2 at 10.0.0.12:9092: connection refused", 69),)
    keys = [*"ledger"]
    assert shown([looks.look(looks.every_state(), errors=errors)], size, ["slash", *keys, "enter"])


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_names_that_bite(shown, size) -> None:
    assert shown([looks.look(looks.hostile())], size, ["j", "j", "j", "j", "j"])


@pytest.mark.parametrize("size", [SMALL, MIDDLE])
def test_a_filter_is_typed(shown, size) -> None:
    assert shown(looks.watched_for_a_while(), size, ["slash", *"!^.{1,8}$"])


@pytest.mark.parametrize("size", [SMALL, MIDDLE])
def test_a_bad_expression(shown, size) -> None:
    assert shown(looks.watched_for_a_while(), size, ["slash", *"st(uck"])


def test_a_filter_that_nothing_passes(shown) -> None:
    assert shown(looks.watched_for_a_while(), SMALL, ["slash", *"zzz", "enter"])


@pytest.mark.parametrize("size", [SMALL, MIDDLE])
def test_faults_and_marks(shown, size) -> None:
    assert shown(looks.watched_for_a_while(), size, ["f", "V", "g", "space", "space"])


def test_paused_and_read_only(shown) -> None:
    assert shown(looks.watched_for_a_while(), SMALL, ["p"], read_only=True)


@pytest.mark.parametrize("size", [SMALL, MIDDLE])
def test_help(shown, size) -> None:
    assert shown([looks.look(looks.every_state())], size, ["question_mark"])


def test_the_end_of_the_help_in_light_colours(shown) -> None:
    assert shown([looks.look(looks.every_state())], SMALL, ["question_mark", "G"], theme="light", read_only=True)


@pytest.mark.parametrize("size", [SMALL, MIDDLE])
def test_palette(shown, size) -> None:
    assert shown([looks.look(looks.every_state())], size, ["colon", *"re"])
