"""The pages of groups: what they show, and that only those of changed groups are written again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from kgctl.pipelines.report import build
from kgctl.pipelines.report.addresses import page_of
from kgctl.pipelines.report.group_facts import MAX_BINS, bin_width
from tests.kgctl.pipelines.report.reading import Page, read
from tests.kgctl.pipelines.report.tables import commit
from tests.kgctl.pipelines.report.test_page import MINUTE, NASTY, NOON, small

IDLE = {"lag": 0, "consume_rate": 0.0, "produce_rate": 0.0}


def point(group: str, minute: int, part: int = 0, **values: Any) -> dict[str, Any]:
    return {"group": group, "topic": "orders", "part": part, "at": NOON + minute * MINUTE, **(IDLE | values)}


def judged(group: str, minute: int, status: str = "OK", part: int = 0) -> dict[str, Any]:
    at = NOON + minute * MINUTE
    return {"group": group, "topic": "orders", "part": part, "at": at, "status": status, "lag": 0, "reasons": [status]}


def page(out: Path, group: str) -> Page:
    return read((out / page_of(group)).read_text())


def written(out: Path, *groups: str) -> int:
    """Build, and check that exactly the pages of these groups are new."""
    folder = out / "report" / "groups"
    before = {path.name: path.stat().st_ino for path in folder.iterdir()} if folder.exists() else {}
    report = build(out, made_ms=NOON)
    after = {path.name: path.stat().st_ino for path in folder.iterdir()}
    new = {name for name, inode in after.items() if before.get(name) != inode}
    assert new == {Path(page_of(group)).name for group in groups}
    assert report.written == len(groups)
    return len(after)


@pytest.mark.parametrize("far_ms", [253_402_300_799_999, 10**15, -(10**14)])
@pytest.mark.parametrize("table", ["f_lag", "f_rebalance", "anomalies", "health"])
def test_a_time_beyond_the_calendar_does_not_break_the_report(tmp_path: Path, table: str, far_ms: int) -> None:
    small(tmp_path)
    names = ("at", "ended", "started", "since")
    row = {"group": "shop", "topic": "t", "part": 0, "metric": "lag", "event": "started", "status": "OK", "lag": 1}
    commit(tmp_path, table, [row | dict.fromkeys(names, far_ms)], "far")
    build(tmp_path, made_ms=NOON)
    assert "shop" in read((tmp_path / "report.html").read_text()).text
    assert all(page(tmp_path, group).text for group in ("shop", "billing"))


def test_a_page_has_the_partitions_the_lag_and_the_rebalances_of_its_group(tmp_path: Path) -> None:
    small(tmp_path)
    build(tmp_path, made_ms=NOON)
    billing = page(tmp_path, "billing")
    assert "The group is STOPPED: its only partition is not healthy. It has a lag of 1,234 records." in billing.text
    assert billing.tables["Partitions of the group, worst first"][1:] == [
        [
            *("orders", "0", "STOPPED", "1,234", "1 min 1 s", "2.0/s", "0.5/s", "13 min 43 s", "80%"),
            "no commit for 12 min, while 1,234 records wait",
        ]
    ]
    assert "orders-0" in billing.drawn
    assert "shop" not in billing.text
    shop = page(tmp_path, "shop")
    assert [row[1] for row in shop.tables["The newest rebalances, newest first"][1:]] == ["42", "41"]
    assert "There were 2 rebalances." in shop.text


def test_every_group_of_the_overview_leads_to_its_page(tmp_path: Path) -> None:
    names = [*NASTY, "a", "A", "", "con", "..", "x" * 300, "x" * 301]
    commit(tmp_path, "f_lag", [point(name, 0, lag=5) for name in names])
    overview = read(build(tmp_path, made_ms=NOON).html.read_text())
    files = [tmp_path / link.removeprefix("href=") for link in overview.loads]
    assert len({file.name.lower() for file in files}) == len(names)
    assert all(len(file.name) < 100 and file.name.isascii() for file in files)
    assert all("href=../../report.html" in read(file.read_text()).loads for file in files)
    assert len(overview.tables["All groups, worst first"]) == len(names) + 1


def test_lag_over_time_is_the_greatest_of_each_bin_per_partition(tmp_path: Path) -> None:
    rows = [
        point("g", minute, part, lag=lag)
        for part, lags in enumerate([(5, 7), (900, None)])
        for minute, lag in enumerate(lags)
    ]
    commit(tmp_path, "f_lag", rows)
    build(tmp_path, made_ms=NOON)
    assert page(tmp_path, "g").drawn.index("orders-1") < page(tmp_path, "g").drawn.index("orders-0")
    assert "the highest is 900, of orders-1" in page(tmp_path, "g").labels[3]


def test_only_the_pages_of_changed_groups_are_written_again(tmp_path: Path) -> None:
    groups = ["busy", "idle", "sick", "new"]
    commit(tmp_path, "f_lag", [point(group, minute) for group in groups[:3] for minute in (0, 1)], "0")
    commit(tmp_path, "health", [judged(group, 1) for group in groups[:3]], "0")
    assert written(tmp_path, "busy", "idle", "sick") == 3
    assert written(tmp_path) == 3
    commit(tmp_path, "f_lag", [*(point(group, 2) for group in groups[1:]), point("busy", 2, consume_rate=1.5)], "1")
    commit(
        tmp_path,
        "health",
        [judged("sick", 2, "STALLED"), *(judged(group, 2) for group in ("busy", "idle", "new"))],
        "1",
    )
    assert written(tmp_path, "busy", "sick", "new") == 4
    assert "STALLED" in page(tmp_path, "sick").text
    commit(tmp_path, "f_rebalance", [{"group": "idle", "generation": 3, "ended": NOON, "joined": [], "left": []}])
    assert written(tmp_path, "idle") == 4
    (tmp_path / page_of("idle")).unlink()
    assert written(tmp_path, "idle") == 4


def test_pages_are_the_same_whether_built_at_once_or_step_by_step(tmp_path: Path) -> None:
    for out, each in ((tmp_path / "once", False), (tmp_path / "steps", True)):
        for minute in range(6):
            rows = [point("a", minute, lag=minute % 3), point("b", minute, produce_rate=float(minute == 4))]
            commit(out, "f_lag", rows, str(minute))
            commit(
                out,
                "health",
                [judged("a", minute, "OK" if minute % 3 else "LAGGING"), judged("b", minute)],
                str(minute),
            )
            if each or minute == 5:
                build(out, made_ms=NOON)
    once, steps = (tmp_path / name for name in ("once", "steps"))
    assert (once / page_of("a")).read_bytes() == (steps / page_of("a")).read_bytes()


def test_an_anomaly_is_on_the_page_of_its_group_with_its_end(tmp_path: Path) -> None:
    small(tmp_path)
    written(tmp_path, "billing", "shop")
    row = {"group": "shop", "metric": "lag", "since": NOON, "worst": 900.0, "low": 0.0, "high": 30.0, "reason": "why"}
    commit(tmp_path, "anomalies", [{**row, "event": "started", "at": NOON + MINUTE}], "0")
    written(tmp_path, "shop")
    caption = "The newest anomalies, newest first"
    shown = ["2024-01-01 12:00:00", "not yet", "lag", "900", "0", "30", "why"]
    assert page(tmp_path, "shop").tables[caption][1:] == [shown]
    ended = {"event": "ended", "at": NOON + 9 * MINUTE, "ended": NOON + 6 * MINUTE}
    commit(tmp_path, "anomalies", [{**row, **ended}], "1")
    written(tmp_path, "shop")
    assert page(tmp_path, "shop").tables[caption][1:] == [[shown[0], "2024-01-01 12:06:00", *shown[2:]]]
    assert caption not in page(tmp_path, "billing").tables


def test_the_page_of_a_group_that_is_gone_is_deleted(tmp_path: Path) -> None:
    small(tmp_path)
    build(tmp_path, made_ms=NOON)
    for table in ("f_lag", "health"):
        (tmp_path / table).rename(tmp_path / f"away-{table}")
    build(tmp_path, made_ms=NOON)
    assert [path.name for path in (tmp_path / "report" / "groups").iterdir()] == [Path(page_of("shop")).name]


@pytest.mark.parametrize("damage", [b"", b"{", b'{"groups": 1, "else": 2}'])
def test_a_damaged_state_makes_all_pages_again(tmp_path: Path, damage: bytes) -> None:
    small(tmp_path)
    build(tmp_path, made_ms=NOON)
    (tmp_path / "report" / "pages.json").write_bytes(damage)
    written(tmp_path, "billing", "shop")


@pytest.mark.parametrize("step", [1, 999, 1000, 45_000, 60_000, 600_000, 86_400_000])
@pytest.mark.parametrize("span", [0, 59_000, 3_600_000, 86_400_000, 400 * 86_400_000])
def test_bins_are_round_and_few(step: int, span: int) -> None:
    width = bin_width([NOON, NOON + span], step)
    assert width >= step
    assert span / width <= MAX_BINS - 1
    assert width % 1000 == 0


@pytest.mark.slow
def test_a_second_report_of_a_thousand_groups_costs_a_fraction(tmp_path: Path) -> None:
    groups = [f"group-{number:04}" for number in range(1000)]
    commit(
        tmp_path,
        "f_lag",
        [point(group, minute, part, lag=minute) for group in groups for part in range(3) for minute in range(20)],
        "0",
    )
    commit(tmp_path, "health", [judged(group, 19) for group in groups], "0")
    first = cpu_of(tmp_path, 1000)
    busy = set(groups[:10])
    commit(
        tmp_path,
        "f_lag",
        [point(group, 20, part, lag=int(group in busy)) for group in groups for part in range(3)],
        "1",
    )
    commit(tmp_path, "health", [judged(group, 20) for group in groups], "1")
    second = cpu_of(tmp_path, 10)
    assert second < first / 3


def cpu_of(out: Path, pages: int) -> float:
    """The seconds of CPU of a build that writes that many pages."""
    began = time.process_time()
    assert build(out, made_ms=NOON).written == pages
    return time.process_time() - began
