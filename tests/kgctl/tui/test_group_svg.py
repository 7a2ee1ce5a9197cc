"""SVG snapshots of the screen of one group: in each state, at three sizes, zoomed, in all themes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from kgctl.client.net.errors import KgctlError
from kgctl.model.watched import GroupSnapshot, Snapshot, WatchedPartition
from kgctl.tui.app import KgctlApp
from kgctl.tui.feed.groups import OneGroup
from kgctl.tui.screens.polled import PolledScreen
from kgctl.tui.widgets.group.partitions import PartitionsPanel
from kgctl.tui.widgets.group.rebalance_panel import RebalancePanel
from tests.kgctl.tui.group_scene import LARGE, MIDDLE, SMALL
from tests.kgctl.tui.group_snapshots import (
    AT_S,
    GROUP,
    WALL_MS,
    absent,
    completing,
    crowd,
    failed,
    group,
    history,
    long_history,
    member,
    newer,
    on_kafka,
    preparing,
    snapshot,
    stable,
    started,
)
from tests.kgctl.tui.panes import FAILED, UNCOMMITTED, Host, assigned, dealt, row
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until

# The panels of MIDDLE are those of LARGE; themes, ASCII and other states are compared there.
SIZES = [SMALL, LARGE]
PREPARING = snapshot(preparing(), [*history(), started(3.4, 12, "member joined")])
# Ten minutes, one snapshot of all groups every 30 s.
STEPS, STEP_S = 20, 30


@pytest.fixture
def group_screen(snap_compare):
    """Compare the screen after all refreshes and these keys."""

    def compare(
        found: Sequence[GroupSnapshot | KgctlError],
        size: tuple[int, int] = SMALL,
        keys: Sequence[str] = (),
        *,
        is_ascii: bool = False,
        **options,
    ) -> bool:
        feed = PreparedFeed([None], {GROUP: found})
        app = KgctlApp(feed, group=GROUP, clock=lambda: AT_S, **options)
        app.ascii_only = is_ascii

        async def go(pilot) -> None:
            await until(app.ready.is_set)
            await pilot.pause()
            for _ in range(len(found) - 1):
                before = feed.asked(OneGroup(GROUP))
                await pilot.press("ctrl+r")
                await until(lambda before=before: feed.asked(OneGroup(GROUP)) > before)
                await pilot.pause()
            for key in keys:
                await pilot.press(key)
                await pilot.pause()
            assert isinstance(app.screen, PolledScreen)
            app.screen.tick()
            await pilot.pause()

        return snap_compare(app, terminal_size=size, run_before=go)

    return compare


@pytest.mark.parametrize("size", SIZES)
def test_a_group_that_prepares_a_rebalance(group_screen, size) -> None:
    assert group_screen([PREPARING], size)


@pytest.mark.parametrize("theme", ["light", "contrast"])
def test_a_group_in_other_themes(group_screen, theme) -> None:
    assert group_screen([PREPARING], MIDDLE, theme=theme)


def test_a_group_without_colour(group_screen, monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert group_screen([PREPARING])


def test_a_group_in_ascii(group_screen) -> None:
    assert group_screen([PREPARING], MIDDLE, is_ascii=True)


@pytest.mark.parametrize("size", SIZES)
def test_a_group_of_110_members_that_rebalances(group_screen, size) -> None:
    moving = snapshot(crowd(0, "PreparingRebalance"), [*history(), started(3.4, 12, "member joined")])
    assert group_screen([snapshot(crowd(), history()), moving], size)


@pytest.mark.parametrize("size", SIZES)
def test_a_group_that_lags_for_ten_minutes(snap_compare, size) -> None:
    everything = [
        Snapshot(AT_S + STEP_S * step, WALL_MS + 1000 * STEP_S * step, {GROUP: lagging(step)}) for step in range(STEPS)
    ]
    later_s = STEP_S * STEPS
    one = GroupSnapshot(AT_S + later_s, WALL_MS + 1000 * later_s, lagging(STEPS), tuple(history()))
    app = KgctlApp(PreparedFeed(everything, {GROUP: [one]}), clock=lambda: AT_S + later_s)

    async def go(pilot) -> None:
        await until(app.ready.is_set)
        for step in range(1, STEPS):
            await pilot.press("ctrl+r")
            await until(lambda step=step: app.background.polling.answers > step)
        await pilot.press("enter")
        await until(lambda: app.screen.polling.answers and app.screen is not app.screen_stack[0])
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=go)


def lagging(step: int):
    """Partition 0 gets 50 records/s, of which 20 are consumed."""
    rows = tuple(
        replace(
            one,
            log_end_offset=(one.log_end_offset or 0) + 50 * STEP_S * step,
            current_offset=(one.current_offset or 0) + 20 * STEP_S * step,
            lag=(one.lag or 0) + 30 * STEP_S * step,
        )
        if one.partition == 0
        else one
        for one in group().partitions
    )
    return group(partitions=rows)


def test_a_group_that_completes_a_rebalance(group_screen) -> None:
    events = [*history(), started(3.4, 12, "requested by an admin", "a try")]
    assert group_screen([snapshot(completing(), events)])


def test_a_group_that_does_not_exist(group_screen) -> None:
    assert group_screen([snapshot(absent())])


def test_a_group_with_an_error(group_screen) -> None:
    error = failed("NOT_COORDINATOR", "Broker 1 is not the coordinator of group 'billing'.")
    after = snapshot(error, None, after_s=2, history_error="no answer")
    assert group_screen([snapshot(events=history()), after])


def test_rebalances_of_every_kind(group_screen) -> None:
    events = [
        *long_history(20),
        started(9, 20, "member joined"),
        started(7, 20, "member joined"),
        started(5, 21, "session timed out"),
        stable(4, 22, "member joined", 900, 100, owned={1: (0, 1), 2: (2, 3), 3: (4, 5)}, joined=[3], moved=2),
    ]
    assert group_screen([snapshot(events=events)], SMALL, ["3", "j"])


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
    assert group_screen([snapshot(group(members=several))], SMALL, ["1", "j"])


# ---- panels

NAMES = {
    "a": "worker-1 3f2a9c01",
    "b": "worker-2 77aa01bc",
    "c": "worker-3 0de4f5a6 [shop-3]",
    "d": "worker-4 91bc2d3e",
}


class Filled(Host[RebalancePanel | PartitionsPanel]):
    """A panel that is filled once it has its place."""

    def __init__(self, panel: RebalancePanel | PartitionsPanel, fill: Callable[[], None]) -> None:
        super().__init__(panel)
        self._fill = fill

    def on_ready(self) -> None:
        self._fill()


def partitions() -> list[WatchedPartition]:
    return [
        row(partition=0),
        row(partition=1, lag=0, lags=(40, 30, 9, 0, 0, 0, 0, 0), committed=10_200, eta_s=0.0, rate_in=0.4, rate_out=0.4),
        row(partition=2, lag=1_204_332, committed=8_999_990_000, log_end=9_001_194_332, rate_out=12.0, eta_s=None,
            lags=(900_000, 950_000, 1_000_000, 1_100_000, 1_204_332), consumer_id="worker-2"),
        row(partition=3, **FAILED),
        row(partition=4, **UNCOMMITTED),
        row(partition=10, lags=(1_200,) * 20, rate_in=0.0, rate_out=0.0, eta_s=None, consumer_id="worker-2"),
        row("payments.settlements.by-country", 0, consumer_id="a-client-with-a-rather-long-name"),
        row("\x1b[31mred[/b]\u202e", 0, consumer_id="[bold]x[/bold]\n", rate_in=None, rate_out=None, eta_s=None),
    ]  # fmt: skip


def test_partitions(snap_compare) -> None:
    panel = PartitionsPanel()
    app = Filled(panel, lambda: panel.show_partitions(partitions(), {}, is_owned=True))
    assert snap_compare(app, terminal_size=MIDDLE, press=["j", "j", "j"])


@pytest.mark.parametrize("keys", [["j"], ["f", "j"]], ids=["ranges", "columns"])
def test_40_members_and_300_partitions(snap_compare, keys) -> None:
    after, before = dealt(40, 300, skip=frozenset({7})), dealt(40, 300, skip=frozenset({11}))
    names = {one: f"{one[:9]} {one[10:18]}" for one in {*after, *before}}
    panel = RebalancePanel()
    app = Filled(panel, lambda: panel.show(None, after, before, names))
    assert snap_compare(app, terminal_size=MIDDLE, press=["tab", *keys])


def test_an_assignment_with_faults(snap_compare) -> None:
    faulty, before = assigned(a="orders:0-2", b="orders:2-3", c=""), assigned(a="orders:0-5")
    panel = RebalancePanel()
    assert snap_compare(Filled(panel, lambda: panel.show(None, faulty, before, NAMES)), terminal_size=SMALL)
