"""SVG snapshots: every screen in each of its states, and that of all groups at three sizes and in all themes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kgctl.client.net.errors import KgctlError, Unreachable
from kgctl.model.failure import RowError
from kgctl.model.watched import Snapshot
from kgctl.tui.app import KgctlApp
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.feed.groups import AllGroups
from kgctl.tui.screens.polled import PolledScreen
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.incident import incident
from tests.kgctl.tui.prepared import LOCAL, PreparedFeed
from tests.kgctl.tui.waiting import until

SMALL, MIDDLE, LARGE = (80, 24), (120, 40), (200, 60)
SIZES = [SMALL, MIDDLE, LARGE]


class Clock:
    """A clock that stands still until a test advances it."""

    def __init__(self, now_s: float) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def shown(snap_compare):
    """Compare the screen after all refreshes, these keys, and `after_s` more seconds."""

    def compare(
        app: KgctlApp, clock: Clock, refreshes: int, size: tuple[int, int], keys: Sequence[str], after_s: float
    ) -> bool:
        feed = app.feed
        assert isinstance(feed, PreparedFeed)

        def asked() -> int:
            return feed.asked(AllGroups())

        async def go(pilot) -> None:
            await until(lambda: isinstance(app.screen, PolledScreen) and app.screen.is_running and asked())
            if refreshes:
                await until(app.ready.is_set)
            await pilot.pause()
            for _ in range(refreshes - 1):
                before = asked()
                await pilot.press("ctrl+r")
                await until(lambda before=before: asked() > before)
                await pilot.pause()
            await pilot.press(*keys)
            await pilot.pause()
            clock.now_s += after_s
            if isinstance(app.screen, PolledScreen):
                app.screen.tick()
                await pilot.pause()

        return snap_compare(app, terminal_size=size, run_before=go)

    return compare


@pytest.fixture
def groups_screen(shown):
    def compare(
        found: Sequence[Snapshot | KgctlError | None],
        size: tuple[int, int] = SMALL,
        keys: Sequence[str] = (),
        *,
        after_s: float = 0.0,
        **options,
    ) -> bool:
        clock = Clock(snapshots.NOW_S)
        cluster = options.pop("cluster", LOCAL)
        app = KgctlApp(PreparedFeed(found, cluster=cluster), clock=clock, **options)
        return shown(app, clock, 0 if found[0] is None else len(found), size, keys, after_s)

    return compare


@pytest.fixture
def no_color(monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


# ---- all groups


@pytest.mark.parametrize("size", SIZES)
def test_groups_in_every_health(groups_screen, size) -> None:
    assert groups_screen(snapshots.watched_for_a_while(), size, ["space", "j"])


@pytest.mark.parametrize("theme", ["light", "contrast"])
def test_groups_in_other_themes(groups_screen, theme) -> None:
    assert groups_screen(snapshots.watched_for_a_while(), SMALL, ["j", "j", "j"], theme=theme)


def test_groups_without_colour(groups_screen, no_color) -> None:
    assert groups_screen(snapshots.watched_for_a_while(), SMALL, ["space", "j"])


def test_groups_in_every_state_after_one_refresh(groups_screen) -> None:
    assert groups_screen([snapshots.snapshot(snapshots.every_state())])


def test_the_last_of_ten_thousand_groups(groups_screen) -> None:
    assert groups_screen([snapshots.snapshot(snapshots.many())], SMALL, ["H", "G"])


def test_before_the_first_answer(groups_screen) -> None:
    assert groups_screen([None])


def test_an_unreachable_cluster(groups_screen) -> None:
    assert groups_screen([Unreachable("127.0.0.1:9092: connection refused")])


def test_stale_groups(groups_screen) -> None:
    assert groups_screen([snapshots.snapshot(snapshots.every_state()), None], after_s=47.0)


def test_groups_of_a_lost_cluster(groups_screen) -> None:
    lost = Unreachable("127.0.0.1:9092: connection refused")
    assert groups_screen([snapshots.snapshot(snapshots.every_state()), lost], after_s=8.0)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_a_context_with_its_name_and_colour(groups_screen, theme: str) -> None:
    prod = ClusterLabel("kafka-1:9093,kafka-2:9093", "prod", "red", read_only=True)
    assert groups_screen([snapshots.snapshot(snapshots.every_state())], SMALL, cluster=prod, theme=theme)


def test_paused_and_read_only_groups(groups_screen) -> None:
    assert groups_screen([snapshots.snapshot(snapshots.every_state())], SMALL, ["p"], read_only=True)


def test_a_failed_group_and_a_failed_broker(groups_screen) -> None:
    errors = (RowError("UNREACHABLE", "no answer from broker 2 at 10.0.0.12:9092: connection refused"),)
    found = [snapshots.snapshot(snapshots.every_state(), errors=errors)]
    assert groups_screen(found, SMALL, ["slash", *"ledger", "enter"])


def test_groups_with_hostile_names(groups_screen) -> None:
    assert groups_screen([snapshots.snapshot(snapshots.hostile())], SMALL, ["j"] * 5)


def test_a_filter_while_it_is_typed(groups_screen) -> None:
    assert groups_screen([snapshots.snapshot(snapshots.every_state())], SMALL, ["slash", *"!^.{1,8}$"])


def test_faults_and_marks(groups_screen) -> None:
    assert groups_screen(snapshots.watched_for_a_while(), SMALL, ["f", "H", "g", "space", "space"])


def test_the_help(groups_screen) -> None:
    assert groups_screen([snapshots.snapshot(snapshots.every_state())], MIDDLE, ["question_mark"])


def test_the_finder(groups_screen) -> None:
    assert groups_screen([snapshots.snapshot(snapshots.every_state())], MIDDLE, ["colon", *"order", "down"])


@pytest.mark.parametrize("size", [SMALL, MIDDLE])
def test_a_frozen_screen_with_a_baseline(groups_screen, size) -> None:
    assert groups_screen(snapshots.watched_for_a_while()[2:], size, ["B", "F"], after_s=12.0)


def test_the_menu_that_copies(groups_screen) -> None:
    assert groups_screen([snapshots.snapshot(snapshots.every_state())], MIDDLE, ["y", "j"])


@pytest.mark.parametrize("size", [SMALL, MIDDLE])
def test_the_events(groups_screen, size) -> None:
    assert groups_screen(incident(), size, ["g", "e", "j"])
