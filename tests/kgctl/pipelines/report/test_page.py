"""The page and the charts as files."""

from __future__ import annotations

import base64
import hashlib
import xml.etree.ElementTree as xml
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from broker.cores.groups.events import Cause
from kgctl.model.history import LEFT_OR_TIMED_OUT
from kgctl.pipelines.report import build
from kgctl.pipelines.report.charts import lag_chart, rebalance_chart
from kgctl.pipelines.report.facts import read_facts
from kgctl.pipelines.report.palette import DARK, LIGHT, NO_CAUSE, OTHER_CAUSE, cause_colour
from kgctl.pipelines.report.text_width import text_width
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
    "{{ 7 * 7 }} {% raw %}",
    "&amp; \\1",
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


def test_the_page_shows_all_facts(tmp_path: Path) -> None:
    small(tmp_path)
    page = page_of(tmp_path)
    assert (
        "The report covers 2 consumer groups from 2024-01-01 12:00:00 to 12:01:00 UTC. 1 of 2 groups with commits is healthy. The worst "
        "is billing (STOPPED): its only partition is not healthy, with a lag of 1,234 records. 1 group has lag. "
        "There were 2 rebalances in 1 group."
    ) in page.text
    assert "Created 2024-01-01 12:00:00 UTC." in page.text
    assert page.tables["The worst partitions, worst first"][1:] == [
        [
            "billing",
            "orders",
            "0",
            "STOPPED",
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
    assert ["STOPPED", "1", "1"] in [row[:3] for row in page.tables["Health of partitions and groups"]]
    assert ["f_lag", "4", "the lag of each group, in records and in time, at points in time"] in page.tables[
        "Tables in this folder"
    ]


def test_charts_have_a_description(tmp_path: Path) -> None:
    small(tmp_path)
    page = page_of(tmp_path)
    assert any(
        "Lag of 2 groups over time" in label and "the highest is 1,234, of billing" in label for label in page.labels
    )
    assert any(label == "Rebalances of 1 group: shop 2 times." for label in page.labels)
    assert page.drawn.count("shop") == 2
    assert {"billing", "member left", "unknown cause", "only the end is known", "41", "42"} <= set(page.drawn)


def test_short_names_are_not_shortened(tmp_path: Path) -> None:
    names = ["W" * length for length in range(1, 12)]
    commit(tmp_path, "f_lag", [lag(name, 0, 5) for name in names])
    assert set(names) <= set(page_of(tmp_path).drawn)


def test_the_pages_load_nothing_and_run_one_script(tmp_path: Path) -> None:
    small(tmp_path)
    build(tmp_path, made_ms=NOON)
    for path in (tmp_path / "report.html", *(tmp_path / "report" / "groups").iterdir()):
        html = path.read_text()
        page = read(html)
        assert all((path.parent / link.removeprefix("href=")).is_file() for link in page.loads)
        assert not page.tags & {"link", "iframe", "img", "object", "image"}
        assert "@import" not in html
        assert html.count("url(") == html.count("url(#")
        assert len(page.ids) == len(set(page.ids))
        assert set(page.anchors) == set(page.ids)
        (script,) = page.scripts
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
        assert policy in unescape(html)


def test_the_page_of_an_empty_folder_says_so(tmp_path: Path) -> None:
    report = build(tmp_path / "nothing", made_ms=NOON)
    page = read(report.html.read_text())
    assert "Nothing to report: the tables hold no consumer group yet." in page.text
    assert report.charts == ()
    assert "svg" not in page.tags


def test_one_group_is_in_the_singular(tmp_path: Path) -> None:
    commit(tmp_path, "f_lag", [lag("billing", 0, 0)])
    text = page_of(tmp_path).text
    assert (
        "The report covers 1 consumer group at 2024-01-01 12:00:00 UTC. Their health is not known yet. No group has lag."
        in text
    )
    assert "run the job evaluate" in text
    assert "run the job rebalances" in text


def test_charts_of_an_earlier_report_are_removed(tmp_path: Path) -> None:
    small(tmp_path)
    report = build(tmp_path, made_ms=NOON)
    assert [path.name for path in report.charts] == ["lag.svg", "rebalances.svg"]
    (tmp_path / "f_rebalance").rename(tmp_path / "away")
    assert [path.name for path in build(tmp_path, made_ms=NOON).charts] == ["lag.svg"]
    assert [path.name for path in (tmp_path / "report").glob("*.svg")] == ["lag.svg"]


def test_a_chart_is_a_file_of_its_own_with_its_colours(tmp_path: Path) -> None:
    small(tmp_path)
    for path in build(tmp_path, made_ms=NOON).charts:
        svg = xml.parse(path).getroot()
        assert svg.tag == "{http://www.w3.org/2000/svg}svg"
        style = svg.findtext("{http://www.w3.org/2000/svg}style") or ""
        named = {name.split(")")[0] for name in path.read_text().split("var(")[1:]}
        assert all(f"{name}: #" in style for name in named)
        assert float(svg.attrib["width"]) == 960


def test_each_cause_has_a_colour_of_its_own() -> None:
    for palette in (LIGHT, DARK):
        colours = [palette[cause_colour(cause.value)[1]] for cause in Cause]
        assert len({*colours, palette[OTHER_CAUSE[1]], palette[NO_CAUSE[1]]}) == len(Cause) + 2
    assert cause_colour(LEFT_OR_TIMED_OUT)[0] == LEFT_OR_TIMED_OUT


def test_bars_and_areas_lie_within_the_chart(tmp_path: Path) -> None:
    groups = [f"group-{number}" for number in range(40)]
    commit(tmp_path, "f_lag", [lag(group, minute, 7 * minute) for group in groups for minute in range(200)])
    rows = [
        {"group": group, "generation": n, "started": NOON + n * n * MINUTE, "ended": NOON + n * n * MINUTE + n}
        for group in groups
        for n in range(30)
    ]
    commit(tmp_path, "f_rebalance", rows)
    facts = read_facts(tmp_path)
    assert facts.lag_map is not None
    assert facts.rebalances is not None
    chart = rebalance_chart(facts.rebalances)
    assert len(chart.labels) == 20
    assert len(chart.bars) == 600
    for bar in chart.bars:
        assert chart.left <= bar.x < bar.x + bar.width <= chart.right
        assert chart.legend.height <= bar.y < bar.y + chart.bar_height <= chart.bottom
    for one in (chart, lag_chart(facts.lag_map)):
        assert 3 <= len(one.ticks) <= 9
        assert all(one.left <= tick.x <= one.right for tick in one.ticks)
        assert all(key.x + text_width(key.text, one.small_px) <= one.width for key in one.legend.keys)


def test_names_are_escaped(tmp_path: Path) -> None:
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
    assert not page.tags & {"img", "b"}
    assert len(page.scripts) == 1
    assert not [char for char in "".join(page.words) if not char.isprintable() and char != "\n"]
    names = {row[0] for row in page.tables["Lag and rates of groups"][1:]}
    assert {NASTY[0], NASTY[1], NASTY[2], NASTY[5], NASTY[6], NASTY[7], NASTY[8]} <= names
    assert "tab\\t, escape \\x1b[31m, nul \\x00" in names
    assert "turned \\u202eround" in names
    for name in (NASTY[0], NASTY[2], NASTY[5], NASTY[6], NASTY[7], NASTY[8]):
        assert page.drawn.count(name) == 2


@pytest.mark.slow
def test_the_page_of_two_thousand_groups_stays_small(tmp_path: Path) -> None:
    groups = [f"a group with quite a long name, number {number:05}" for number in range(2000)]
    # The chart shows the first ones.
    minutes = {group: 500 if number < 40 else 5 for number, group in enumerate(groups)}
    commit(
        tmp_path,
        "f_lag",
        [lag(group, at, len(group) * at * 977 % 10**6) for group in groups for at in range(minutes[group])],
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
    assert report.html.stat().st_size < 2_000_000
    assert sum(chart.stat().st_size for chart in report.charts) < 500_000
    text = read(report.html.read_text()).text
    for sentence in (
        "And 1,970 more groups",
        "And 1,980 more partitions",
        "And 9,950 more rebalances",
        "10,000 rebalances in 200 groups",
    ):
        assert sentence in text


def test_the_same_tables_give_the_same_page(tmp_path: Path) -> None:
    small(tmp_path)
    first, again, later = (build(tmp_path, made_ms=NOON + delay).html.read_bytes() for delay in (0, 0, 1000))
    assert first == again != later
