"""SVG snapshots: every screen in each of its states, and the two main screens at three sizes and in all themes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kgctl.client.net.errors import KgctlError, Unreachable
from kgctl.model.failure import RowError
from kgctl.model.watched import GroupSnapshot, Snapshot, WatchedPartition
from kgctl.tui.app import KgctlApp
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.feed.groups import AllGroups, OneGroup
from kgctl.tui.screens.group import GroupScreen
from kgctl.tui.screens.polled import PolledScreen
from kgctl.tui.widgets.assignment.pane import AssignmentPane
from kgctl.tui.widgets.group.offsets import OffsetsPane
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.group_snapshots import (
    AT_S,
    GROUP,
    absent,
    completing,
    failed,
    group,
    history,
    long_history,
    member,
    newer,
    on_kafka,
    preparing,
    snapshot,
    started,
)
from tests.kgctl.tui.incident import incident
from tests.kgctl.tui.panes import FAILED, UNCOMMITTED, Host, assigned, dealt, row
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
            return feed.asked(OneGroup(app.screen.group) if isinstance(app.screen, GroupScreen) else AllGroups())

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
def group_screen(shown):
    def compare(
        found: Sequence[GroupSnapshot | KgctlError],
        size: tuple[int, int] = SMALL,
        keys: Sequence[str] = (),
        **options,
    ) -> bool:
        clock = Clock(AT_S)
        app = KgctlApp(PreparedFeed([None], {GROUP: found}), group=GROUP, clock=clock, **options)
        return shown(app, clock, len(found), size, keys, 0.0)

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


# ---- one group

PREPARING = snapshot(preparing(), [*history(), started(3.4, 12, "member joined")])


@pytest.mark.parametrize("size", SIZES)
def test_a_group_that_prepares_a_rebalance(group_screen, size) -> None:
    assert group_screen([PREPARING], size)


@pytest.mark.parametrize("theme", ["light", "contrast"])
def test_a_group_in_other_themes(group_screen, theme) -> None:
    assert group_screen([PREPARING], SMALL, theme=theme)


def test_a_group_without_colour(group_screen, no_color) -> None:
    assert group_screen([PREPARING])


def test_a_stable_group(group_screen) -> None:
    assert group_screen([snapshot(events=history())], MIDDLE)


def test_a_group_that_completes_a_rebalance(group_screen) -> None:
    events = [*history(), started(3.4, 12, "requested by an admin", "a try")]
    assert group_screen([snapshot(completing(), events)])


def test_a_group_that_does_not_exist(group_screen) -> None:
    assert group_screen([snapshot(absent())])


def test_a_group_with_an_error(group_screen) -> None:
    error = failed("NOT_COORDINATOR", "Broker 1 is not the coordinator of group 'billing'.")
    after = snapshot(error, None, after_s=2, history_error="no answer")
    assert group_screen([snapshot(events=history()), after])


def test_a_group_with_a_long_history(group_screen) -> None:
    assert group_screen([snapshot(events=long_history())], SMALL, ["j"] * 9)


def test_a_group_on_kafka(group_screen) -> None:
    rebalancing = snapshot(on_kafka("PreparingRebalance"), None, after_s=2)
    after = snapshot(on_kafka(members=group().members[:2]), None, after_s=4)
    assert group_screen([snapshot(on_kafka(), None), rebalancing, after], MIDDLE)


def test_a_kip_848_group(group_screen) -> None:
    assert group_screen([snapshot(newer(), None)])


def test_the_members_of_a_group(group_screen) -> None:
    several = [
        member(1, (0, 1)),
        member(2, (2,), group_instance_id="shop-2", heartbeat_age_ms=24_000),
        member(3, (3, 4), heartbeat_age_ms=44_000, host="/fd00:1234:5678:9abc::17"),
        member(4, (5,), client_id="a-client-with-a-name-that-is-longer-than-a-column-is-wide"),
        member(5, (), client_id="\x1b[31mred[/b]\u202e", heartbeat_age_ms=None),
    ]
    assert group_screen([snapshot(group(members=several))], SMALL, ["2", "j"])


# ---- panes

NAMES = {
    "a": "worker-1 3f2a9c01",
    "b": "worker-2 77aa01bc",
    "c": "worker-3 0de4f5a6 [shop-3]",
    "d": "worker-4 91bc2d3e",
}
AFTER = assigned(a="orders:0-2,6 payments:0", b="orders:3-5 payments:2-3", d="orders:7")
BEFORE = assigned(a="orders:0-2 payments:0-1", b="orders:3-5", c="orders:6-7 payments:2-3")


def _partitions() -> list[WatchedPartition]:
    return [
        row(partition=0),
        row(partition=1, lag=0, lags=(40, 30, 9, 0, 0, 0, 0, 0), committed=10_200, eta_s=0.0, rate_in=0.4, rate_out=0.4),
        row(partition=2, lag=1_204_332, committed=8_999_990_000, log_end=9_001_194_332, rate_out=12.0, eta_s=None,
            lags=(900_000, 950_000, 1_000_000, 1_100_000, 1_204_332), client_id="worker-2"),
        row(partition=3, **FAILED),
        row(partition=4, **UNCOMMITTED),
        row(partition=10, lags=(1_200,) * 20, rate_in=0.0, rate_out=0.0, eta_s=None, client_id="worker-2"),
        row("payments.settlements.by-country", 0, client_id="a-client-with-a-rather-long-name"),
        row("\x1b[31mred[/b]\u202e", 0, client_id="[bold]x[/bold]\n", rate_in=None, rate_out=None, eta_s=None),
    ]  # fmt: skip


def _moved() -> Host[AssignmentPane]:
    return Host(AssignmentPane(), lambda pane: pane.show(AFTER, BEFORE, names=NAMES, title="Generation 7"))


def test_offsets(snap_compare) -> None:
    app = Host(OffsetsPane(), lambda pane: pane.show(_partitions()))
    assert snap_compare(app, terminal_size=MIDDLE, press=["j", "j", "j"])


def test_an_assignment_before_and_after(snap_compare) -> None:
    assert snap_compare(_moved(), terminal_size=SMALL)


def test_an_assignment_in_ranges(snap_compare) -> None:
    assert snap_compare(_moved(), terminal_size=SMALL, press=["f", "j", "j"])


def test_forty_members_and_three_hundred_partitions(snap_compare) -> None:
    after, before = dealt(40, 300, skip=frozenset({7})), dealt(40, 300, skip=frozenset({11}))
    names = {member: f"{member[:9]} {member[10:18]}" for member in {*after, *before}}
    app = Host(AssignmentPane(), lambda pane: pane.show(after, before, names=names, title="Generation 12"))
    assert snap_compare(app, terminal_size=MIDDLE)


def test_an_assignment_with_faults(snap_compare) -> None:
    faulty = assigned(a="orders:0-2", b="orders:2-3", c="")
    before = assigned(a="orders:0-5")
    app = Host(AssignmentPane(), lambda pane: pane.show(faulty, before, names=NAMES, title="Generation 8"))
    assert snap_compare(app, terminal_size=SMALL)
