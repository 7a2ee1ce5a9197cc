"""The facts of a report, from tables made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kgctl.pipelines.report.facts import MAX_PARTITIONS, MAX_REBALANCES, read_facts
from kgctl.pipelines.report.lag_facts import MAX_BINS, MAX_GROUPS, MAX_NOW
from kgctl.pipelines.report.rows import GroupNow, HealthCount, Rebalance, WorstGroup
from kgctl.pipelines.tables.manifest import Damaged
from tests.kgctl.pipelines.report.tables import commit
from tests.kgctl.pipelines.results.evaluations import evaluate

NOON, MINUTE = 1_704_110_400_000, 60_000


def lag(group: str, part: int, minute: int, lag: int | None, **more: Any) -> dict[str, Any]:
    return {"group": group, "topic": "t", "part": part, "at": NOON + minute * MINUTE, "lag": lag, **more}


def evaluated(
    group: str, part: int, status: str, lag: int | None = None, at: int = NOON, **more: Any
) -> dict[str, Any]:
    return {"group": group, "topic": "t", "part": part, "at": at, "status": status, "lag": lag, **more}


def rebalance(group: str, generation: int, ended: int, **more: Any) -> dict[str, Any]:
    return {"group": group, "generation": generation, "ended": ended, "joined": [], "left": [], **more}


def test_no_tables_are_no_facts(tmp_path: Path) -> None:
    facts = read_facts(tmp_path)
    assert (facts.groups, facts.first_ms, facts.last_ms, facts.cluster) == (0, None, None, None)
    assert (facts.lag_map, facts.health, facts.rebalances, facts.now) == (None, None, None, ())
    assert set(facts.rows.values()) == {0}


def test_lag_is_summed_over_partitions_at_each_time(tmp_path: Path) -> None:
    rows = [lag("a", part, minute, 10 * part + minute) for part in (1, 2) for minute in (0, 1, 2)]
    commit(tmp_path, "f_lag", [*rows, lag("b", 0, 0, None), lag("b", 0, 1, 0), lag("b", 0, 2, 100)])
    found = read_facts(tmp_path).lag_map
    assert found is not None
    assert found.groups == ("b", "a")
    assert found.lag == ((None, 0, 100), (30, 32, 34))
    assert found.edges_ms == tuple(NOON + minute * MINUTE - MINUTE // 2 for minute in range(4))


def test_lag_of_several_batches_is_one_map(tmp_path: Path) -> None:
    commit(tmp_path, "f_lag", [lag("a", 0, 0, 1), lag("a", 0, 1, 2)], "one")
    commit(tmp_path, "f_lag", [lag("a", 1, 1, 5), lag("a", 0, 2, 3)], "two")
    facts = read_facts(tmp_path)
    assert facts.lag_map is not None
    assert facts.lag_map.lag == ((1, 7, 3),)
    assert facts.rows["f_lag"] == 4
    assert (facts.first_ms, facts.last_ms) == (NOON, NOON + 2 * MINUTE)


def test_points_that_share_a_bin_are_shown_by_their_maximum(tmp_path: Path) -> None:
    commit(tmp_path, "f_lag", [lag("a", 0, minute, 7 if minute == 500 else 0) for minute in range(1000)])
    found = read_facts(tmp_path).lag_map
    assert found is not None
    (row,) = found.lag
    assert len(row) == MAX_BINS
    assert sorted(row, key=lambda cell: cell or 0)[-2:] == [0, 7]
    assert None not in row


def test_one_point_in_time_is_a_map_with_one_bin(tmp_path: Path) -> None:
    commit(tmp_path, "f_lag", [lag("a", 0, 0, 4)])
    found = read_facts(tmp_path).lag_map
    assert found is not None
    assert found.lag == ((4,),)


def test_the_map_holds_the_groups_with_the_highest_lag_and_counts_the_others(tmp_path: Path) -> None:
    commit(tmp_path, "f_lag", [lag(f"g{n:03}", 0, 0, n) for n in range(MAX_GROUPS + 7)])
    found = read_facts(tmp_path).lag_map
    assert found is not None
    assert len(found.groups) == MAX_GROUPS
    assert found.groups[0] == f"g{MAX_GROUPS + 6:03}"
    assert found.more_groups == 7


def test_a_group_is_shown_at_its_last_point(tmp_path: Path) -> None:
    rates = {"consume_rate": 1.5, "produce_rate": 2.0}
    rows = [
        lag("a", 0, 0, 999, eta_s=1.0, lag_ms=1),
        lag("a", 0, 1, 10, eta_s=30.0, lag_ms=400, **rates),
        lag("a", 1, 1, 5, eta_s=60.0, lag_ms=None, **rates),
        lag("a", 2, 1, 0, eta_s=0.0, lag_ms=0, **rates),
        lag("ended before", 0, 0, 3, eta_s=None, **rates),
        lag("done", 0, 1, 0),
        lag("first point", 0, 1, 2),
        lag("part unknown", 0, 1, 1, eta_s=5.0, **rates),
        lag("part unknown", 1, 1, 0, eta_s=0.0, **rates),
        lag("part unknown", 2, 1, 1, eta_s=None, consume_rate=1.0),
    ]
    commit(tmp_path, "f_lag", rows)
    facts = read_facts(tmp_path)
    at = NOON + MINUTE
    assert facts.now == (
        GroupNow("a", at, 3, 2, 15, 400, 4.5, 6.0, 60.0, 0),
        GroupNow("ended before", NOON, 1, 1, 3, None, 1.5, 2.0, None, 1),
        GroupNow("first point", at, 1, 1, 2, None, None, None, None, 0),
        GroupNow("part unknown", at, 3, 2, 2, None, 4.0, 4.0, None, 0),
    )
    assert (facts.groups, facts.behind_groups, facts.more_now) == (5, 4, 0)


def test_groups_with_lag_are_bounded_and_counted(tmp_path: Path) -> None:
    commit(tmp_path, "f_lag", [lag(f"g{n}", 0, 0, 1) for n in range(MAX_NOW + 3)])
    facts = read_facts(tmp_path)
    assert (len(facts.now), facts.more_now, facts.behind_groups) == (MAX_NOW, 3, MAX_NOW + 3)


def test_a_group_counts_with_its_worst_partition_at_the_last_evaluation(tmp_path: Path) -> None:
    commit(tmp_path, "health", [evaluated("a", 0, "STOPPED", 9, at=NOON - MINUTE)], "before")
    rows = [
        evaluated("a", 0, "OK"),
        evaluated("a", 1, "LAGGING", 10, complete=0.5, reasons=["never falls"]),
        evaluated("b", 0, "LAGGING", 400),
        evaluated("c", 0, "OK", 0),
        evaluated("d", 0, "UNKNOWN"),
    ]
    commit(tmp_path, "health", rows, "now")
    commit(tmp_path, "f_lag", [lag("a", 1, 0, 10, lag_ms=77)])
    found = read_facts(tmp_path).health
    assert found is not None
    assert (found.at_ms, found.groups, found.healthy) == (NOON, 4, 1)
    assert found.worst == WorstGroup("b", "LAGGING", 1, 1, 400)
    assert [count for count in found.counts if count.partitions] == [
        HealthCount("LAGGING", 2, 2),
        HealthCount("UNKNOWN", 1, 1),
        HealthCount("OK", 2, 1),
    ]
    assert [(one.group, one.part, one.lag, one.lag_ms) for one in found.worst_partitions] == [
        ("b", 0, 400, None),
        ("a", 1, 10, 77),
        ("d", 0, None, None),
    ]
    assert (found.worst_partitions[1].complete, found.worst_partitions[1].reasons) == (0.5, ("never falls",))


def test_the_worst_partitions_are_bounded_and_counted(tmp_path: Path) -> None:
    rows = [evaluated("a", part, "STOPPED" if part % 2 else "STALLED", part) for part in range(MAX_PARTITIONS + 5)]
    commit(tmp_path, "health", rows)
    found = read_facts(tmp_path).health
    assert found is not None
    assert (len(found.worst_partitions), found.more_unhealthy) == (MAX_PARTITIONS, 5)
    assert [one.status for one in found.worst_partitions] == ["STOPPED"] * 12 + ["STALLED"] * 8
    assert found.worst_partitions[0].lag == 23


def test_there_is_no_worst_group_if_all_are_healthy(tmp_path: Path) -> None:
    commit(tmp_path, "health", [evaluated("a", 0, "OK", 5)])
    found = read_facts(tmp_path).health
    assert found is not None
    assert (found.worst, found.healthy, found.worst_partitions) == (None, 1, ())


def test_groups_that_the_newest_evaluation_lacks_have_no_health_even_if_it_found_none(tmp_path: Path) -> None:
    evaluate(tmp_path, 0, orders="STALLED")
    evaluate(tmp_path, 1, billing="OK")
    facts = read_facts(tmp_path)
    assert facts.health is not None
    assert {row.group: row.status for row in facts.every} == {"orders": None, "billing": "OK"}
    evaluate(tmp_path, 2)
    facts = read_facts(tmp_path)
    assert facts.health is None
    assert {row.group: row.status for row in facts.every} == {"orders": None, "billing": None}


def test_rebalances_are_in_order_of_time(tmp_path: Path) -> None:
    more = {"started": NOON - 500, "duration_ms": 500, "cause": "member left", "reason": "bye", "members": 2}
    rows = [
        rebalance("b", 2, NOON, left=["x", "y"], moved_parts=3, skew=1.5, commits_rejected=0, **more),
        rebalance("a", 1, NOON - MINUTE, joined=None, left=None),
    ]
    commit(tmp_path, "f_rebalance", rows)
    facts = read_facts(tmp_path)
    found = facts.rebalances
    assert found is not None
    assert (found.count, found.groups, found.without_duration) == (2, 2, 1)
    assert found.newest == (
        Rebalance("a", 1, None, NOON - MINUTE, None, None, None, None, None, None, None, None, None),
        Rebalance("b", 2, NOON - 500, NOON, 500, "member left", "bye", 0, 2, 2, 3, 1.5, 0),
    )
    assert (facts.first_ms, facts.last_ms, facts.groups) == (NOON - MINUTE, NOON, 2)


def test_rebalances_are_bounded_and_counted(tmp_path: Path) -> None:
    for batch in range(3):
        rows = [rebalance("a" if n % 3 else "b", n, NOON + batch * MINUTE + n) for n in range(1000)]
        commit(tmp_path, "f_rebalance", rows, str(batch))
    found = read_facts(tmp_path).rebalances
    assert found is not None
    assert (found.count, len(found.newest)) == (3000, MAX_REBALANCES)
    assert found.busiest == (("a", 1998), ("b", 1002))
    assert (found.newest[0].ended_ms, found.newest[-1].ended_ms) == (NOON + MINUTE, NOON + 2 * MINUTE + 999)


def test_the_cluster_is_read_from_the_files_beside_the_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "_checkpoints" / "decode").mkdir(parents=True)
    (tmp_path / "_checkpoints" / "decode" / "kgctl.json").write_text('{"cluster_id": "x7"}')
    (tmp_path / "_checkpoints" / "lag").mkdir()
    (tmp_path / "_checkpoints" / "lag" / "kgctl.json").write_text("torn")
    assert read_facts(tmp_path).cluster == "x7"


def test_a_damaged_table_is_an_error(tmp_path: Path) -> None:
    commit(tmp_path, "health", [evaluated("a", 0, "OK")])
    (tmp_path / "health" / "_manifest" / "one.json").write_text("{")
    with pytest.raises(Damaged, match=r"one\.json"):
        read_facts(tmp_path)
