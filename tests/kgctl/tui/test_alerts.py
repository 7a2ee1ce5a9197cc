"""Alerts: the bell and the command that run when a verdict changes."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from broker.light_dataclasses import replace
from kgctl.model.cluster_view import ClusterEvent, EventKind
from kgctl.model.health import Health
from kgctl.model.watched import Snapshot
from kgctl.tui.alerts.alerts import Alerts
from kgctl.tui.alerts.changes import Changes
from kgctl.tui.alerts.command import MOST_WAITING, AlertCommand, BadCommand, split, variables
from kgctl.tui.app import KgctlApp
from kgctl.watch.cluster import ClusterWatch
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.incident import incident
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until

SILENT = ClusterEvent(1, EventKind.VERDICT, "billing", "no heartbeat", Health.SILENT, was=Health.OK)


def many(count: int) -> ClusterEvent:
    """The same verdict of this many groups, as the list of events has it."""
    parts = tuple(replace(SILENT, group=f"app-{number}") for number in range(count))
    return replace(SILENT, group=None, text=f"app-0, app-1, app-2 and {count - 3:,} more", was=None, parts=parts)


def recovered() -> list[Snapshot]:
    """The silent member of the incident sends heartbeats again."""
    last = incident()[-1]
    well = dict(last.groups) | {"billing": snapshots.group("billing")}
    return [
        replace(last, at_s=last.at_s + after_s, wall_ms=last.wall_ms + after_s * 1000, groups=well)
        for after_s in (30, 60, 90, 120)
    ]


def program(text: str) -> Sequence[str]:
    return [sys.executable, "-S", "-E", "-c", text]


# ---- which changes


def test_the_bell_rings_for_a_fault_once_and_not_for_a_recovery() -> None:
    rings: list[int] = []
    watch, alerts = ClusterWatch(), Alerts(lambda: rings.append(1), print, rings=True)
    rung = []
    for snapshot in [*incident(), *recovered()]:
        alerts.add(watch.add(snapshot))
        rung.append(len(rings))
    assert rung == [0, 0, 1, 1, 1, 1, 1, 1]


def test_the_changes_before_the_first_view_are_no_alerts() -> None:
    rings: list[int] = []
    watch, alerts = ClusterWatch(), Alerts(lambda: rings.append(1), print, rings=True)
    for snapshot in incident():
        view = watch.add(snapshot)
    alerts.add(view)
    assert not rings


def test_many_groups_with_the_same_verdict_are_one_change() -> None:
    watch, changes = ClusterWatch(), Changes()
    view = watch.add(incident()[0])
    assert not changes.add(view)
    together = many(300)
    start = ClusterEvent(1, EventKind.VERDICT, None, "3 groups need attention")
    assert changes.add(replace(view, events=[start, together, SILENT])) == [together, SILENT]
    assert not changes.add(replace(view, events=[start, together, SILENT]))


# ---- the command


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("'unclosed", "No closing quotation"),
        (" ", "an empty command"),
        ("no-such-program --x", "'no-such-program' is not a program that can be run"),
    ],
)
def test_a_command_that_cannot_run_is_refused(text: str, reason: str) -> None:
    with pytest.raises(BadCommand, match=reason):
        split(text)


def test_a_name_with_nul_is_no_obstacle() -> None:
    assert variables(replace(SILENT, group="a\0b"))["KGCTL_GROUP"] == "a\\0b"


def run(words: Sequence[str], events: Sequence[ClusterEvent], failures: int, timeout_s: float = 30.0) -> list[str]:
    """Run the command until this number of failures is known."""
    failed: list[str] = []

    async def go() -> None:
        command = AlertCommand(words, failed.append, timeout_s=timeout_s)
        command.add(events)
        running = asyncio.create_task(command.run())
        await until(lambda: len(failed) >= failures)
        running.cancel()

    asyncio.run(go())
    return failed


def test_a_failing_command_is_reported_with_the_last_line_of_its_stderr() -> None:
    text = "import sys; sys.stderr.write('first\\nno such host\\x1b[31m\\n'); sys.exit(3)"
    assert run(program(text), [SILENT], 1) == [
        "The alert command failed for billing: exit code 3: no such host\\x1b[31m"
    ]


def test_a_command_that_does_not_end_is_killed() -> None:
    assert run(program("import signal; signal.pause()"), [SILENT], 1, timeout_s=0.3) == [
        "The alert command failed for billing: no end after 0.3 s"
    ]


def test_a_program_that_has_gone_is_reported() -> None:
    assert run(["/no/such/program"], [SILENT], 1)[0].endswith("billing: No such file or directory")


def test_the_command_learns_all_groups_of_an_event() -> None:
    storm = variables(many(300))
    assert storm["KGCTL_GROUP"] == "app-0, app-1, app-2 and 297 more"
    assert json.loads(storm["KGCTL_GROUPS"]) == [f"app-{number}" for number in range(300)]
    assert (storm["KGCTL_GROUP_COUNT"], storm["KGCTL_VERDICT"], storm["KGCTL_WAS"]) == ("300", "SILENT", "OK")
    assert storm["KGCTL_REASON"] == "app-0: no heartbeat"


def test_an_alert_about_one_group_names_it_alone() -> None:
    one = variables(SILENT)
    assert (one["KGCTL_GROUP"], one["KGCTL_REASON"], one["KGCTL_WAS"]) == ("billing", "no heartbeat", "OK")
    assert (one["KGCTL_GROUPS"], one["KGCTL_GROUP_COUNT"]) == ('["billing"]', "1")


def test_a_program_starts_with_more_names_than_a_variable_holds() -> None:
    text = (
        "import json, os, sys;"
        'sys.exit(f\'{os.environ["KGCTL_GROUP_COUNT"]} {len(json.loads(os.environ["KGCTL_GROUPS"]))}\')'
    )
    (failure,) = run(program(text), [many(20_000)], 1)
    count, names = failure.rpartition(": ")[2].split()
    assert int(count) == 20_000 > int(names) > 5_000


def test_more_alerts_than_can_wait_are_dropped_with_a_sentence() -> None:
    single = [replace(SILENT, wall_ms=number) for number in range(MOST_WAITING + 7)]
    assert run(["true"], single, 1)[0] == "7 alerts were dropped: 100 commands are waiting already."


def test_the_same_failure_is_shown_once_a_minute() -> None:
    now_s, shown = [0.0], list[str]()
    alerts = Alerts(lambda: None, shown.append, command=["true"], clock=lambda: now_s[0])
    for moment in (0.0, 30.0, 61.0):
        now_s[0] = moment
        alerts._failed("it failed")
    assert shown == ["it failed"] * 2


def test_the_dashboard_runs_the_command_with_the_change_in_its_environment(tmp_path: Path) -> None:
    out = tmp_path / "alerts"
    text = f"import os; open({str(out)!r}, 'a').write(str(sorted(p for p in os.environ.items() if 'KGCTL_' in p[0])))"

    async def go() -> None:
        app = KgctlApp(PreparedFeed(incident()), clock=lambda: snapshots.NOW_S)
        app.alert_command = program(text)
        async with app.run_test() as pilot:
            for _ in range(4):
                await until(app.ready.is_set)
                before = app.background.polling.answers
                await pilot.press("ctrl+r")
                await until(lambda before=before: app.background.polling.answers > before)
            await until(out.exists)
            await until(out.read_text)

    asyncio.run(go())
    assert "('KGCTL_GROUP', 'billing')" in out.read_text()
    assert "('KGCTL_VERDICT', 'SILENT'), ('KGCTL_WAS', 'OK')" in out.read_text()


def test_a_key_switches_the_bell() -> None:
    async def go() -> None:
        app = KgctlApp(PreparedFeed(incident()[:1]), clock=lambda: snapshots.NOW_S)
        async with app.run_test() as pilot:
            await until(app.ready.is_set)
            assert app._alerts is not None
            await pilot.press("A")
            assert app._alerts.rings
            await pilot.press("A")
            assert not app._alerts.rings

    asyncio.run(go())
