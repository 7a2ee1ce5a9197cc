"""Tests of the page and the pictures as they are written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from PIL import Image

from kgctl.pipelines.report import build
from tests.kgctl.pipelines.report.reading import Page, read
from tests.kgctl.pipelines.report.tables import commit

NOON, MINUTE = 1_704_110_400_000, 60_000
NASTY = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "$\\frac$ x",
    "tab\t, escape \x1b[31m, nul \x00",
    "turned \u202eround",
    "\u652f\u6255\u3044-\u30b5\u30fc\u30d3\u30b9",
    "crab \U0001f980",
    "NAME0003EMAN",
    "#f1c001 &amp; \\1",
    "W" * 3000,
]


def lag(group: str, minute: int, lag: int | None, **more: Any) -> dict[str, Any]:
    return {"group": group, "topic": "orders", "part": 0, "at": NOON + minute * MINUTE, "lag": lag, **more}


def small(out: Path) -> None:
    rates = {"consume_rate": 2.0, "produce_rate": 0.5, "lag_ms": 61_000, "eta_s": 823.0}
    commit(
        out, "f_lag", [lag("billing", 0, 900), lag("billing", 1, 1234, **rates), lag("shop", 0, 0), lag("shop", 1, 0)]
    )
    reasons = ["no commit for 12 min, while 1,234 records wait"]
    judged = {"at": NOON + MINUTE, "topic": "orders", "part": 0}
    rows = [
        {"group": "billing", "status": "STOPPED", "lag": 1234, "complete": 0.8, "reasons": reasons, **judged},
        {"group": "shop", "status": "OK", "lag": 0, "complete": 1.0, "reasons": [], **judged},
    ]
    commit(out, "health", rows)
    known = {
        "started": NOON,
        "ended": NOON + 3200,
        "duration_ms": 3200,
        "cause": "member left",
        "reason": "the consumer is being closed",
    }
    more = {"joined": ["a"], "left": [], "members": 3, "moved_parts": 4, "skew": 1.25, "commits_rejected": 7}
    rows = [
        {"group": "shop", "generation": 41, **known, **more},
        {"group": "shop", "generation": 42, "ended": NOON + 9000},
    ]
    commit(out, "f_rebalance", rows)


def page_of(out: Path, **more: Any) -> Page:
    return read(build(out, made_ms=NOON, **more).html.read_text())


def test_the_page_tells_all_that_is_known(tmp_path: Path) -> None:
    small(tmp_path)
    page = page_of(tmp_path)
    assert (
        "2 consumer groups were seen from 2024-01-01 12:00:00 to 12:01:00 UTC. 1 of 2 groups is healthy. Worst is "
        "billing (stopped): its one partition is not healthy, 1,234 records waiting. 1 group has records waiting. "
        "There were 2 rebalances in 1 group."
    ) in page.text
    assert "Made 2024-01-01 12:00:00 UTC." in page.text
    assert page.tables["The worst partitions, worst first"][1:] == [
        [
            "billing",
            "orders",
            "0",
            "STOPPED stopped",
            "1,234",
            "1 min 1 s",
            "80%",
            "no commit for 12 min, while 1,234 records wait",
        ]
    ]
    assert page.tables["Lag and rates of groups"][1:] == [
        ["billing", "1 of 1", "1,234", "1 min 1 s", "2.0/s", "0.5/s", "13 min 43 s"]
    ]
    assert page.tables["The newest rebalances, newest first"][1:] == [
        ["2024-01-01 12:00:09", "shop", "42", "-", "-", "-", "-", "-", "-", "-", "-"],
        [
            "2024-01-01 12:00:03",
            "shop",
            "41",
            "3.2 s",
            "member left: the consumer is being closed",
            "1",
            "0",
            "3",
            "4",
            "1.25",
            "7",
        ],
    ]
    assert "Of 1 rebalance only the end is known" in page.text
    assert ["STOPPED stopped", "1", "1"] in [row[:3] for row in page.tables["Verdicts"]]
    assert ["f_lag", "4", "the lag of each group, in records and in time, at points in time"] in page.tables["Tables"]


def test_figures_say_in_words_what_they_show(tmp_path: Path) -> None:
    small(tmp_path)
    page = page_of(tmp_path)
    assert any(
        "Lag of 2 groups over time" in label and "the most is 1,234, of billing" in label for label in page.labels
    )
    assert any(label == "When 1 group rebalanced: shop 2 times." for label in page.labels)
    assert page.drawn.count("shop") == 2
    assert {"billing", "member left", "cause not known", "only the end is known", "41", "42"} <= set(page.drawn)


def test_names_of_any_length_stand_beside_their_rows(tmp_path: Path) -> None:
    names = ["W" * length for length in range(1, 12)]
    commit(tmp_path, "f_lag", [lag(name, 0, 5) for name in names])
    assert set(names) <= set(page_of(tmp_path).drawn)


def test_the_page_loads_nothing_and_runs_nothing(tmp_path: Path) -> None:
    small(tmp_path)
    page = page_of(tmp_path)
    assert page.loads == []
    assert not page.tags & {"script", "link", "iframe", "img", "object", "image"}
    html = (tmp_path / "report.html").read_text()
    assert "@import" not in html
    assert html.count("url(") == html.count("url(#")
    assert len(page.ids) == len(set(page.ids))


def test_an_empty_folder_is_a_page_that_says_so(tmp_path: Path) -> None:
    report = build(tmp_path / "nothing", made_ms=NOON)
    page = read(report.html.read_text())
    assert "Nothing to report: the tables hold no consumer group yet." in page.text
    assert report.pngs == ()
    assert "svg" not in page.tags


def test_one_group_alone_is_not_spoken_of_as_many(tmp_path: Path) -> None:
    commit(tmp_path, "f_lag", [lag("billing", 0, 0)])
    text = page_of(tmp_path).text
    assert "1 consumer group was seen at 2024-01-01 12:00:00 UTC. None of them" not in text
    assert (
        "1 consumer group was seen at 2024-01-01 12:00:00 UTC. It has not been judged yet. No group has records waiting."
        in text
    )
    assert "run the job evaluate" in text
    assert "run the job rebalances" in text


def test_pictures_of_an_earlier_report_do_not_stay(tmp_path: Path) -> None:
    small(tmp_path)
    report = build(tmp_path, made_ms=NOON)
    assert [png.name for png in report.pngs] == ["lag.png", "rebalances.png"]
    for png in report.pngs:
        with Image.open(png) as picture:
            assert picture.size[0] == 1536
    (tmp_path / "f_rebalance").rename(tmp_path / "away")
    assert [png.name for png in build(tmp_path, made_ms=NOON).pngs] == ["lag.png"]
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == ["lag.png"]


def test_no_name_can_act_in_the_page(tmp_path: Path) -> None:
    commit(tmp_path, "f_lag", [lag(name, minute, 5) for name in NASTY for minute in (0, 1)])
    rows = [
        {"group": name, "generation": 1, "ended": NOON, "cause": name, "reason": name, "joined": [], "left": []}
        for name in NASTY
    ]
    commit(tmp_path, "f_rebalance", rows)
    judged = [
        {"group": name, "topic": name, "part": 0, "at": NOON, "status": "STOPPED", "lag": 1, "reasons": [name]}
        for name in NASTY
    ]
    commit(tmp_path, "health", judged)
    page = page_of(tmp_path, title="<b>&")
    assert not page.tags & {"script", "img", "b"}
    assert not [char for char in "".join(page.words) if not char.isprintable() and char != "\n"]
    names = {row[0] for row in page.tables["Lag and rates of groups"][1:]}
    assert {NASTY[0], NASTY[1], NASTY[2], NASTY[5], NASTY[6], NASTY[7], NASTY[8]} <= names
    assert "tab\\t, escape \\x1b[31m, nul \\x00" in names
    assert "turned \\u202eround" in names
    for name in (NASTY[0], NASTY[2], NASTY[5], NASTY[6], NASTY[7], NASTY[8]):
        assert page.drawn.count(name) == 2


@pytest.mark.slow
def test_two_thousand_groups_at_five_hundred_times_stay_small(tmp_path: Path) -> None:
    groups = [f"a group with quite a long name, number {number:05}" for number in range(2000)]
    for batch in range(5):
        minutes = range(100 * batch, 100 * batch + 100)
        commit(
            tmp_path,
            "f_lag",
            [lag(group, minute, len(group) * minute * 977 % 10**6) for group in groups for minute in minutes],
            str(batch),
        )
    rows = [
        {
            "group": group,
            "generation": n,
            "started": NOON + 7 * n,
            "ended": NOON + 60 * n,
            "duration_ms": 53 * n,
            "joined": [],
            "left": [],
        }
        for group in groups[:200]
        for n in range(50)
    ]
    commit(tmp_path, "f_rebalance", rows)
    commit(
        tmp_path,
        "health",
        [{"group": group, "topic": "t", "part": 0, "at": NOON, "status": "STALLED", "lag": 5} for group in groups],
    )
    report = build(tmp_path, made_ms=NOON)
    assert report.html.stat().st_size < 3_000_000
    assert sum(png.stat().st_size for png in report.pngs) < 1_000_000
    text = read(report.html.read_text()).text
    for said in (
        "And 1,970 more groups",
        "And 1,980 more partitions",
        "And 9,950 more rebalances",
        "10,000 rebalances in 200 groups",
    ):
        assert said in text


def test_the_same_tables_are_the_same_page(tmp_path: Path) -> None:
    small(tmp_path)
    first = [path.read_bytes() for path in files(tmp_path)]
    program = f"from pathlib import Path; from kgctl.pipelines.report import build; build(Path({str(tmp_path)!r}), made_ms={NOON})"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert [path.read_bytes() for path in files(tmp_path, again=False)] == first
    assert build(tmp_path, made_ms=NOON + 1000).html.read_bytes() != first[0]


def files(out: Path, again: bool = True) -> list[Path]:
    if again:
        build(out, made_ms=NOON)
    return [out / "report.html", out / "report" / "lag.png", out / "report" / "rebalances.png"]


def test_an_importing_programs_matplotlib_stays_as_it_was(tmp_path: Path) -> None:
    small(tmp_path)
    with matplotlib.rc_context({"font.size": 31.0, "text.usetex": True, "svg.fonttype": "path"}):
        own = dict(matplotlib.rcParams)
        styled = build(tmp_path, made_ms=NOON).html.read_bytes()
        assert dict(matplotlib.rcParams) == own
    assert build(tmp_path, made_ms=NOON).html.read_bytes() == styled
    program = "import kgctl.pipelines.report, sys; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
