"""The tables of the overview about topics, transactions, members and commits."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.pipelines.report import build
from kgctl.pipelines.report.listings import MAX_ROWS
from kgctl.pipelines.tables.newest import MEASURED
from tests.kgctl.pipelines.report.reading import Page, read
from tests.kgctl.pipelines.report.tables import commit
from tests.kgctl.pipelines.report.test_page import MINUTE, NOON

HOUR = 60 * MINUTE


def overview(out: Path) -> Page:
    return read(build(out, made_ms=NOON).html.read_text())


def test_jobs_that_have_not_run_have_no_section(tmp_path: Path) -> None:
    assert overview(tmp_path).ids == ["tables"]


def test_topics_are_the_sums_of_their_partitions_at_the_newest_measurement(tmp_path: Path) -> None:
    old = {"topic": "small", "part": 0, "at": NOON, "bytes": 10**9, "free_bytes": 10**9}
    rows = [
        {"topic": "orders", "part": part, "at": NOON + HOUR, "bytes": 1 << 20, "free_bytes": size, "dirty_ratio": ratio}
        for part, size, ratio in ((0, 512, 0.25), (1, 1536, 0.5))
    ]
    commit(tmp_path, "f_compaction", [old], "0")
    commit(tmp_path, "f_compaction", [*rows, {"topic": "small", "part": 0, "at": NOON + HOUR, "bytes": 100}], "1")
    assert overview(tmp_path).tables["Compacted topics, the most to free first"][1:] == [
        ["orders", "2.0 MiB", "2.0 KiB", "-", "-", "-", "50%", "-"],
        ["small", "100 B", "-", "-", "-", "-", "-", "-"],
    ]


def test_retention_names_the_oldest_record_of_a_topic(tmp_path: Path) -> None:
    rows = [{"topic": "t", "part": part, "at": NOON, "bytes": 1024, "oldest": NOON - part * HOUR} for part in (0, 1)]
    commit(tmp_path, "f_retention", rows)
    (row,) = overview(tmp_path).tables["Topics, the largest first"][1:]
    assert row[:5] == ["t", "2.0 KiB", "-", "-", "2024-01-01 11:00:00"]


def test_a_hold_that_a_later_run_did_not_find_is_over(tmp_path: Path) -> None:
    hold = {"topic": "t", "part": 1, "waiting": 5, "held_ms": 90_000, "transactional_id": "tx", "hanging": True}
    commit(tmp_path, "f_hold", [{**hold, "at": NOON}])
    producer = {"transactional_id": "tx", "transactions": 4, "aborted_share": 0.25}
    commit(tmp_path, "f_producer", [{**producer, "at": NOON}], "0")
    page = overview(tmp_path)
    assert page.tables["Transactions that hold readers, the oldest first"][1:] == [
        ["t", "1", "tx", "5", "1 min 30 s", "yes"]
    ]
    assert page.tables["Transactions by transactional id"][1][:3] == ["tx", "4", "25%"]
    commit(tmp_path, "f_hold", [], "1", {MEASURED: NOON + HOUR})
    assert "No open transaction holds readers." in overview(tmp_path).text


def test_churn_is_summed_over_windows_and_batches(tmp_path: Path) -> None:
    for number in range(2):
        rows = [
            {"group": "g", "client_host": "/10.0.0.1", "w_start": NOON + n * HOUR, "joins": 1, "leaves": 2}
            for n in range(2)
        ]
        commit(tmp_path, "f_churn", [*rows, {"group": "calm", "w_start": NOON, "joins": 1, "leaves": 0}], str(number))
    rows = overview(tmp_path).tables["Joins and leaves, most first"][1:]
    assert [row[:4] for row in rows] == [["g", "/10.0.0.1", "4", "8"], ["calm", "-", "2", "0"]]


def test_only_uneven_members_and_partitions_are_listed(tmp_path: Path) -> None:
    member = {"group": "g", "at": NOON, "parts": 3, "lag": 9}
    ratios = [("even", 1.0, None), ("behind", 1.0, 2.5), ("loaded", 3.0, 1.0), ("unknown", None, None)]
    rows = [{**member, "member_id": name, "parts_ratio": parts, "lag_ratio": lag} for name, parts, lag in ratios]
    commit(tmp_path, "f_member_skew", rows)
    partition = {"group": "g", "topic": "t", "at": NOON, "members": ["m"]}
    more: list[dict[str, object]] = [
        {"part": 0, "lag": 9, "lag_share": 0.9},
        {"part": 1, "lag": 1, "lag_share": 0.1},
        {"part": 2, "lag": 1, "lag_share": 0.1, "members": []},
        {"part": 3, "lag": 0, "lag_share": None, "members": []},
    ]
    commit(tmp_path, "f_partition_skew", [{**partition, **one} for one in more])
    page = overview(tmp_path)
    members = page.tables["Members with more than their share, the most uneven first"][1:]
    assert [row[1] for row in members] == ["behind", "loaded"]
    partitions = page.tables["Partitions with most of the lag of their group, the highest lag first"][1:]
    assert [row[2:] for row in partitions] == [["0", "9", "90%", "1"], ["2", "1", "10%", "0"]]


@pytest.mark.parametrize(
    ("surplus", "sentence"), [(1, "And 1 more row that is not shown."), (2, "And 2 more rows that")]
)
def test_the_highest_rows_are_shown_and_the_others_counted(tmp_path: Path, surplus: int, sentence: str) -> None:
    rows = [{"group": f"g{n}", "w_start": NOON, "commits": 1, "gap_max_ms": n} for n in range(MAX_ROWS + surplus)]
    commit(tmp_path, "f_commit", rows)
    page = overview(tmp_path)
    assert sentence in page.text
    assert page.tables["Commits of groups, the longest gap between commits first"][1][0] == f"g{MAX_ROWS + surplus - 1}"


def test_an_anomaly_is_listed_until_it_ends(tmp_path: Path) -> None:
    row = {
        "group": "g",
        "metric": "lag",
        "since": NOON,
        "value": 900.0,
        "low": 0.0,
        "high": 30.0,
        "reason": "lag is high",
    }
    commit(tmp_path, "anomalies", [{**row, "event": "started", "at": NOON + MINUTE}], "0")
    assert overview(tmp_path).tables["Anomalies that have not ended, the highest value first"][1:] == [
        ["g", "lag", "2024-01-01 12:00:00", "900", "0", "30", "lag is high"]
    ]
    commit(tmp_path, "anomalies", [{**row, "event": "ended", "at": NOON + HOUR}], "1")
    assert "No group is anomalous now." in overview(tmp_path).text
